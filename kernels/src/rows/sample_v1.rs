//! One row of TopKTopPSampleV1: the filtered copy and the choice.
//!
//! Its stages are those of [`super::Sample`] with two differences. Top-p keeps an entry while the sum before it is at most p: sums are
//! `f32`, so that is "below the next number above p". And what top-p leaves is normalised again: by its logits where top-k made the
//! list, else by a softmax over the probabilities, whose sum runs over the row by index. A choice asks for these sums only where
//! their last bits can change it.

use super::blocks::{BLOCK, LONGER_BLOCK, block_maxima};
use super::estimate::Whole;
use super::first_max::first_max;
use super::front::{Front, sum};
use super::largest::First;
use super::lead::{certain_race_apart, certain_race_row, forgives_division};
use super::mass::cut;
use super::nucleus::{Nucleus, Row, Second, top_p};
use super::race::{Noise, race, race_row};
use super::ranks::race_sorted;
use super::sample::{Choice, Sample, Stages, Workspace, first_of, status_of};
use super::select::List;
use super::softmax::{Weights, softmax_of_list, weight};
use super::survivors::Above;
use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// The largest k.
pub const MAX_K: usize = 1024;

/// A row of TopKTopPSampleV1.
pub struct SampleV1<'a, T> {
    /// Logits, at least one, at most 2^20.
    pub row: &'a [T],
    /// How many top-k keeps, at most [`MAX_K`] and the length of the row; 0 switches it off.
    pub k: usize,
    /// Top-p; outside (0,1) it is off.
    pub p: f32,
    /// How to choose.
    pub noise: Noise<'a>,
    /// Whether the status has to tell of a NaN.
    pub nan: bool,
    /// The logits of the kept tokens, -inf elsewhere; as long as the row.
    pub filtered: Option<&'a mut [f32]>,
    /// Memory to work in, as for [`super::Sample`].
    pub work: Workspace<'a>,
}

impl<T: Element> Kernel for SampleV1<'_, T> {
    type Output = Choice;
    const DOT: bool = false;
    per_element!(run_sample_v1);

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) -> Choice {
        if self.filtered.is_none() && matches!(self.noise, Noise::None) {
            let (token, summary) = first_max(s, self.row, self.nan);
            let empty = summary.max == f32::NEG_INFINITY;
            return Choice { token, status: status_of(summary, empty) };
        }
        if self.k == 0 {
            self.by_nucleus(s)
        } else if const { S::IS_WIDE && size_of::<T>() == size_of::<f32>() } && self.ranks().is_long_for_few() {
            self.by_ranks::<S, LONGER_BLOCK>(s)
        } else {
            self.by_ranks::<S, BLOCK>(s)
        }
    }
}

impl<'a, T: Element> SampleV1<'a, T> {
    /// Without top-k.
    #[inline(always)]
    fn by_nucleus<S: Simd>(&mut self, s: S) -> Choice {
        let summary = block_maxima::<S, T, BLOCK>(s, self.row, self.work.maxima, self.nan);
        let (max, empty) = (summary.max, summary.max == f32::NEG_INFINITY);
        let token = match self.is_cut() {
            _ if empty => self.nothing(),
            true => self.nucleus(s, max),
            false => self.whole(s, max),
        };
        Choice { token, status: status_of(summary, empty) }
    }

    /// Top-k, and top-p where it is on.
    #[inline(always)]
    fn by_ranks<S: Simd, const BLOCK: usize>(&mut self, s: S) -> Choice {
        s.apart(
            #[inline(always)]
            move || {
                let mut ranks = self.ranks();
                let (mut first, summary, guess) = ranks.scan_ranks::<S, BLOCK>(s);
                let (max, empty) = (summary.max, summary.max == f32::NEG_INFINITY);
                let status = status_of(summary, empty);
                if empty {
                    return Choice { token: self.nothing(), status };
                }
                if ranks.may_be_led() {
                    if let Some(token) = ranks.certain_leader::<S, BLOCK>(s, max, (&mut first, guess)) {
                        return Choice { token, status };
                    }
                    first = ranks.all_ranks::<S, BLOCK>(s, first);
                }
                Choice { token: self.list::<S, BLOCK>(s, first), status }
            },
        )
    }

