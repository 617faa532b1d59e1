//! The int8 product on the host: chunks of rows, columns over the pool, a sink that scales the sums.

use super::Host;
use super::activations::{RowSlots, chunk_rows};
use super::weight::{Weight, plan_stage, strip_columns};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Bias, ChannelScale, FORMAT_PACKED, Product, Product3, QuantMatmul, WeightSizes};
use crate::parallel::{self, Block, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, WorkerSlot};
use crate::tensor::{Row, Tensor, TensorMut};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{Span, add_bias};
use tilekern_kernels::simd::Simd;
use tilekern_kernels::tiles::{MATMUL_WORDS, Matmul, PackedRows, Sink};

/// Multiplications of a task, about: 5 us of work at the rate of a dot unit.
const WORK: usize = 1 << 21;

pub(super) struct Slots {
    rows: RowSlots,
    words: WorkerSlot<u64>,
    stage: WorkerSlot<[i8; 64]>,
    weight_scale: Slot<f32>,
    bias: Slot<f32>,
    integers: Slot<i32>,
}

pub(super) fn plan(workers: usize, d: Product3, format: i32) -> Result<(Plan, Slots), Error> {
    let mut plan = Plan::new();
    let slots = Slots {
        rows: RowSlots::plan(&mut plan, workers, chunk_rows(d.m, d.k), d.k)?,
        words: plan.each(workers, MATMUL_WORDS)?,
        stage: plan_stage(&mut plan, workers, format, d.weight())?,
        weight_scale: plan.slot(d.n)?,
        bias: plan.slot(d.n)?,
        integers: plan.slot(d.n)?,
    };
    Ok((plan, slots))
}

/// Columns of a task over `rows` rows.
pub(super) fn task_columns(rows: usize, d: WeightSizes, format: i32) -> usize {
    match format {
        FORMAT_PACKED => (WORK / (d.k * rows.max(1))).next_multiple_of(64).max(64),
        _ => strip_columns(d.k),
    }
}

/// A vector of floats as `f32`: where it lies, or widened into `stage`.
fn widened<'a, T: Element>(view: &Tensor<'a, T>, stage: &'a mut [f32]) -> &'a [f32] {
    let row = view.row(0);
    for (i, to) in stage.iter_mut().enumerate() {
        *to = row.get(i).as_();
    }
    stage
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn quant_matmul(
        &self,
        call: QuantMatmul<'_, Self>,
        d: Product3,
        weight: Weight<'_>,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, slots) = plan(self.pool.workers(), d, call.weight_format)?;
        let space = plan.carve(scratch)?;
        let stage = space.take(slots.weight_scale);
        let weight_scale = match &call.weight_scale {
            None => None,
            Some(ChannelScale::F32(view)) => Some(view.row(0).gather(stage)),
            Some(ChannelScale::F16(view)) => Some(widened(view, stage)),
            Some(ChannelScale::BF16(view)) => Some(widened(view, stage)),
        };
        let (mut integers, mut floats) = (None, None);
        match &call.bias {
            None => {}
            Some(Bias::I32(view)) => integers = Some(view.row(0).gather(space.take(slots.integers))),
            Some(Bias::F32(view)) => floats = Some(view.row(0).gather(space.take(slots.bias))),
        }
        let scale = Scale { x: call.x_scale.map(|scale| scale.row(0)), weight: weight_scale, integers, floats };
        let mut chunk = slots.rows.take(&space, d.k);
        let own = (space.take_each(slots.words), space.take_each(slots.stage));
        let rows = chunk_rows(d.m, d.k);
        for first in (0..d.m).step_by(rows) {
            let x = chunk.pack(self.level, &self.pool, &call.x, first..d.m.min(first + rows));
            let chunk = Chunk { host: self, d: d.weight(), format: call.weight_format, weight, x, first, own: &own };
            match &call.out {
                Product::F32(out) => chunk.run(out, |block, offset| Floats { block, offset, scale: &scale }),
                Product::F16(out) => chunk.run(out, |block, offset| Floats { block, offset, scale: &scale }),
                Product::BF16(out) => chunk.run(out, |block, offset| Floats { block, offset, scale: &scale }),
                Product::I32(out) => chunk.run(out, |block, offset| Integers { block, offset, bias: integers }),
            }
        }
        Ok(())
    }
}

