//! The choice of top-k by its first ranks: a list of these is short, and the noises of the other ranks mostly show that none of them
//! wins. Where top-p or min-p end it before that, or hardly beyond, the others are not even asked.

use super::first_max::Summary;
use super::front::Front;
use super::lane_best::Best;
use super::largest::First;
use super::lead::{certain_race, forgives_division};
use super::min_p::{TINY, surroundings};
use super::sample::{Sample, Stages, Workspace};
use super::select::List;
use super::softmax::Weights;
use super::sort_few::{FEW, weigh_few};
use super::threshold::count;
use crate::element::Element;
use crate::simd::Simd;

/// How many of k ranks are listed first, at least.
fn leaders(k: usize) -> usize {
    if k <= ALL { k } else { (k / 4).max(SOME) }
}

/// Which of the maxima the guess is about, where so many are listed; 0 for none.
fn guessed(listed: usize) -> usize {
    if listed <= GUESSED { listed } else { 0 }
}

/// Up to so many ranks are all listed, else at least so many, which are then few enough for the shorter sort.
const ALL: usize = 32;
const SOME: usize = 24;

/// Where logits are closer together the other ranks win too often.
const FLAT: f32 = 2.0;
/// So many leaders are listed down to a guess of the last of them; where there are more, or fewer than this come, down to a bound.
const GUESSED: usize = Best::<f32>::MOST;
const FEWEST: usize = 12;
/// Numbers that are drawn before it is known how many are needed: mostly no more where top-p or min-p cut.
const DRAWN: usize = 32;
/// More than all roundings of a weight.
const SLACK: f32 = 1e-5;

/// Whether ranks win too often that are not listed where leaders reach `least`.
#[inline(always)]
fn others_win(k: usize, max: f32, least: f32) -> bool {
    leaders(k) < k && max - least < FLAT
}

/// Lists the leaders down to a bound, sorted; `None` where others win too often.
#[inline(always)]
fn list_bounded<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    k: usize,
    max: f32,
    first: &mut First,
    maxima: &mut [f32],
    list: &mut List<'_>,
) -> Option<usize> {
    s.apart(
        #[inline(always)]
        move || {
            let least = first.bound::<S, T, BLOCK>(s, row, leaders(k), maxima, list);
            (!others_win(k, max, least)).then(
                #[inline(always)]
                || first.list::<S, T, BLOCK>(s, row, (leaders(k), least), maxima, list),
            )
        },
    )
}

/// Makes weights of listed values, sorted. Of a few, all that reach some value, the indices stay where they are, and their places
/// follow them, [`FEW`] further on: then true is returned, and there are as many weights, the last for any that do not reach that
/// value.
#[inline(always)]
fn weigh<S: Simd>(s: S, max: f32, n: usize, reached: Option<f32>, list: &mut List<'_>) -> bool {
    if let Some(least) = reached {
        if n <= FEW && weigh_few(s, list, n, least, max) {
            return true;
        }
        list.sort(s, n);
    }
    Weights::Shifted { max }.apply(s, &mut list.values[..n]);
    false
}

impl<T: Element> Sample<'_, T> {
    /// Whether the choice of top-k may be found so.
    #[inline(always)]
    pub(super) fn may_be_led(&self) -> bool {
        let Stages { min_p, is_logits, .. } = self.stages;
        let tiny = min_p > 0.0 && min_p < TINY;
        let asked_for = self.filtered.is_some() || self.middle.is_some();
        is_logits && !tiny && !asked_for && forgives_division(&self.noise)
    }

    /// The first pass of top-k, and a guess of what its last leader reaches.
    #[inline(always)]
    pub(super) fn scan_ranks<S: Simd, const BLOCK: usize>(&mut self, s: S) -> (First, Summary, Option<f32>) {
        let (row, nan, Stages { k, min_p, .. }) = (self.row, self.nan, self.stages);
        let asked = match self.may_be_led() {
            // Min-p mostly says itself down to where to list.
            true => ([leaders(k), k.min(FEWEST)], if min_p > 0.0 { 0 } else { guessed(leaders(k)) }),
            false => ([k; 2], 0),
        };
        let Workspace { list, maxima } = &mut self.work;
        First::pass::<S, T, BLOCK>(s, row, asked, maxima, list, nan)
    }

    /// The choice, if a leader surely wins.
    #[inline(always)]
    pub(super) fn certain_leader<S: Simd, const BLOCK: usize>(
        &mut self,
        s: S,
        max: f32,
        (first, guess): (&mut First, Option<f32>),
    ) -> Option<usize> {
        s.apart(
            #[inline(always)]
            move || {
                let (Stages { k, p, min_p, .. }, Workspace { list, maxima }) = (self.stages, &mut self.work);
                // Drawn before they are needed, while the row is still being read.
                let mut room = [1.0; DRAWN];
                let is_cut = k <= DRAWN || p < 1.0 || min_p > 0.0;
                let drawn = if is_cut { self.noise.drawn(s, &mut room) } else { self.noise };
                let sure = if min_p > 0.0 { surroundings(s, min_p, max).map(|(sure, _)| sure) } else { None };
                // What does not reach a value that min-p surely cuts is out; of a guess it has to be seen how many reach it.
                let (near, fewest) = if sure.is_some() { (sure, 0) } else { (guess, k.min(FEWEST)) };
                if sure.is_none() && guess.is_some_and(|guess| others_win(k, max, guess)) {
                    return None;
                }
                let found = near.and_then(
                    #[inline(always)]
                    |near| first.near::<S, T, BLOCK>(s, self.row, near, maxima, list),
                );
                let (listed, reached) = match found {
                    Some(n) if n >= fewest => (n, near),
                    _ => (list_bounded::<S, T, BLOCK>(s, self.row, k, max, first, maxima, list)?, None),
                };
                let all = sure.is_some() && reached.is_some();
                let few = weigh(s, max, listed, reached, list);
                let (n, known) = (listed.min(k), if few { FEW } else { listed });
                let weights = &mut *list.values;
                if known < k {
                    let last = weights[known - 1];
                    weights[known..k].fill(last);
                }
                let (weights, all_weights) = (&weights[..n], &weights[..k]);
                let mut front = Front { least: n, most: k };
                if p < 1.0 {
                    let others = (k - n) as f64 * f64::from(weights[n - 1]);
                    let (part, ends) = Front::in_list(s, weights, [0.0, others], p);
                    // Where it may end further on, the winner may be there too.
                    front = if ends || all { part } else { Front { most: k, ..part } };
                }
                if min_p > 0.0 {
                    let (least, most) = (count(s, weights, min_p * (1.0 + SLACK)), count(s, weights, min_p * (1.0 - SLACK)));
                    // Those behind the listed ones may reach it too.
                    front = front.within(least, if most == n && !all { k } else { most });
                }
                let noise = if front.most <= DRAWN { drawn } else { self.noise };
                let place = certain_race(s, &all_weights[..front.most], &noise).filter(|&place| place < front.least.min(n))?;
                let place = if few { list.indices[FEW + place] as usize } else { place };
                Some(list.indices[place] as usize)
            },
        )
    }

    /// What tells of all k ranks, where no leader surely wins.
    #[inline(always)]
    pub(super) fn all_ranks<S: Simd, const BLOCK: usize>(&mut self, s: S, first: First) -> First {
        let (k, Workspace { list, maxima }) = (self.stages.k, &mut self.work);
        first.again::<S, T, BLOCK>(s, self.row, k, maxima, list)
    }
}
