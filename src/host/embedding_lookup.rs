//! Embedding rows on the host: tokens over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{EmbeddingLookup, LookupSizes, check};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// Room for rows that are not contiguous.
struct Staging<T> {
    input: WorkerSlot<T>,
    output: WorkerSlot<T>,
}

fn plan<T: Element>(workers: usize, d: LookupSizes) -> Result<(Plan, Staging<T>), Error> {
    let mut plan = Plan::new();
    let input = plan.each(workers, d.columns)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, Staging { input, output }))
}

impl<T: Element, P: ParallelFor> Run<EmbeddingLookup<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &EmbeddingLookup<'_, Self, T>) -> Result<Layout, Error> {
        Ok(plan::<T>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut EmbeddingLookup<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        (0..d.rows).try_for_each(|row| check::id("ids", call.ids.get(row), d.vocabulary))?;
        let (plan, stage) = plan::<T>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        let factor = call.scale as f32;
        let parts = (&call.output, space.take_each(stage.input), space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows, parallel::grain(d.columns, 2 * size_of::<T>()), parts, |row, (mut output, x, y)| {
            let input = call.table.row(call.ids.get(row) as usize).gather(x);
            output.scatter(y, |output| match factor {
                1.0 => output.copy_from_slice(input),
                factor => self.level.run(rows::Scale { input, factor, output }),
            });
        });
        Ok(())
    }
}
