//! A value that k of some values reach, by bisection.

use super::key::{ascending_to_value, value_to_ascending};
use super::vectors;
use crate::simd::Simd;

/// How many of `values` reach `bound`.
#[inline(always)]
pub fn count<S: Simd>(s: S, values: &[f32], bound: f32) -> usize {
    let (bound, mut n) = (s.splat(bound), 0);
    vectors(
        values.len(),
        #[inline(always)]
        |span| n += s.mask_bits(s.le(bound, span.load(s, values, f32::NAN))).count_ones() as usize,
    );
    n
}

/// The smallest of `values`, and one step above the largest, as integers that order as the values do.
#[inline(always)]
pub fn range<S: Simd>(s: S, values: &[f32]) -> (i32, i32) {
    let (mut least, mut most) = (s.splat(f32::INFINITY), s.splat(f32::NEG_INFINITY));
    vectors(
        values.len(),
        #[inline(always)]
        |span| {
            let v = span.load(s, values, values[0]);
            least = s.min(v, least);
            most = s.max(v, most);
        },
    );
    range_between(-s.reduce_max(s.sub(s.splat(0.0), least)), s.reduce_max(most))
}

/// [`range`] of values of which the smallest and the largest, or bounds of them, are known.
#[inline(always)]
pub fn range_between(least: f32, most: f32) -> (i32, i32) {
    // -0 reaches 0, the step above it.
    (value_to_ascending(least), value_to_ascending(most + 0.0).saturating_add(1))
}

/// What is known on the way to a threshold. Numbers are integers that order as the values do.
struct Search {
    /// Reached by `reached` values, at least k.
    low: i32,
    reached: usize,
    /// Reached by `beyond` values, fewer than k.
    high: i32,
    beyond: usize,
    turn: bool,
}

impl Search {
    /// Goes on until no more than `few` values are in doubt, of which `values` are all; true where the search has ended. Values
    /// that are not in doubt may be missing: `above` is how many of those beyond are.
    #[inline(always)]
    fn narrow<S: Simd>(&mut self, s: S, values: &[f32], above: usize, enough: [usize; 2], few: usize) -> bool {
        let [k, most] = enough;
        while self.reached > most && i64::from(self.high) - i64::from(self.low) > 1 {
            if self.reached - self.beyond <= few {
                return false;
            }
            // By turns the middle of the values and of the numbers between: the former is fast, the latter comes to an end.
            self.turn = !self.turn;
            let average = value_to_ascending(0.5 * ascending_to_value(self.low) + 0.5 * ascending_to_value(self.high));
            let middle = self.low.midpoint(self.high);
            let middle = if self.turn && self.low < average && average < self.high { average } else { middle };
            let found = above + count(s, values, ascending_to_value(middle));
            if found >= k {
                (self.low, self.reached) = (middle, found);
            } else {
                (self.high, self.beyond) = (middle, found);
            }
        }
        true
    }
}

/// A value that at least `k` of `values` reach, none of them a NaN, and at most `slack` more; where ties forbid that, the k-th largest.
/// And how many reach it. 1 <= k <= `values.len()`.
#[inline(always)]
pub fn threshold<S: Simd>(s: S, values: &[f32], k: usize, slack: usize) -> (f32, usize) {
    /// So many are worth a place of their own, where they are all that is looked at.
    const FEW: usize = 256;
    s.apart(
        #[inline(always)]
        move || {
            debug_assert!((1..=values.len()).contains(&k));
            let (low, high) = range(s, values);
            let mut search = Search { low, reached: values.len(), high, beyond: 0, turn: false };
            let enough = [k, k + slack];
            if !search.narrow(s, values, 0, enough, if values.len() > 2 * FEW { FEW } else { 0 }) {
                let (mut few, mut n) = ([0.0; FEW + 16], 0);
                let (low, high) = (s.splat(ascending_to_value(search.low)), s.splat(ascending_to_value(search.high)));
                vectors(
                    values.len(),
                    #[inline(always)]
                    |span| {
                        let v = span.load(s, values, f32::NAN);
                        let doubt = s.differ(s.le(low, v), s.le(high, v));
                        let to = few[n..].first_chunk_mut::<16>().expect("room");
                        n += s.compress(doubt, s.bits(v), bytemuck::cast_mut(to));
                    },
                );
                debug_assert_eq!(n, search.reached - search.beyond);
                search.narrow(s, &few[..n], search.beyond, enough, 0);
            }
            (ascending_to_value(search.low), search.reached)
        },
    )
}
