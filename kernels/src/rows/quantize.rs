//! The one int8 quantiser for rows: `scale = max |v| / 127; inv = 1 / scale; q = saturate(rne(v * inv))`.
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
pub fn quantize<S: Simd>(s: S, n: usize, value: impl Fn(Span) -> S::F32, output: &mut [i8]) -> f32 {
    let magnitude = s.splat_i32(0x7FFF_FFFF);
    let mut top = s.splat_i32(0);
    vectors(
        n,
        #[inline(always)]
        |span| top = s.max_i32(top, s.and(s.bits(value(span)), magnitude)),
    );
    let scale = f32::from_bits(s.reduce_max_i32(top) as u32) / 127.0;
    // 2^-128: up to it 1 / scale is not finite.
    if !(scale > f32::from_bits(0x0020_0000) && scale < f32::INFINITY) {
        output[..n].fill(0);
        return scale;
    }
    let inverse = s.splat(1.0 / scale);
    vectors(
        n,
        #[inline(always)]
        |span| {
            let rounded = s.add(s.mul(value(span), inverse), s.splat(ROUND));
            span.store_i8(s, s.bits(rounded), output);
        },
    );
    scale
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
