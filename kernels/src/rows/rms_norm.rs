//! RMSNorm of a row, plain or quantised: `y = gamma * (r * x)` with `r = 1 / sqrt(mean(x^2) + eps)`.
//!
//! The sum of squares is a row sum (blocks of 256 into `f64`); mean, root and reciprocal are taken in `f64` and rounded once. Memory
//! bound: products and sums are rounded separately.

use super::{Span, quantize, row_sum, vectors};
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// `1 / sqrt(mean + eps)` for the mean of `n` squares, from their sum: at most the largest number, so that zeros stay zeros; a NaN where
/// the sum is one, or infinite.
#[inline(always)]
pub fn root_scale(squares: f64, n: usize, eps: f64) -> f32 {
    if squares < f64::INFINITY { (1.0 / libm::sqrt(squares / n as f64 + eps)).min(f32::MAX.into()) as f32 } else { f32::NAN }
}

/// `1 / sqrt(mean(x^2) + eps)`
#[inline(always)]
pub fn rms_scale<S: Simd, T: Element>(s: S, x: &[T], eps: f64) -> f32 {
    let squares = row_sum(
        s,
        x.len(),
        #[inline(always)]
        |span| {
            let v = span.load(s, x, T::default());
            s.mul(v, v)
        },
    );
    root_scale(squares, x.len(), eps)
}

/// A row whose scale is known: `gamma * (scale * input)`.
pub(super) struct Norm<'a, T> {
    pub input: &'a [T],
    pub gamma: &'a [T],
    pub scale: f32,
}

impl<T: Element> Norm<'_, T> {
    /// The numbers of a span.
    #[inline(always)]
    fn at<S: Simd>(&self, s: S, span: Span) -> S::F32 {
        let (x, g) = (span.load(s, self.input, T::default()), span.load(s, self.gamma, T::default()));
        s.mul(g, s.mul(s.splat(self.scale), x))
    }

    /// Quantises the row; returns the scale of that.
    #[inline(always)]
    pub fn quantize<S: Simd>(self, s: S, output: &mut [i8]) -> f32 {
        quantize(
            s,
            self.input.len(),
            #[inline(always)]
            |span| self.at(s, span),
            output,
        )
    }
}

/// `output = gamma * (r * input)`
pub struct RmsNorm<'a, T> {
    /// The row.
    pub input: &'a [T],
    /// As long as the input.
    pub gamma: &'a [T],
    /// Added to the mean of squares.
    pub eps: f64,
    /// As long as the input.
    pub output: &'a mut [T],
}

impl<T: Element> Kernel for RmsNorm<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_rms_norm);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let norm = Norm { input: self.input, gamma: self.gamma, scale: rms_scale(s, self.input, self.eps) };
        vectors(
            self.input.len(),
            #[inline(always)]
            |span| span.store(s, norm.at(s, span), self.output),
        );
    }
}

/// `output = quantised gamma * (r * input)`; returns the scale.
pub struct RmsNormQuant<'a, T> {
    /// The row.
    pub input: &'a [T],
    /// As long as the input.
    pub gamma: &'a [T],
    /// Added to the mean of squares.
    pub eps: f64,
    /// As long as the input.
    pub output: &'a mut [i8],
}

impl<T: Element> Kernel for RmsNormQuant<'_, T> {
    type Output = f32;
    const DOT: bool = false;
    per_element!(run_rms_norm_quant);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        let norm = Norm { input: self.input, gamma: self.gamma, scale: rms_scale(s, self.input, self.eps) };
        norm.quantize(s, self.output)
    }
}
