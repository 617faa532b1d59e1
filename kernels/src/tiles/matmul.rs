//! Rows of int8 activations times packed int8 weights: the loops around the tile.
//!
//! Activations are first brought into the form that the token's dot reads, row by row. Then, for NV
//! panels at a time and KC of k at a time, the tile runs over all groups: KC * NR bytes of weights stay in the first cache while the
//! rows pass. Between two steps of KC the accumulators wait in `parked`; a product with K <= KC never parks. A finished accumulator
//! goes to the [`Sink`], still in registers.
//!
//! All sums are exact integers, so neither MR, NR, KC nor the order moves a bit.

use super::{gemv::gemv, int8::tile};
use crate::dispatch::{Isa, Kernel};
use crate::pack::Panels;
use crate::simd::{Dot, Simd};
use core::ops::Range;

/// Where finished accumulators go: 16 columns of one row at a time.
pub trait Sink {
    /// Takes the sums of columns `16 * panel ..` of `row`; those beyond the last column are meaningless. Must be
    /// `#[inline(always)]`.
    fn put<S: Simd>(&mut self, s: S, row: usize, panel: usize, sums: S::I32);
}

/// Rows of int8 activations, each contiguous, `stride` apart.
#[derive(Clone, Copy, Debug)]
pub struct Activations<'a> {
    /// From the first element of the first row.
    pub data: &'a [i8],
    /// Elements from row to row.
    pub stride: usize,
    /// Number of rows.
    pub rows: usize,
}

/// Groups of rows in one pass.
const GROUPS: usize = 8;

/// The largest MR * NV.
const AREA: usize = 64;

/// 64-bit words where the accumulators of a pass wait.
const PARKED: usize = GROUPS * AREA * 16 / 2;

/// 64-bit words of workspace for rows of length `k`, any number of them.
pub const fn matmul_words(k: usize) -> Option<usize> {
    match k.div_ceil(4).checked_mul(GROUPS * 8) {
        Some(quads) => quads.checked_add(PARKED),
        None => None,
    }
}

/// `sink[row][n] = sum over k of x[row][k] * weights[k][n]` for the columns of a range of panels.
pub struct Matmul<'a, O> {
    /// The rows, `weights.k()` long.
    pub x: Activations<'a>,
    /// The weights of one expert.
    pub weights: Panels<'a>,
    /// Which panels.
    pub panels: Range<usize>,
    /// At least [`matmul_words`]`(weights.k())`; contents irrelevant.
    pub words: &'a mut [u64],
    /// Takes the sums.
    pub sink: O,
}

impl<O: Sink> Kernel for Matmul<'_, O> {
    type Output = ();

    /// With the tile that the benches found best for the instruction set.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        match S::ISA {
            Isa::Avx512Vnni | Isa::Avx512Amx => Tiled::<O, 4, 4, 4096>(self).run(s),
            Isa::Avx512 => Tiled::<O, 6, 2, 4096>(self).run(s),
            Isa::Avx2 | Isa::Portable => Tiled::<O, 2, 1, 4096>(self).run(s),
            Isa::Neon | Isa::NeonDot => Tiled::<O, 4, 1, 4096>(self).run(s),
        }
    }
}

/// [`Matmul`] with a tile of MR rows by 16 NV columns, KC of k at a time (a multiple of 4).
pub struct Tiled<'a, O, const MR: usize, const NV: usize, const KC: usize>(pub Matmul<'a, O>);

impl<O: Sink, const MR: usize, const NV: usize, const KC: usize> Kernel for Tiled<'_, O, MR, NV, KC> {
    type Output = ();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        const { assert!(MR >= 1 && MR <= 8 && NV >= 1 && MR * NV <= AREA && KC >= 4 && KC % 4 == 0) };
        let Matmul { x, weights, panels, words, mut sink } = self.0;
        let (parked, quads) = words.split_at_mut(PARKED);
        let mut pass = Pass {
            x,
            weights,
            panels,
            steps: weights.k().div_ceil(4),
            parked: bytemuck::cast_slice_mut(parked),
            quads: bytemuck::cast_slice_mut::<u64, S::Quad>(quads),
            row: 0,
        };
        while pass.row < x.rows {
            match x.rows - pass.row {
                left if left >= MR => pass.run::<S, O, MR, NV, KC>(s, left / MR, &mut sink),
                left if MR > 4 && left >= 4 => pass.run::<S, O, 4, NV, KC>(s, 1, &mut sink),
                left if MR > 2 && left >= 2 => pass.run::<S, O, 2, NV, KC>(s, 1, &mut sink),
                _ => pass.run::<S, O, 1, NV, KC>(s, 1, &mut sink),
            }
        }
    }
}

