//! The one int8 quantiser, for rows and for columns side by side: `scale = max |v| / 127; inv = 1 / scale; q = saturate(rne(v * inv))`.
//!
//! A row whose scale has no finite reciprocal, or that holds an infinity or a NaN, quantises to zeros; its scale is still the value
//! of `max |v| / 127`. The maximum is taken over the bits of |v|, which order as the numbers do with a NaN above all. Rounding adds
//! 1.5 * 2^23, after which the low byte is the integer: |v * inv| < 127.5 always, so nothing saturates.

use super::{Span, vectors};
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::math::constants::ROUND;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// Quantises the row of `n` numbers that `value` gives (twice; zeros behind a tail) and returns its scale.
#[inline(always)]
pub fn quantize<S: Simd>(s: S, n: usize, value: impl Fn(Span) -> S::F32 + Copy, output: &mut [i8]) -> f32 {
    let scale = top(s, n, value) / 127.0;
    let inverse = s.splat(1.0 / scale);
    round(
        s,
        usable(scale),
        n,
        #[inline(always)]
        |span| s.mul(value(span), inverse),
        output,
    );
    scale
}

/// 2^-128: up to it the reciprocal of a scale is not finite.
const SMALLEST: f32 = f32::from_bits(0x0020_0000);

/// Whether there is a scale to divide by.
#[inline(always)]
pub(crate) fn usable(scale: f32) -> bool {
    scale > SMALLEST && scale < f32::INFINITY
}

/// `max |v|` of `n` numbers, a NaN above all: the bits of magnitudes order as they do.
#[inline(always)]
pub(crate) fn top<S: Simd>(s: S, n: usize, value: impl Fn(Span) -> S::F32) -> f32 {
    let magnitude = s.splat_i32(0x7FFF_FFFF);
    let mut top = s.splat_i32(0);
    vectors(
        n,
        #[inline(always)]
        |span| top = s.max_i32(top, s.and(s.bits(value(span)), magnitude)),
    );
    f32::from_bits(s.reduce_max_i32(top) as u32)
}

/// `output = rne(value)`, |value| below 2^22; zeros where there is no scale.
#[inline(always)]
pub(crate) fn round<S: Simd>(s: S, usable: bool, n: usize, value: impl Fn(Span) -> S::F32, output: &mut [i8]) {
    if !usable {
        output[..n].fill(0);
        return;
    }
    vectors(
        n,
        #[inline(always)]
        |span| span.store_i8(s, s.bits(s.add(value(span), s.splat(ROUND))), output),
    );
}

/// What quantises 16 rows, or columns, side by side: the reciprocals of their scales, and all ones, or zeros where there is none.
#[derive(Clone, Copy)]
pub(crate) struct Inverses<S: Simd>(S::F32, S::I32);

impl<S: Simd> Inverses<S> {
    /// Of these scales.
    #[inline(always)]
    pub fn of(s: S, scales: S::F32) -> Self {
        let usable = s.both(s.lt(s.splat(SMALLEST), scales), s.lt(scales, s.splat(f32::INFINITY)));
        Inverses(s.div(s.splat(1.0), scales), s.select_i32(usable, s.splat_i32(-1), s.splat_i32(0)))
    }

    /// The integers, in the low bytes.
    #[inline(always)]
    pub fn quantize(self, s: S, values: S::F32) -> S::I32 {
        s.and(s.bits(s.add(s.mul(values, self.0), s.splat(ROUND))), self.1)
    }
}

/// `output = quantised input`; returns the scale.
pub struct Quantize<'a, T> {
    /// The row.
    pub input: &'a [T],
    /// As long as the input.
    pub output: &'a mut [i8],
}

impl<T: Element> Kernel for Quantize<'_, T> {
    type Output = f32;
    const DOT: bool = false;
    per_element!(run_quantize);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        quantize(
            s,
            self.input.len(),
            #[inline(always)]
            |span| span.load(s, self.input, T::default()),
            self.output,
        )
    }
}
