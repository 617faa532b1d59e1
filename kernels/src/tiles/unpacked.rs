//! Products of int8 weights that lie row by row, and are packed on the way.
//!
//! [A few rows](super::straight) meet weights that are packed in registers, [more of them](super::woven) where they are woven
//! there, and a unit for tiles takes them [slab by slab](super::slabs). Else a slice of a strip of panels is packed for all rows,
//! and the tiles that read it ask meanwhile, line by line, for what is packed next: four lines of each row, so that one look-up
//! of its page serves them all, and of four rows abreast, so that their pages are looked up together. Sums wait between two
//! slices. [Stripes](super::stripes) that meet rows in bands go another way.

use super::bands::BANDED;
use super::columns::COLUMNS;
use super::cut::{Banded, Cut, Groups, LONG_SLICE, Pace, RUN, Slice, Together, WAITING};
use super::matmul::{Finished, Sink};
use super::rows::PackedRows;
use super::slabs::Slabs;
use super::straight::{STRAIGHT_WORDS, Straight};
use super::stripes::{STRIPES_WORDS, Stripes};
use super::ways::few_rows;
use super::weight_rows::{SLICE, TWICE, WeightRows, pitch};
use super::woven::{WOVEN_WORDS, Woven};
use crate::dispatch::{Kernel, compiled_here};
use crate::pack::{ones, panel_vectors};
use crate::simd::Dot;
use core::ops::Range;

/// Vectors of a slice of the panels that are packed at once.
const PACKED: usize = TWICE * pitch(LONG_SLICE / 4);

/// 64-bit words of a slice of four panels that is widened, for rows in groups, which pack no long slices: there is room behind theirs.
const STAGED: usize = 4 * SLICE / 4 * 16;
const _: () = assert!(TWICE * pitch(SLICE / 4) * 8 + STAGED <= PACKED * 8);

/// 64-bit words of workspace of a [`MatmulRows`].
pub const UNPACKED_WORDS: usize = WAITING * 8 + PACKED * 8;
const _: () = assert!(STRIPES_WORDS <= UNPACKED_WORDS && STRAIGHT_WORDS <= UNPACKED_WORDS && WOVEN_WORDS <= UNPACKED_WORDS);

/// [`Matmul`](super::Matmul) of weights that are packed on the way.
pub struct MatmulRows<'a> {
    /// The rows, as [`PackRows`](super::PackRows) or [`PackBand`](super::PackBand) made them on this instruction set for `weights.k`.
    pub x: PackedRows<'a>,
    /// The weights.
    pub weights: WeightRows<'a>,
    /// Which panels; the first is even.
    pub panels: Range<usize>,
    /// [`UNPACKED_WORDS`]; contents irrelevant.
    pub words: &'a mut [u64],
    /// Room for packed panels, which a unit for tiles uses: the more, the longer the rows of weights that it reads.
    pub stage: &'a mut [[i8; 64]],
    /// Takes the sums.
    pub sink: Sink<'a>,
}

impl Kernel for MatmulRows<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let x = self.x;
        debug_assert!(self.weights.k >= 1);
        // What an offset adds is taken back of woven weights only.
        const { assert!(S::WEAVES || !S::OFFSET) };
        let few = few_rows(S::ISA, self.weights.lie());
        if (1..=few).contains(&x.rows()) && x.bands().is_none() && self.weights.n >= COLUMNS {
            let MatmulRows { weights, panels, words, sink, .. } = self;
            return match const { S::WEAVES } {
                true => Woven { x, weights }.run(s, panels, words, sink),
                false => Straight { x, weights }.run(s, panels, words, sink),
            };
        }
        if let Some(unit) = s.tile_unit()
            && Slabs::suit(x.rows(), &self.weights, self.stage.len())
        {
            let MatmulRows { weights, panels, words, stage, sink, .. } = self;
            let sums = bytemuck::cast_slice_mut(&mut words[..WAITING * 8]);
            return Slabs { x, weights, stage, sums }.run(s, unit, panels, sink);
        }
        if const { matches!(S::ISA, BANDED) }
            && let Some(bands) = x.bands()
        {
            if self.weights.in_stripes() {
                let MatmulRows { weights, panels, words, sink, .. } = self;
                return Stripes { x, bands, weights, words }.run(s, panels, sink);
            }
            self.strips(s, Banded { x, bands })
        } else if const { S::IS_WIDE } {
            self.strips(s, Groups::<4, 4> { x })
        } else {
            self.strips(s, Groups::<4, 1> { x })
        }
    }
}

