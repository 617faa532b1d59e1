//! How rows are cut for weights that are packed on the way: groups, one row behind the other, or bands.

use super::bands::{BandPass, UNIT};
use super::int8::{steps_between_requests, tile};
use super::rows::{Bands, PackedRows};
use super::waiting::{Pass, Waiting, widths};
use super::weight_rows::{CELL, Coming, SLICE};
use crate::simd::Dot;
use core::ops::Range;

/// Panels of a run, whose lines are asked for while the run before is multiplied. They are other lines of a page than those: of rows
/// a power of two apart, the same lines of two slices would push each other out of the second cache.
pub(super) const RUN: usize = CELL / 16;

/// Accumulators of 16 lanes that wait between two slices: rows by panels of a strip.
pub(super) const WAITING: usize = 8192;

/// Of rows in groups so many wait, of so many panels.
const ROWS: usize = 128;
pub(super) const STRIP: usize = 32;

/// Of rows in bands so many wait, of as many panels as there is room for: the fewer the strips, the less often a page is looked up.
const BANDED_ROWS: usize = 256;
const BANDED_STRIP: usize = 256;

/// Rows in bands for which twice as much of K is packed at once: their sums are moved half as often, and fewer rows gain nothing.
const LONG_FROM: usize = 192;

/// Elements of K that are packed at once for them. As many rows of weights crowd a second cache of 1 MiB; rows in bands meet weights
/// that lie row by row only on processors with AMX, which have 2.
pub(super) const LONG_SLICE: usize = 512;

const _: () = assert!(ROWS * STRIP <= WAITING && BANDED_ROWS * 2 * RUN <= WAITING && BANDED_ROWS % Bands::MOST == 0);

/// Panels of which a slice of K is multiplied before the next slice, for so many rows in bands.
pub(super) fn banded_strip(rows: usize) -> usize {
    (WAITING / rows.min(BANDED_ROWS) / RUN * RUN).min(BANDED_STRIP)
}

/// How the rows are cut into parts, each of which passes over packed panels.
pub(super) trait Cut: Copy {
    /// Parts whose sums wait, at most.
    const PARTS: usize;
    /// Requests while a part passes over these panels and a vector of 16 quads.
    const REQUESTS: usize;
    /// Panels whose sums lie together, row by row.
    fn together(panels: Range<usize>) -> impl Iterator<Item = Range<usize>>;
    /// Panels whose sums wait.
    fn strip(self) -> usize;
    /// Elements of K that are packed at once, at most [`LONG_SLICE`].
    fn slice(self) -> usize;
    /// Parts of all rows.
    fn count(self) -> usize;
    /// The rows of some parts.
    fn rows(self, parts: Range<usize>) -> Range<usize>;
    /// Rows of sums that some parts keep.
    fn waiting(self, parts: &Range<usize>) -> usize;
    /// Adds the products of some parts and quads by panels that lie together.
    fn pass<S: Dot>(self, s: S, slice: &mut Slice<'_>, panels: Together<'_>);
}

/// Panels that are packed and lie together.
pub(super) struct Together<'a> {
    pub width: usize,
    pub packed: &'a [[i8; 64]],
    /// Vectors from panel to panel.
    pub pitch: usize,
    pub sums: &'a [[i32; 16]],
    pub staged: &'a mut [u64],
    pub parked: &'a mut [[i32; 16]],
}

impl<'a> Together<'a> {
    /// NV of them: vectors of `length` quads, and what their sums start from.
    #[inline(always)]
    fn panels<S: Dot, const NV: usize>(&self, s: S, first: usize, length: usize) -> ([&'a [[i8; 64]]; NV], [S::I32; NV]) {
        let (mut part, mut start): ([&[[i8; 64]]; NV], _) = ([&[]; NV], [s.splat_i32(0); NV]);
        for v in 0..NV {
            part[v] = &self.packed[(first + v) * self.pitch..][..length];
            start[v] = s.start(s.load_i32(&self.sums[first + v]));
        }
        (part, start)
    }
}

/// Rows one behind the other, in groups of MR, over NV panels at a time.
#[derive(Clone, Copy)]
pub(super) struct Groups<'a, const MR: usize, const NV: usize> {
    pub x: PackedRows<'a>,
}

