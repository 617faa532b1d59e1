//! What the stages of TopKTopPSample leave of a row.

use super::estimate::Whole;
use super::first_max::position;
use super::front::Front;
use super::key::prefix;
use super::largest::First;
use super::mass::cut;
use super::min_p::min_p_bound;
use super::nucleus::{Nucleus, Row, top_p};
use super::sample::{Sample, Stages, Workspace, first_of};
use super::select::{List, gather};
use super::softmax::{Weights, softmax_of_list};
use super::survivors::Above;
use crate::element::Element;
use crate::simd::Simd;

/// What the first pass left.
pub(super) enum Found {
    /// For top-k.
    Top(First),
    /// For the first ranks of top-k; and about the last of them, if it was guessed.
    Leaders(First, Option<f32>),
    /// Without top-k, maxima of blocks.
    Blocks,
    /// The same and, for a nucleus, the sum of the row.
    Whole(Whole),
    /// Maxima of what is above 0, in wide blocks, for min-p alone.
    Halves,
}

/// What the stages leave.
pub(super) enum Kept {
    /// The first entries of the list in the workspace; its values are already weights.
    List(usize),
    /// The same, and the filtered copy has its fill.
    Filled(usize),
    /// The survivors in index order.
    Row(Above, Weights),
    /// The survivors in sorted order.
    Sorted(Above, Weights),
}

impl<T: Element> Sample<'_, T> {
    /// The stages.
    #[inline(always)]
    pub(super) fn keep<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, front: Option<Front>, found: Found) -> Kept {
        s.apart(
            #[inline(always)]
            move || {
                let p = self.stages.p;
                if p <= 0.0 {
                    return self.keep_best(s, max);
                }
                let first = match found {
                    Found::Leaders(first, _) => self.all_ranks::<S, BLOCK>(s, first),
                    Found::Top(first) => first,
                    _ if p < 1.0 => return self.keep_nucleus::<S, BLOCK>(s, max, front),
                    _ => return self.keep_whole::<S, BLOCK>(s, max),
                };
                self.keep_top_k::<S, BLOCK>(s, first)
            },
        )
    }

    /// What top-p keeps for p <= 0.
    #[inline(always)]
    fn keep_best<S: Simd>(&mut self, s: S, max: f32) -> Kept {
        let list = &mut self.work.list;
        list.values[0] = if self.stages.is_logits { 1.0 } else { Weights::Given.of_one(s, max) };
        list.indices[0] = position(s, self.row, 0, max) as i32;
        Kept::List(1)
    }

    /// Top-k, then top-p and min-p of its list.
    #[inline(always)]
    fn keep_top_k<S: Simd, const BLOCK: usize>(&mut self, s: S, mut first: First) -> Kept {
        let Stages { k, p, is_logits, .. } = self.stages;
        let Workspace { list, maxima } = &mut self.work;
        first.largest::<S, T, BLOCK>(s, self.row, k, maxima, list);
        softmax_of_list(s, &mut list.values[..k], is_logits);
        let n = if p < 1.0 { cut(&list.values[..k], p) } else { k };
        Kept::List(self.min_p_of_list(n))
    }

    /// Top-p of the row, then min-p.
    #[inline(always)]
    fn keep_nucleus<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, front: Option<Front>) -> Kept {
        let Stages { p, is_logits, .. } = self.stages;
        let row = self.row;
        let (weights, kept): (_, fn(usize) -> Kept) = match &mut self.filtered {
            Some(copy) if is_logits && max < f32::MAX => (Weights::of_row_and_fill(s, row, max, copy), Kept::Filled),
            _ => (Weights::of_row(s, row, max, is_logits), Kept::List),
        };
        let Workspace { list, maxima } = &mut self.work;
        match top_p::<S, T, BLOCK>(s, Row { row, p, max, maxima }, weights, front, list) {
            Nucleus::List(n) => {
                weights.apply(s, &mut list.values[..n]);
                kept(self.min_p_of_list(n))
            }
            Nucleus::Above(above) => self.flat_min_p(s, above, weights, max),
        }
    }

    /// Min-p of the row, if that.
    #[inline(always)]
    fn keep_whole<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32) -> Kept {
        let Stages { min_p, is_logits, .. } = self.stages;
        let (row, weights) = (self.row, Weights::of_row(s, self.row, max, is_logits));
        let Workspace { list, maxima } = &mut self.work;
        let top = weights.of_one(s, max);
        if min_p >= 1.0 {
            list.values[0] = top;
            list.indices[0] = first_of::<S, T, BLOCK>(s, row, maxima, max) as i32;
            return Kept::List(1);
        }
        if !(min_p > 0.0 && top >= 0.0) {
            return Kept::Row(Above::ALL, weights);
        }
        let bound = min_p_bound(s, &weights, max, top * min_p);
        let (found, at) = gather::<S, T, BLOCK>(s, row, maxima, bound, 0, list, 0);
        if at < row.len().div_ceil(BLOCK) {
            return Kept::Row(Above::from(bound), weights);
        }
        weights.apply(s, &mut list.values[..found]);
        Kept::List(found)
    }

    /// How many of the first `n` of the sorted list min-p leaves.
    #[inline(always)]
    fn min_p_of_list(&self, n: usize) -> usize {
        let (Stages { min_p, is_logits, .. }, List { values, indices }) = (self.stages, &self.work.list);
        let top = values[0];
        if min_p >= 1.0 {
            return 1;
        }
        if !(min_p > 0.0 && top >= 0.0) {
            return n;
        }
        // A probability of -inf is none, also where 0 is enough; behind negative ones its 0 would be a second rise.
        let reaches = |j: usize| {
            let x: f32 = self.row[indices[j] as usize].as_();
            values[j] >= top * min_p && (is_logits || x > f32::NEG_INFINITY)
        };
        prefix(n as u64, |j| reaches(j as usize)) as usize
    }

    /// Min-p after a nucleus that is no list.
    #[inline(always)]
    fn flat_min_p<S: Simd>(&self, s: S, above: Above, weights: Weights, max: f32) -> Kept {
        let top = weights.of_one(s, max);
        let min_p = self.stages.min_p;
        if min_p >= 1.0 {
            return Kept::Sorted(Above { value: max, ties: 1 }, weights);
        }
        if min_p > 0.0 && top >= 0.0 {
            let bound = min_p_bound(s, &weights, max, top * min_p);
            if bound > above.value {
                return Kept::Sorted(Above::from(bound), weights);
            }
        }
        Kept::Sorted(above, weights)
    }
}
