//! The k-th largest of some values, nearly, for a small k: without a branch that hangs on the values.

use super::key::ascending_to_value;
use super::key::order;
use super::sort::{merge_all, sort_all};
use crate::simd::Simd;

/// The largest k that is looked for in the best of each lane.
pub const FEW: usize = 32;

/// The k-th largest of what is left where each lane keeps its four best parts, so that at least k values reach it: half of what is
/// kept is k or more, and chance spreads the best over the lanes. A part is the best of `fold` values, far apart.
#[inline(always)]
pub fn reached_by<S: Simd>(s: S, k: usize, values: &[[f32; 16]], fold: usize) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
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
            from_top(s, upper, k)
        },
    )
}

/// The value of the k-th largest of two vectors of keys, of which the smallest comes first.
#[inline(always)]
fn from_top<S: Simd>(s: S, sorted: [S::I32; 2], k: usize) -> f32 {
    let mut keys = [[0; 16]; 2];
    s.store_i32(sorted[0], &mut keys[0]);
    s.store_i32(sorted[1], &mut keys[1]);
    ascending_to_value(keys.as_flattened()[32 - k])
}

/// The two best of each lane of some vectors.
#[derive(Clone, Copy)]
pub struct Best<V> {
    first: V,
    second: V,
}

/// How many of the k largest are among the two best of 16 lanes, on average: of `x` in a lane, which chance puts there, `min(x, 2)`.
const KEPT: [u8; Best::<f32>::MOST + 1] = {
    // exp(-1 / 16)
    const STEP: f64 = 0.939_413_062_813_475_8;
    let (mut kept, mut k, mut power) = ([0; _], 0, 1.0);
    while k < kept.len() {
        kept[k] = (32.5 - power * (32 + k) as f64) as u8;
        (k, power) = (k + 1, power * STEP);
    }
    kept
};
// 16 times the sum of `min(x, 2)` over a Poisson distribution of mean k / 16.
const _: () = assert!(KEPT[1] == 1 && KEPT[16] == 14 && KEPT[32] == 23 && KEPT[64] == 30);

impl<V: Copy> Best<V> {
    /// The largest k of [`Best::max_and_guess`].
    pub const MOST: usize = 64;

    /// Of vectors of which `first` is one.
    #[inline(always)]
    pub fn of<S: Simd<F32 = V>>(s: S, first: V) -> Best<V> {
        Best { first, second: s.splat(f32::NEG_INFINITY) }
    }

    /// Takes another one.
    #[inline(always)]
    pub fn meets<S: Simd<F32 = V>>(&mut self, s: S, v: V) {
        self.second = s.max(self.second, s.min(self.first, v));
        self.first = s.max(v, self.first);
    }

    /// The largest of all, and about the k-th largest, which more or fewer may reach; for k = 0 anything, k <= [`Best::MOST`].
    #[inline(always)]
    pub fn max_and_guess<S: Simd<F32 = V>>(&self, s: S, k: usize) -> (f32, f32) {
        let max = s.reduce_max(self.first);
        if k == 0 {
            return (max, max);
        }
        let sorted = sort_all(s, [order(s, s.bits(self.first)), order(s, s.bits(self.second))], true);
        (max, from_top(s, sorted, usize::from(KEPT[k])))
    }
}
