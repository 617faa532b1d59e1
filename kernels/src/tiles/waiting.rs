//! Passes of rows over a slice of K of some panels, and the sums that wait between two slices.

use super::rows::PackedRows;
use crate::simd::Dot;
use core::ops::Range;

/// Panels NV at a time, then two and one.
pub(super) fn widths<const NV: usize>(panels: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut first = panels.start;
    core::iter::from_fn(move || {
        let width = match panels.end - first {
            0 => return None,
            left if left >= NV => NV,
            left => left.min(2),
        };
        first += width;
        Some(first - width..first)
    })
}

/// Groups of MR rows over a slice of the weights of some panels.
pub(super) struct Pass<'a> {
    pub x: PackedRows<'a>,
    /// Which groups of all.
    pub groups: Range<usize>,
    /// Quads of K.
    pub steps: Range<usize>,
}

impl Pass<'_> {
    /// Adds the slice's products and `start` to the sums that wait, which count as 0 before the first step. `products(i, x, acc)` adds
    /// those of group `i`, whose rows are `x`.
    #[inline(always)]
    pub fn run<S: Dot, const MR: usize, const NV: usize>(
        &self,
        s: S,
        start: [S::I32; NV],
        mut waiting: Waiting<'_>,
        mut products: impl FnMut(usize, [&[S::Quad]; MR], [[S::I32; NV]; MR]) -> [[S::I32; NV]; MR],
    ) {
        for (i, group) in self.groups.clone().enumerate() {
            // Behind the last row it is repeated, and not kept.
            let x = self.x.group(group * MR, self.steps.clone());
            let mut waiting = waiting.from(i * MR);
            let acc = waiting.resume::<S, MR, NV>(s, start, self.steps.start);
            let acc = products(i, x, acc);
            waiting.park(s, acc);
        }
    }
}

/// Sums of 16 columns that wait between two slices of K, `pitch` of them to a row.
pub(super) struct Waiting<'a> {
    pub sums: &'a mut [[i32; 16]],
    pub pitch: usize,
}

impl Waiting<'_> {
    /// Those from a row on.
    #[inline(always)]
    pub fn from(&mut self, row: usize) -> Waiting<'_> {
        Waiting { sums: &mut self.sums[row * self.pitch..], pitch: self.pitch }
    }

    /// Those of each row from a panel on.
    #[inline(always)]
    pub fn behind(&mut self, panels: usize) -> Waiting<'_> {
        Waiting { sums: &mut self.sums[panels..], pitch: self.pitch }
    }

    /// The accumulators of MR rows by NV panels before a step of K: `start`, and what waits unless the step is the first.
    #[inline(always)]
    pub fn resume<S: Dot, const MR: usize, const NV: usize>(&self, s: S, start: [S::I32; NV], step: usize) -> [[S::I32; NV]; MR] {
        let mut acc = [start; MR];
        if step > 0 {
            let sums = &self.sums[..(MR - 1) * self.pitch + NV];
            for m in 0..MR {
                for v in 0..NV {
                    acc[m][v] = s.add_i32(acc[m][v], s.load_i32(&sums[m * self.pitch + v]));
                }
            }
        }
        acc
    }

    /// Lets accumulators wait.
    #[inline(always)]
    pub fn park<S: Dot, const MR: usize, const NV: usize>(&mut self, s: S, acc: [[S::I32; NV]; MR]) {
        let sums = &mut self.sums[..(MR - 1) * self.pitch + NV];
        for m in 0..MR {
            for v in 0..NV {
                s.store_i32(acc[m][v], &mut sums[m * self.pitch + v]);
            }
        }
    }
}
