//! Int8 weights that lie row by row, and how they are packed and asked for.

use super::ways::Lie;
use crate::simd::{Dot, Simd};
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
    /// Rows, at least one for a product.
    pub k: usize,
    /// Columns.
    pub n: usize,
    /// Bytes of all weights that are read in turn with these: whether a few rows ask for what comes. 0 if a cache delivers.
    pub among: usize,
}

/// Panels that are packed beside each other, where that pays; else half as many.
pub(super) const TWICE: usize = 8;

/// Elements of K that are packed at once. Rows of a power of two share few sets of the second cache: of 1 MiB as many as these.
pub(super) const SLICE: usize = 256;

/// Vectors from panel to panel where so many are packed of each: one more, so that the panels do not share the sets of the first cache.
pub(super) const fn pitch(vectors: usize) -> usize {
    vectors + 1
}

/// What will be read: runs of cells, each of which is some neighbouring lines. [`ABREAST`] cells are asked for side by side, line by
/// line: behind the last of a run that may be a few more.
pub(super) struct Coming<'a> {
    lines: &'a [[i8; 64]],
    /// Where the next cells begin, and the run that they belong to.
    at: usize,
    run: usize,
    /// Bytes from cell to cell, and from run to run.
    step: usize,
    pitch: usize,
    /// Times [`ABREAST`] cells of a run, and those that are left of this one.
    rounds: usize,
    here: usize,
    /// The next line of its cell, and the requests that are left of all.
    line: usize,
    pub left: usize,
}

/// Bytes of a cell.
pub(super) const CELL: usize = 256;

/// Cells that are asked for side by side. An instruction that asks for a line waits until its page is found; the pages of four rows are
/// looked up in the time of one.
const ABREAST: usize = 4;

impl Coming<'_> {
    /// Asks for the next line of [`ABREAST`] cells.
    #[inline(always)]
    pub fn ask<S: Dot>(&mut self, s: S) {
        if self.left == 0 {
            return;
        }
        // The line that a run begins in came with the run before.
        for j in 0..ABREAST {
            if let Some(line) = self.lines.get((self.at + j * self.step).div_ceil(64) + self.line) {
                s.prefetch(line);
            }
        }
        (self.left, self.line) = (self.left - 1, self.line + 1);
        if self.line < CELL / 64 {
            return;
        }
        (self.line, self.here, self.at) = (0, self.here - 1, self.at + ABREAST * self.step);
        if self.here == 0 {
            self.run += self.pitch;
            (self.here, self.at) = (self.rounds, self.run);
        }
    }
}

impl<'a> WeightRows<'a> {
    /// Whether rows lie in stripes, and not whole: neighbouring stripes of a single row are the row.
    #[inline(always)]
    pub(super) fn in_stripes(&self) -> bool {
        self.stripe != 32
    }

    #[inline(always)]
    pub(super) fn lie(&self) -> Lie {
        if self.in_stripes() { Lie::Stripes } else { Lie::Rows }
    }