impl<const MR: usize, const NV: usize> Groups<'_, MR, NV> {
    #[inline(always)]
    fn over<S: Dot, const WIDTH: usize>(self, s: S, first: usize, slice: &mut Slice<'_>, panels: &mut Together<'_>) {
        let (part, start) = panels.panels::<S, WIDTH>(s, first, slice.steps.len());
        let pass = Pass { x: self.x, groups: slice.parts.clone(), steps: slice.steps.clone() };
        let weights = s.stage(part, panels.staged);
        pass.run::<S, MR, WIDTH>(
            s,
            start,
            Waiting { sums: &mut panels.parked[first..], pitch: panels.width },
            #[inline(always)]
            |_, x, acc| {
                tile(
                    s,
                    x,
                    weights,
                    #[inline(always)]
                    |u| {
                        if u * steps_between_requests::<S>() % 16 == 0 {
                            slice.pace.ask(s);
                        }
                    },
                    acc,
                )
            },
        );
    }
}

impl<const MR: usize, const NV: usize> Cut for Groups<'_, MR, NV> {
    const PARTS: usize = ROWS / MR;
    const REQUESTS: usize = 4 / NV;

    #[inline(always)]
    fn together(panels: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        widths::<4>(panels)
    }

    #[inline(always)]
    fn strip(self) -> usize {
        STRIP
    }

    #[inline(always)]
    fn slice(self) -> usize {
        SLICE
    }

    #[inline(always)]
    fn count(self) -> usize {
        self.x.rows().div_ceil(MR)
    }

    #[inline(always)]
    fn rows(self, parts: Range<usize>) -> Range<usize> {
        parts.start * MR..self.x.rows().min(parts.end * MR)
    }

    #[inline(always)]
    fn waiting(self, parts: &Range<usize>) -> usize {
        parts.len() * MR
    }

    #[inline(always)]
    fn pass<S: Dot>(self, s: S, slice: &mut Slice<'_>, mut panels: Together<'_>) {
        for some in widths::<NV>(0..panels.width) {
            match some.len() {
                1 if const { NV > 1 } => self.over::<S, 1>(s, some.start, slice, &mut panels),
                2 if const { NV > 2 } => self.over::<S, 2>(s, some.start, slice, &mut panels),
                _ => self.over::<S, NV>(s, some.start, slice, &mut panels),
            }
        }
    }
}

/// Rows in bands, over pairs of panels.
#[derive(Clone, Copy)]
pub(super) struct Banded<'a> {
    pub x: PackedRows<'a>,
    pub bands: Bands,
}

impl Banded<'_> {
    #[inline(always)]
    fn over<S: Dot, const NV: usize>(self, s: S, first: usize, slice: &mut Slice<'_>, panels: &mut Together<'_>) {
        let (part, start) = panels.panels::<S, NV>(s, first, slice.steps.len());
        let pass = BandPass { x: self.x, bands: self.bands, some: slice.parts.clone(), steps: slice.steps.clone() };
        pass.run(
            s,
            part,
            start,
            Waiting { sums: &mut panels.parked[first..], pitch: panels.width },
            #[inline(always)]
            || slice.pace.ask(s),
        );
    }
}

impl Cut for Banded<'_> {
    const PARTS: usize = BANDED_ROWS / Bands::MOST;
    const REQUESTS: usize = 2 * 16 / UNIT;

    #[inline(always)]
    fn together(panels: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        widths::<4>(panels)
    }

    #[inline(always)]
    fn strip(self) -> usize {
        banded_strip(self.x.rows())
    }

    #[inline(always)]
    fn slice(self) -> usize {
        if self.x.rows() < LONG_FROM { SLICE } else { LONG_SLICE }
    }

    #[inline(always)]
    fn count(self) -> usize {
        self.bands.count()
    }

    #[inline(always)]
    fn rows(self, parts: Range<usize>) -> Range<usize> {
        self.bands.range(parts)
    }

    #[inline(always)]
    fn waiting(self, parts: &Range<usize>) -> usize {
        self.rows(parts.clone()).len()
    }

    #[inline(always)]
    fn pass<S: Dot>(self, s: S, slice: &mut Slice<'_>, mut panels: Together<'_>) {
        for pair in widths::<2>(0..panels.width) {
            match pair.len() {
                1 => self.over::<S, 1>(s, pair.start, slice, &mut panels),
                _ => self.over::<S, 2>(s, pair.start, slice, &mut panels),
            }
        }
    }
}

/// Some parts of the rows over a slice of K.
pub(super) struct Slice<'a> {
    pub parts: Range<usize>,
    /// Quads of K.
    pub steps: Range<usize>,
    pub pace: Pace<'a>,
}

/// Requests for what comes, `rate` of them over so many moments; what is due of one.
pub(super) struct Pace<'a> {
    pub coming: Coming<'a>,
    pub rate: usize,
    pub moments: usize,
    pub due: usize,
}

impl Pace<'_> {
    /// Asks for what is due, once in each moment.
    #[inline(always)]
    fn ask<S: Dot>(&mut self, s: S) {
        self.due += self.rate;
        while self.due >= self.moments {
            self.due -= self.moments;
            self.coming.ask(s);
        }
    }
}
