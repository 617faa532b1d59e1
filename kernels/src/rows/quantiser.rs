//! The quantisers of a row that lies in memory: the one of the library, and three that a grouped product may ask for.
//!
//! The three are only found in `GroupedMatmulSwigluQuant`: half precision between the product and the integer, true division, and an
//! offset. In all of them a row with an infinity or a NaN, or without a usable scale, has a value of its own and never a wild byte.

use super::quantize::{quantize, round, top, usable};
use super::vectors;
use crate::simd::Simd;

/// How a row of numbers becomes a row of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantiser {
    /// `scale = max |v| / 127; q = rne(v * (1 / scale))`: that of the library.
    Reciprocal,
    /// The same, with `v * (1 / scale)` rounded to half precision first.
    Half,
    /// `scale = max |v| * (1 / 127); q = rne(v / scale)`
    Division,
    /// `scale = (max v - min v) / 255; offset = -128 - rne(min v / scale); q = saturate(rne(v / scale + offset))`
    Asymmetric,
}

impl Quantiser {
    /// Quantises `row`; returns scale and offset, the latter 0 but for an asymmetric row.
    #[inline(always)]
    pub fn quantize<S: Simd>(self, s: S, row: &[f32], output: &mut [i8]) -> [f32; 2] {
        match self {
            Quantiser::Reciprocal => {
                let scale = quantize(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| span.load(s, row, 0.0),
                    output,
                );
                [scale, 0.0]
            }
            Quantiser::Half => {
                let scale = top_of(s, row) / 127.0;
                let inverse = s.splat(1.0 / scale);
                round(
                    s,
                    usable(scale),
                    row.len(),
                    #[inline(always)]
                    |span| {
                        let mut half = [0; 16];
                        s.store_f16(s.mul(span.load(s, row, 0.0), inverse), &mut half);
                        s.load_f16(&half)
                    },
                    output,
                );
                [scale, 0.0]
            }
            Quantiser::Division => {
                let scale = top_of(s, row) * (1.0 / 127.0);
                let divisor = s.splat(scale);
                round(
                    s,
                    usable(scale),
                    row.len(),
                    #[inline(always)]
                    |span| s.div(span.load(s, row, 0.0), divisor),
                    output,
                );
                [scale, 0.0]
            }
            Quantiser::Asymmetric => asymmetric(s, row, output),
        }
    }
}

/// [`top`] of a row.
#[inline(always)]
fn top_of<S: Simd>(s: S, row: &[f32]) -> f32 {
    top(
        s,
        row.len(),
        #[inline(always)]
        |span| span.load(s, row, 0.0),
    )
}

#[inline(always)]
fn asymmetric<S: Simd>(s: S, row: &[f32], output: &mut [i8]) -> [f32; 2] {
    let (n, amax) = (row.len(), top_of(s, row));
    if !amax.is_finite() {
        output[..n].fill(0);
        return [amax, 0.0];
    }
    let (mut high, mut low) = (s.splat(row[0]), s.splat(-row[0]));
    vectors(
        n,
        #[inline(always)]
        |span| {
            let v = span.load(s, row, row[0]);
            high = s.max(high, v);
            low = s.max(low, s.sub(s.splat(0.0), v));
        },
    );
    let (high, low) = (s.reduce_max(high), -s.reduce_max(low));
    let scale = (high - low) / 255.0;
    if scale == f32::INFINITY {
        output[..n].fill(0);
        return [scale, 0.0];
    }
    // A row that is constant, or almost: -1, 0 and 1 of its magnitude.
    let flat = !usable(scale);
    let (scale, offset) = if flat { (amax, 0.0) } else { (scale, -128.0 - libm::rintf(low / scale)) };
    let (divisor, add) = (s.splat(scale), s.splat(offset));
    let (least, most) = (s.splat(-128.0), s.splat(127.0));
    round(
        s,
        scale > 0.0,
        n,
        #[inline(always)]
        |span| s.max(s.min(s.add(s.div(span.load(s, row, 0.0), divisor), add), most), least),
        output,
    );
    [scale, offset]
}
