//! The columns of some panels of weights that lie row by row, 64 at a time.

use super::weight_rows::WeightRows;
use core::ops::Range;

/// Panels of a group, and its columns.
pub(super) const WIDTH: usize = 4;
pub(super) const COLUMNS: usize = 16 * WIDTH;

/// Groups of [`COLUMNS`] from `first` on. If the last are fewer, they are a group with some that come before them.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub first: usize,
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

    /// Of a group that begins at `start` the columns that count.
    pub fn counted(self, start: usize) -> Range<usize> {
        let at = self.first + COLUMNS * self.whole;
        if self.rest == Some(start) { at - start..at - start + self.counted } else { 0..COLUMNS }
    }
}
