//! Top-p of a row without top-k: from its large end, in steps that ask for more only where the step before cannot tell.
//!
//! 1. The 32 largest, or 64, and a bound on what all others have together: block maxima again.
//! 2. For a choice: everything within 8 of the maximum, then as far as a sample says, and an estimate of what is below. Either leaves a
//!    few entries open; where the choice is none of them, that is all. Of a nucleus too long for a list mostly one of the first ranks wins
//!    ([`super::first_ranks`]).
//! 3. The exact sum, which tells the cut of a list that was found; else of the same lists, and of all above a value that so little
//!    lies below that p must be reached. Of such a list no more is sorted than what can be kept.
//! 4. A row too flat for a list: see [`super::window`].

use super::estimate::{Estimate, LOW, Whole};
use super::first_ranks::FirstRanks;
use super::front::{Front, sum};
use super::lead::forgives_division;
use super::mass::{End, ONE, clamp, cut};
use super::race::Noise;
use super::row_sum;
use super::samples::SAMPLE;
use super::select::{List, first_sorted, gather_all, next_below, top_k};
use super::softmax::Weights;
use super::survivors::Above;
use super::vectors;
use super::window::{Cut, Known, Question, flat_cut};
use crate::element::Element;
use crate::simd::Simd;

/// How many are looked at first, and then.
const FIRST: [usize; 2] = [32, 64];

/// How far from the maximum, in nats, a nucleus is looked for next; after that as far as a sample says.
const NEAR: f32 = 8.0;
/// So often a list is made.
const LISTS: usize = 3;
/// So many of what min-p leaves are sorted, at most.
const SORTED: usize = 1024;

/// What top-p keeps of a row.
pub enum Nucleus {
    /// The first entries of the list, sorted.
    List(usize),
    /// More than a list takes.
    Above(Above),
}

/// The sum of the probabilities of a row, nearly.
#[inline(never)]
fn whole<S: Simd, T: Element>(s: S, row: &[T], weights: &Weights) -> f64 {
    match weights {
        Weights::Given => s.vectorize(
            #[inline(always)]
            || {
                row_sum(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| clamp(s, span.load(s, row, T::NEG_INFINITY)),
                )
            },
        ),
        _ => 1.0,
    }
}

/// A value below which all of `n` entries together have less than what p can spare of the `whole`; -inf if it can spare nothing.
pub fn safe_bound(n: usize, whole: f64, weights: &Weights, p: f32) -> f32 {
    // One part in 10^5 is more than all roundings of the sums.
    let spare = (whole * (1.0 - 1e-5) - f64::from(p) * (1.0 + 1e-5)) / n as f64;
    match *weights {
        _ if spare <= 0.0 => f32::NEG_INFINITY,
        Weights::Softmax { max, sum } => next_below(max + (libm::log(spare * f64::from(sum)) - 1e-3) as f32),
        _ => (spare * (1.0 - 1e-5)) as f32,
    }
}

/// More than what all elements that are at most `bound` and outside a list have together, as multiples of the largest; `block` is the
/// size of the blocks.
#[inline(always)]
fn rest<S: Simd>(s: S, maxima: &[f32], block: usize, bound: f32, max: f32) -> Option<f64> {
    let estimate = Estimate::new(max)?;
    let sum = s.apart(
        #[inline(always)]
        move || {
            let mut sum = s.splat(0.0);
            vectors(
                maxima.len(),
                #[inline(always)]
                |span| {
                    let top = s.min(span.load(s, maxima, f32::NEG_INFINITY), s.splat(bound));
                    sum = s.add(sum, estimate.of(s, top));
                },
            );
            s.reduce_add(sum)
        },
    );
    Some(f64::from(sum) * block as f64 / LOW)
}

/// What the second look at a nucleus tells.
pub enum Second {
    /// Where it ends, about.
    Front(Front),
    /// The index of the winner.
    Wins(usize),
}

/// Logits, top-p and block maxima of a row.
pub struct Row<'a, T> {
    /// The logits.
    pub row: &'a [T],
    /// 0 < p <= 1
    pub p: f32,
    /// The largest.
    pub max: f32,
    /// Of its blocks.
    pub maxima: &'a [f32],
}