impl<P: ParallelFor> Run<QuantMatmul<'_, Self>> for Host<P> {
    fn workspace(&self, call: &QuantMatmul<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check()?, call.weight_format)?.0.layout())
    }

    fn run(&self, call: QuantMatmul<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check()?;
        call.check_data()?;
        let weight = Weight::new("weight", &call.weight, call.weight_format, d.weight())?;
        self.quant_matmul(call, d, weight, scratch)
    }
}

/// Some rows of a product, packed.
struct Chunk<'a, P> {
    host: &'a Host<P>,
    d: WeightSizes,
    format: i32,
    weight: Weight<'a>,
    x: PackedRows<'a>,
    first: usize,
    own: &'a (PerWorker<'a, u64>, PerWorker<'a, [i8; 64]>),
}

impl<P: ParallelFor> Chunk<'_, P> {
    fn run<'t, T: Copy + Send + Sync, O: Sink>(
        &self,
        out: &'t TensorMut<'t, T>,
        sink: impl Fn(Block<'t, T>, Offset) -> O + Sync,
    ) {
        let (level, rows) = (self.host.level, self.first..self.first + self.x.rows());
        let columns = task_columns(rows.len(), self.d, self.format);
        parallel::strips(&self.host.pool, rows.clone(), columns, out, self.own, |block, (words, stage)| {
            let strip = self.weight.strip(level, 0, block.columns.clone(), self.d, stage);
            let sink = sink(block, Offset { row: rows.start, panel: strip.first });
            level.run(Matmul { x: self.x, weights: strip.panels, panels: strip.range, words, sink });
        });
    }
}

/// What the rows and panels of a strip count from.
#[derive(Clone, Copy)]
pub(super) struct Offset {
    pub row: usize,
    pub panel: usize,
}

/// Which columns of a block's rows a panel covers.
#[inline(always)]
fn span<T>(block: &Block<'_, T>, panel: usize) -> Span {
    Span { at: 16 * panel - block.columns.start, len: (block.columns.end - 16 * panel).min(16) }
}

/// What turns a sum into a number.
struct Scale<'a> {
    x: Option<Row<'a, f32>>,
    weight: Option<&'a [f32]>,
    integers: Option<&'a [i32]>,
    floats: Option<&'a [f32]>,
}

/// Scaled sums.
struct Floats<'a, T> {
    block: Block<'a, T>,
    offset: Offset,
    scale: &'a Scale<'a>,
}

impl<T: Element> Sink for Floats<'_, T> {
    #[inline(always)]
    fn put<S: Simd>(&mut self, s: S, row: usize, panel: usize, sums: S::I32) {
        let (row, panel) = (self.offset.row + row, self.offset.panel + panel);
        let span = span(&self.block, panel);
        let channel = Span { at: 16 * panel, ..span };
        let mut value = match self.scale.integers {
            None => s.to_f32(sums),
            Some(bias) => add_bias(s, sums, channel.load_i32(s, bias)),
        };
        if let Some(scale) = &self.scale.x {
            value = s.mul(value, s.splat(scale.get(row)));
        }
        if let Some(scale) = self.scale.weight {
            value = s.mul(value, channel.load(s, scale, 0.0));
        }
        if let Some(bias) = self.scale.floats {
            value = s.add(value, channel.load(s, bias, 0.0));
        }
        let mut to = self.block.row(row);
        match to.as_slice() {
            Some(to) => span.store(s, value, to),
            None => {
                let mut all = [T::default(); 16];
                T::store(s, value, &mut all);
                for i in 0..span.len {
                    to.set(span.at + i, all[i]);
                }
            }
        }
    }
}

/// The sums themselves.
pub(super) struct Integers<'a> {
    pub block: Block<'a, i32>,
    pub offset: Offset,
    pub bias: Option<&'a [i32]>,
}

impl Sink for Integers<'_> {
    #[inline(always)]
    fn put<S: Simd>(&mut self, s: S, row: usize, panel: usize, sums: S::I32) {
        let (row, panel) = (self.offset.row + row, self.offset.panel + panel);
        let span = span(&self.block, panel);
        let mut to = self.block.row(row);
        match (to.as_slice(), self.bias) {
            (Some(to), None) => span.store_i32(s, sums, to),
            (_, bias) => {
                let mut all = [0; 16];
                s.store_i32(sums, &mut all);
                for i in 0..span.len {
                    to.set(span.at + i, all[i].saturating_add(bias.map_or(0, |bias| bias[16 * panel + i])));
                }
            }
        }
    }
}
