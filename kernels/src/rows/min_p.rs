//! Min-p alone: the value from which on elements stay.

use super::key::{ascending_to_value, value_to_ascending};
use super::select::{List, gather};
use super::softmax::Weights;
use crate::element::Element;
use crate::simd::Simd;

/// The list, in index order, that min-p keeps, if that is certain without the sum of the row: if no element is close to the bound.
#[inline(always)]
pub fn certain_min_p<S: Simd, T: Element, const B: usize>(
    s: S,
    row: &[T],
    min_p: f32,
    max: f32,
    maxima: &[f32],
    list: &mut List<'_>,
) -> Option<usize> {
    if min_p < 1e-20 {
        return None;
    }
    let bound = f64::from(max) + libm::log(f64::from(min_p));
    // More than all roundings of exp, of its argument and of the bound itself.
    let slack = 1e-5 + 4.0 * f64::from(f32::EPSILON) * (libm::fabs(f64::from(max)) + 50.0);
    let (least, sure) = ((bound - slack) as f32, (bound + slack) as f32);
    let (n, at) = gather::<S, T, B>(s, row, maxima, least, 0, list, 0);
    let certain = at == row.len().div_ceil(B) && list.values[..n].iter().all(|&v| v >= sure);
    certain.then_some(n)
}

/// The smallest value whose probability is at least `least`. Probabilities do not fall where values rise, so bisection over the numbers
/// in their order finds it; it starts where ln says.
#[inline(never)]
pub fn min_p_bound<S: Simd>(s: S, weights: &Weights, max: f32, least: f32) -> f32 {
    let nothing = value_to_ascending(f32::NEG_INFINITY);
    // A logit of -inf has the probability 0, which may be enough; a probability of -inf is none.
    let (mut low, mut high) = (nothing - i32::from(!matches!(weights, Weights::Given)), value_to_ascending(max));
    while i64::from(high) - i64::from(low) > 1 {
        let middle = low.midpoint(high);
        if weights.of_one(s, ascending_to_value(middle)) >= least { high = middle } else { low = middle }
    }
    ascending_to_value(high)
}
