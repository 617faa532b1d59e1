//! The int8 product on the host: blocks of rows and panels over the pool, a sink that scales sums in registers.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Bias, ChannelScale, Product, Product3, QuantMatmul, packed_header};
use crate::parallel::{self, Block, Cut, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, WorkerSlot};
use crate::tensor::{Describe, Row, Tensor, TensorMut};
use core::alloc::Layout;
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::element::Element;
use tilekern_kernels::pack::{Packed, Panels};
use tilekern_kernels::rows::Span;
use tilekern_kernels::simd::Simd;
use tilekern_kernels::tiles::{Activations, Matmul, Sink, matmul_words};

/// Rows of a block: what one pass of the tile takes at the most.
const ROWS: usize = 48;

/// Multiplications of a block, about: 5 us of work at the rate of a dot unit.
const WORK: usize = 1 << 21;

pub(super) struct Slots {
    /// The kernel's words, then a copy of the rows of a block for an `x` whose rows are not contiguous.
    words: WorkerSlot<u64>,
    weight_scale: Slot<f32>,
    bias: Slot<f32>,
    integers: Slot<i32>,
}

pub(super) fn plan(workers: usize, d: Product3) -> Result<(Plan, Slots), Error> {
    let mut plan = Plan::new();
    let too_large = || Error::invalid("x", "a size that fits in memory", "an overflow");
    let copy = d.k.checked_mul(ROWS).ok_or_else(too_large)?.div_ceil(8);
    let words = matmul_words(d.k).and_then(|words| words.checked_add(copy)).ok_or_else(too_large)?;
    let slots = Slots {
        words: plan.each(workers, words)?,
        weight_scale: plan.slot(d.n)?,
        bias: plan.slot(d.n)?,
        integers: plan.slot(d.n)?,
    };
    Ok((plan, slots))
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
        packed: Packed<'_>,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, slots) = plan(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        let product = Call {
            level: self.level,
            pool: &self.pool,
            d,
            x: call.x,
            weight: packed.expert(0),
            words: space.take_each(slots.words),
        };
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
        match &call.out {
            Product::F32(out) => product.run(out, |block| Floats { block, scale: &scale }),
            Product::F16(out) => product.run(out, |block| Floats { block, scale: &scale }),
            Product::BF16(out) => product.run(out, |block| Floats { block, scale: &scale }),
            Product::I32(out) => product.run(out, |block| Integers { block, bias: integers }),
        }
        Ok(())
    }
}

impl<P: ParallelFor> Run<QuantMatmul<'_, Self>> for Host<P> {
    fn workspace(&self, call: &QuantMatmul<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check()?)?.0.layout())
    }

    fn run(&self, call: QuantMatmul<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check()?;
        call.check_data()?;
        let packed = packed_header("weight", &call.weight, d.k, d.n)?;
        self.quant_matmul(call, d, packed, scratch)
    }
}

/// A product without its output.
struct Call<'a, P> {
    level: Level,
    pool: &'a P,
    d: Product3,
    x: Tensor<'a, i8>,
    weight: Panels<'a>,
    words: PerWorker<'a, u64>,
}

impl<P: ParallelFor> Call<'_, P> {
    fn run<'t, T: Copy + Send + Sync, O: Sink>(&self, out: &'t TensorMut<'t, T>, sink: impl Fn(Block<'t, T>) -> O + Sync) {
        let columns = (WORK / (self.d.k * self.d.m.clamp(1, ROWS))).next_multiple_of(64).max(64);
        parallel::blocks(self.pool, Cut { rows: ROWS, columns }, out, &self.words, |block, scratch| {
            let (rows, columns) = (block.rows.clone(), block.columns.clone());
            let k = self.d.k;
            let (words, copy) = scratch.split_at_mut(scratch.len() - (k * ROWS).div_ceil(8));
            let x = match self.x.memory() {
                Some(data) => {
                    let stride = self.x.dims().strides()[0];
                    Activations { data: &data[rows.start * stride..], stride, rows: rows.len() }
                }
                None => {
                    let copy: &mut [i8] = bytemuck::cast_slice_mut(copy);
                    for (row, copy) in rows.clone().zip(copy.chunks_exact_mut(k)) {
                        self.x.row(row).gather(copy);
                    }
                    Activations { data: copy, stride: k, rows: rows.len() }
                }
            };
            let panels = columns.start / 16..columns.end.div_ceil(16);
            self.level.run(Matmul { x, weights: self.weight, panels, words, sink: sink(block) });
        });
    }
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
    scale: &'a Scale<'a>,
}

impl<T: Element> Sink for Floats<'_, T> {
    #[inline(always)]
    fn put<S: Simd>(&mut self, s: S, row: usize, panel: usize, sums: S::I32) {
        let row = self.block.rows.start + row;
        let span = span(&self.block, panel);
        let channel = Span { at: 16 * panel, ..span };
        let mut value = match self.scale.integers {
            None => s.to_f32(sums),
            Some(bias) => {
                let (mut sums_, mut biases, mut rounded) = ([0; 16], [0; 16], [0.0; 16]);
                s.store_i32(sums, &mut sums_);
                s.store_i32(channel.load_i32(s, bias), &mut biases);
                for i in 0..16 {
                    rounded[i] = (i64::from(sums_[i]) + i64::from(biases[i])) as f32;
                }
                s.load(&rounded)
            }
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
struct Integers<'a> {
    block: Block<'a, i32>,
    bias: Option<&'a [i32]>,
}

impl Sink for Integers<'_> {
    #[inline(always)]
    fn put<S: Simd>(&mut self, s: S, row: usize, panel: usize, sums: S::I32) {
        let row = self.block.rows.start + row;
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
