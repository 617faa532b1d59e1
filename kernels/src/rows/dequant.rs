//! Rows of `i32` sums as numbers: `v = (f32(sum) * row_scale) * column_scale`, alone or with the residual that follows.

use super::rms_norm::{Norm, root_scale};
use super::{Span, row_sum, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// `(f32(sum) * row_scale) * column_scale`
#[inline(always)]
pub fn dequant<S: Simd>(s: S, sum: S::I32, row_scale: S::F32, column_scale: S::F32) -> S::F32 {
    s.mul(s.mul(s.to_f32(sum), row_scale), column_scale)
}

/// `f32(sum + bias)`: added in 64 bits, rounded once.
///
/// The halves of 16 bits add up without loss, each half of the sum is a number of at most 17 bits, and only their addition rounds.
#[inline(always)]
pub fn add_bias<S: Simd>(s: S, sum: S::I32, bias: S::I32) -> S::F32 {
    let (sign, low) = (s.splat_i32(i32::MIN), s.splat_i32(0xFFFF));
    // Shifted without sign, an offset of 2^15 too large each.
    let high = s.add_i32(s.shr(s.xor(sum, sign), 16), s.shr(s.xor(bias, sign), 16));
    let lows = s.add_i32(s.and(sum, low), s.and(bias, low));
    let high = s.add_i32(s.sub_i32(high, s.splat_i32(0x1_0000)), s.shr(lows, 16));
    s.add(s.mul(s.to_f32(high), s.splat(65536.0)), s.to_f32(s.and(lows, low)))
}

/// The [`dequant`] of a span of a row.
#[inline(always)]
pub fn dequant_span<S: Simd>(s: S, span: Span, sums: &[i32], row_scale: f32, column_scales: &[f32]) -> S::F32 {
    dequant(s, span.load_i32(s, sums), s.splat(row_scale), span.load(s, column_scales, 0.0))
}

/// `output = input * input_scale * weight_scale`
pub struct Dequant<'a> {
    /// The sums of one row.
    pub input: &'a [i32],
    /// The scale of the row.
    pub input_scale: f32,
    /// The scales of the columns.
    pub weight_scale: &'a [f32],
    /// As long as the input.
    pub output: &'a mut [f32],
}

impl Kernel for Dequant<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        vectors(
            self.input.len(),
            #[inline(always)]
            |span| {
                let v = dequant_span(s, span, self.input, self.input_scale, self.weight_scale);
                span.store(s, v, self.output);
            },
        );
    }
}

/// `output = input * input_scale * weight_scale + residual`
pub struct DequantResidual<'a, T> {
    /// The sums of one row.
    pub input: &'a [i32],
    /// The scale of the row.
    pub input_scale: f32,
    /// The scales of the columns.
    pub weight_scale: &'a [f32],
    /// As long as the input.
    pub residual: &'a [T],
    /// As long as the input.
    pub output: &'a mut [T],
}

impl<T: Element> Kernel for DequantResidual<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_dequant_residual);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        vectors(
            self.input.len(),
            #[inline(always)]
            |span| {
                let v = dequant_span(s, span, self.input, self.input_scale, self.weight_scale);
                let residual = span.load(s, self.residual, T::default());
                span.store(s, s.add(v, residual), self.output);
            },
        );
    }
}

/// [`DequantResidual`] into `hidden`, then [`RmsNormQuant`](super::RmsNormQuant) of what `hidden` holds; returns the scale. The
/// squares are summed while the row is written.
pub struct DequantResidualRmsNormQuant<'a, T> {
    /// The sum, its scales and the residual; the output is `hidden`.
    pub hidden: DequantResidual<'a, T>,
    /// As long as the input.
    pub gamma: &'a [T],
    /// Added to the mean of squares.
    pub eps: f64,
    /// As long as the input.
    pub output: &'a mut [i8],
}

impl<T: Element> Kernel for DequantResidualRmsNormQuant<'_, T> {
    type Output = f32;
    const DOT: bool = false;
    per_element!(run_dequant_residual_rms_norm_quant);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        let DequantResidual { input, input_scale, weight_scale, residual, output: hidden } = self.hidden;
        let n = input.len();
        let squares = row_sum(
            s,
            n,
            #[inline(always)]
            |span| {
                let v = dequant_span(s, span, input, input_scale, weight_scale);
                span.store(s, s.add(v, span.load(s, residual, T::default())), hidden);
                let stored = span.load(s, hidden, T::default());
                s.mul(stored, stored)
            },
        );
        let norm = Norm { input: hidden, gamma: self.gamma, scale: root_scale(squares, n, self.eps) };
        norm.quantize(s, self.output)
    }
}
