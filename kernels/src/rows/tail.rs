//! What top-p leaves of a row when it drops the small end: entries go while their running mass, rounded to `f32`, is at most `t`.
//!
//! Counted from the large end an entry stays while what is larger has at most the mass of all but the least mass that is above `t`: the
//! cut of a nucleus. That all together have a mass of about 1 is mostly enough to find it among the largest. Where an entry is in doubt,
//! and in rows too flat for a list, [`super::reach`] adds up what is dropped.

use super::blocks::BLOCK;
use super::key::{bisect, prefix, value_to_ascending};
use super::mass::{End, ONE, mass, running_sum, total};
use super::nucleus::{Row, listed, safe_bound};
use super::reach::{Masses, Reach, Reached, count};
use super::row_sum;
use super::sample::Workspace;
use super::select::{List, gather_all};
use super::softmax::{Weights, weight};
use super::survivors::Above;
use super::window::Cut;
use crate::element::Element;
use crate::simd::Simd;

/// The sum of all probabilities is no further from 1: 15 additions in a lane, four of lanes, and the roundings of the sum and of the
/// quotients are 21 times 2^-24 at most, 1.25e-6. Masses are half a unit off each.
const OFF: f64 = 2e-6;

/// Length of the list, of which half takes entries: of more [`super::reach`] finds the cut in less time.
const LISTED: usize = 8192;

/// What top-k left of a row, all from `least` on, and what top-p is to drop of it.
pub struct Tail<'a, T> {
    /// The row, without +inf.
    pub row: &'a [T],
    /// -inf for all.
    pub least: f32,
    /// The largest, not -inf.
    pub max: f32,
    /// Above 0.
    pub p: f32,
    /// `1 - p`, not below 0.
    pub t: f32,
}

/// What stays: all above `value`, and its equals but the first `skip`.
#[derive(Clone, Copy)]
pub struct Kept {
    /// The least value that stays.
    pub value: f32,
    /// How many of it do not.
    pub skip: usize,
}

impl Kept {
    /// All from a value on.
    pub const fn from(value: f32) -> Kept {
        Kept { value, skip: 0 }
    }

    /// All above a value, and of its equals the last ones. The maxima are those of the row.
    #[inline(always)]
    pub fn last<S: Simd, T: Element>(s: S, row: &[T], maxima: &[f32], Above { value, ties }: Above) -> Kept {
        let (equals, _) = count(s, row, maxima, value);
        Kept { value, skip: equals - ties }
    }
}

impl<T: Element> Tail<'_, T> {
    /// What stays; none where the copy, as long as the row, holds it. Else the copy is filled with -inf. The maxima are those of the row.
    #[inline(always)]
    pub fn kept<S: Simd>(&self, s: S, work: &mut Workspace<'_>, copy: &mut [T]) -> Option<Kept> {
        let Tail { row, max, t, .. } = *self;
        let weights = self.weights_and_fill(s, copy);
        if t == 0.0 {
            return Some(Kept::from(self.first(|value| weights.of_one(s, value) > 0.0)));
        }
        // The least mass that is above t, which is at most 1.
        let target = prefix(2 * ONE as u64, |mass| running_sum(mass) <= t);
        // The first stays in any case.
        let end = |all: u128| End::Mass(all.saturating_sub(target.into()) + 1);
        let cut = match self.left(s, work) {
            // Lists have signed indices.
            _ if row.len() > i32::MAX as usize => Cut::Beyond(None),
            Some(n) => {
                let all = total(s, work.list.weigh(s, n, &weights).1);
                work.list.nucleus(s, n, true, &weights, &[end(all)])
            }
            None => {
                let off = OFF * ONE + 0.5 * row.len() as f64;
                self.listed(s, &weights, &[ONE - off, ONE + off].map(|all| end(all as u128)), work)
            }
        };
        if let Cut::At { kept, sorted } = cut {
            let List { values, indices } = &work.list;
            if values[kept..sorted].first() == Some(&values[kept - 1]) {
                return Some(Kept::last(s, row, work.maxima, Above::of_list(&values[..kept])));
            }
            for &index in &indices[..kept] {
                copy[index as usize] = row[index as usize];
            }
            return None;
        }
        // What has no mass would fill a list for nothing.
        let least = self.first(|value| mass(weights.of_one(s, value)) > 0);
        Some(match (Reach { sums: Masses(weights), least, before: 0, target }).within(s, row, &mut work.list) {
            // The i-th of the equals goes while it and what is before it stay below the target; their mass, which reaches it, is not 0.
            Some(Reached { value, before }) => {
                let skip = (target - 1 - before) / mass(weights.of_one(s, value));
                Kept { value, skip: skip as usize }
            }
            None => Kept::last(s, row, work.maxima, Above { value: max, ties: 1 }),
        })
    }

    /// How elements become probabilities, as [`Weights::of_row_and_fill`] finds it.
    #[inline(always)]
    fn weights_and_fill<S: Simd>(&self, s: S, copy: &mut [T]) -> Weights {
        let Tail { row, least, max, .. } = *self;
        if least == f32::NEG_INFINITY {
            return Weights::of_row_and_fill(s, row, max, copy);
        }
        let sum = s.apart(
            #[inline(always)]
            move || {
                row_sum(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| {
                        span.store(s, s.splat(f32::NEG_INFINITY), copy);
                        let v = span.load(s, row, T::NEG_INFINITY);
                        let stays = s.le(s.splat(least), v);
                        // Behind top-k nearly every vector has nothing left.
                        if s.mask_bits(stays) == 0 {
                            return s.splat(0.0);
                        }
                        s.select(stays, weight(s, v, max), s.splat(0.0))
                    },
                )
            },
        );
        Weights::Softmax { max, sum: sum as f32 }
    }

    /// The smallest value that top-k left and for which `holds`, as it does for all that are larger.
    #[inline(always)]
    fn first(&self, holds: impl Fn(f32) -> bool) -> f32 {
        bisect(value_to_ascending(f32::NEG_INFINITY), value_to_ascending(self.max), holds).1.max(self.least)
    }

    /// Makes a list of what top-k left, if it takes no more than half of one; returns its length.
    #[inline(always)]
    fn left<S: Simd>(&self, s: S, work: &mut Workspace<'_>) -> Option<usize> {
        let (row, Workspace { list, maxima }) = (self.row, work);
        if self.least == f32::NEG_INFINITY {
            return None;
        }
        gather_all::<S, T, BLOCK>(s, row, maxima, self.least, list)
    }

    /// Where these ends are among the largest.
    #[inline(always)]
    fn listed<S: Simd>(&self, s: S, weights: &Weights, ends: &[End], work: &mut Workspace<'_>) -> Cut {
        let Tail { row, least, max, p, .. } = *self;
        let Workspace { list, maxima } = work;
        let safe = safe_bound(row.len(), 1.0, weights, p).max(least);
        let most = LISTED.min(list.values.len());
        listed::<S, T, BLOCK>(s, &Row { row, p, max, maxima }, (weights, 1.0), safe, ends, &mut list.first(most)).0
    }
}
