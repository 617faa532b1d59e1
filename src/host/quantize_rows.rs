//! Quantisation on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{QuantizeRows, QuantizeSizes};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// Room for rows that are not contiguous.
pub(super) struct Staging<T> {
    input: WorkerSlot<T>,
    output: WorkerSlot<i8>,
}

pub(super) fn plan<T: Element>(workers: usize, d: QuantizeSizes) -> Result<(Plan, Staging<T>), Error> {
    let mut plan = Plan::new();
    let input = plan.each(workers, d.columns)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, Staging { input, output }))
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn quantize_rows<T: Element>(
        &self,
        call: &QuantizeRows<'_, Self, T>,
        d: QuantizeSizes,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, stage) = plan::<T>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let grain = parallel::grain(d.columns, size_of::<T>() + 1);
        let parts = (&call.output, Column(&call.output_scale), space.take_each(stage.input), space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows, grain, parts, |row, (mut output, scale, x, y)| {
            let input = match d.tokens {
                Some(tokens) => call.input.heads(row / tokens, row % tokens).gather(x),
                None => call.input.row(row).gather(x),
            };
            *scale = output.scatter(y, |output| self.level.run(rows::Quantize { input, output }));
        });
        Ok(())
    }
}

impl<T: Element, P: ParallelFor> Run<QuantizeRows<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &QuantizeRows<'_, Self, T>) -> Result<Layout, Error> {
        Ok(plan::<T>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut QuantizeRows<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.quantize_rows(call, d, scratch)
    }
}
