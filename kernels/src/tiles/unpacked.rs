//! Int8 weights that lie row by row, and are packed on the way to a product.
//!
//! A slice of a strip of panels is packed for all rows, and the tiles that read it ask for the rows of the next slice meanwhile. What is
//! read of a row are eight lines, so that one look-up of its page serves them all. Sums wait between two slices.

use super::matmul::{Finished, Pass, Sink, widths};
use super::rows::PackedRows;
use crate::dispatch::{Isa, Kernel, compiled_here};
use crate::pack::{column_sums, ones, panel_vectors};
use crate::simd::Dot;
use core::ops::Range;

/// A weight that lies row by row: whole rows, or stripes of 32 columns one after the other.
#[derive(Clone, Copy, Debug)]
pub struct WeightRows<'a> {
    /// The elements.
    pub data: &'a [i8],
    /// Elements from row to row.
    pub pitch: usize,
    /// Elements from 32 columns to the next 32 of the same row.
    pub stripe: usize,
    /// Rows.
    pub k: usize,
    /// Columns.
    pub n: usize,
}

/// What will be read: cells of neighbouring lines, `cells` of them one after the other, then the same `pitch` bytes further on.
struct Coming<'a> {
    lines: &'a [[i8; 64]],
    /// Where the next cell begins, and the run that it belongs to.
    at: usize,
    run: usize,
    /// Bytes of a cell.
    width: usize,
    /// Bytes of a run.
    length: usize,
    pitch: usize,
    /// Cells that are left.
    left: usize,
}

impl Coming<'_> {
    /// Asks for the next cell.
    #[inline(always)]
    fn ask<S: Dot>(&mut self, s: S) {
        if self.left == 0 {
            return;
        }
        let first = self.at / 64;
        for line in self.lines.get(first..=first + (self.width - 1) / 64).unwrap_or_default() {
            s.prefetch(line);
        }
        self.left -= 1;
        self.at += self.width;
        if self.at >= self.run + self.length {
            self.run += self.pitch;
            self.at = self.run;
        }
    }
}

impl<'a> WeightRows<'a> {
    /// Packs some quads of four panels, of which the first is even; a panel lies `pitch` vectors behind the one before. What the
    /// weight does not have is zero.
    #[inline(always)]
    fn pack<S: Dot>(&self, s: S, first: usize, quads: Range<usize>, to: &mut [[i8; 64]], pitch: usize) {
        let at = first / 2 * self.stripe + 4 * quads.start * self.pitch;
        let (a, b) = to[..3 * pitch + quads.len()].split_at_mut(pitch);
        let (b, c) = b.split_at_mut(pitch);
        let (c, d) = c.split_at_mut(pitch);
        let mut outputs = a.iter_mut().zip(b).zip(c).zip(d).zip(quads.clone());
        // Four whole rows at a time, whose lengths are the same for all: no length is asked for inside the loop. Rows may overlap: not these.
        let apart = 16 * first + 64 <= self.n && self.pitch >= 32;
        let whole = if apart { (self.k / 4).clamp(quads.start, quads.end) - quads.start } else { 0 };
        let four = (4 * self.pitch).max(1);
        let fours = |half: usize| self.data.get(at + half * self.stripe..).unwrap_or_default().chunks_exact(four);
        let whole = whole.min(fours(0).len()).min(fours(1).len());
        for ((((((a, b), c), d), _), left), right) in outputs.by_ref().take(whole).zip(fours(0)).zip(fours(1)) {
            let mut rows = [[&[0; 32]; 2]; 4];
            for j in 0..4 {
                rows[j] = [left, right].map(
                    #[inline(always)]
                    |four| four[j * self.pitch..].first_chunk().expect("32 columns"),
                );
            }
            s.interleave(rows, [a, b, c, d]);
        }
        for ((((a, b), c), d), q) in outputs {
            let mut rows = [[[0; 32]; 2]; 4];
            for j in 0..self.k.saturating_sub(4 * q).min(4) {
                for half in 0..2 {
                    let columns = self.n.saturating_sub(16 * first + 32 * half).min(32);
                    if columns > 0 {
                        let row = &self.data[at + (4 * (q - quads.start) + j) * self.pitch + half * self.stripe..];
                        rows[j][half][..columns].copy_from_slice(&row[..columns]);
                    }
                }
            }
            let mut parts = [[&[0; 32]; 2]; 4];
            for j in 0..4 {
                parts[j] = rows[j].each_ref();
            }
            s.interleave(parts, [a, b, c, d]);
        }
    }