    /// The rows of a stripe, of which the first column has this number.
    #[inline(always)]
    pub(super) fn of_stripe(&self, column: usize) -> &'a [[i8; 32]] {
        self.data[column / 32 * self.stripe..][..32 * self.k].as_chunks().0
    }

    /// Packs some quads of the first four of the panels or, if `twice` and where they lie beside each other, of eight; the first is even.
    /// A panel lies `pitch` vectors behind the one before. What the weight does not have is zero. Returns which panels, and the sums of
    /// what was packed, with `one` as [`ones`] makes it; without it zeros.
    #[inline(always)]
    pub(super) fn pack<S: Dot>(
        &self,
        s: S,
        one: Option<S::X>,
        panels: &Range<usize>,
        quads: Range<usize>,
        (to, pitch): (&mut [[i8; 64]], usize),
        twice: bool,
    ) -> (Range<usize>, [[S::I32; 4]; 2]) {
        let some = |count: usize| panels.start..panels.end.min(panels.start + count);
        match twice && self.beside(&some(TWICE), &quads) {
            true => (some(TWICE), self.eight(s, one, panels.start, quads, (to, pitch))),
            false => (some(4), [self.four(s, one, panels.start, quads, (to, pitch)), [s.splat_i32(0); 4]]),
        }
    }

    #[inline(always)]
    fn four<S: Dot>(
        &self,
        s: S,
        one: Option<S::X>,
        first: usize,
        quads: Range<usize>,
        (to, pitch): (&mut [[i8; 64]], usize),
    ) -> [S::I32; 4] {
        let at = first / 2 * self.stripe + 4 * quads.start * self.pitch;
        let [a, b, c, d] = four_panels(to, pitch, quads.len());
        let mut outputs = a.iter_mut().zip(b).zip(c).zip(d).zip(quads.clone());
        let mut sums = [s.splat_i32(0); 4];
        // Rows may overlap: not where four are taken at a time.
        let apart = 16 * first + 64 <= self.n && self.pitch >= 32;
        let whole = if apart { (self.k / 4).clamp(quads.start, quads.end) - quads.start } else { 0 };
        if whole > 0 {
            // Whole rows, in two halves of 32 columns, whose lengths are the same for all: none is asked for inside the loop.
            let half = |at: usize| self.data.get(at..).unwrap_or_default().chunks_exact(4 * self.pitch);
            let row = |j: usize| half(at + j * self.pitch).zip(half(at + j * self.pitch + self.stripe));
            let fours = row(0).zip(row(1)).zip(row(2).zip(row(3)));
            let whole = whole.min(fours.len());
            for (((((a, b), c), d), _), ((first, second), (third, fourth))) in outputs.by_ref().take(whole).zip(fours) {
                let mut rows = [[&[0; 32]; 2]; 4];
                for (row, (left, right)) in rows.iter_mut().zip([first, second, third, fourth]) {
                    *row = [left.first_chunk().expect("32 columns"), right.first_chunk().expect("32 columns")];
                }
                quad(s, one, rows, [a, b, c, d], &mut sums);
            }
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
            quad(s, one, parts, [a, b, c, d], &mut sums);
        }
        sums
    }

    /// Whether so many whole panels and quads lie beside each other.
    fn beside(&self, panels: &Range<usize>, quads: &Range<usize>) -> bool {
        let whole = panels.len() == TWICE && 16 * panels.end <= self.n && 4 * quads.end <= self.k;
        whole && !self.in_stripes() && self.pitch >= 16 * TWICE
    }

    /// Whether rows begin so near to a multiple of a page apart that they share a few sets of the first cache.
    pub(super) fn crowd(&self) -> bool {
        const PAGE: usize = 4096;
        const NEAR: usize = 8;
        (self.pitch + NEAR) % PAGE <= 2 * NEAR
    }

    /// Twice as many panels, quad by quad: a line that both groups of four share is read for both before others take its place.
    #[inline(always)]
    fn eight<S: Dot>(
        &self,
        s: S,
        one: Option<S::X>,
        first: usize,
        quads: Range<usize>,
        (to, pitch): (&mut [[i8; 64]], usize),
    ) -> [[S::I32; 4]; 2] {
        let (left, right) = to.split_at_mut(4 * pitch);
        let mut to = [four_panels(left, pitch, quads.len()), four_panels(right, pitch, quads.len())];
        let mut sums = [[s.splat_i32(0); 4]; 2];
        let row = |j: usize| self.data[16 * first + (4 * quads.start + j) * self.pitch..].chunks(4 * self.pitch);
        let fours = row(0).zip(row(1)).zip(row(2).zip(row(3)));
        for (q, ((first, second), (third, fourth))) in (0..quads.len()).zip(fours) {
            let mut rows = [&[[0; 32]; 4]; 4];
            for (to, row) in rows.iter_mut().zip([first, second, third, fourth]) {
                *to = row.as_chunks().0.first_chunk().expect("128 columns");
            }
            for (g, ([a, b, c, d], sums)) in to.iter_mut().zip(&mut sums).enumerate() {
                let part = rows.map(
                    #[inline(always)]
                    |row| [&row[2 * g], &row[2 * g + 1]],
                );
                quad(s, one, part, [&mut a[q], &mut b[q], &mut c[q], &mut d[q]], sums);
            }
        }
        sums
    }

    /// Some rows of some panels, of which the first is even; nothing of panels that do not exist.
    #[inline(always)]
    pub(super) fn coming(&self, panels: Range<usize>, rows: Range<usize>) -> Coming<'a> {
        let columns = self.n.min(16 * panels.end).saturating_sub(16 * panels.start);
        // Where rows of 32 follow one another, in stripes or whole, a cell holds some of them.
        let (runs, pitch, cells, step) = match self.pitch {
            32 => (columns.div_ceil(32), self.stripe, (32 * rows.len()).div_ceil(CELL), CELL),
            step => (columns.div_ceil(CELL), CELL, rows.len(), step),
        };
        let (run, rounds) = (panels.start / 2 * self.stripe + rows.start * self.pitch, cells.div_ceil(ABREAST));
        Coming {
            lines: self.data.as_chunks().0,
            at: run,
            run,
            step,
            pitch,
            rounds,
            here: rounds,
            line: 0,
            left: runs * rounds * (CELL / 64),
        }
    }
}

