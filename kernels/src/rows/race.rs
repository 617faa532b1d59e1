//! The choice among probabilities: the first maximum of `pr / noise`, an exponential race.

use super::select::List;
use super::softmax::Weights;
use super::survivors::{Above, pieces};
use super::threshold::count;
use super::{Span, lanes, vectors};
use crate::element::Element;
use crate::philox::Exponential;
use crate::simd::Simd;

/// What the probabilities are divided by.
#[derive(Clone, Copy, Debug)]
pub enum Noise<'a> {
    /// Nothing: the choice is the largest logit.
    None,
    /// `|q| + eps`, by place in the list.
    Given {
        /// At least as long as the list.
        q: &'a [f32],
        /// Added to each.
        eps: f32,
    },
    /// Exponential numbers.
    Drawn {
        /// Of which tensor.
        numbers: Exponential,
        /// The element that belongs to the first place.
        first: u64,
    },
}

impl<'a> Noise<'a> {
    /// The noise of a list that begins at `place`.
    #[inline(always)]
    pub fn from(&self, place: usize) -> Self {
        match *self {
            Noise::None => Noise::None,
            Noise::Given { q, eps } => Noise::Given { q: &q[place..], eps },
            Noise::Drawn { numbers, first } => Noise::Drawn { numbers, first: first + place as u64 },
        }
    }

    /// The noise of as many places as `to` has; drawn numbers are written there, which takes less time than vector after vector.
    #[inline(always)]
    fn drawn<S: Simd>(self, s: S, to: &'a mut [f32]) -> Self {
        match self {
            Noise::Drawn { numbers, first } => {
                numbers.write(s, first, to);
                Noise::Given { q: to, eps: 0.0 }
            }
            noise => noise,
        }
    }

    /// What a score has to exceed. Weights below 0 count as 0 where noise is drawn, and the first of those with 0 wins if none has more.
    #[inline(always)]
    pub fn floor(&self) -> f32 {
        if let Noise::Drawn { .. } = self { 0.0 } else { f32::NEG_INFINITY }
    }

    /// The divisors of the places under a span.
    #[inline(always)]
    pub fn at<S: Simd>(&self, s: S, span: Span) -> S::F32 {
        match *self {
            Noise::None => s.splat(1.0),
            Noise::Given { q, eps } => {
                let magnitude = s.and(s.bits(span.load(s, q, 1.0)), s.splat_i32(i32::MAX));
                s.add(s.from_bits(magnitude), s.splat(eps))
            }
            Noise::Drawn { numbers, first } => numbers.at(s, first + span.at as u64),
        }
    }
}

/// Place of the first maximum of `value` over n places, and the maximum; 0 where nothing is above the floor.
#[inline(always)]
pub fn first_place<S: Simd>(s: S, n: usize, floor: f32, mut value: impl FnMut(Span) -> S::F32) -> (usize, f32) {
    let mut best = s.splat(floor);
    let mut places = s.splat_i32(-1);
    vectors(
        n,
        #[inline(always)]
        |span| {
            let mut v = value(span);
            if span.len < 16 {
                let mut outside = [f32::NAN; 16];
                outside[..span.len].fill(0.0);
                v = s.add(v, s.load(&outside));
            }
            let better = s.lt(best, v);
            best = s.select(better, v, best);
            places = s.select_i32(better, s.splat_i32((span.at / 16) as i32), places);
        },
    );
    let top = s.reduce_max(best);
    let mut vectors = [0; 16];
    s.store_i32(places, &mut vectors);
    // A lane holds the first vector with its best; of lanes that reached the top the first place counts.
    let mut hits = s.mask_bits(s.eq(s.splat(top), best));
    let mut place = usize::MAX;
    while hits != 0 {
        let lane = hits.trailing_zeros() as usize;
        hits &= hits - 1;
        if vectors[lane] >= 0 {
            place = place.min(16 * vectors[lane] as usize + lane);
        }
    }
    if place == usize::MAX { (0, floor) } else { (place, top) }
}

/// More than all roundings of a score.
pub(super) const NEAR: f32 = 1.0 - 4.0 * f32::EPSILON;

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
        Noise::Given { eps, .. } => eps >= 1e-20,
        Noise::Drawn { .. } => true,
        Noise::None => false,
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
                let (e, noise) = (weight(span), noise.at(s, Span { at: start + span.at, ..span }));
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
        let near = s.both(near, s.gt_i32(s.splat_i32(len as i32), lanes(s)));
        if s.mask_bits(near) == 0 {
            return;
        }
        // Most of them lose to another one of them.
        let scores = s.select(near, s.div(e, noise), s.splat(-1.0));
        let least = s.reduce_max(scores) * NEAR;
        let mut hits = s.mask_bits(s.both(near, s.le(s.splat(least), scores)));
        let mut met = [0.0; 16];
        s.store(scores, &mut met);
        while hits != 0 {
            let lane = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            self.meets(place(lane), met[lane]);
        }
    }

    /// [`Lead::race`] of a list of weights: of every 64 the best two, without a branch that hangs on which they are.
    #[inline(always)]
    fn race_list<S: Simd>(&mut self, s: S, weights: &[f32], start: usize, noise: &Noise<'_>) {
        s.apart(
            #[inline(always)]
            move || {
                for (part, weights) in weights.chunks(PART).enumerate() {
                    let start = start + PART * part;
                    let mut drawn = [1.0; PART];
                    let noise = noise.from(start).drawn(s, &mut drawn[..weights.len()]);
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
        (self.best > 1e-9 && self.best < f32::INFINITY && self.second < self.best * NEAR).then_some(self.place)
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
    if !forgives_division(noise) {
        return None;
    }
    let mut lead = Lead::NOBODY;
    lead.race_list(s, weights, 0, noise);
    lead.certain()
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

/// The winner's place in a list of probabilities, and its score.
#[inline(always)]
pub fn race<S: Simd>(s: S, probabilities: &[f32], noise: &Noise<'_>) -> (usize, f32) {
    s.apart(
        #[inline(always)]
        move || {
            first_place(
                s,
                probabilities.len(),
                noise.floor(),
                #[inline(always)]
                |span| s.div(span.load(s, probabilities, 0.0), noise.at(s, span)),
            )
        },
    )
}

/// The winner's place in a row that no stage touched.
#[inline(always)]
pub fn race_row<S: Simd, T: Element>(s: S, row: &[T], weights: &Weights, noise: &Noise<'_>) -> (usize, f32) {
    s.apart(
        #[inline(always)]
        move || {
            first_place(
                s,
                row.len(),
                noise.floor(),
                #[inline(always)]
                |span| s.div(weights.of_span(s, row, span), noise.at(s, span)),
            )
        },
    )
}
