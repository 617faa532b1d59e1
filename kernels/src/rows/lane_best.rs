//! The k-th largest of some values, nearly, for a small k: without a branch that hangs on the values.

use super::key::ascending_to_value;
use super::sort::{merge_all, order, sort_all};
use crate::simd::Simd;

/// The largest k that is looked for in the best of each lane.
pub const FEW: usize = 32;

/// The k-th largest of what is left where each lane keeps its four best parts, so that at least k values reach it: half of what is
/// kept is k or more, and chance spreads the best over the lanes. A part is the best of `fold` values, far apart.
#[inline(never)]
pub fn reached_by<S: Simd>(s: S, k: usize, values: &[[f32; 16]], fold: usize) -> f32 {
    s.vectorize(
        #[inline(always)]
        || {
            let parts = values.len().div_ceil(fold);
            let mut best = [s.splat(f32::NEG_INFINITY); 4];
            for first in 0..parts {
                let mut part = s.load(&values[first]);
                for other in values[first..].iter().step_by(parts).skip(1) {
                    part = s.max(s.load(other), part);
                }
                for best in &mut best {
                    (*best, part) = (s.max(*best, part), s.min(*best, part));
                }
            }
            // Not `map`: where that is a function of its own, it lacks the features.
            let [a, b, c, d] = best;
            let [a, b, c, d] = [order(s, s.bits(a)), order(s, s.bits(b)), order(s, s.bits(c)), order(s, s.bits(d))];
            let ([a, b], [c, d]) = (sort_all(s, [a, b], true), sort_all(s, [c, d], false));
            let upper = merge_all(s, [s.max_i32(a, c), s.max_i32(b, d)], true);
            let mut sorted = [[0; 16]; 2];
            s.store_i32(upper[0], &mut sorted[0]);
            s.store_i32(upper[1], &mut sorted[1]);
            ascending_to_value(sorted.as_flattened()[FEW - k])
        },
    )
}

/// The largest k that is looked for in the two best of each lane.
pub const SAMPLED: usize = 16;

/// About the `step * k`-th largest of all, from one vector of `step`; 1 <= k <= [`SAMPLED`]. More or fewer may reach it.
#[inline(never)]
pub fn sampled<S: Simd>(s: S, k: usize, values: &[[f32; 16]], step: usize) -> f32 {
    s.vectorize(
        #[inline(always)]
        || {
            let mut best = [s.splat(f32::NEG_INFINITY); 2];
            for value in values.iter().step_by(step) {
                let value = s.load(value);
                let second = s.min(best[0], value);
                best = [s.max(best[0], value), s.max(best[1], second)];
            }
            let [a, b] = best;
            let sorted = sort_all(s, [order(s, s.bits(a)), order(s, s.bits(b))], true);
            let mut keys = [0; SAMPLED];
            s.store_i32(sorted[1], &mut keys);
            ascending_to_value(keys[SAMPLED - k])
        },
    )
}
