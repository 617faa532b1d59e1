//! SwiGLU on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{DequantSwigluQuant, Rows};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Plan, Slot, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::rows;

/// The row before it is quantised, and room for rows that are not contiguous.
pub(super) struct Staging {
    w1_scale: Slot<f32>,
    w3_scale: Slot<f32>,
    w1: WorkerSlot<i32>,
    w3: WorkerSlot<i32>,
    row: WorkerSlot<f32>,
    output: WorkerSlot<i8>,
}

pub(super) fn plan(workers: usize, d: Rows) -> Result<(Plan, Staging), Error> {
    let mut plan = Plan::new();
    let w1_scale = plan.slot(d.columns)?;
    let w3_scale = plan.slot(d.columns)?;
    let w1 = plan.each(workers, d.columns)?;
    let w3 = plan.each(workers, d.columns)?;
    let row = plan.each(workers, d.columns)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, Staging { w1_scale, w3_scale, w1, w3, row, output }))
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn dequant_swiglu_quant(
        &self,
        call: &DequantSwigluQuant<'_, Self>,
        d: Rows,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, stage) = plan(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows == 0 {
            return Ok(());
        }
        let w1_scale = call.w1_scale.row(0).gather(space.take(stage.w1_scale));
        let w3_scale = call.w3_scale.row(0).gather(space.take(stage.w3_scale));
        let stages = (space.take_each(stage.w1), space.take_each(stage.w3), space.take_each(stage.row));
        let parts = (&call.output, Column(&call.output_scale), stages, space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows, parallel::grain(d.columns, 8), parts, |row, (mut output, scale, stages, y)| {
            let (a, b, stage) = stages;
            let (w1, w3) = (call.w1.row(row).gather(a), call.w3.row(row).gather(b));
            let input_scale = call.input_scale.get(row);
            *scale = output.scatter(y, |output| {
                self.level.run(rows::DequantSwigluQuant { w1, w3, input_scale, w1_scale, w3_scale, stage, output })
            });
        });
        Ok(())
    }
}

impl<P: ParallelFor> Run<DequantSwigluQuant<'_, Self>> for Host<P> {
    fn workspace(&self, call: &DequantSwigluQuant<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut DequantSwigluQuant<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.dequant_swiglu_quant(call, d, scratch)
    }
}
