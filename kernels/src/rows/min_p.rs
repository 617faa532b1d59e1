//! Min-p alone: the value from which on elements stay.

use super::key::{bisect, value_to_ascending};
use super::softmax::Weights;
use super::{Span, of_one};
use crate::element::Element;
use crate::math::log;
use crate::simd::Simd;

/// Below this, what is too small for an `f32` takes part in the comparison.
pub const TINY: f32 = 1e-20;

/// Two values close to where min-p cuts, the former surely not above it, the latter not below: what lies between them hangs on the
/// sum of the row.
#[inline(always)]
pub fn surroundings<S: Simd>(s: S, min_p: f32, max: f32) -> Option<(f32, f32)> {
    if min_p < TINY {
        return None;
    }
    let least = of_one(
        s,
        min_p,
        #[inline(always)]
        |s, v| log(s, v),
    );
    let bound = f64::from(max) + f64::from(least);
    // More than all roundings of exp, of its argument, of the logarithm and of the bound itself.
    let slack = 1e-5 + 4.0 * f64::from(f32::EPSILON) * (libm::fabs(f64::from(max)) + 50.0);
    Some(((bound - slack) as f32, (bound + slack) as f32))
}

/// Whether a sample of the row suggests that more than `n` elements reach a bound.
#[inline(always)]
pub fn reaches_often<S: Simd, T: Element>(s: S, row: &[T], bound: f32, n: usize) -> bool {
    const SAMPLE: usize = 32;
    if row.len() <= n {
        return false;
    }
    s.apart(
        #[inline(always)]
        move || {
            let mut hits = 0;
            for part in 0..SAMPLE {
                let v = Span { at: part * (row.len() / SAMPLE), len: 16 }.load(s, row, T::NEG_INFINITY);
                hits += s.mask_bits(s.le(s.splat(bound), v)).count_ones() as usize;
            }
            hits * (row.len() / SAMPLE) > 16 * n
        },
    )
}

/// The smallest value whose probability is at least `least`. Probabilities do not fall where values rise, so bisection over the numbers
/// in their order finds it.
#[inline(never)]
pub fn min_p_bound<S: Simd>(s: S, weights: &Weights, max: f32, least: f32) -> f32 {
    let nothing = value_to_ascending(f32::NEG_INFINITY);
    // A logit of -inf has the probability 0, which may be enough; a probability of -inf is none.
    let low = nothing - i32::from(!matches!(weights, Weights::Given));
    bisect(low, value_to_ascending(max), |value| weights.of_one(s, value) >= least).1
}
