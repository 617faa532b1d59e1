//! Dequantisation into heads on the host: tokens over the pool, all heads of a token in one task.

use super::{Host, positions};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{DequantRopeTranspose, DequantTranspose, HeadSizes};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, Slot, WorkerSlot};
use crate::tensor::{Tensor, TensorMut, Tokens};
use core::alloc::Layout;
use tilekern_kernels::rows;

/// Room for rows that are not contiguous.
pub(super) struct Staging {
    weight_scale: Slot<f32>,
    input: WorkerSlot<i32>,
    freqs: WorkerSlot<f32>,
    output: WorkerSlot<f32>,
}

/// `freqs` is what a row of the table takes.
pub(super) fn plan(workers: usize, d: HeadSizes, freqs: usize) -> Result<(Plan, Staging), Error> {
    let mut plan = Plan::new();
    let weight_scale = plan.slot(d.columns)?;
    let input = plan.each(workers, d.columns)?;
    let freqs = plan.each(workers, freqs)?;
    let output = plan.each(workers, d.columns)?;
    Ok((plan, Staging { weight_scale, input, freqs, output }))
}

/// What the two operations have in common; `rotation` is the table and the first positions.
struct Sums<'a> {
    input: &'a Tensor<'a, i32>,
    input_scale: &'a Tensor<'a, f32>,
    weight_scale: &'a Tensor<'a, f32>,
    rotation: Option<(&'a Tensor<'a, f32>, &'a Tensor<'a, i64>)>,
    output: &'a TensorMut<'a, f32>,
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn dequant_transpose(
        &self,
        call: &DequantTranspose<'_, Self>,
        d: HeadSizes,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let DequantTranspose { input, input_scale, weight_scale, output } = call;
        self.transpose(d, Sums { input, input_scale, weight_scale, rotation: None, output }, scratch)
    }

    /// A call that was found valid.
    pub(super) fn dequant_rope_transpose(
        &self,
        call: &DequantRopeTranspose<'_, Self>,
        d: HeadSizes,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let DequantRopeTranspose { input, input_scale, weight_scale, freqs, start_pos, output } = call;
        let rotation = Some((freqs, start_pos));
        self.transpose(d, Sums { input, input_scale, weight_scale, rotation, output }, scratch)
    }

    fn transpose(&self, d: HeadSizes, sums: Sums<'_>, scratch: &mut [u8]) -> Result<(), Error> {
        let Sums { input, input_scale, weight_scale, rotation, output } = sums;
        let (plan, stage) = plan(self.pool.workers(), d, rotation.map_or(0, |_| d.size))?;
        let space = plan.carve(scratch)?;
        if d.rows() == 0 {
            return Ok(());
        }
        let weight_scale = weight_scale.row(0).gather(space.take(stage.weight_scale));
        let output = Tokens { tensor: output, tokens: d.tokens, start: None };
        let parts = (output, space.take_each(stage.input), space.take_each(stage.freqs), space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows(), parallel::grain(d.columns, 8), parts, |row, (mut output, x, f, y)| {
            let (input, input_scale) = (input.row(row).gather(x), input_scale.get(row));
            let freqs = rotation.map(|(freqs, start_pos)| {
                let position = start_pos.get(row / d.tokens) as usize + row % d.tokens;
                freqs.row(position).gather(f)
            });
            output.fill(y, |heads, output| {
                let (input, weight_scale) = (&input[heads.clone()], &weight_scale[heads]);
                match freqs {
                    Some(freqs) => self.level.run(rows::DequantRope { input, input_scale, weight_scale, freqs, output }),
                    None => self.level.run(rows::Dequant { input, input_scale, weight_scale, output }),
                }
            });
        });
        Ok(())
    }
}

impl<P: ParallelFor> Run<DequantTranspose<'_, Self>> for Host<P> {
    fn workspace(&self, call: &DequantTranspose<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check(false)?, 0)?.0.layout())
    }

    fn run_mut(&self, call: &mut DequantTranspose<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        self.dequant_transpose(call, d, scratch)
    }
}

impl<P: ParallelFor> Run<DequantRopeTranspose<'_, Self>> for Host<P> {
    fn workspace(&self, call: &DequantRopeTranspose<'_, Self>) -> Result<Layout, Error> {
        let d = call.check(false)?;
        Ok(plan(self.pool.workers(), d, d.size)?.0.layout())
    }

    fn run_mut(&self, call: &mut DequantRopeTranspose<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        positions::check(&call.start_pos, d.tokens, call.positions())?;
        self.dequant_rope_transpose(call, d, scratch)
    }
}
