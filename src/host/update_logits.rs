//! The logits of the last token on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{LogitSizes, UpdateLogits};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::rows;

fn plan(workers: usize, d: LogitSizes) -> Result<(Plan, [WorkerSlot<f32>; 2]), Error> {
    // Rows that there are none of may be of any length.
    let (mut plan, n) = (Plan::new(), if d.batch == 0 { 0 } else { d.vocabulary });
    let slots = [plan.each(workers, n)?, plan.each(workers, n)?];
    Ok((plan, slots))
}

impl<P: ParallelFor> Run<UpdateLogits<'_, Self>> for Host<P> {
    fn workspace(&self, call: &UpdateLogits<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut UpdateLogits<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        let (plan, [input, output]) = plan(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        let (softmax, end) = (call.softmax, call.end_id as usize);
        let parts = (&call.output, space.take_each(input), space.take_each(output));
        parallel::rows(&self.pool, d.batch, parallel::grain(d.vocabulary, 8), parts, |row, (mut output, x, y)| {
            if call.finished.is_some_and(|finished| finished.first_of(row) != 0) {
                let (at_end, elsewhere) = if softmax { (1.0, 0.0) } else { (f32::MAX, -f32::MAX) };
                return output.scatter(y, |output| {
                    output.fill(elsewhere);
                    output[end] = at_end;
                });
            }
            let row = call.logits.row(row * d.tokens + d.tokens - 1).gather(x);
            output.scatter(y, |output| match softmax {
                true => self.level.run(rows::Probabilities { row, output }),
                false => output.copy_from_slice(row),
            });
        });
        Ok(())
    }
}