    /// Some rows of some panels, of which the first is even; nothing of panels that do not exist.
    #[inline(always)]
    fn coming(&self, panels: Range<usize>, rows: Range<usize>) -> Coming<'a> {
        let columns = self.n.min(16 * panels.end).saturating_sub(16 * panels.start);
        let (runs, length, pitch) = match self.pitch {
            32 => (columns.div_ceil(32), 32 * rows.len(), self.stripe),
            pitch => (rows.len(), columns, pitch),
        };
        let (run, width) = (panels.start / 2 * self.stripe + rows.start * self.pitch, length.clamp(1, 256));
        let left = runs * length.div_ceil(width);
        Coming { lines: self.data.as_chunks().0, at: run, run, width, length, pitch, left }
    }
}

/// Packs some panels.
pub struct PackStrip<'a> {
    /// The weights.
    pub weights: WeightRows<'a>,
    /// The first of the panels, an even number.
    pub first: usize,
    /// [`panel_vectors`]`(k)` for each 16 columns.
    pub panels: &'a mut [[i8; 64]],
    /// One for each 16 columns.
    pub sums: &'a mut [[i8; 64]],
}

impl Kernel for PackStrip<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let PackStrip { weights, first, panels, sums } = self;
        let (vectors, one, all) = (panel_vectors(weights.k), ones(s), first..first + sums.len());
        let mut slice = [[0; 64]; 3 * PITCH + SLICE / 4];
        for from in (0..vectors).step_by(SLICE / 4) {
            let quads = from..vectors.min(from + SLICE / 4);
            for (first, panels) in all.clone().step_by(4).zip(panels.chunks_mut(4 * vectors)) {
                weights.pack(s, first, quads.clone(), &mut slice, PITCH);
                for (panel, slice) in panels.chunks_exact_mut(vectors).zip(slice.chunks(PITCH)) {
                    panel[quads.clone()].copy_from_slice(&slice[..quads.len()]);
                }
            }
        }
        for (panel, sums) in panels.chunks_exact(vectors).zip(sums) {
            *sums = column_sums(s, one, panel);
        }
    }
}

/// Panels of which a slice of K is multiplied before the next slice.
const STRIP: usize = 32;

/// Columns of those: what a task should have at least.
pub const STRIP_COLUMNS: usize = 16 * STRIP;

/// Elements of K that are packed at once. Rows of a power of two share few sets of the second cache: 512 of them fit.
const SLICE: usize = 256;

/// Rows whose sums wait between two slices.
const ROWS: usize = 128;

/// Vectors from panel to panel: one more than a slice has, so that the panels do not share the sets of the first cache.
const PITCH: usize = SLICE / 4 + 1;

/// Vectors of a slice of four panels.
const PACKED: usize = 4 * PITCH;

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
        let mut strip = Strip { x, weights, panels: 0..0, parked, packed, sums: [[0; 16]; 4], staged };
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
    sums: [[i32; 16]; 4],
    staged: &'a mut [u64],
}

impl Strip<'_> {
    /// Packs some quads of four panels, with the column sums of just these.
    #[inline(never)]
    fn pack<S: Dot>(&mut self, s: S, first: usize, quads: Range<usize>) {
        s.vectorize(
            #[inline(always)]
            || {
                self.weights.pack(s, first, quads.clone(), self.packed, PITCH);
                let one = ones(s);
                for (sums, packed) in self.sums.iter_mut().zip(self.packed.chunks(PITCH)) {
                    *sums = bytemuck::cast(column_sums(s, one, &packed[..quads.len()]));
                }
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
                    let to = quads.min(from + SLICE / 4);
                    let (next, row) = if to < quads { (panels.clone(), 4 * to) } else { (panels.end..panels.end + STRIP, 0) };
                    let coming = self.weights.coming(next, row..k.min(row + SLICE));
                    let mut slice = Slice {
                        pass: Pass { x: self.x, groups: groups.clone(), steps: from..to },
                        rate: coming.left,
                        moments: widths::<NV>(panels.clone()).count() * groups.len() * ((to - from) / 16),
                        due: 0,
                        coming,
                    };
                    let mut at = 0;
                    for first in panels.clone().step_by(4) {
                        self.pack(s, first, from..to);
                        for panels in widths::<NV>(first..panels.end.min(first + 4)) {
                            let parked = &mut self.parked[at..][..groups.len() * MR * panels.len()];
                            at += parked.len();
                            let packed = (&self.packed[(panels.start - first) * PITCH..], &self.sums[panels.start - first..]);
                            match panels.len() {
                                1 => slice.run::<S, MR, 1>(s, packed, self.staged, parked),
                                2 => slice.run::<S, MR, 2>(s, packed, self.staged, parked),
                                _ => slice.run::<S, MR, NV>(s, packed, self.staged, parked),
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
