//! A row times the rows of a float matrix: the last product of a model whose head is not quantised.
//!
//! Each result is the fused dot product in 16 lanes and the fixed tree. Reading the matrix bounds it, so four of its rows go at
//! once, enough to hide the latency of `fma`, and 16 trees side by side.

use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::Dot;

/// `output[n] = sum over k of input[k] * weight[n][k]`
pub struct Project<'a, T> {
    /// The row.
    pub input: &'a [T],
    /// `[n][k]`
    pub weight: &'a [T],
    /// One number for each row of the weight.
    pub output: &'a mut [f32],
}

impl<T: Element> Kernel for Project<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_project);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let n = self.output.len();
        vectors(
            n,
            #[inline(always)]
            |at| {
                let mut dots = [s.splat(0.0); 16];
                for first in (0..at.len).step_by(4) {
                    dots[first..first + 4].copy_from_slice(&self.four(s, at.at + first));
                }
                at.store(s, s.reduce_add_each(dots), self.output);
            },
        );
    }
}

impl<T: Element> Project<'_, T> {
    /// The products, not yet added up, of four rows of the weight; behind the last row, of the last again.
    #[inline(always)]
    fn four<S: Dot>(&self, s: S, row: usize) -> [S::F32; 4] {
        let (k, last) = (self.input.len(), self.output.len() - 1);
        let mut rows = [self.weight; 4];
        for i in 0..4 {
            rows[i] = &self.weight[(row + i).min(last) * k..][..k];
        }
        let mut four = [s.splat(0.0); 4];
        vectors(
            k,
            #[inline(always)]
            |span| {
                let x = span.load(s, self.input, T::default());
                for i in 0..4 {
                    four[i] = s.fma(x, span.load(s, rows[i], T::default()), four[i]);
                }
            },
        );
        four
    }
}
