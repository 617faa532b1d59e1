//! RMSNorm on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{RmsNorm, RmsNormQuant, Rows};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Plan, Slot, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// Room for rows that are not contiguous.
pub(super) struct Staging<T, Y> {
    gamma: Slot<T>,
    input: WorkerSlot<T>,
    output: WorkerSlot<Y>,
}

pub(super) fn plan<T: Element, Y: bytemuck::Pod>(workers: usize, d: Rows) -> Result<(Plan, Staging<T, Y>), Error> {
    let mut plan = Plan::new();
    let gamma = plan.slot(d.columns)?;
    let input = plan.each(workers, d.columns)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, Staging { gamma, input, output }))
}

impl<T: Element, P: ParallelFor> Run<RmsNorm<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &RmsNorm<'_, Self, T>) -> Result<Layout, Error> {
        Ok(plan::<T, T>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut RmsNorm<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        let (plan, stage) = plan::<T, T>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let gamma = call.gamma.row(0).gather(space.take(stage.gamma));
        let output = (&call.output, space.take_each(stage.input), space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows, parallel::grain(d.columns, 4), output, |row, (mut output, x, y)| {
            let input = call.input.row(row).gather(x);
            output.scatter(y, |output| self.level.run(rows::RmsNorm { input, gamma, eps: call.eps, output }));
        });
        Ok(())
    }
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn rms_norm_quant<T: Element>(
        &self,
        call: &RmsNormQuant<'_, Self, T>,
        d: Rows,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, stage) = plan::<T, i8>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let gamma = call.gamma.row(0).gather(space.take(stage.gamma));
        let output = (&call.output, Column(&call.output_scale), space.take_each(stage.input), space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows, parallel::grain(d.columns, 4), output, |row, (mut output, scale, x, y)| {
            let input = call.input.row(row).gather(x);
            *scale = output.scatter(y, |output| self.level.run(rows::RmsNormQuant { input, gamma, eps: call.eps, output }));
        });
        Ok(())
    }
}

impl<T: Element, P: ParallelFor> Run<RmsNormQuant<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &RmsNormQuant<'_, Self, T>) -> Result<Layout, Error> {
        Ok(plan::<T, i8>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut RmsNormQuant<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.rms_norm_quant(call, d, scratch)
    }
}
