//! The choice of top-k by its first ranks: a list of these is short, and the noises of the other ranks mostly show that none of them wins.

use super::keep::Kept;
use super::largest::First;
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

impl<T: Element> Sample<'_, T> {
    /// Whether the choice may be found so.
    #[inline(always)]
    pub(super) fn may_be_led(&self) -> bool {
        let Stages { k, p, min_p, is_logits } = self.stages;
        let cut_again = p < 1.0 || min_p > 0.0;
        let asked_for = self.filtered.is_some() || self.middle.is_some();
        k > 0 && !cut_again && is_logits && !asked_for && forgives_division(&self.noise)
    }

    /// The choice, if a leader surely wins.
    #[inline(always)]
    pub(super) fn certain_leader<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, first: &mut First) -> Option<usize> {
        let (k, Workspace { list, maxima }) = (self.stages.k, &mut self.work);
        let listed = leaders(k);
        let least = first.bound::<S, T, BLOCK>(s, self.row, listed, maxima, list);
        if listed < k && max - least < FLAT {
            return None;
        }
        let n = first.list::<S, T, BLOCK>(s, self.row, (listed, least), maxima, list).min(k);
        let weights = &mut list.values[..n];
        Weights::Shifted { max: weights[0] }.apply(s, weights);
        let place = certain_race_of_first(s, weights, k, &self.noise)?;
        Some(list.indices[place] as usize)
    }

    /// [`Sample::keep_top_k`] where none did.
    #[inline(always)]
    pub(super) fn keep_after_leaders<S: Simd, const BLOCK: usize>(&mut self, s: S, first: First) -> Kept {
        let (k, Workspace { list, maxima }) = (self.stages.k, &mut self.work);
        let first = first.again::<S, T, BLOCK>(s, self.row, k, maxima, list);
        self.keep_top_k::<S, BLOCK>(s, first)
    }
}
