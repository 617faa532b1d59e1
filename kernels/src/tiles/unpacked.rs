//! Products of int8 weights that lie row by row, and are packed on the way.
//!
//! A slice of a strip of panels is packed for all rows, and the tiles that read it ask meanwhile for what is packed next: four lines
//! of each row, so that one look-up of its page serves them all. Sums wait between two slices.

use super::matmul::{Finished, Pass, Sink, widths};
use super::rows::PackedRows;
use super::weight_rows::{CELL, Coming, PITCH, SLICE, TWICE, WeightRows};
use crate::dispatch::{Isa, Kernel, compiled_here};
use crate::pack::{ones, panel_vectors};
use crate::simd::Dot;
use core::ops::Range;

/// Panels of which a slice of K is multiplied before the next slice.
const STRIP: usize = 32;

/// Columns of those: what a task should have at least.
pub const STRIP_COLUMNS: usize = 16 * STRIP;

/// Panels of a run, whose lines are asked for while the run before is multiplied. They are other lines of a page than those: of rows
/// a power of two apart, the same lines of two slices would push each other out of the second cache.
const RUN: usize = CELL / 16;

/// Rows whose sums wait between two slices.
const ROWS: usize = 128;

/// Vectors of a slice of the panels that are packed at once.
const PACKED: usize = TWICE * PITCH;

/// 64-bit words of workspace of a [`MatmulRows`].
pub const UNPACKED_WORDS: usize = ROWS * STRIP * 8 + PACKED * 8 + 4 * SLICE / 4 * 16;

/// [`Matmul`](super::Matmul) of weights that are packed on the way.
pub struct MatmulRows<'a> {
    /// The rows, as [`PackRows`](super::PackRows) made them on this instruction set for `weights.k`.
    pub x: PackedRows<'a>,
    /// The weights.
    pub weights: WeightRows<'a>,
    /// Which panels; the first is even.
    pub panels: Range<usize>,
    /// [`UNPACKED_WORDS`]; contents irrelevant.
    pub words: &'a mut [u64],
    /// Takes the sums.
    pub sink: Sink<'a>,
}

impl Kernel for MatmulRows<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        match S::ISA {
            Isa::Avx512Vnni | Isa::Avx512Amx => self.tiled::<S, 4, 4>(s),
            Isa::Avx512 => self.tiled::<S, 4, 4>(s),
            Isa::Avx2 => self.tiled::<S, 4, 1>(s),
            Isa::Portable | Isa::Neon | Isa::NeonDot => self.tiled::<S, 4, 1>(s),
        }
    }
}

impl MatmulRows<'_> {
    #[inline(always)]
    fn tiled<S: Dot, const MR: usize, const NV: usize>(self, s: S) {
        let MatmulRows { x, weights, panels, words, sink } = self;
        let (parked, rest) = words[..UNPACKED_WORDS].split_at_mut(ROWS * STRIP * 8);
        let (packed, staged) = rest.split_at_mut(PACKED * 8);
        let (parked, packed) = (bytemuck::cast_slice_mut(parked), bytemuck::cast_slice_mut(packed));
        let mut strip = Strip { x, weights, panels: 0..0, parked, packed, sums: [[0; 16]; TWICE], staged };
        let groups = x.rows().div_ceil(MR);
        let blocks = groups.div_ceil(ROWS / MR);
        for first in panels.clone().step_by(STRIP) {
            strip.panels = first..panels.end.min(first + STRIP);
            for block in 0..blocks {
                let groups = groups * block / blocks..groups * (block + 1) / blocks;
                strip.block::<S, MR, NV>(s, groups.clone());
                let (rows, mut at) = (groups.start * MR..x.rows().min(groups.end * MR), 0);
                for panels in widths::<NV>(strip.panels.clone()) {
                    let width = panels.len();
                    sink(Finished { rows: rows.clone(), panels, sums: &strip.parked[at..][..rows.len() * width] });
                    at += groups.len() * MR * width;
                }
            }
        }
    }
}

/// All of K over some panels.
struct Strip<'a> {
    x: PackedRows<'a>,
    weights: WeightRows<'a>,
    panels: Range<usize>,
    parked: &'a mut [[i32; 16]],
    packed: &'a mut [[i8; 64]],
    sums: [[i32; 16]; TWICE],
    staged: &'a mut [u64],
}

