//! The softmax of a row, with its own maximum: one pass for that, one of exponentials and their sum, one of divisions.
//!
//! Logits count as in sampling: NaN as -inf, +inf as the largest finite number. The sum is a row sum, rounded once.

use super::first_max::first_max;
use super::softmax::write_softmax;
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::Dot;

/// `output = exp(row - max) / sum`; 0 where every logit is -inf or NaN.
pub struct Probabilities<'a> {
    /// The logits.
    pub row: &'a [f32],
    /// As many.
    pub output: &'a mut [f32],
}

impl Kernel for Probabilities<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let Probabilities { row, output } = self;
        let max = first_max(s, row, false).1.max;
        if max == f32::NEG_INFINITY {
            return output.fill(0.0);
        }
        write_softmax(
            s,
            max,
            output,
            #[inline(always)]
            |span, _| span.load(s, row, f32::NEG_INFINITY),
        );
    }
}
