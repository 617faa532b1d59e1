//! A token drawn from the k best of a row by one number.
//!
//! The k best are found as everywhere, sorted. Weights are summed in `f64` one after the other, by rank: ranks are the same however
//! they were found, so this sum has the same bits on every instruction set, and k additions are little beside the search.

use super::blocks::BLOCK;
use super::key::clean;
use super::largest::largest;
use super::select::List;
use super::softmax::weight;
use super::{lanes, vectors};
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::{Dot, Simd};

/// Room for the list of a choice among the k best.
pub const fn choice_len(k: usize) -> usize {
    match k.saturating_add(BLOCK).saturating_mul(2).checked_next_power_of_two() {
        Some(..2048) => 2048,
        Some(room) => room,
        None => usize::MAX,
    }
}

/// What a random number counts as: the nearest in [0,1], a NaN as 0.
#[inline(always)]
pub(super) fn counted(random: f32) -> f32 {
    if random > 0.0 { random.min(1.0) } else { 0.0 }
}

/// The first of the k best whose running sum of `exp(logit + diversity * rank - max)` reaches `random` times their sum: its index.
pub struct TopKChoice<'a> {
    /// The logits.
    pub row: &'a [f32],
    /// 1 to the length of the row.
    pub k: usize,
    /// What each rank adds to its logit; finite.
    pub diversity: f32,
    /// In [0,1).
    pub random: f32,
    /// As long as [`super::workspace_maxima`] of the row.
    pub maxima: &'a mut [f32],
    /// As long as [`choice_len`] of k.
    pub list: List<'a>,
}

impl Kernel for TopKChoice<'_> {
    type Output = usize;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) -> usize {
        largest::<S, f32, BLOCK>(s, self.row, self.k, self.maxima, &mut self.list);
        let weights = &mut self.list.values[..self.k];
        weigh(s, weights, self.diversity);
        self.list.indices[reaches(weights, counted(self.random))] as usize
    }
}

/// Makes weights of a sorted list of values; 0 where all are -inf.
#[inline(always)]
fn weigh<S: Simd>(s: S, values: &mut [f32], diversity: f32) {
    s.apart(
        #[inline(always)]
        move || {
            let mut top = s.splat(f32::NEG_INFINITY);
            vectors(
                values.len(),
                #[inline(always)]
                |span| {
                    let rank = s.to_f32(s.add_i32(lanes(s), s.splat_i32(span.at as i32)));
                    let v = span.load(s, values, f32::NEG_INFINITY);
                    // The sum may be a NaN, where a rank is infinitely far up and its logit -inf.
                    let v = clean(s, s.add(v, s.mul(s.splat(diversity), rank)));
                    top = s.max(v, top);
                    span.store(s, v, values);
                },
            );
            let max = s.reduce_max(top);
            if max == f32::NEG_INFINITY {
                return values.fill(0.0);
            }
            vectors(
                values.len(),
                #[inline(always)]
                |span| span.store(s, weight(s, span.load(s, values, f32::NEG_INFINITY), max), values),
            );
        },
    )
}

/// The first place whose running sum reaches `random` times the sum of all. The last sum is that of all, so one does.
fn reaches(weights: &[f32], random: f32) -> usize {
    let all: f64 = weights.iter().fold(0.0, |sum, &weight| sum + f64::from(weight));
    let (target, mut sum) = (f64::from(random) * all, 0.0);
    let found = weights.iter().position(|&weight| {
        sum += f64::from(weight);
        sum >= target
    });
    found.unwrap_or(0)
}
