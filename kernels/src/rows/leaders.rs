//! The choice of top-k by its first ranks: a list of these is short, and the noises of the other ranks mostly show that none of them
//! wins. Where top-p or min-p end it before that, or hardly beyond, the others are not even asked.

use super::blocks::count;
use super::keep::Kept;
use super::largest::First;
use super::min_p::TINY;
use super::nucleus::Front;
use super::race::{certain_race_of_first, forgives_division};
use super::sample::{Sample, Stages, Workspace};
use super::softmax::Weights;
use crate::element::Element;
use crate::simd::Simd;

/// How many of k ranks are listed first, at least.
pub(super) fn leaders(k: usize) -> usize {
    k.min((k / 4).max(32))
}

/// Where logits are closer together the other ranks win too often.
const FLAT: f32 = 2.0;
/// More than all roundings of a weight.
const SLACK: f32 = 1e-5;

impl<T: Element> Sample<'_, T> {
    /// Whether the choice may be found so.
    #[inline(always)]
    pub(super) fn may_be_led(&self) -> bool {
        let Stages { k, min_p, is_logits, .. } = self.stages;
        let tiny = min_p > 0.0 && min_p < TINY;
        let asked_for = self.filtered.is_some() || self.middle.is_some();
        k > 0 && is_logits && !tiny && !asked_for && forgives_division(&self.noise)
    }

    /// The choice, if a leader surely wins.
    #[inline(always)]
    pub(super) fn certain_leader<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, first: &mut First) -> Option<usize> {
        let (Stages { k, p, min_p, .. }, Workspace { list, maxima }) = (self.stages, &mut self.work);
        let listed = leaders(k);
        let least = first.bound::<S, T, BLOCK>(s, self.row, listed, maxima, list);
        if listed < k && max - least < FLAT {
            return None;
        }
        let n = first.list::<S, T, BLOCK>(s, self.row, (listed, least), maxima, list).min(k);
        let weights = &mut list.values[..n];
        Weights::Shifted { max: weights[0] }.apply(s, weights);
        let mut front = Front { least: n, most: k };
        if p < 1.0 {
            let others = (k - n) as f64 * f64::from(weights[n - 1]);
            front = Front::new(s, weights, [0.0, others], p)?;
        }
        if min_p > 0.0 {
            let [least, most] = [1.0 + SLACK, 1.0 - SLACK].map(|factor| count(s, weights, min_p * factor));
            // Those behind the listed ones may reach it too.
            front = front.within(least, if most == n { k } else { most });
        }
        let place = certain_race_of_first(s, &weights[..n.min(front.most)], front.most, &self.noise)?;
        (place < front.least).then(|| list.indices[place] as usize)
    }

    /// [`Sample::keep_top_k`] where none did.
    #[inline(always)]
    pub(super) fn keep_after_leaders<S: Simd, const BLOCK: usize>(&mut self, s: S, first: First) -> Kept {
        let (k, Workspace { list, maxima }) = (self.stages.k, &mut self.work);
        let first = first.again::<S, T, BLOCK>(s, self.row, k, maxima, list);
        self.keep_top_k::<S, BLOCK>(s, first)
    }
}
