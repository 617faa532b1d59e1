//! The columns of some panels of weights that lie row by row, 64 at a time.

use super::weight_rows::WeightRows;
use core::ops::Range;

/// Panels of a group, and its columns.
pub(super) const WIDTH: usize = 4;
pub(super) const COLUMNS: usize = 16 * WIDTH;

/// Quads of K that pass side by side, where rows are whole: a block.
pub(super) const QUADS: usize = 4;

/// Groups from those of a step to those that it asks for.
pub(super) const AHEAD: usize = 8;

/// Groups of [`COLUMNS`] from `first` on. If the last are fewer, they are a group with some that come before them.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    first: usize,
    pub whole: usize,
    /// Where the group of the last columns begins.
    pub rest: Option<usize>,
    /// How many columns of that group count, its last ones.
    counted: usize,
}

impl Columns {
    /// Of a weight with at least as many columns as a group has.
    pub fn new(panels: &Range<usize>, weights: &WeightRows<'_>) -> Columns {
        let (first, end) = (16 * panels.start, weights.n.min(16 * panels.end));
        let (whole, counted) = ((end - first) / COLUMNS, (end - first) % COLUMNS);
        // Where a stripe begins, and not behind the last columns.
        let all = if weights.in_stripes() { weights.n.next_multiple_of(32) } else { weights.n };
        let from = end.saturating_sub(COLUMNS).next_multiple_of(32).min(all - COLUMNS);
        Columns { first, whole, rest: (counted > 0).then_some(from), counted }
    }

    /// Where the groups begin.
    #[inline(always)]
    pub fn starts(self) -> impl Iterator<Item = usize> {
        (self.first..).step_by(COLUMNS).take(self.whole).chain(self.rest)
    }

    /// How many groups.
    pub fn count(self) -> usize {
        self.whole + usize::from(self.rest.is_some())
    }

    /// The lines of the whole groups in a block of so many rows.
    #[inline(always)]
    pub fn lines<'a, const ROWS: usize>(self, weights: &WeightRows<'a>, block: usize) -> [&'a [[i8; COLUMNS]]; ROWS] {
        let mut lines: [&[[i8; COLUMNS]]; ROWS] = [&[]; ROWS];
        for (j, to) in lines.iter_mut().enumerate() {
            *to = &row(weights, ROWS * block + j)[self.first..].as_chunks().0[..self.whole];
        }
        lines
    }

    /// The same of the group of the last columns.
    #[inline(always)]
    pub fn last_lines<'a, const ROWS: usize>(self, weights: &WeightRows<'a>, block: usize) -> Option<[&'a [i8; COLUMNS]; ROWS]> {
        let start = self.rest?;
        let mut lines = [&[0; COLUMNS]; ROWS];
        for (j, to) in lines.iter_mut().enumerate() {
            *to = row(weights, ROWS * block + j)[start..].first_chunk().expect("as many columns");
        }
        Some(lines)
    }

    /// Bytes from a line of a whole group to the one that is asked for with it, [`AHEAD`] groups behind it: behind the last columns
    /// come the first of the next block of [`QUADS`].
    #[inline(always)]
    pub fn ahead(self, weights: &WeightRows<'_>, group: usize) -> usize {
        let next = weights.pitch.wrapping_mul(4 * QUADS).wrapping_sub(COLUMNS * self.whole);
        let behind = if group + AHEAD < self.whole { 0 } else { next };
        behind.wrapping_add(COLUMNS * AHEAD)
    }

    /// Of a group that begins at `start` the columns that count.
    pub fn counted(self, start: usize) -> Range<usize> {
        let at = self.first + COLUMNS * self.whole;
        if self.rest == Some(start) { at - start..at - start + self.counted } else { 0..COLUMNS }
    }
}

/// A row and what lies behind it. Behind the last row it is repeated: there activations are 0.
#[inline(always)]
fn row<'a>(weights: &WeightRows<'a>, j: usize) -> &'a [i8] {
    &weights.data[j.min(weights.k - 1) * weights.pitch..]
}
