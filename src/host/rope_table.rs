//! The RoPE table on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{RopeTable, Rows};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, Slot, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::rows;

/// The frequencies, and room for rows that are not contiguous.
struct Staging {
    frequencies: Slot<f64>,
    output: WorkerSlot<f32>,
}

fn plan(workers: usize, d: Rows) -> Result<(Plan, Staging), Error> {
    let mut plan = Plan::new();
    let frequencies = plan.slot(d.columns / 2)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, Staging { frequencies, output }))
}

/// Bytes of ordinary work that a number of the table is worth: a cosine or a sine takes some ten nanoseconds.
const COST: usize = 64;

impl<P: ParallelFor> Run<RopeTable<'_, Self>> for Host<P> {
    fn workspace(&self, call: &RopeTable<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut RopeTable<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        let (plan, stage) = plan(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let frequencies = space.take(stage.frequencies);
        rows::rope_frequencies(call.theta, frequencies);
        let parts = (&call.output, space.take_each(stage.output));
        let grain = parallel::grain(d.columns, COST);
        parallel::rows(&self.pool, d.rows, grain, parts, |row, (mut output, y)| {
            let position = (call.start + row as i64) as f64;
            output.scatter(y, |output| rows::rope_row(position, frequencies, output));
        });
        Ok(())
    }
}