/// The rows from `row` on, over all panels.
struct Pass<'a, Q> {
    x: Activations<'a>,
    weights: Panels<'a>,
    panels: Range<usize>,
    steps: usize,
    parked: &'a mut [[i32; 16]],
    quads: &'a mut [Q],
    row: usize,
}

impl<Q: bytemuck::Pod> Pass<'_, Q> {
    /// `M` rows times at most `groups`.
    #[inline(always)]
    fn run<S: Dot<Quad = Q>, O: Sink, const M: usize, const NV: usize, const KC: usize>(
        &mut self,
        s: S,
        groups: usize,
        sink: &mut O,
    ) {
        let groups = groups.min(GROUPS);
        for m in 0..groups * M {
            let start = (self.row + m) * self.x.stride;
            let (full, tail) = self.x.data[start..start + self.weights.k()].as_chunks::<4>();
            let quads = &mut self.quads[m * self.steps..(m + 1) * self.steps];
            for (to, quad) in quads.iter_mut().zip(full) {
                *to = s.pack_quad(*quad);
            }
            if !tail.is_empty() {
                let mut last = [0; 4];
                last[..tail.len()].copy_from_slice(tail);
                quads[full.len()] = s.pack_quad(last);
            }
        }
        let mut panel = self.panels.start;
        while panel < self.panels.end {
            panel += match self.panels.end - panel {
                left if left >= NV => self.sweep::<S, O, M, NV, KC>(s, groups, panel, sink),
                left if NV > 2 && left >= 2 => self.sweep::<S, O, M, 2, KC>(s, groups, panel, sink),
                _ => self.sweep::<S, O, M, 1, KC>(s, groups, panel, sink),
            };
        }
        self.row += groups * M;
    }

    /// All groups over NV panels; returns NV.
    #[inline(always)]
    fn sweep<S: Dot<Quad = Q>, O: Sink, const M: usize, const NV: usize, const KC: usize>(
        &mut self,
        s: S,
        groups: usize,
        panel: usize,
        sink: &mut O,
    ) -> usize {
        let mut w: [&[[i8; 64]]; NV] = [&[]; NV];
        let mut start = [s.splat_i32(0); NV];
        for v in 0..NV {
            w[v] = &self.weights.panel(panel + v)[..self.steps];
            start[v] = s.start(s.load_i32(&self.weights.sums(panel + v)));
        }
        let step = if M == 1 { self.steps } else { KC / 4 };
        for from in (0..self.steps).step_by(step) {
            let to = self.steps.min(from + step);
            for group in 0..groups {
                let rows = &self.quads[group * M * self.steps..][..M * self.steps];
                let mut x: [&[Q]; M] = [&[]; M];
                for m in 0..M {
                    x[m] = &rows[m * self.steps..][from..to];
                }
                let parked = self.parked[group * M * NV..][..M * NV].as_chunks_mut::<NV>().0;
                let mut acc = [start; M];
                if from > 0 {
                    for m in 0..M {
                        for v in 0..NV {
                            acc[m][v] = s.load_i32(&parked[m][v]);
                        }
                    }
                }
                let w = w.map(|w| &w[from..to]);
                if M == 1 {
                    acc[0] = gemv(s, x[0], w, acc[0]);
                } else {
                    acc = tile(s, x, w, acc);
                }
                for m in 0..M {
                    for v in 0..NV {
                        if to == self.steps {
                            sink.put(s, self.row + group * M + m, panel + v, acc[m][v]);
                        } else {
                            s.store_i32(acc[m][v], &mut parked[m][v]);
                        }
                    }
                }
            }
        }
        NV
    }
}
