//! Residuals on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{DequantResidual, DequantResidualRmsNormQuant, Rows};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Plan, Slot, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// Room for rows that are not contiguous.
pub(super) struct Staging<T> {
    weight_scale: Slot<f32>,
    input: WorkerSlot<i32>,
    residual: WorkerSlot<T>,
    sum: WorkerSlot<T>,
}

/// What the norm needs besides.
pub(super) struct NormStaging<T> {
    gamma: Slot<T>,
    output: WorkerSlot<i8>,
}

pub(super) fn plan<T: Element>(workers: usize, d: Rows) -> Result<(Plan, Staging<T>), Error> {
    let mut plan = Plan::new();
    let weight_scale = plan.slot(d.columns)?;
    let input = plan.each(workers, d.columns)?;
    let residual = plan.each(workers, d.columns)?;
    let sum = plan.each(workers, d.columns)?;
    Ok((plan, Staging { weight_scale, input, residual, sum }))
}

pub(super) fn plan_norm<T: Element>(workers: usize, d: Rows) -> Result<(Plan, Staging<T>, NormStaging<T>), Error> {
    let (mut plan, staging) = plan(workers, d)?;
    let gamma = plan.slot(d.columns)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, staging, NormStaging { gamma, output }))
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn dequant_residual<T: Element>(
        &self,
        call: &DequantResidual<'_, Self, T>,
        d: Rows,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, stage) = plan::<T>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let weight_scale = call.weight_scale.row(0).gather(space.take(stage.weight_scale));
        let stages = (space.take_each(stage.input), space.take_each(stage.residual), space.take_each(stage.sum));
        let parts = (&call.output, stages);
        parallel::rows(&self.pool, d.rows, parallel::grain(d.columns, 8), parts, |row, (mut output, stages)| {
            let (x, r, y) = stages;
            let (input, input_scale) = (call.input.row(row).gather(x), call.input_scale.get(row));
            let residual = call.residual.row(row).gather(r);
            output.scatter(y, |output| {
                self.level.run(rows::DequantResidual { input, input_scale, weight_scale, residual, output });
            });
        });
        Ok(())
    }
}

impl<T: Element, P: ParallelFor> Run<DequantResidual<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &DequantResidual<'_, Self, T>) -> Result<Layout, Error> {
        Ok(plan::<T>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut DequantResidual<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.dequant_residual(call, d, scratch)
    }
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn dequant_residual_rms_norm_quant<T: Element>(
        &self,
        call: &DequantResidualRmsNormQuant<'_, Self, T>,
        d: Rows,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, stage, norm) = plan_norm::<T>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let weight_scale = call.weight_scale.row(0).gather(space.take(stage.weight_scale));
        let (gamma, eps) = (call.gamma.row(0).gather(space.take(norm.gamma)), call.eps);
        let stages = (space.take_each(stage.input), space.take_each(stage.residual), space.take_each(stage.sum));
        let parts = (&call.output, Column(&call.output_scale), &call.hidden, stages, space.take_each(norm.output));
        parallel::rows(&self.pool, d.rows, parallel::grain(d.columns, 8), parts, |row, parts| {
            let (mut output, scale, mut hidden, (x, r, h), y) = parts;
            let (input, input_scale) = (call.input.row(row).gather(x), call.input_scale.get(row));
            let residual = call.residual.row(row).gather(r);
            *scale = hidden.scatter(h, |hidden| {
                let hidden = rows::DequantResidual { input, input_scale, weight_scale, residual, output: hidden };
                output.scatter(y, |output| self.level.run(rows::DequantResidualRmsNormQuant { hidden, gamma, eps, output }))
            });
        });
        Ok(())
    }
}

impl<T: Element, P: ParallelFor> Run<DequantResidualRmsNormQuant<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &DequantResidualRmsNormQuant<'_, Self, T>) -> Result<Layout, Error> {
        Ok(plan_norm::<T>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut DequantResidualRmsNormQuant<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.dequant_residual_rms_norm_quant(call, d, scratch)
    }
}
