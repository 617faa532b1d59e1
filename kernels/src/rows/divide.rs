//! A row divided by a number: the temperature.

use super::first_max::first_max;
use super::vectors;
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::Dot;

/// `row = row / by`, or `(row - max) / by` where `max / by` is beyond f32: to a softmax that is the same.
pub struct Divide<'a> {
    /// Read and written.
    pub row: &'a mut [f32],
    /// The divisor.
    pub by: f32,
}

impl Kernel for Divide<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let max = first_max(s, self.row, false).1.max;
        let shift = if max == f32::NEG_INFINITY || (max / self.by).is_finite() { 0.0 } else { max };
        let (by, shift) = (s.splat(self.by), s.splat(shift));
        vectors(
            self.row.len(),
            #[inline(always)]
            |span| span.store(s, s.div(s.sub(span.load(s, self.row, 0.0), shift), by), self.row),
        );
    }
}