impl<T: Element> Row<'_, T> {
    /// From the few largest, and block maxima or an estimate for what is outside: enough where few hold most.
    #[inline(always)]
    pub fn first_front<S: Simd, const BLOCK: usize>(&self, s: S, whole: Option<Whole>, list: &mut List<'_>) -> Option<Front> {
        let Row { row, p, max, maxima } = *self;
        for k in FIRST.map(|k| k.min(row.len())) {
            top_k::<S, T, BLOCK>(s, row, k, maxima, list);
            let (values, e) = list.weigh(s, k, &Weights::Shifted { max });
            let outside = match whole {
                _ if k == row.len() => [0.0; 2],
                Some(whole) => whole.rest(s, values),
                None => [0.0, rest(s, &maxima[..row.len().div_ceil(BLOCK)], BLOCK, values[k - 1], max)?],
            };
            let front = Front::new(s, e, outside, p);
            if front.is_some() || k == row.len() {
                return front;
            }
            // With as many again the list has at most this.
            let more = sum(s, e) + k as f64 * f64::from(e[k - 1]);
            if more < f64::from(p) * (more + 0.5 * outside[1]) {
                return None;
            }
        }
        None
    }

    /// From all that is near the maximum, and an estimate of what is not; or who wins by this noise, if that is one of those, all of
    /// which stay.
    #[inline(always)]
    pub fn second_front<S: Simd, const BLOCK: usize>(
        &self,
        s: S,
        whole: Option<Whole>,
        noise: &Noise<'_>,
        list: &mut List<'_>,
    ) -> Option<Second> {
        let Row { row, p, max, maxima } = *self;
        let whole = whole.or_else(|| Whole::of(s, row, max))?;
        let weights = Weights::Shifted { max };
        let mut bound = max - NEAR;
        for _ in 0..LISTS {
            let n = gather_all::<S, T, BLOCK>(s, row, maxima, bound, list)?;
            let (values, e) = list.weigh(s, n, &weights);
            let (outside, listed) = (whole.rest(s, values), sum(s, e));
            // What p takes, and a little more, of what is listed.
            let most = f64::from(p) * (listed + outside[1]) * 1.001;
            if most <= listed {
                let kept = list.keep_weight(s, n, (most / listed) as f32);
                list.sort(s, kept);
                let (_, e) = list.weigh(s, kept, &weights);
                let beyond = listed - sum(s, e);
                if let Some(front) = Front::new(s, e, outside.map(|rest| rest + beyond), p) {
                    return Some(Second::Front(front));
                }
            } else if forgives_division(noise) && most - listed > 0.5 * outside[1] {
                // A long list, for little that could win.
                return self.winner_in_front::<S, BLOCK>(s, whole, noise, list);
            }
            // For a guess: perhaps not quite all of it stays.
            let known = Known { from: bound, mass: (listed * ONE) as u128 };
            let about = (listed + outside[1]) as f32;
            let asked = Question { weights: &weights, end: End::Mass((most * ONE) as u128), before: 0, whole: about, known };
            let window = asked.guess(s, row, SAMPLE, list);
            if !window.suits(row.len(), list) {
                return self.winner_in_front::<S, BLOCK>(s, whole, noise, list);
            }
            bound = window.least.min(bound - 0.5);
        }
        None
    }

    /// The winner by this noise, if that is near the maximum and all that is there stays.
    #[inline(always)]
    fn winner_in_front<S: Simd, const BLOCK: usize>(
        &self,
        s: S,
        whole: Whole,
        noise: &Noise<'_>,
        list: &mut List<'_>,
    ) -> Option<Second> {
        if !forgives_division(noise) {
            return None;
        }
        s.apart(
            #[inline(always)]
            move || {
                let Row { row, p, max, maxima } = *self;
                let weights = Weights::Shifted { max };
                let n = gather_all::<S, T, BLOCK>(s, row, maxima, max - NEAR, list)?;
                let (values, e) = list.weigh(s, n, &weights);
                let ([low, high], listed) = (whole.rest(s, values), sum(s, e));
                // One part in 10^5 is more than all roundings.
                if listed >= f64::from(p) * (listed + low) * (1.0 - 1e-5) {
                    return None;
                }
                // A number takes longer to draw than to read: of no more ranks than may stay.
                let most = match noise {
                    Noise::Drawn { .. } => {
                        let softmax = Weights::Softmax { max, sum: (listed + low) as f32 };
                        Above::from(safe_bound(row.len(), 1.0, &softmax, p)).count(s, row)
                    }
                    _ => row.len(),
                };
                FirstRanks { row, weights: &weights, noise, whole: listed + high, most }.winner(s, n, list).map(Second::Wins)
            },
        )
    }

    /// Where min-p ends the nucleus, or it ends itself: of all that reach the first of two values, and perhaps not the second.
    #[inline(always)]
    pub fn front_of_min_p<S: Simd, const BLOCK: usize>(
        &self,
        s: S,
        whole: Option<Whole>,
        reach: (f32, f32),
        list: &mut List<'_>,
    ) -> Option<Front> {
        let Row { row, p, max, maxima } = *self;
        let n = gather_all::<S, T, BLOCK>(s, row, maxima, reach.0, list)?;
        let whole = whole.or_else(|| Whole::of(s, row, max))?;
        let (outside, weights) = (whole.rest(s, &list.values[..n]), Weights::Shifted { max });
        let listed = sum(s, list.weigh(s, n, &weights).1);
        let sorted = first_sorted(s, list, n, n.min(SORTED));
        let (values, e) = list.weigh(s, sorted, &weights);
        let beyond = listed - sum(s, e);
        let (front, ends) = Front::in_list(s, e, outside.map(|rest| rest + beyond), p);
        if !(ends || sorted == n) {
            return None;
        }
        Some(front.reaching(s, &values[..front.most], reach))
    }
}

