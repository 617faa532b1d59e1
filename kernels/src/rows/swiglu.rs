//! SwiGLU of two rows of sums, quantised: `y = a / (1 + exp(-a)) * b`.
//!
//! The row is computed once into a stage, which the quantiser then reads twice: an exponential costs more than a load.

use super::{dequant_span, quantize, vectors};
use crate::dispatch::Kernel;
use crate::math::exp;
use crate::simd::{Dot, Simd};

/// `(a / (1 + exp(-a))) * b`
#[inline(always)]
pub fn swiglu<S: Simd>(s: S, a: S::F32, b: S::F32) -> S::F32 {
    let e = exp(s, s.sub(s.splat(0.0), a));
    s.mul(s.div(a, s.add(s.splat(1.0), e)), b)
}

/// `output = quantised swiglu(w1 * input_scale * w1_scale, w3 * input_scale * w3_scale)`; returns the scale.
pub struct DequantSwigluQuant<'a> {
    /// The sums of the gate.
    pub w1: &'a [i32],
    /// As long as `w1`.
    pub w3: &'a [i32],
    /// The scale of the row.
    pub input_scale: f32,
    /// The scales of the gate's columns.
    pub w1_scale: &'a [f32],
    /// The scales of the other columns.
    pub w3_scale: &'a [f32],
    /// As long as `w1`; overwritten.
    pub stage: &'a mut [f32],
    /// As long as `w1`.
    pub output: &'a mut [i8],
}

impl Kernel for DequantSwigluQuant<'_> {
    type Output = f32;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        let n = self.w1.len();
        vectors(
            n,
            #[inline(always)]
            |span| {
                let a = dequant_span(s, span, self.w1, self.input_scale, self.w1_scale);
                let b = dequant_span(s, span, self.w3, self.input_scale, self.w3_scale);
                span.store(s, swiglu(s, a, b), self.stage);
            },
        );
        quantize(
            s,
            n,
            #[inline(always)]
            |span| span.load(s, self.stage, 0.0),
            self.output,
        )
    }
}