    /// What chooses the same token if a leader surely wins. Its other sums are common divisors of the weights. Top-p ends there by the
    /// number above p: nearer to p than what a leader leaves open or, for tiny ones, below the first weight alone.
    #[inline(always)]
    fn ranks(&mut self) -> Sample<'_, T> {
        let p = if self.is_cut() { self.p } else { f32::INFINITY };
        let Workspace { list, maxima } = &mut self.work;
        Sample {
            row: self.row,
            stages: Stages { k: self.k, p, min_p: 0.0, is_logits: true },
            noise: self.noise,
            nan: self.nan,
            filtered: self.filtered.as_deref_mut(),
            middle: None,
            work: Workspace { list: list.reborrow(), maxima },
        }
    }

    /// Whether top-p is on.
    #[inline(always)]
    fn is_cut(&self) -> bool {
        self.p > 0.0 && self.p < 1.0
    }

    #[inline(always)]
    fn nothing(&mut self) -> usize {
        if let Some(filtered) = &mut self.filtered {
            filtered.fill(f32::NEG_INFINITY);
        }
        0
    }

    /// The first maximum, which without noise no stage removes.
    #[inline(always)]
    fn first<S: Simd>(&self, s: S, max: f32) -> usize {
        first_of::<S, T, BLOCK>(s, self.row, self.work.maxima, max)
    }

    /// No stage.
    #[inline(always)]
    fn whole<S: Simd>(&mut self, s: S, max: f32) -> usize {
        self.copy(s, Above::ALL);
        match self.noise {
            Noise::None => self.first(s, max),
            noise => certain_race_row(s, self.row, max, &noise)
                .unwrap_or_else(|| race_row(s, self.row, &Weights::of_row(s, self.row, max, true), &noise).0),
        }
    }

    /// The choice from the list of top-k, or from what top-p leaves of it.
    #[inline(always)]
    fn list<S: Simd, const BLOCK: usize>(&mut self, s: S, mut first: First) -> usize {
        let is_cut = self.is_cut();
        let Workspace { list, maxima } = &mut self.work;
        first.largest::<S, T, BLOCK>(s, self.row, self.k, maxima, list);
        let mut n = self.k;
        if is_cut {
            let mut all = [0.0; MAX_K];
            let probabilities = &mut all[..n];
            probabilities.copy_from_slice(&list.values[..n]);
            softmax_of_list(s, probabilities, true);
            n = cut(probabilities, self.p.next_up());
        }
        let (values, indices) = (&mut list.values[..n], &list.indices[..n]);
        if let Some(filtered) = &mut self.filtered {
            filtered.fill(f32::NEG_INFINITY);
            for &index in indices {
                filtered[index as usize] = self.row[index as usize].as_();
            }
        }
        if matches!(self.noise, Noise::None) {
            return indices[0] as usize;
        }
        softmax_of_list(s, values, true);
        indices[race(s, values, &self.noise).0] as usize
    }

    /// What top-p asks, and the list to look in.
    #[inline(always)]
    fn asked(&mut self, max: f32) -> (Row<'_, T>, &mut List<'a>) {
        let Workspace { list, maxima } = &mut self.work;
        (Row { row: self.row, p: self.p.next_up(), max, maxima }, list)
    }

    /// The choice from what top-p leaves, if it hangs neither on where exactly that ends nor on the last bits of the row's sum.
    #[inline(always)]
    fn certain_nucleus<S: Simd>(&mut self, s: S, max: f32) -> Option<usize> {
        s.apart(
            #[inline(always)]
            move || {
                if !forgives_division(&self.noise) {
                    return None;
                }
                let whole = Whole::of(s, self.row, max)?;
                let (asked, list) = self.asked(max);
                if let Some(front) = asked.first_front::<S, BLOCK>(s, Some(whole), list) {
                    let token = self.certain_front(s, front, whole);
                    // A cut that is certain becomes no more so.
                    if token.is_some() || front.least == front.most {
                        return token;
                    }
                }
                let (asked, list) = self.asked(max);
                // Its weights are close together: the first ranks would hold little.
                match asked.second_front::<S, BLOCK>(s, Some(whole), &Noise::None, list)? {
                    Second::Front(front) => self.certain_front(s, front, whole),
                    Second::Wins(_) => None,
                }
            },
        )
    }

    /// The choice from a nucleus whose end is not certain. Of two scores the one that is larger for the least and for the largest sum that
    /// the row can have is so for all between.
    #[inline(always)]
    fn certain_front<S: Simd>(&mut self, s: S, Front { least, most }: Front, whole: Whole) -> Option<usize> {
        let List { values, indices } = &mut self.work.list;
        // The weights stand in the upper half of the list: `exp(x - max)`, the first of which is 1.
        let (values, weights) = values.split_at_mut(values.len() / 2);
        let (values, weights) = (&mut values[..most], &weights[..most]);
        let (listed, [low, high]) = (sum(s, weights), whole.rest(s, values));
        let mut places = [0; 2];
        for (place, whole) in places.iter_mut().zip([(listed + low) * (1.0 - 1e-5), (listed + high) * (1.0 + 1e-5)]) {
            let inverse = (1.0 / whole) as f32;
            vectors(
                most,
                #[inline(always)]
                |span| {
                    let probability = s.mul(span.load(s, weights, 0.0), s.splat(inverse));
                    span.store(s, weight(s, probability, inverse), values);
                },
            );
            *place = certain_race_apart(s, values, &self.noise)?;
        }
        (places[0] == places[1] && places[0] < least).then(|| indices[places[0]] as usize)
    }

    /// Top-p alone.
    #[inline(always)]
    fn nucleus<S: Simd>(&mut self, s: S, max: f32) -> usize {
        if self.filtered.is_none()
            && let Some(token) = self.certain_nucleus(s, max)
        {
            return token;
        }
        let weights = Weights::of_row(s, self.row, max, true);
        let (asked, list) = self.asked(max);
        let found = top_p::<S, T, BLOCK>(s, asked, weights, None, list);
        let above = match found {
            Nucleus::List(n) => Above::of_list(&list.values[..n]),
            Nucleus::Above(above) => above,
        };
        self.copy(s, above);
        if matches!(self.noise, Noise::None) {
            return self.first(s, max);
        }
        let weights = weights.again(s, self.row, above);
        if let Nucleus::List(n) = found {
            let list = &mut self.work.list;
            weights.apply(s, &mut list.values[..n]);
            return list.indices[race(s, &list.values[..n], &self.noise).0] as usize;
        }
        let token = self.first(s, max);
        race_sorted(s, self.row, weights, self.noise, above, (token, max), &mut self.work.list)
    }

    #[inline(always)]
    fn copy<S: Simd>(&mut self, s: S, above: Above) {
        if let Some(filtered) = &mut self.filtered {
            above.copy(s, self.row, f32::NEG_INFINITY, filtered);
        }
    }
}