/// Where these ends are among the largest, which are then in the list, and what is known if they are not; nothing below `safe` is kept.
/// The weights sum up to about `whole`.
#[inline(always)]
pub fn listed<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    asked: &Row<'_, T>,
    (weights, whole): (&Weights, f64),
    safe: f32,
    ends: &[End],
    list: &mut List<'_>,
) -> (Cut, Known) {
    let Row { row, max, maxima, .. } = *asked;
    let mut known = Known::nothing(max);
    let mut bound = safe.max(weights.below_largest(max, NEAR));
    for _ in 0..LISTS {
        let Some(found) = gather_all::<S, T, BLOCK>(s, row, maxima, bound, list) else { break };
        match list.nucleus(s, found, found == row.len(), weights, ends) {
            Cut::Beyond(Some(mass)) => known = Known { from: bound, mass },
            Cut::Beyond(None) => {}
            cut => return (cut, known),
        }
        if bound <= safe {
            break;
        }
        let asked = Question { weights, end: ends[0], before: 0, whole: whole as f32, known };
        let window = asked.guess(s, row, SAMPLE, list);
        if !window.suits(row.len(), list) {
            break;
        }
        bound = safe.max(window.least.min(next_below(bound)));
    }
    (Cut::Beyond(None), known)
}

/// What top-p keeps of a row, 0 < p <= 1, with these weights. The maxima are its block maxima. `front` is what is known of it, if
/// something is; then the list is sorted.
#[inline(always)]
pub fn top_p<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    asked: Row<'_, T>,
    weights: Weights,
    front: Option<Front>,
    list: &mut List<'_>,
) -> Nucleus {
    let Row { row, p, maxima, .. } = asked;
    let is_logits = !matches!(weights, Weights::Given);
    if let Some(Front { most, .. }) = front {
        let (_, e) = list.weigh(s, most, &weights);
        return Nucleus::List(cut(e, p));
    }
    if !is_logits {
        let k = row.len().min(FIRST[1]);
        top_k::<S, T, BLOCK>(s, row, k, maxima, list);
        weights.apply(s, &mut list.values[..k]);
        let n = cut(&list.values[..k], p);
        if n < k || k == row.len() {
            return Nucleus::List(n);
        }
    }
    let whole = whole(s, row, &weights);
    // One part in 10^5 is more than all roundings of the sum, which is 1 for logits, and half a unit for each element more than those of
    // masses.
    if whole * (1.0 + 1e-5) + row.len() as f64 / ONE < f64::from(p) {
        return Nucleus::Above(Above::ALL);
    }
    let safe = safe_bound(row.len(), whole, &weights, p);
    let end = End::TopP(p);
    let (cut, known) = listed::<S, T, BLOCK>(s, &asked, (&weights, whole), safe, &[end], list);
    if let Cut::At { kept, .. } = cut {
        return Nucleus::List(kept);
    }
    let asked = Question { weights: &weights, end, before: 0, whole: whole as f32, known };
    Nucleus::Above(flat_cut(s, row, asked, list).unwrap_or(Above::ALL))
}
