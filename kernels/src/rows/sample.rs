//! One row of TopKTopPSample: the stages, the filtered copy, the middle result and the choice.
//!
//! Work is done only where something depends on it. Without noise the choice is the first maximum of the row whatever the stages are,
//! so with no list asked for either, one pass is all. What is kept is a list, sorted or in index order, if it is short enough, else
//! the value from which on elements are in; a row that no stage touches is the case where that value is -inf.

use super::blocks::{block_maxima, block_maxima_and_whole};
use super::draw::certain_draw;
use super::estimate::Whole;
use super::first_max::{Summary, first_max, position};
use super::front::Front;
use super::keep::{Found, Kept};
use super::key::ascending_to_value;
use super::lead::{certain_race_apart, certain_race_row};
use super::min_p::surroundings;
use super::nucleus::{Row, Second};
use super::race::Noise;
use super::samples::{SAMPLE, sample};
use super::select::List;
use super::softmax::Weights;
use super::threshold::range;
use crate::element::Element;
use crate::simd::Simd;

/// What a status byte of a row is made of.
pub mod status {
    /// A NaN was seen, and treated as -inf.
    pub const NAN: u8 = 1;
    /// A +inf was seen, and treated as the largest finite number.
    pub const INFINITE: u8 = 2;
    /// Nothing to choose from.
    pub const EMPTY: u8 = 4;
}

/// What is kept of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stages {
    /// How many top-k keeps, at most 1024 and the length of the row; 0 switches it off.
    pub k: usize,
    /// Top-p: <= 0 keeps the best, >= 1 or NaN switches it off.
    pub p: f32,
    /// Min-p: >= 1 keeps the best, <= 0 or NaN switches it off.
    pub min_p: f32,
    /// Whether the row holds logits; else probabilities.
    pub is_logits: bool,
}

/// Where the list that is kept goes.
pub struct Middle<'a> {
    /// Tokens in list order, then 0; as long as the row.
    pub tokens: &'a mut [i64],
    /// Their probabilities, then 0; as long as the row.
    pub probabilities: &'a mut [f32],
}

/// Memory to work in; need not be initialised.
pub struct Workspace<'a> {
    /// As long as [`super::list_len`] of the row, or 2048.
    pub list: List<'a>,
    /// As long as [`super::workspace_maxima`] of the row.
    pub maxima: &'a mut [f32],
}

/// Rows of more bytes come from further away than the second cache.
const FAR: usize = 1 << 20;

/// A row of TopKTopPSample.
pub struct Sample<'a, T> {
    /// Logits or probabilities, at least one, at most 2^20.
    pub row: &'a [T],
    /// What to keep.
    pub stages: Stages,
    /// How to choose.
    pub noise: Noise<'a>,
    /// Whether the status has to tell of a NaN: looking for one costs a little.
    pub nan: bool,
    /// The logits of the kept tokens, the fill elsewhere; as long as the row.
    pub filtered: Option<&'a mut [f32]>,
    /// The kept tokens as a list.
    pub middle: Option<Middle<'a>>,
    /// Memory to work in.
    pub work: Workspace<'a>,
}

/// The token chosen, and the status bits of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its index.
    pub token: usize,
    /// Bits of [`status`].
    pub status: u8,
}

/// The bits of [`status`].
#[inline(always)]
pub(super) fn status_of(summary: Summary, empty: bool) -> u8 {
    let bit = |bit, holds| if holds { bit } else { 0 };
    bit(status::NAN, summary.nan) | bit(status::INFINITE, summary.infinite) | bit(status::EMPTY, empty)
}

/// Whether there is nothing to choose from.
#[inline(always)]
fn is_empty<T: Element>(row: &[T], summary: Summary, is_logits: bool) -> bool {
    let zero = |x: &T| {
        let x: f32 = x.as_();
        x >= 0.0 || x.is_nan() || x == f32::NEG_INFINITY
    };
    summary.max == f32::NEG_INFINITY || (!is_logits && summary.max == 0.0 && row.iter().all(zero))
}

impl<'a, T: Element> Sample<'a, T> {
    /// The choice where it is the first maximum whatever the stages leave.
    #[inline(always)]
    pub(super) fn choose_best<S: Simd>(&self, s: S) -> Option<Choice> {
        let keeps_one = self.stages.p <= 0.0 || self.stages.min_p >= 1.0;
        let is_best = (keeps_one || matches!(self.noise, Noise::None)) && self.filtered.is_none() && self.middle.is_none();
        is_best.then(
            #[inline(always)]
            || {
                let (first, summary) = first_max(s, self.row, self.nan);
                let status = self.status(summary);
                Choice { token: if status & status::EMPTY == 0 { first } else { 0 }, status }
            },
        )
    }

