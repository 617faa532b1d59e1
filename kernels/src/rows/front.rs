//! Where a nucleus ends among the entries of a sorted list, as far as bounds on what is not in it tell.

use super::row_sum;
use super::threshold::count;
use super::{Span, lanes};
use crate::simd::Simd;

/// What is known of a nucleus before the sum of its row is. The list is sorted.
#[derive(Clone, Copy)]
pub struct Front {
    /// Entries that are in.
    pub least: usize,
    /// Entries behind this are not.
    pub most: usize,
}

/// The sum of some weights.
#[inline(always)]
pub fn sum<S: Simd>(s: S, e: &[f32]) -> f64 {
    s.apart(
        #[inline(always)]
        move || {
            row_sum(
                s,
                e.len(),
                #[inline(always)]
                |span| span.load(s, e, 0.0),
            )
        },
    )
}

/// Of 16 numbers from `at` on the sum before each, and of all in every lane. Behind the last come zeros.
#[inline(always)]
fn sums_before<S: Simd>(s: S, e: &[f32], at: usize) -> (S::F32, S::F32) {
    let all = Span { at, len: 16.min(e.len() - at) }.load(s, e, 0.0);
    let (before, all) = add_other::<S, 1>(s, s.splat(0.0), all);
    let (before, all) = add_other::<S, 2>(s, before, all);
    let (before, all) = add_other::<S, 4>(s, before, all);
    add_other::<S, 8>(s, before, all)
}

/// Adds to what D lanes have together what the D beside them have and, where these come before, to what comes before.
#[inline(always)]
fn add_other<S: Simd, const D: usize>(s: S, before: S::F32, all: S::F32) -> (S::F32, S::F32) {
    let other = s.from_bits(s.exchange::<D>(s.bits(all)));
    let later = s.eq_i32(s.and(lanes(s), s.splat_i32(D as i32)), s.splat_i32(D as i32));
    (s.add(before, s.select(later, other, s.splat(0.0))), s.add(all, other))
}

/// The first of `n` places under 16 lanes from `at` on that is hit; `n` if none is.
#[inline(always)]
fn first_hit<S: Simd>(s: S, hits: S::Mask, at: usize, n: usize) -> usize {
    let place = at + s.mask_bits(hits).trailing_zeros() as usize;
    if place < n.min(at + 16) { place } else { n }
}

impl Front {
    /// Of a sorted list that begins with the largest element, `e` being `exp(x - max)` of its values; what is not in it has a sum
    /// between these bounds. `None` if the list may be too short.
    #[inline(always)]
    pub fn new<S: Simd>(s: S, e: &[f32], outside: [f64; 2], p: f32) -> Option<Front> {
        s.apart(
            #[inline(always)]
            move || {
                let (front, ends) = Front::in_list(s, e, outside, p);
                ends.then_some(front)
            },
        )
    }

    /// The part in the list, and whether that is all.
    #[inline(always)]
    pub fn in_list<S: Simd>(s: S, e: &[f32], [low, high]: [f64; 2], p: f32) -> (Front, bool) {
        // Mostly there is one vector, and its sum is known by then.
        let (mut before, mut all) = sums_before(s, e, 0);
        let (mut at, mut passed, mut certain) = (0, 0.0, e.len());
        let sum = f64::from(s.reduce_max(all)) + if e.len() > 16 { sum(s, &e[16..]) } else { 0.0 };
        // One part in 10^4 is more than all roundings.
        let (lower, upper) = (f64::from(p) * (sum + low) * (1.0 - 1e-4), f64::from(p) * (sum + high) * (1.0 + 1e-4));
        loop {
            certain = certain.min(first_hit(s, s.le(s.splat((lower - passed) as f32), before), at, e.len()));
            let end = first_hit(s, s.lt(s.splat((upper - passed) as f32), before), at, e.len());
            (at, passed) = (at + 16, passed + f64::from(s.reduce_max(all)));
            if end < e.len() || at >= e.len() {
                return (Front { least: certain, most: end }, end < e.len() || passed > upper);
            }
            (before, all) = sums_before(s, e, at);
        }
    }

    /// Of these, only those that reach the second of two values, or perhaps the first.
    #[inline(always)]
    pub fn reaching<S: Simd>(self, s: S, values: &[f32], reach: (f32, f32)) -> Front {
        self.within(count(s, values, reach.1), count(s, values, reach.0))
    }

    /// Of these, only so many.
    pub fn within(self, least: usize, most: usize) -> Front {
        Front { least: self.least.min(least), most: self.most.min(most) }
    }
}

#[cfg(test)]
mod tests;
