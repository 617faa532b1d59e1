//! The int8 product on the host: chunks of rows, columns over the pool, a sink that scales the sums.

use super::Host;
use super::activations::{RowSlots, chunk_rows};
use super::weight::{Weight, plan_stage, product_words};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Bias, ChannelScale, Product, Product3, QuantMatmul, WeightSizes};
use crate::parallel::{self, Block, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, WorkerSlot};
use crate::tensor::{Row, RowMut, Tensor, TensorMut};
use core::alloc::Layout;
use core::ops::Range;
use tilekern_kernels::dispatch::{Kernel, Level};
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{add_bias, vectors};
use tilekern_kernels::simd::Dot;
use tilekern_kernels::tiles::{Finished, PackedRows};

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
        words: plan.each(workers, product_words(format))?,
        stage: plan_stage(&mut plan, workers, format, d.weight())?,
        weight_scale: plan.slot(d.n)?,
        bias: plan.slot(d.n)?,
        integers: plan.slot(d.n)?,
    };
    Ok((plan, slots))
}

/// Columns of a task over `rows` rows.
pub(super) fn task_columns(rows: usize, d: WeightSizes, weight: &Weight<'_>, level: Level) -> usize {
    match weight {
        Weight::Packed(_) => (WORK / (d.k * rows.max(1))).next_multiple_of(64).max(64),
        _ => weight.task_columns(level, d.k),
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
        let level = self.level;
        for first in (0..d.m).step_by(rows) {
            let x = chunk.pack(self.level, &self.pool, &call.x, first..d.m.min(first + rows));
            let chunk = Chunk { host: self, d: d.weight(), weight, x, first, own: &own };
            match &call.out {
                Product::F32(out) => chunk.run(out, |sums, to| level.run(Floats { sums, to, scale: &scale })),
                Product::F16(out) => chunk.run(out, |sums, to| level.run(Floats { sums, to, scale: &scale })),
                Product::BF16(out) => chunk.run(out, |sums, to| level.run(Floats { sums, to, scale: &scale })),
                Product::I32(out) => chunk.run(out, |sums, to| store_integers(sums, to, integers)),
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
    weight: Weight<'a>,
    x: PackedRows<'a>,
    first: usize,
    own: &'a (PerWorker<'a, u64>, PerWorker<'a, [i8; 64]>),
}

impl<P: ParallelFor> Chunk<'_, P> {
    /// The columns over the pool; `finish` takes sums, and the block of the output that they belong to.
    fn run<'t, T: Copy + Send + Sync>(&self, out: &'t TensorMut<'t, T>, finish: impl Fn(Finished<'_>, Target<'_, 't, T>) + Sync) {
        let (level, rows) = (self.host.level, self.first..self.first + self.x.rows());
        let columns = task_columns(rows.len(), self.d, &self.weight, level);
        parallel::strips(&self.host.pool, rows.clone(), columns, out, self.own, |mut block, (words, stage)| {
            let part = (0, block.columns.clone(), self.d);
            self.weight.multiply(level, self.x, part, (words, stage), |sums, panel| {
                finish(sums, Target { block: &mut block, offset: Offset { row: rows.start, panel } });
            });
        });
    }
}

/// What the rows and panels of a strip count from.
#[derive(Clone, Copy)]
pub(super) struct Offset {
    pub row: usize,
    pub panel: usize,
}

/// Where finished sums go.
pub(super) struct Target<'a, 't, T> {
    pub block: &'a mut Block<'t, T>,
    pub offset: Offset,
}

impl<T: Copy> Target<'_, '_, T> {
    /// The row that sums from a panel on belong to, its columns that are in the block, and which of all columns they are.
    #[inline(always)]
    fn place(&mut self, row: usize, panels: &Range<usize>) -> (usize, RowMut<'_, T>, Range<usize>) {
        let (row, first) = (self.offset.row + row, 16 * (self.offset.panel + panels.start));
        let block = self.block.columns.clone();
        let columns = first..block.end.min(first + 16 * panels.len());
        (row, self.block.row(row).columns(first - block.start..columns.end - block.start), columns)
    }
}

/// Rows between a request for the lines of a row and its writing: rows of the output lie apart, and nothing else foresees them.
const AHEAD: usize = 8;

impl<T: Element> Target<'_, '_, T> {
    /// Asks for the lines that sums of these panels will be written to.
    #[inline(always)]
    fn expect<S: Dot>(&mut self, s: S, row: usize, panels: &Range<usize>) {
        if self.block.rows.contains(&(self.offset.row + row)) {
            let (_, mut to, _) = self.place(row, panels);
            if let Some(to) = to.as_slice() {
                for line in bytemuck::cast_slice::<T, i8>(to).as_chunks().0 {
                    s.prefetch(line);
                }
            }
        }
    }
}

/// What turns a sum into a number.
struct Scale<'a> {
    x: Option<Row<'a, f32>>,
    weight: Option<&'a [f32]>,
    integers: Option<&'a [i32]>,
    floats: Option<&'a [f32]>,
}

/// Scaled sums.
struct Floats<'a, 't, T> {
    sums: Finished<'a>,
    to: Target<'a, 't, T>,
    scale: &'a Scale<'a>,
}

impl<T: Element> Kernel for Floats<'_, '_, T> {
    type Output = ();
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) {
        let Scale { x, weight, integers, floats } = self.scale;
        self.sums.each_row(
            #[inline(always)]
            |row, sums| {
                self.to.expect(s, row + AHEAD, &self.sums.panels);
                let (row, mut to, columns) = self.to.place(row, &self.sums.panels);
                let x = x.as_ref().map(|scale| s.splat(scale.get(row)));
                let (weight, floats) = (weight.map(|scale| &scale[columns.clone()]), floats.map(|bias| &bias[columns.clone()]));
                let integers = integers.map(|bias| &bias[columns.clone()]);
                vectors(
                    columns.len(),
                    #[inline(always)]
                    |span| {
                        let sums = s.load_i32(&sums[span.at / 16]);
                        let mut value = match integers {
                            None => s.to_f32(sums),
                            Some(bias) => add_bias(s, sums, span.load_i32(s, bias)),
                        };
                        if let Some(scale) = x {
                            value = s.mul(value, scale);
                        }
                        if let Some(scale) = weight {
                            value = s.mul(value, span.load(s, scale, 0.0));
                        }
                        if let Some(bias) = floats {
                            value = s.add(value, span.load(s, bias, 0.0));
                        }
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
                    },
                );
            },
        );
    }
}

/// The sums themselves, with a bias if there is one.
pub(super) fn store_integers(sums: Finished<'_>, mut to: Target<'_, '_, i32>, bias: Option<&[i32]>) {
    sums.each_row(|row, lanes| {
        let (_, mut to, columns) = to.place(row, &sums.panels);
        let lanes = &lanes.as_flattened()[..columns.len()];
        match (to.as_slice(), bias) {
            (Some(to), None) => to.copy_from_slice(lanes),
            (_, bias) => {
                for i in 0..lanes.len() {
                    to.set(i, lanes[i].saturating_add(bias.map_or(0, |bias| bias[columns.start + i])));
                }
            }
        }
    });
}
