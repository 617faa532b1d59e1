//! Rotary position embedding of the heads of a token: pair (a, b) of neighbours turns into (a cos - b sin, b cos + a sin).
//!
//! The table row holds cos and sin interleaved, so a vector of it serves a vector of pairs. `a cos - b sin` is computed as
//! `a cos + b (-sin)`: a sign never changes how a product or a sum rounds. A head whose size divides 16 repeats the table row in one
//! vector, and a span then covers several heads; other sizes go head by head.

use super::{Span, dequant_span, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::{Dot, Simd};

/// Turns eight pairs by eight angles; `turn` holds cos and sin interleaved.
#[inline(always)]
pub fn rotate<S: Simd>(s: S, v: S::F32, turn: S::F32) -> S::F32 {
    const MINUS_EVEN: [i32; 16] =
        [i32::MIN, 0, i32::MIN, 0, i32::MIN, 0, i32::MIN, 0, i32::MIN, 0, i32::MIN, 0, i32::MIN, 0, i32::MIN, 0];
    let sin = s.from_bits(s.xor(s.bits(s.dup_odd(turn)), s.load_i32(&MINUS_EVEN)));
    s.add(s.mul(v, s.dup_even(turn)), s.mul(s.swap_pairs(v), sin))
}

/// `output = rotated (input * input_scale * weight_scale)`, one head after the other, all at the same position.
pub struct DequantRope<'a> {
    /// The sums of one token: any number of heads.
    pub input: &'a [i32],
    /// The scale of the token.
    pub input_scale: f32,
    /// The scales of the columns, as long as the input.
    pub weight_scale: &'a [f32],
    /// The table row of the position, as long as a head: an even number.
    pub freqs: &'a [f32],
    /// As long as the input.
    pub output: &'a mut [f32],
}

impl DequantRope<'_> {
    #[inline(always)]
    fn turn<S: Simd>(&mut self, s: S, span: Span, turn: S::F32) {
        let v = dequant_span(s, span, self.input, self.input_scale, self.weight_scale);
        span.store(s, rotate(s, v, turn), self.output);
    }
}

impl Kernel for DequantRope<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) {
        let (n, size, freqs) = (self.input.len(), self.freqs.len(), self.freqs);
        if matches!(size, 2 | 4 | 8 | 16) {
            let repeated = s.load(&core::array::from_fn(|i| freqs[i & (size - 1)]));
            return vectors(
                n,
                #[inline(always)]
                |span| self.turn(s, span, repeated),
            );
        }
        for head in 0..n / size {
            vectors(
                size,
                #[inline(always)]
                |span| self.turn(s, span.moved(head * size), span.load(s, freqs, 0.0)),
            );
        }
    }
}
