//! `aclnnMultinomial`.

use super::description::DeviceType;
use super::executor::{Job, phases};
use super::{Ascend, Dispatch};
use crate::error::Error;
use crate::ops::{Multinomial, Weight};

impl<'t, T: Weight + DeviceType> Dispatch<Multinomial<'_, Self, T>> for Ascend<'t> {
    fn dispatch(&self, call: &Multinomial<'_, Self, T>, job: Job<'_>) -> Result<(), Error> {
        if call.check(job.runs())?.is_none() {
            return Ok(());
        }
        let operator = self.operator("aclnnMultinomial", self.table.operators.aclnnMultinomial)?;
        let descriptors =
            [self.tensor(self.describe::<T>("probs", &call.probs)?)?, self.tensor(self.describe::<i64>("out", &call.out)?)?];
        let (samples, replacement, seed, offset) = (call.num_samples, call.replacement, call.seed, call.offset);
        // SAFETY: phase one of the operator, as its prototype has it.
        let prepared = unsafe {
            self.prepare(phases!(aclnnMultinomial), operator.run, descriptors, |[probs, out], bytes, executor| {
                (operator.workspace)(probs.tensor(), samples, replacement, seed, offset, out.tensor(), bytes, executor)
            })
        }?;
        job.finish(prepared)
    }
}
