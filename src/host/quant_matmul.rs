//! The int8 product on the host: chunks of rows, columns over the pool, a sink that scales the sums.

use super::Host;
use super::activations::{PackedChunk, RowSlots, chunk_rows, unit_chunk_rows, vnni_chunk_rows};
use super::task_columns::is_shared;
use super::weight::{Weight, plan_stage, product_words};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Bias, ChannelScale, Product, Product3, QuantMatmul, WeightSizes};
use crate::parallel::{self, Block, ParallelFor, Serial};
use crate::scratch::{PerWorker, Plan, Slot, WorkerSlot};
use crate::tensor::{Describe, Row, RowMut, Tensor, TensorMut};
use core::alloc::Layout;
use core::ops::Range;
use tilekern_kernels::dispatch::{Isa, Kernel};
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{Span, add_bias, vectors};
use tilekern_kernels::simd::{Dot, Simd};
use tilekern_kernels::tiles::{Finished, PackedRows};

/// Bytes of an output from which on it is written past the caches: it does not stay there, and its rows, if they are a power of two
/// apart, push each other out before their lines are whole.
const PAST: usize = 1 << 19;

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
        rows: RowSlots::plan(&mut plan, workers, chunk_rows(d.m, d.k, format), d.k)?,
        words: plan.each(workers, product_words(format))?,
        stage: plan_stage(&mut plan, workers, format, d.weight())?,
        weight_scale: plan.slot(d.n)?,
        bias: plan.slot(d.n)?,
        integers: plan.slot(d.n)?,
    };
    Ok((plan, slots))
}