    #[inline(always)]
    fn status(&self, summary: Summary) -> u8 {
        status_of(summary, is_empty(self.row, summary, self.stages.is_logits))
    }

    /// The first pass.
    #[inline(always)]
    fn scan<S: Simd, const BLOCK: usize>(&mut self, s: S) -> (Found, Summary) {
        let (row, nan, Stages { k, p, is_logits, .. }) = (self.row, self.nan, self.stages);
        if k > 0 {
            let (first, summary, guess) = self.scan_ranks::<S, BLOCK>(s);
            return (if self.may_be_led() { Found::Leaders(first, guess) } else { Found::Top(first) }, summary);
        }
        if let Some(summary) = self.scan_halves(s) {
            return (Found::Halves, summary);
        }
        let Workspace { list, maxima } = &mut self.work;
        // Adding up is hidden behind reading.
        let is_estimated = is_logits && !matches!(self.noise, Noise::Share(_));
        if 0.0 < p && p < 1.0 && is_estimated && size_of_val(row) > FAR {
            // The largest of a sample, or what comes next above it.
            let taken = sample(s, row, SAMPLE, list);
            let center = ascending_to_value(range(s, &list.values[..taken]).1);
            if let Some((summary, whole)) = block_maxima_and_whole::<S, T, BLOCK>(s, row, maxima, center, nan) {
                return (Found::Whole(whole), summary);
            }
        }
        (Found::Blocks, block_maxima::<S, T, BLOCK>(s, row, maxima, nan))
    }

    /// The choice by way of the row's block maxima.
    #[inline(always)]
    pub(super) fn choose_by_blocks<S: Simd, const BLOCK: usize>(&mut self, s: S) -> Choice {
        s.apart(
            #[inline(always)]
            move || {
                debug_assert_eq!(self.work.list.values.len(), self.work.list.indices.len());
                let (mut found, summary) = self.scan::<S, BLOCK>(s);
                let status = self.status(summary);
                if status & status::EMPTY != 0 {
                    self.write_nothing();
                    return Choice { token: 0, status };
                }
                let token = match self.certain::<S, BLOCK>(s, summary.max, &mut found) {
                    Ok(token) => token,
                    Err(front) => self.choose_kept::<S, BLOCK>(s, summary.max, front, found),
                };
                Choice { token, status }
            },
        )
    }