impl MatmulRows<'_> {
    #[inline(always)]
    fn strips<S: Dot, C: Cut>(self, s: S, cut: C) {
        let MatmulRows { weights, panels, words, sink, .. } = self;
        let (parked, rest) = words[..UNPACKED_WORDS].split_at_mut(WAITING * 8);
        let pitch = pitch(cut.slice() / 4);
        let (packed, staged) = rest.split_at_mut(TWICE * pitch * 8);
        let (parked, packed) = (bytemuck::cast_slice_mut(parked), bytemuck::cast_slice_mut(packed));
        let packer = Packer { weights, packed, pitch, sums: [[0; 16]; TWICE] };
        let mut strip = Strip { cut, packer, panels: 0..0, parked, staged };
        let count = cut.count();
        let (blocks, width) = (count.div_ceil(C::PARTS), cut.strip());
        for first in panels.clone().step_by(width) {
            strip.panels = first..panels.end.min(first + width);
            for block in 0..blocks {
                let parts = count * block / blocks..count * (block + 1) / blocks;
                strip.block(s, parts.clone());
                let (rows, mut at) = (cut.rows(parts.clone()), 0);
                for panels in C::together(strip.panels.clone()) {
                    let width = panels.len();
                    sink(Finished { rows: rows.clone(), panels, sums: &strip.parked[at..][..rows.len() * width], pitch: width });
                    at += cut.waiting(&parts) * width;
                }
            }
        }
    }
}

/// Packs a slice of a few panels.
struct Packer<'a> {
    weights: WeightRows<'a>,
    packed: &'a mut [[i8; 64]],
    /// Vectors from panel to panel.
    pitch: usize,
    sums: [[i32; 16]; TWICE],
}

impl Packer<'_> {
    /// Packs some quads of four panels or, where rows crowd, of eight, with the column sums of just these; returns which panels.
    #[inline(always)]
    fn pack<S: Dot>(&mut self, s: S, panels: Range<usize>, quads: Range<usize>) -> Range<usize> {
        s.apart(
            #[inline(always)]
            move || {
                let one = if S::OFFSET { Some(ones(s)) } else { None };
                let (packed, sums) = self.weights.pack(s, one, &panels, quads, (self.packed, self.pitch), self.weights.crowd());
                for (sums, to) in sums.into_iter().zip(self.sums.as_chunks_mut::<4>().0) {
                    for v in 0..4 {
                        s.store_i32(sums[v], &mut to[v]);
                    }
                }
                packed
            },
        )
    }
}

/// All of K over some panels.
struct Strip<'a, C> {
    cut: C,
    packer: Packer<'a>,
    panels: Range<usize>,
    parked: &'a mut [[i32; 16]],
    staged: &'a mut [u64],
}

impl<C: Cut> Strip<'_, C> {
    /// Some parts of the rows, [panels][row][width] into `parked`.
    #[inline(always)]
    fn block<S: Dot>(&mut self, s: S, parts: Range<usize>) {
        s.apart(
            #[inline(always)]
            move || {
                let Strip { cut, packer, panels, parked, staged } = self;
                let (k, quads, length) = (packer.weights.k, panel_vectors(packer.weights.k), cut.slice());
                for from in (0..quads).step_by(length / 4) {
                    let (to, mut at) = (quads.min(from + length / 4), 0);
                    for start in panels.clone().step_by(RUN) {
                        let mut run = start..panels.end.min(start + RUN);
                        // The next run of this slice, the first of the next slice, or what lies behind these panels.
                        let (next, row) = match (run.end < panels.end, to < quads) {
                            (true, _) => (run.end, 4 * from),
                            (_, true) => (panels.start, 4 * to),
                            _ => (panels.end, 0),
                        };
                        let coming = packer.weights.coming(next..next + RUN, row..k.min(row + length));
                        let moments = C::together(run.clone()).count() * parts.len() * C::REQUESTS * ((to - from) / 16);
                        let pace = Pace { rate: coming.left, moments, due: 0, coming };
                        let mut slice = Slice { parts: parts.clone(), steps: from..to, pace };
                        while !run.is_empty() {
                            let some = packer.pack(s, run.clone(), from..to);
                            run.start = some.end;
                            for panels in C::together(some.clone()) {
                                let (v, width) = (panels.start - some.start, panels.len());
                                let parked = &mut parked[at..][..cut.waiting(&parts) * width];
                                at += parked.len();
                                let (packed, pitch) = (&packer.packed[v * packer.pitch..], packer.pitch);
                                let sums = &packer.sums[v..];
                                cut.pass(s, &mut slice, Together { width, packed, pitch, sums, staged, parked });
                            }
                        }
                    }
                }
            },
        )
    }
}
