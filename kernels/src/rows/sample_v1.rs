//! One row of TopKTopPSampleV1: the filtered copy and the choice.
//!
//! Its stages are those of [`super::Sample`] with two differences. Top-p keeps an entry while the sum before it is at most p: sums are
//! `f32`, so that is "below the next number above p". And what top-p leaves is normalised again: by its logits where top-k made the
//! list, else by a softmax over the probabilities, whose sum runs over the row by index.

use super::blocks::{BLOCK, block_maxima};
use super::first_max::first_max;
use super::mass::cut;
use super::nucleus::{Nucleus, Row, top_p};
use super::race::{Noise, race, race_row};
use super::ranks::race_sorted;
use super::sample::{Choice, Workspace, status_of};
use super::select::top_k;
use super::softmax::{Weights, softmax_of_list};
use super::survivors::Above;
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
        let (first, summary) = first_max(s, self.row, self.nan);
        let empty = summary.max == f32::NEG_INFINITY;
        let status = status_of(summary, empty);
        if empty {
            if let Some(filtered) = &mut self.filtered {
                filtered.fill(f32::NEG_INFINITY);
            }
            return Choice { token: 0, status };
        }
        if self.filtered.is_none() && matches!(self.noise, Noise::None) {
            return Choice { token: first, status };
        }
        let on = self.p > 0.0 && self.p < 1.0;
        let winner = match (self.k, on) {
            (0, false) => self.whole(s, summary.max),
            (0, true) => self.nucleus(s, first, summary.max),
            _ => self.list(s, on),
        };
        // Without noise no stage removes the largest.
        Choice { token: if matches!(self.noise, Noise::None) { first } else { winner }, status }
    }
}

impl<T: Element> SampleV1<'_, T> {
    /// No stage.
    #[inline(always)]
    fn whole<S: Simd>(&mut self, s: S, max: f32) -> usize {
        self.copy(s, Above::ALL);
        if matches!(self.noise, Noise::None) {
            0
        } else {
            race_row(s, self.row, &Weights::of_row(s, self.row, max, true), &self.noise).0
        }
    }

    /// Top-k, and top-p where it is on.
    #[inline(always)]
    fn list<S: Simd>(&mut self, s: S, on: bool) -> usize {
        let Workspace { list, maxima } = &mut self.work;
        block_maxima::<S, T, BLOCK>(s, self.row, maxima, false);
        top_k::<S, T, BLOCK>(s, self.row, self.k, maxima, list);
        let mut n = self.k;
        if on {
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
        softmax_of_list(s, values, true);
        indices[race(s, values, &self.noise).0] as usize
    }

    /// Top-p alone; the largest, `max`, stands at `token` first.
    #[inline(always)]
    fn nucleus<S: Simd>(&mut self, s: S, token: usize, max: f32) -> usize {
        let Workspace { list, maxima } = &mut self.work;
        block_maxima::<S, T, BLOCK>(s, self.row, maxima, false);
        let weights = Weights::of_row(s, self.row, max, true);
        let found = top_p::<S, T, BLOCK>(s, Row { row: self.row, p: self.p.next_up(), max, maxima }, weights, None, list);
        let above = match found {
            Nucleus::List(n) => Above::of_list(&list.values[..n]),
            Nucleus::Above(above) => above,
        };
        self.copy(s, above);
        if matches!(self.noise, Noise::None) {
            return token;
        }
        let weights = weights.again(s, self.row, above);
        let list = &mut self.work.list;
        if let Nucleus::List(n) = found {
            weights.apply(s, &mut list.values[..n]);
            return list.indices[race(s, &list.values[..n], &self.noise).0] as usize;
        }
        race_sorted(s, self.row, weights, self.noise, above, (token, max), list)
    }

    #[inline(always)]
    fn copy<S: Simd>(&mut self, s: S, above: Above) {
        if let Some(filtered) = &mut self.filtered {
            above.copy(s, self.row, f32::NEG_INFINITY, filtered);
        }
    }
}
