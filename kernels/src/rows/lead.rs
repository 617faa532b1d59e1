//! The race among weights that are not yet divided by their sum, decided only where no division could change who wins: where no other
//! score comes near the best.

use super::race::{Noise, SAFE_EPS};
use super::select::List;
use super::softmax::Weights;
use super::survivors::{Above, pieces};
use super::threshold::count;
use super::{Span, each_hit, first_lanes, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// Scores have to be larger to be certain: smaller ones may have lost bits.
pub(super) const LEAST: f32 = 1e-9;

/// More than all roundings of a score, also of one that is a softmax of a softmax.
pub(super) const NEAR: f32 = 1.0 - 32.0 * f32::EPSILON;

/// Who leads where weights are only known up to a factor: the scores of the best two.
pub(super) struct Lead {
    place: usize,
    pub(super) best: f32,
    second: f32,
}

/// Whether a race can be decided among weights that are not yet divided by their sum: where noise could be tiny, so could the
/// weights that win, and then the division may leave them few bits.
#[inline(always)]
pub(super) fn forgives_division(noise: &Noise<'_>) -> bool {
    match *noise {
        Noise::Given { eps, .. } => eps >= SAFE_EPS,
        Noise::Drawn { .. } => true,
        Noise::None | Noise::Share(_) => false,
    }
}

/// The winner's place among weights that are probabilities but for a common divisor of 1 to 2^20, if no such divisor can change it:
/// if no other score comes near.
#[inline(always)]
pub fn certain_place<S: Simd>(s: S, n: usize, noise: &Noise<'_>, weight: impl FnMut(Span) -> S::F32) -> Option<usize> {
    if !forgives_division(noise) {
        return None;
    }
    let mut lead = Lead::NOBODY;
    lead.race(s, n, 0, noise, weight);
    lead.certain()
}

/// Weights of a list that meet the lead at once.
const PART: usize = 64;

impl Lead {
    pub(super) const NOBODY: Lead = Lead { place: 0, best: -1.0, second: -1.0 };

    /// Lets `n` places from `start` on race. A multiplication tells who could come near the lead, so there are few divisions.
    #[inline(always)]
    fn race<S: Simd>(&mut self, s: S, n: usize, start: usize, noise: &Noise<'_>, mut weight: impl FnMut(Span) -> S::F32) {
        vectors(
            n,
            #[inline(always)]
            |span| {
                let (e, noise) = (weight(span), noise.at(s, span.moved(start)));
                self.meets_lanes(
                    s,
                    e,
                    noise,
                    span.len,
                    #[inline(always)]
                    |lane| start + span.at + lane,
                );
            },
        );
    }

    /// Lets the first `len` lanes that come near the lead meet it; `place` tells where a lane stands.
    #[inline(always)]
    pub(super) fn meets_lanes<S: Simd>(&mut self, s: S, e: S::F32, noise: S::F32, len: usize, place: impl Fn(usize) -> usize) {
        let near = s.le(s.mul(noise, s.splat(self.best * NEAR)), e);
        let near = s.both(near, first_lanes(s, len));
        if s.mask_bits(near) == 0 {
            return;
        }
        // Most of them lose to another one of them.
        let scores = s.select(near, s.div(e, noise), s.splat(-1.0));
        let least = s.reduce_max(scores) * NEAR;
        each_hit(
            s,
            s.mask_bits(s.both(near, s.le(s.splat(least), scores))),
            scores,
            #[inline(always)]
            |lane, score| self.meets(place(lane), score),
        );
    }

    /// [`Lead::race`] of a list of weights: of every 64 the best two, without a branch that hangs on which they are.
    #[inline(always)]
    fn race_list<S: Simd>(&mut self, s: S, weights: &[f32], start: usize, noise: &Noise<'_>) {
        s.beside(
            #[inline(always)]
            move || {
                for (part, weights) in weights.chunks(PART).enumerate() {
                    let start = start + PART * part;
                    let mut drawn = [1.0; PART];
                    // Always so, see `forgives_division`: what follows is compiled for one kind.
                    let Noise::Given { q, eps } = noise.from(start).drawn(s, &mut drawn[..weights.len()]) else { return };
                    let noise = Noise::Given { q, eps };
                    if self.best >= 0.0 && !self.comes_near(s, weights, &noise) {
                        continue;
                    }
                    match weights.len().div_ceil(16) {
                        0 | 1 => self.meets_part::<S, 1>(s, weights, &noise, start),
                        2 => self.meets_part::<S, 2>(s, weights, &noise, start),
                        _ => self.meets_part::<S, 4>(s, weights, &noise, start),
                    }
                }
            },
        )
    }

    /// Whether one of some weights comes near the lead, or all but that. A rounding does not change the sign of a difference.
    #[inline(always)]
    fn comes_near<S: Simd>(&self, s: S, weights: &[f32], noise: &Noise<'_>) -> bool {
        let (least, mut nearest) = (s.splat(-self.best * NEAR), s.splat(-1.0));
        vectors(
            weights.len(),
            #[inline(always)]
            |span| nearest = s.max(s.fma(noise.at(s, span), least, span.load(s, weights, -1.0)), nearest),
        );
        s.mask_bits(s.le(s.splat(0.0), nearest)) != 0
    }

    /// Lets N vectors of weights with their noises meet the lead; what is no number does not.
    #[inline(always)]
    fn meets_part<S: Simd, const N: usize>(&mut self, s: S, weights: &[f32], noise: &Noise<'_>, start: usize) {
        let nobody = s.splat(-1.0);
        let (mut scores, mut is_best) = ([nobody; N], [s.lt(nobody, nobody); 4]);
        for (i, score) in scores.iter_mut().enumerate() {
            if 16 * i < weights.len() {
                let span = Span { at: 16 * i, len: 16.min(weights.len() - 16 * i) };
                *score = s.max(s.div(span.load(s, weights, -1.0), noise.at(s, span)), nobody);
            }
        }
        let best = largest(s, scores);
        for (is_best, score) in is_best.iter_mut().zip(&mut scores) {
            *is_best = s.eq(*score, s.splat(best));
            *score = s.select(*is_best, nobody, *score);
        }
        let hits = s.mask_bits_64(is_best);
        let second = if hits & (hits - 1) == 0 { largest(s, scores) } else { best };
        self.meets(start + hits.trailing_zeros() as usize, best);
        self.second = self.second.max(second);
    }

    #[inline(always)]
    pub(super) fn certain(self) -> Option<usize> {
        (self.best > LEAST && self.best < f32::INFINITY && self.second < self.best * NEAR).then_some(self.place)
    }

    #[inline(always)]
    fn meets(&mut self, place: usize, score: f32) {
        if score > self.best {
            *self = Lead { place, best: score, second: self.best };
        } else if score > self.second {
            self.second = score;
        }
    }
}

/// The largest lane of some vectors.
#[inline(always)]
fn largest<S: Simd, const N: usize>(s: S, vectors: [S::F32; N]) -> f32 {
    let mut top = vectors[0];
    for i in 1..N {
        top = s.max(top, vectors[i]);
    }
    s.reduce_max(top)
}

/// [`certain_place`] of a list of weights.
#[inline(always)]
pub fn certain_race<S: Simd>(s: S, weights: &[f32], noise: &Noise<'_>) -> Option<usize> {
    certain_lead(s, weights, noise).map(|(place, _)| place)
}

/// [`certain_race`] in a function of its own.
#[inline(always)]
pub fn certain_race_apart<S: Simd>(s: S, weights: &[f32], noise: &Noise<'_>) -> Option<usize> {
    s.apart(
        #[inline(always)]
        move || certain_race(s, weights, noise),
    )
}

/// [`certain_race`], and the winner's score.
#[inline(always)]
pub fn certain_lead<S: Simd>(s: S, weights: &[f32], noise: &Noise<'_>) -> Option<(usize, f32)> {
    if !forgives_division(noise) {
        return None;
    }
    let mut lead = Lead::NOBODY;
    lead.race_list(s, weights, 0, noise);
    let score = lead.best;
    lead.certain().map(|place| (place, score))
}

/// [`certain_place`] in a row that no stage touched.
#[inline(always)]
pub fn certain_race_row<S: Simd, T: Element>(s: S, row: &[T], max: f32, noise: &Noise<'_>) -> Option<usize> {
    let weights = Weights::Shifted { max };
    s.apart(
        #[inline(always)]
        move || {
            certain_place(
                s,
                row.len(),
                noise,
                #[inline(always)]
                |span| weights.of_span(s, row, span),
            )
        },
    )
}

/// [`certain_place`] among the elements of a row that reach `least`, by place in index order; the index of the winner. `None` also where
/// an element reaches `least` but not `sure`.
#[inline(always)]
pub fn certain_race_above<S: Simd, T: Element>(
    s: S,
    row: &[T],
    max: f32,
    (least, sure): (f32, f32),
    noise: &Noise<'_>,
    list: &mut List<'_>,
) -> Option<usize> {
    let weights = Weights::Shifted { max };
    let (mut lead, mut token, mut places, mut certain) = (Lead::NOBODY, 0, 0, forgives_division(noise));
    pieces(
        s,
        row,
        Above::from(least),
        list,
        #[inline(always)]
        |list, n| {
            certain = certain && count(s, &list.values[..n], sure) == n;
            if certain {
                weights.apply(s, &mut list.values[..n]);
                lead.race_list(s, &list.values[..n], places, noise);
                if lead.place >= places {
                    token = list.indices[lead.place - places] as usize;
                }
                places += n;
            }
        },
    );
    lead.certain().filter(|_| certain).map(|_| token)
}