/// Some rows of two stripes, side by side.
pub(super) type Lines<'a, const ROWS: usize> = [[&'a [i8; 32]; 2]; ROWS];

/// Whole lines as such.
#[inline(always)]
pub(super) fn halves<const ROWS: usize>(rows: [&[i8; 64]; ROWS]) -> Lines<'_, ROWS> {
    let mut lines = [[&[0; 32]; 2]; ROWS];
    for j in 0..ROWS {
        let (halves, _) = rows[j].as_chunks();
        lines[j] = [&halves[0], &halves[1]];
    }
    lines
}

/// Calls `body` with so many rows of two stripes at a time, and their number. Behind the last row it is repeated: there
/// activations are 0.
#[inline(always)]
pub(super) fn each_lines<const ROWS: usize>(stripes: [&[[i8; 32]]; 2], mut body: impl FnMut(usize, Lines<'_, ROWS>)) {
    let ((left, left_rest), (right, right_rest)) = (stripes[0].as_chunks::<ROWS>(), stripes[1].as_chunks::<ROWS>());
    for (i, (left, right)) in left.iter().zip(right).enumerate() {
        let mut lines = [[&[0; 32]; 2]; ROWS];
        for j in 0..ROWS {
            lines[j] = [&left[j], &right[j]];
        }
        body(i, lines);
    }
    if let (Some(last), Some(last2)) = (left_rest.last(), right_rest.last()) {
        let mut lines = [[last, last2]; ROWS];
        for (line, parts) in lines.iter_mut().zip(left_rest.iter().zip(right_rest)) {
            *line = parts.into();
        }
        body(left.len(), lines);
    }
}

/// Asks for what comes so many bytes behind some rows of two stripes, or of one, given twice, if ONE.
#[inline(always)]
pub(super) fn ask_behind<S: Simd, const ROWS: usize, const ONE: bool>(s: S, lines: &Lines<'_, ROWS>, bytes: usize) {
    // Two rows to a line.
    for i in 0..ROWS / 2 {
        s.prefetch_behind(&lines[2 * i][0][0], bytes);
        if !ONE {
            s.prefetch_behind(&lines[2 * i][1][0], bytes);
        }
    }
}

/// Some vectors of each of four panels, `pitch` from one to the next.
#[inline(always)]
fn four_panels(to: &mut [[i8; 64]], pitch: usize, length: usize) -> [&mut [[i8; 64]]; 4] {
    let (a, b) = to[..3 * pitch + length].split_at_mut(pitch);
    let (b, c) = b.split_at_mut(pitch);
    let (c, d) = c.split_at_mut(pitch);
    [&mut a[..length], &mut b[..length], &mut c[..length], d]
}

/// Packs a quad of four panels, and adds it to their sums while it is in registers: last first, behind which nothing else is stored.
#[inline(always)]
fn quad<S: Dot>(s: S, one: Option<S::X>, rows: [[&[i8; 32]; 2]; 4], to: [&mut [i8; 64]; 4], sums: &mut [S::I32; 4]) {
    let [a, b, c, d] = to;
    s.interleave(rows, [a, b, c, d]);
    if let Some(one) = one {
        sums[3] = s.dot(sums[3], one, s.weights(d));
        sums[2] = s.dot(sums[2], one, s.weights(c));
        sums[1] = s.dot(sums[1], one, s.weights(b));
        sums[0] = s.dot(sums[0], one, s.weights(a));
    }
}