/// Whether an output is written past the caches: f32 whose vectors are lines. Other lines are filled from two vectors each, which pays
/// on processors that have AMX.
fn goes_past<P>(d: Product3, out: &Product<'_, Host<P>>) -> bool
where
    P: ParallelFor,
{
    let Product::F32(out) = out else { return false };
    let out = out.location();
    let is_in_lines = || out.bytes().start % 64 == 0 && (d.m <= 1 || out.dims().strides()[0] % 16 == 0);
    4 * d.m * d.n >= PAST && (is_in_lines() || Isa::Avx512Amx.is_available())
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
        call: &QuantMatmul<'_, Self>,
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
        let scale = Scale { x: call.x_scale.as_ref().map(|scale| scale.row(0)), weight: weight_scale, integers, floats };
        let own = (space.take_each(slots.words), space.take_each(slots.stage));
        let (level, past) = (self.level, goes_past(d, &call.out));
        let rows = slots.rows.take(&space, d.k);
        let matrix = Matrix { weight, format: call.weight_format, d: d.weight() };
        self.each_chunk((&call.x, d.m), &matrix, rows, |x, first| {
            let chunk = Chunk { host: self, x, first, own: &own, past };
            match &call.out {
                Product::F32(out) => chunk.run([(&matrix, out)], |sums, to| level.run(Floats { sums, to, scale: &scale, past })),
                Product::F16(out) => chunk.run([(&matrix, out)], |sums, to| level.run(Floats { sums, to, scale: &scale, past })),
                Product::BF16(out) => chunk.run([(&matrix, out)], |sums, to| level.run(Floats { sums, to, scale: &scale, past })),
                Product::I32(out) => chunk.run([(&matrix, out)], |sums, to| store_integers(sums, to, integers)),
            }
        });
        Ok(())
    }

    /// The sums of the same rows by several weights, each into its output: side by side over the pool, if the weights lie alike.
    pub(super) fn products<const N: usize>(
        &self,
        x: &Tensor<'_, i8>,
        matrices: [&Matrix<'_>; N],
        outputs: [TensorMut<'_, i32>; N],
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let lie = |matrix: &Matrix<'_>| (matrix.weight.lie(), matrix.format);
        if matrices.windows(2).any(|two| lie(two[0]) != lie(two[1])) {
            let mut pairs = matrices.into_iter().zip(outputs);
            return pairs.try_for_each(|(matrix, output)| self.products(x, [matrix], [output], scratch));
        }
        let widest = matrices.into_iter().max_by_key(|matrix| matrix.d.n).expect("a matrix");
        let m = x.dims().shape()[0];
        let (plan, slots) = plan(self.pool.workers(), Product3 { m, k: widest.d.k, n: widest.d.n }, widest.format)?;
        let space = plan.carve(scratch)?;
        let own = (space.take_each(slots.words), space.take_each(slots.stage));
        self.each_chunk((x, m), widest, slots.rows.take(&space, widest.d.k), |x, first| {
            let chunk = Chunk { host: self, x, first, own: &own, past: false };
            chunk.run(core::array::from_fn::<_, N, _>(|i| (matrices[i], &outputs[i])), |sums, to| store_integers(sums, to, None));
        });
        Ok(())
    }

    /// Calls `body` with chunks of rows as they meet such a weight, and the number of the first row of each.
    fn each_chunk(
        &self,
        (x, m): (&Tensor<'_, i8>, usize),
        Matrix { weight, format, d }: &Matrix<'_>,
        mut chunk: PackedChunk<'_>,
        mut body: impl FnMut(PackedRows<'_>, usize),
    ) {
        let level = self.level;
        let rows = match weight {
            Weight::Packed(_) if level.isa() == Isa::Avx512Vnni => vnni_chunk_rows(m, d.k, weight.suits_bands(level, m)),
            Weight::Packed(_) if level.isa() == Isa::Avx512Amx => unit_chunk_rows(m, d.k),
            _ => chunk_rows(m, d.k, *format),
        };
        for first in (0..m).step_by(rows) {
            let end = m.min(first + rows);
            let banded = weight.suits_bands(level, end - first);
            chunk.pack(level, &self.pool, (x, first..end), 0, banded);
            body(chunk.rows(end - first).in_bands(banded), first);
        }
    }
}

impl<P: ParallelFor> Run<QuantMatmul<'_, Self>> for Host<P> {
    fn workspace(&self, call: &QuantMatmul<'_, Self>) -> Result<Layout, Error> {
        Ok(plan(self.pool.workers(), call.check(false)?, call.weight_format)?.0.layout())
    }

    fn run_mut(&self, call: &mut QuantMatmul<'_, Self>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        // Nothing to write: what the weights hold is not looked at.
        if d.m == 0 {
            return plan(self.pool.workers(), d, call.weight_format)?.0.carve(scratch).map(drop);
        }
        let weight = Weight::new("weight", &call.weight, call.weight_format, d.weight(), &[call.out.describe().bytes()])?;
        self.inside(d.m, d.k.saturating_mul(d.n), || self.quant_matmul(call, d, weight, scratch))
    }
}

/// A weight that was found valid.
pub(super) struct Matrix<'a> {
    pub weight: Weight<'a>,
    pub format: i32,
    pub d: WeightSizes,
}

/// Some rows of a product, packed.
struct Chunk<'a, P> {
    host: &'a Host<P>,
    x: PackedRows<'a>,
    first: usize,
    own: &'a (PerWorker<'a, u64>, PerWorker<'a, [i8; 64]>),
    /// Whether what is finished may be on its way past the caches.
    past: bool,
}

impl<P: ParallelFor> Chunk<'_, P> {
    /// The columns of some weights over the pool; `finish` takes sums, and the block of the output that they belong to.
    fn run<T: Copy + Send + Sync, const N: usize>(
        &self,
        products: [(&Matrix<'_>, &TensorMut<'_, T>); N],
        finish: impl Fn(Finished<'_>, Target<'_, '_, T>) + Sync,
    ) {
        let (host, level, rows) = (self.host, self.host.level, self.first..self.first + self.x.rows());
        let weights = products.iter().map(|(matrix, _)| matrix.d.k.saturating_mul(matrix.d.n)).fold(0, usize::saturating_add);
        let outputs = products.map(|(matrix, out)| (out, host.shared_columns(rows.len(), matrix.d, &matrix.weight)));
        let pool: &dyn ParallelFor = if is_shared(rows.len(), weights) { &host.pool } else { &Serial };
        parallel::strips(&pool, rows.clone(), &outputs, self.own, |i, mut block, (words, stage)| {
            let Matrix { weight, d, .. } = products[i].0;
            weight.multiply(level, self.x, (0, block.columns.clone(), *d), (words, stage), |sums, panel| {
                finish(sums, Target { block: &mut block, offset: Offset { row: rows.start, panel } });
            });
            if self.past {
                level.run(Fence);
            }
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
    /// The columns of these panels, as far as the block has them.
    #[inline(always)]
    fn columns(&self, panels: &Range<usize>) -> Range<usize> {
        let [first, end] = [panels.start, panels.end].map(|panel| 16 * (self.offset.panel + panel));
        first..self.block.columns.end.min(end)
    }

    /// The row that sums belong to, and some of its columns.
    #[inline(always)]
    fn row(&mut self, row: usize, columns: &Range<usize>) -> (usize, RowMut<'_, T>) {
        let (row, first) = (self.offset.row + row, self.block.columns.start);
        (row, self.block.row(row).columns(columns.start - first..columns.end - first))
    }
}

/// What turns a sum into a number.
struct Scale<'a> {
    x: Option<Row<'a, f32>>,
    weight: Option<&'a [f32]>,
    integers: Option<&'a [i32]>,
    floats: Option<&'a [f32]>,
}

/// Panels that are scaled at once: their scales and biases stay in registers while the rows pass.
const WIDE: usize = 4;

/// What turns the sums of some columns into numbers, in registers.
struct Lanes<S: Simd> {
    scales: [S::F32; WIDE],
    added: Option<[S::I32; WIDE]>,
    biases: Option<[S::F32; WIDE]>,
}

impl Scale<'_> {
    /// Of at most 16 WIDE columns.
    #[inline(always)]
    fn columns<S: Simd>(&self, s: S, columns: &Range<usize>) -> Lanes<S> {
        let mut lanes = Lanes {
            scales: [s.splat(1.0); WIDE],
            added: self.integers.map(|_| [s.splat_i32(0); WIDE]),
            biases: self.floats.map(|_| [s.splat(0.0); WIDE]),
        };
        vectors(
            columns.len(),
            #[inline(always)]
            |span| {
                let v = span.at / 16;
                if let Some(scale) = self.weight {
                    lanes.scales[v] = span.load(s, &scale[columns.clone()], 0.0);
                }
                if let (Some(added), Some(bias)) = (&mut lanes.added, self.integers) {
                    added[v] = span.load_i32(s, &bias[columns.clone()]);
                }
                if let (Some(biases), Some(bias)) = (&mut lanes.biases, self.floats) {
                    biases[v] = span.load(s, &bias[columns.clone()], 0.0);
                }
            },
        );
        lanes
    }
}

impl<S: Simd> Lanes<S> {
    /// The numbers of sums of columns `16 * v ..`, of a row whose scale is `x`.
    #[inline(always)]
    fn scaled(&self, s: S, v: usize, x: S::F32, sums: &[i32; 16]) -> S::F32 {
        let sums = s.load_i32(sums);
        let value = match &self.added {
            Some(added) => add_bias(s, sums, added[v]),
            None => s.to_f32(sums),
        };
        let value = s.mul(s.mul(value, x), self.scales[v]);
        match &self.biases {
            Some(biases) => s.add(value, biases[v]),
            None => value,
        }
    }
}

/// Scaled sums.
struct Floats<'a, 't, T> {
    sums: Finished<'a>,
    to: Target<'a, 't, T>,
    scale: &'a Scale<'a>,
    /// Whether the output is too large to stay in a cache.
    past: bool,
}

impl<T: Element> Kernel for Floats<'_, '_, T> {
    type Output = ();
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) {
        let Finished { rows, panels: all, sums, pitch } = self.sums;
        let (count, past) = (all.len(), self.past);
        for first in (0..count).step_by(WIDE) {
            let panels = all.start + first..all.end.min(all.start + first + WIDE);
            let columns = self.to.columns(&panels);
            let lanes = self.scale.columns(s, &columns);
            for (row, sums) in rows.clone().zip(sums.chunks_exact(pitch)) {
                let (row, mut to) = self.to.row(row, &columns);
                let x = s.splat(self.scale.x.as_ref().map_or(1.0, |scale| scale.get(row)));
                let sums = &sums[first..first + panels.len()];
                let whole = to.as_slice().and_then(|to| to.as_chunks_mut().0.first_chunk_mut::<WIDE>());
                // Mostly there are as many whole panels as stay in registers: then no length is asked for.
                if let (Some(to), Some(sums)) = (whole, sums.first_chunk::<WIDE>()) {
                    let mut values = [s.splat(0.0); WIDE];
                    for v in 0..WIDE {
                        values[v] = lanes.scaled(s, v, x, &sums[v]);
                    }
                    match past {
                        // SAFETY: a `Fence` ends the task, and until then no other has these columns.
                        true => unsafe { T::store_past(s, values, to) },
                        false => (0..WIDE).for_each(|v| T::store(s, values[v], &mut to[v])),
                    }
                    continue;
                }
                for (v, sums) in sums.iter().enumerate() {
                    let (value, span) = (lanes.scaled(s, v, x, sums), Span { at: 16 * v, len: 16.min(columns.len() - 16 * v) });
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
        }
    }
}

/// Ends what [`Floats`] write past the caches.
struct Fence;

impl Kernel for Fence {
    type Output = ();
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        s.fence();
    }
}

/// The sums themselves, with a bias if there is one.
pub(super) fn store_integers(sums: Finished<'_>, mut to: Target<'_, '_, i32>, bias: Option<&[i32]>) {
    let columns = to.columns(&sums.panels);
    sums.each_row(|row, lanes| {
        let (_, mut to) = to.row(row, &columns);
        match (to.as_slice(), bias) {
            (Some(to), None) => {
                // A few vectors: less work than to call for a copy.
                let (whole, rest) = to.as_chunks_mut();
                whole.iter_mut().zip(lanes).for_each(|(to, lanes)| *to = *lanes);
                rest.copy_from_slice(&lanes.as_flattened()[16 * whole.len()..][..rest.len()]);
            }
            (_, bias) => {
                let lanes = lanes.as_flattened();
                for i in 0..columns.len() {
                    to.set(i, lanes[i].saturating_add(bias.map_or(0, |bias| bias[columns.start + i])));
                }
            }
        }
    });
}