    /// The choice by way of all that is kept. Apart: mostly one is certain, and what is called then lies in few pages.
    #[inline(always)]
    fn choose_kept<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, front: Option<Front>, found: Found) -> usize {
        s.apart(
            #[inline(always)]
            move || {
                let token = match self.keep::<S, BLOCK>(s, max, front, found) {
                    Kept::List(n) => self.finish_list(s, n, false),
                    Kept::Filled(n) => self.finish_list(s, n, true),
                    Kept::Row(above, weights) => self.finish_row(s, above, &weights),
                    Kept::Sorted(above, weights) => self.finish_sorted::<S, BLOCK>(s, max, above, weights),
                };
                // The list of top-k begins with it.
                token.unwrap_or_else(|| match self.stages.k {
                    0 => first_of::<S, T, BLOCK>(s, self.row, self.work.maxima, max),
                    _ => self.work.list.indices[0] as usize,
                })
            },
        )
    }

    /// The choice where it does not hang on the sum of the row, which is a pass of its own, or on the ranks of top-k that
    /// were not listed, and no list is asked for. Else what was found out about the nucleus.
    #[inline(always)]
    fn certain<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, found: &mut Found) -> Result<usize, Option<Front>> {
        let Stages { k, p, min_p, is_logits } = self.stages;
        if let Found::Leaders(first, guess) = found {
            return self.certain_leader::<S, BLOCK>(s, max, (first, *guess)).ok_or(None);
        }
        if k > 0 || p <= 0.0 || min_p >= 1.0 || matches!(self.noise, Noise::Share(_)) {
            return Err(None);
        }
        if !is_logits {
            let untouched = !(p < 1.0 || min_p > 0.0) && self.middle.is_none();
            return if untouched { self.certain_draw::<S, BLOCK>(s, (Weights::Given, max)).ok_or(None) } else { Err(None) };
        }
        match (p < 1.0, min_p > 0.0) {
            (true, _) => self.certain_nucleus::<S, BLOCK>(s, max, found),
            _ if self.middle.is_some() => Err(None),
            (_, true) => self.certain_min_p::<S, BLOCK>(s, max, matches!(found, Found::Halves)).ok_or(None),
            (_, false) => self.certain_whole::<S, BLOCK>(s, max).ok_or(None),
        }
    }

    #[inline(always)]
    fn certain_nucleus<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, found: &Found) -> Result<usize, Option<Front>> {
        s.apart(
            #[inline(always)]
            move || {
                let whole = if let Found::Whole(whole) = found { Some(*whole) } else { None };
                let (asked, list) = self.nucleus(max);
                let front = asked.first_front::<S, BLOCK>(s, whole, list);
                if self.middle.is_some() {
                    return Err(front);
                }
                if self.stages.min_p > 0.0 {
                    return self.certain_both::<S, BLOCK>(s, max, whole, front);
                }
                if let Some(token) = self.certain_front(s, front) {
                    return Ok(token);
                }
                // A choice among many is rarely moved by the few entries that an estimate leaves open; a list is.
                if self.filtered.is_some() {
                    return Err(front);
                }
                let noise = self.noise;
                let (asked, list) = self.nucleus(max);
                match asked.second_front::<S, BLOCK>(s, whole, &noise, list) {
                    Some(Second::Front(front)) => self.certain_front(s, Some(front)).ok_or(Some(front)),
                    Some(Second::Wins(token)) => Ok(token),
                    None => Err(None),
                }
            },
        )
    }

    /// The same with min-p behind it; `front` is that of the nucleus.
    #[inline(always)]
    fn certain_both<S: Simd, const BLOCK: usize>(
        &mut self,
        s: S,
        max: f32,
        whole: Option<Whole>,
        front: Option<Front>,
    ) -> Result<usize, Option<Front>> {
        let Some(reach) = surroundings(s, self.stages.min_p, max) else { return Err(front) };
        if let Some(known) = front {
            let left = known.reaching(s, &self.work.list.values[..known.most], reach);
            return self.certain_front(s, Some(left)).ok_or(front);
        }
        let (asked, list) = self.nucleus(max);
        let left = asked.front_of_min_p::<S, BLOCK>(s, whole, reach, list);
        self.certain_front(s, left).ok_or(None)
    }

    /// What top-p asks, and the list to look in.
    #[inline(always)]
    fn nucleus(&mut self, max: f32) -> (Row<'_, T>, &mut List<'a>) {
        let Workspace { list, maxima } = &mut self.work;
        (Row { row: self.row, p: self.stages.p, max, maxima }, list)
    }

    /// The choice from a nucleus whose end is not certain, if it does not hang on that.
    #[inline(always)]
    fn certain_front<S: Simd>(&mut self, s: S, front: Option<Front>) -> Option<usize> {
        let Front { least, most } = front?;
        if self.filtered.is_some() && least < most {
            return None;
        }
        let List { values, indices } = &self.work.list;
        // The weights stand in the upper half of the list.
        let place = match self.noise {
            Noise::None => 0,
            noise => certain_race_apart(s, &values[values.len() / 2..][..most], &noise)?,
        };
        let token = indices[place] as usize;
        if self.filtered.is_some() {
            self.finish_list_outputs(s, most, false);
        }
        (place < least).then_some(token)
    }

    #[inline(always)]
    fn certain_whole<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32) -> Option<usize> {
        if let Noise::Drawn { .. } = self.noise {
            return self.certain_draw::<S, BLOCK>(s, (Weights::Shifted { max }, 1.0));
        }
        // Without noise it always is.
        if self.filtered.is_some() { None } else { certain_race_row(s, self.row, max, &self.noise) }
    }

    /// By drawn noise in a row that no stage touches, of which the largest weight is given.
    #[inline(always)]
    fn certain_draw<S: Simd, const BLOCK: usize>(&mut self, s: S, weights: (Weights, f32)) -> Option<usize> {
        let (Noise::Drawn { numbers, first }, None) = (self.noise, &self.filtered) else { return None };
        let Workspace { list, maxima } = &mut self.work;
        certain_draw::<S, T, BLOCK>(s, self.row, weights, (numbers, first), maxima, list)
    }
}

/// Where the first maximum of the row is.
#[inline(always)]
pub(super) fn first_of<S: Simd, T: Element, const B: usize>(s: S, row: &[T], maxima: &[f32], max: f32) -> usize {
    s.apart(
        #[inline(always)]
        move || {
            let block = position(s, &maxima[..row.len().div_ceil(B)], 0, max);
            position(s, row, block * B, max)
        },
    )
}
