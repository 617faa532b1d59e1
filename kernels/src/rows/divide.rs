//! A row divided by a number: the temperature.

use super::vectors;
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::Dot;

/// `row = row / by`
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
        let by = s.splat(self.by);
        vectors(
            self.row.len(),
            #[inline(always)]
            |span| span.store(s, s.div(span.load(s, self.row, 0.0), by), self.row),
        );
    }
}