impl Strip<'_> {
    /// Packs some quads of four panels or, where rows crowd, of eight, with the column sums of just these; returns which panels.
    #[inline(never)]
    fn pack<S: Dot>(&mut self, s: S, panels: Range<usize>, quads: Range<usize>) -> Range<usize> {
        s.vectorize(
            #[inline(always)]
            || {
                let one = if S::OFFSET { Some(ones(s)) } else { None };
                let (first, some) = (panels.start, |count| panels.start..panels.end.min(panels.start + count));
                let (packed, sums) = match self.weights.crowds(&some(TWICE), &quads) {
                    true => (some(TWICE), self.weights.pack_twice(s, one, first, quads, self.packed)),
                    false => (some(4), [self.weights.pack(s, one, first, quads, self.packed), [s.splat_i32(0); 4]]),
                };
                for (sums, to) in sums.into_iter().zip(self.sums.as_chunks_mut::<4>().0) {
                    for v in 0..4 {
                        s.store_i32(sums[v], &mut to[v]);
                    }
                }
                packed
            },
        )
    }

    /// Some groups of MR rows, [panels][row][NV] into `parked`.
    #[inline(never)]
    fn block<S: Dot, const MR: usize, const NV: usize>(&mut self, s: S, groups: Range<usize>) {
        s.vectorize(
            #[inline(always)]
            || {
                let (k, quads, panels) = (self.weights.k, panel_vectors(self.weights.k), self.panels.clone());
                for from in (0..quads).step_by(SLICE / 4) {
                    let (to, mut at) = (quads.min(from + SLICE / 4), 0);
                    for start in panels.clone().step_by(RUN) {
                        let mut run = start..panels.end.min(start + RUN);
                        // The next run of this slice, the first of the next slice, or what lies behind these panels.
                        let (next, row) = match (run.end < panels.end, to < quads) {
                            (true, _) => (run.end, 4 * from),
                            (_, true) => (panels.start, 4 * to),
                            _ => (panels.end, 0),
                        };
                        let coming = self.weights.coming(next..next + RUN, row..k.min(row + SLICE));
                        let mut slice = Slice {
                            pass: Pass { x: self.x, groups: groups.clone(), steps: from..to },
                            rate: coming.left,
                            moments: widths::<NV>(run.clone()).count() * groups.len() * ((to - from) / 16),
                            due: 0,
                            coming,
                        };
                        while !run.is_empty() {
                            let some = self.pack(s, run.clone(), from..to);
                            run.start = some.end;
                            for panels in widths::<NV>(some.clone()) {
                                let parked = &mut self.parked[at..][..groups.len() * MR * panels.len()];
                                at += parked.len();
                                let v = panels.start - some.start;
                                let packed = (&self.packed[v * PITCH..], &self.sums[v..]);
                                match panels.len() {
                                    1 => slice.run::<S, MR, 1>(s, packed, self.staged, parked),
                                    2 => slice.run::<S, MR, 2>(s, packed, self.staged, parked),
                                    _ => slice.run::<S, MR, NV>(s, packed, self.staged, parked),
                                }
                            }
                        }
                    }
                }
            },
        )
    }
}

/// A slice of K.
struct Slice<'a> {
    pass: Pass<'a>,
    coming: Coming<'a>,
    /// Cells that come, over so many moments; what is due of a cell.
    rate: usize,
    moments: usize,
    due: usize,
}

impl Slice<'_> {
    /// Over NV panels.
    #[inline(always)]
    fn run<S: Dot, const MR: usize, const NV: usize>(
        &mut self,
        s: S,
        (packed, sums): (&[[i8; 64]], &[[i32; 16]]),
        staged: &mut [u64],
        parked: &mut [[i32; 16]],
    ) {
        let Slice { pass, coming, rate, moments, due } = self;
        let length = pass.steps.len();
        let (mut part, mut start): ([&[[i8; 64]]; NV], _) = ([&[]; NV], [s.splat_i32(0); NV]);
        for v in 0..NV {
            part[v] = &packed[v * PITCH..][..length];
            start[v] = s.start(s.load_i32(&sums[v]));
        }
        let weights = s.stage(part, staged);
        pass.run::<S, MR, NV>(
            s,
            weights,
            start,
            parked,
            #[inline(always)]
            |_, u, _| {
                if u % 4 == 0 {
                    *due += *rate;
                    while *due >= *moments {
                        *due -= *moments;
                        coming.ask(s);
                    }
                }
            },
        );
    }
}
