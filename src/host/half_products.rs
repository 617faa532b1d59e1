//! Products with weights of four bits: activations split into halves of a byte, sums scaled and added in half precision, group by group.
//!
//! `x = 16 hi + lo + 8` with hi and lo in [-8, 7]. A group of K with a scale of its own is a window of the panels, rounded out to
//! 64; there the activations of other groups are zeros. Both halves of a row are rows of one product.

use super::weight::Strip;
use crate::error::Error;
use crate::ops::GroupedSizes;
use crate::parallel::{self, ByRow, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, Space, WorkerSlot};
use crate::tensor::Tensor;
use core::ops::Range;
use tilekern_kernels::dispatch::{Kernel, Level};
use tilekern_kernels::pack::ColumnSums;
use tilekern_kernels::simd::{Dot, Simd};
use tilekern_kernels::tiles::{Activations, Finished, Matmul, PackRows, PackedRows, Sink, row_words};

/// Columns of a task.
pub(super) const WIDTH: usize = 64;

/// Cuts of K.
#[derive(Clone, Copy)]
struct Windows {
    k: usize,
    groups: usize,
    /// Rows of each window.
    rows: usize,
}

impl Windows {
    fn new(d: GroupedSizes) -> Windows {
        let groups = d.scales.unwrap_or(1);
        let size = d.k / groups;
        // A group begins at a multiple of its size, and so at most this far behind one of 64.
        let farthest = 64 - (1 << size.trailing_zeros().min(6));
        Windows { k: d.k, groups, rows: (farthest + size).next_multiple_of(64).min(d.k.next_multiple_of(64)) }
    }

    /// Elements of K in a group.
    fn group(self, group: usize) -> Range<usize> {
        let size = self.k / self.groups;
        group * size..(group + 1) * size
    }

    /// Where the window of a group begins.
    fn start(self, group: usize) -> usize {
        (self.group(group).start / 64 * 64).min(self.k.next_multiple_of(64) - self.rows)
    }
}

pub(super) struct Slots {
    packed: Slot<u64>,
    split: WorkerSlot<i8>,
    sums: WorkerSlot<f32>,
    windows: Windows,
}

/// Room for `rows` rows, where the weights have four bits.
pub(super) fn plan(plan: &mut Plan, workers: usize, d: GroupedSizes, rows: usize) -> Result<Slots, Error> {
    let windows = Windows::new(d);
    let rows = if d.scales.is_some() { 2 * rows } else { 0 };
    let too_large = || Error::invalid("x", "a size that fits in memory", "an overflow");
    let words = row_words(windows.rows).and_then(|words| words.checked_mul(windows.groups));
    Ok(Slots {
        packed: plan.slot(words.and_then(|words| words.checked_mul(rows)).ok_or_else(too_large)?)?,
        split: plan.each(workers, if rows > 0 { windows.k / windows.groups + windows.rows } else { 0 })?,
        sums: plan.each(workers, rows * WIDTH)?,
        windows,
    })
}

impl Slots {
    pub fn take<'s>(self, space: &Space<'s>) -> HalfProducts<'s> {
        let (packed, split) = (space.take(self.packed), space.take_each(self.split));
        HalfProducts { rows: 0, packed, split, sums: space.take_each(self.sums), windows: self.windows }
    }
}

/// Packed halves of the rows of a chunk: `[group][row][half]`, so that a product reads one page after the other.
pub(super) struct HalfProducts<'s> {
    /// Rows of the chunk.
    rows: usize,
    packed: &'s mut [u64],
    split: PerWorker<'s, i8>,
    sums: PerWorker<'s, f32>,
    windows: Windows,
}

