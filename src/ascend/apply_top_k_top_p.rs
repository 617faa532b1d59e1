//! `aclnnApplyTopKTopP`.

use super::description::{Description, DeviceType};
use super::executor::{Job, phases};
use super::{Ascend, Dispatch};
use crate::error::Error;
use crate::ops::ApplyTopKTopP;
use tilekern_kernels::element::Element;

impl<'t, T: Element + DeviceType> Dispatch<ApplyTopKTopP<'_, Self, T>> for Ascend<'t> {
    fn dispatch(&self, call: &ApplyTopKTopP<'_, Self, T>, job: Job<'_>) -> Result<(), Error> {
        if call.check(job.runs())?.is_none() {
            return Ok(());
        }
        let operator = self.operator("aclnnApplyTopKTopP", self.table.operators.aclnnApplyTopKTopP)?;
        let p = call.p.map(|p| self.describe::<T>("p", &p)).transpose()?;
        let k = call.k.map(|k| self.describe::<i32>("k", &k)).transpose()?;
        let descriptors = [
            self.tensor(self.describe::<T>("logits", &call.logits)?)?,
            self.optional(p.map(Description::flat))?,
            self.optional(k.map(Description::flat))?,
            self.tensor(self.describe::<T>("out", &call.out)?)?,
        ];
        // SAFETY: phase one of the operator, as its prototype has it.
        let prepared = unsafe {
            self.prepare(phases!(aclnnApplyTopKTopP), operator.run, descriptors, |[logits, p, k, out], bytes, executor| {
                (operator.workspace)(logits.tensor(), p.tensor(), k.tensor(), out.tensor(), bytes, executor)
            })
        }?;
        job.finish(prepared)
    }
}