impl<'s> HalfProducts<'s> {
    /// What [`HalfProducts::columns`] needs of a worker.
    pub fn workers(&self) -> &PerWorker<'s, f32> {
        &self.sums
    }

    fn words(&self) -> usize {
        self.windows.rows / 4 + 8
    }

    /// Packs the rows of a chunk.
    pub fn pack<P: ParallelFor>(&mut self, level: Level, pool: &P, x: &Tensor<'_, i8>, rows: Range<usize>) {
        let (words, windows, count) = (self.words(), self.windows, rows.len());
        self.rows = count;
        let parts = (ByRow(PerWorker::over(self.packed, 2 * words)), &self.split);
        parallel::rows(pool, windows.groups * count, parallel::grain(windows.rows, 8), parts, |i, (to, split)| {
            let (group, row) = (i / count, rows.start + i % count);
            let (elements, start) = (windows.group(group), windows.start(group));
            let (gathered, window) = split.split_at_mut(elements.len());
            let x = x.row(row).columns(elements.clone()).gather(gathered);
            for (half, words) in to.chunks_exact_mut(words).enumerate() {
                window.fill(0);
                for (to, &x) in window[elements.start - start..].iter_mut().zip(x) {
                    *to = if half == 0 { x >> 4 } else { (x & 15) - 8 };
                }
                let x = Activations { data: window, stride: windows.rows, rows: 1 };
                level.run(PackRows { x, k: windows.rows, words });
            }
        });
    }

    /// `16 hi + lo` of some rows and the columns of a strip: `put(row, values)` for each row, counted from 0; `scales` writes those of a
    /// group, for so many columns.
    pub fn columns(
        &self,
        level: Level,
        strip: &Strip<'_>,
        (rows, columns): (Range<usize>, usize),
        scales: impl Fn(usize, &mut [f32]),
        (words, sums): (&mut [u64], &mut [f32]),
        mut put: impl FnMut(usize, &[f32]),
    ) {
        debug_assert!(rows.end <= self.rows);
        let (w, count) = (self.windows, strip.range.len());
        let sums = &mut sums.as_chunks_mut::<WIDTH>().0[..2 * rows.len()];
        sums.fill([0.0; WIDTH]);
        for group in 0..w.groups {
            let (unknown, mut column_sums) = ([[0; 64]; WIDTH / 16], [[0; 64]; WIDTH / 16]);
            let window = |sums| strip.panels.window(strip.range.start, w.start(group), w.rows, sums);
            let (weights, panels) = match w.groups {
                1 => (strip.panels, strip.range.clone()),
                _ => {
                    level.run(ColumnSums { panels: window(&unknown[..count]), sums: &mut column_sums[..count] });
                    (window(&column_sums[..count]), 0..count)
                }
            };
            let mut own = [0.0; WIDTH];
            scales(group, &mut own[..columns]);
            let packed = &self.packed[2 * (group * self.rows + rows.start) * self.words()..];
            let x = PackedRows::new(packed, w.rows, 2 * rows.len());
            let first = panels.start;
            let sink: Sink<'_> = &mut |finished| level.run(Halves { finished, first, sums, scales: &own });
            level.run(Matmul { x, weights, panels, words, sink });
        }
        for (row, [high, low]) in sums.as_chunks::<2>().0.iter().enumerate() {
            let mut values = [0.0; WIDTH];
            for n in 0..WIDTH {
                values[n] = 16.0 * high[n] + low[n];
            }
            put(row, &values[..columns]);
        }
    }
}

/// Scaled sums, added in half precision.
struct Halves<'a> {
    finished: Finished<'a>,
    /// The first of the panels.
    first: usize,
    sums: &'a mut [[f32; WIDTH]],
    scales: &'a [f32; WIDTH],
}

/// Rounded to half precision.
#[inline(always)]
fn half<S: Simd>(s: S, v: S::F32) -> S::F32 {
    let mut bits = [0; 16];
    s.store_f16(v, &mut bits);
    s.load_f16(&bits)
}

impl Kernel for Halves<'_> {
    type Output = ();
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        self.finished.each(
            #[inline(always)]
            |row, panel, sums| {
                let panel = panel - self.first;
                let scale = s.load(&self.scales.as_chunks::<16>().0[panel]);
                let total = &mut self.sums[row].as_chunks_mut::<16>().0[panel];
                let part = half(s, s.mul(s.to_f32(s.load_i32(sums)), scale));
                s.store(half(s, s.add(s.load(total), part)), total);
            },
        );
    }
}
