//! The choice among probabilities: the first maximum of `pr / noise`, an exponential race.

use super::select::List;
use super::softmax::Weights;
use super::survivors::{Above, pieces};
use super::{Span, vectors};
use crate::element::Element;
use crate::philox::{Exponential, SMALLEST};
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

impl Noise<'_> {
    /// The noise of a list that begins at `place`.
    #[inline(always)]
    pub fn from(&self, place: usize) -> Self {
        match *self {
            Noise::None => Noise::None,
            Noise::Given { q, eps } => Noise::Given { q: &q[place..], eps },
            Noise::Drawn { numbers, first } => Noise::Drawn { numbers, first: first + place as u64 },
        }
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

/// Place of the first maximum of `value` over n places, and the maximum; 0 where nothing but NaN and -inf is.
#[inline(always)]
pub fn first_place<S: Simd>(s: S, n: usize, mut value: impl FnMut(Span) -> S::F32) -> (usize, f32) {
    let mut best = s.splat(f32::NEG_INFINITY);
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
    if place == usize::MAX { (0, f32::NEG_INFINITY) } else { (place, top) }
}

/// More than all roundings of a score.
const NEAR: f32 = 1.0 - 4.0 * f32::EPSILON;

/// Who leads where weights are only known up to a factor: the scores of the best two.
struct Lead {
    place: usize,
    best: f32,
    second: f32,
}

/// The winner's place among weights that are probabilities but for a common divisor of 1 to 2^20, if no such divisor can change it: if no
/// other score comes near. A multiplication tells who could come near, so there are few divisions.
#[inline(always)]
pub fn certain_place<S: Simd>(s: S, n: usize, noise: &Noise<'_>, mut weight: impl FnMut(Span) -> S::F32) -> Option<usize> {
    // Where noise could be tiny, so could the weights that win, and then a division may leave them few bits.
    match *noise {
        Noise::Given { eps, .. } if eps >= 1e-20 => {}
        Noise::Drawn { .. } => {}
        _ => return None,
    }
    let mut lead = Lead { place: 0, best: -1.0, second: -1.0 };
    vectors(
        n,
        #[inline(always)]
        |span| {
            let (e, noise) = (weight(span), noise.at(s, span));
            if let Some((mut hits, scores)) = lead.hits(s, e, noise, span.len) {
                while hits != 0 {
                    let lane = hits.trailing_zeros() as usize;
                    hits &= hits - 1;
                    lead.meets(span.at + lane, scores[lane]);
                }
            }
        },
    );
    lead.certain()
}

impl Lead {
    /// The lanes that come near the lead, and all scores.
    #[inline(always)]
    fn hits<S: Simd>(&self, s: S, e: S::F32, noise: S::F32, len: usize) -> Option<(u16, [f32; 16])> {
        let hits = s.mask_bits(s.le(s.mul(noise, s.splat(self.best * NEAR)), e)) & ((1u32 << len) - 1) as u16;
        if hits == 0 {
            return None;
        }
        let mut scores = [0.0; 16];
        s.store(s.div(e, noise), &mut scores);
        Some((hits, scores))
    }

    /// Lets the entries of a list race with the numbers of their indices, which count from `start` and are of one turn.
    #[inline(never)]
    fn draw<S: Simd>(&mut self, s: S, weights: &[f32], indices: &[i32], start: usize, numbers: &Exponential, first: u64) {
        s.vectorize(
            #[inline(always)]
            || {
                let n = weights.len();
                for at in (0..n).step_by(32) {
                    let spans = [Span { at, len: 16.min(n - at) }, Span { at: n.min(at + 16), len: 16.min(n - n.min(at + 16)) }];
                    let uniform = numbers.uniform(
                        s,
                        first + start as u64,
                        spans.map(
                            #[inline(always)]
                            |span| span.load_i32(s, indices),
                        ),
                    );
                    for (span, u) in spans.into_iter().zip(uniform) {
                        let e = span.load(s, weights, 0.0);
                        // -ln u is at least 1 - u: that spares most of the logarithms.
                        let least = s.mul(s.sub(s.splat(1.0), u), s.splat(self.best * 0.999));
                        if s.mask_bits(s.le(least, e)) == 0 {
                            continue;
                        }
                        if let Some((mut hits, scores)) = self.hits(s, e, Exponential::of_uniform(s, u), span.len) {
                            while hits != 0 {
                                let lane = hits.trailing_zeros() as usize;
                                hits &= hits - 1;
                                self.meets(start + indices[span.at + lane] as usize, scores[lane]);
                            }
                        }
                    }
                }
            },
        )
    }

    #[inline(always)]
    fn certain(self) -> Option<usize> {
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

/// [`certain_place`] of a list of weights.
#[inline(never)]
pub fn certain_race<S: Simd>(s: S, weights: &[f32], noise: &Noise<'_>) -> Option<usize> {
    s.vectorize(
        #[inline(always)]
        || {
            certain_place(
                s,
                weights.len(),
                noise,
                #[inline(always)]
                |span| span.load(s, weights, 0.0),
            )
        },
    )
}

/// [`certain_place`] in a row that no stage touched.
#[inline(never)]
pub fn certain_race_row<S: Simd, T: Element>(s: S, row: &[T], max: f32, noise: &Noise<'_>) -> Option<usize> {
    let weights = Weights::Shifted { max };
    s.vectorize(
        #[inline(always)]
        || {
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

/// [`certain_race_row`] with drawn noise: elements that lose even with the smallest number are left out. The sorted list holds the `k`
/// largest, of which one gives the bar.
#[inline(always)]
pub fn certain_draw_row<S: Simd, T: Element>(
    s: S,
    row: &[T],
    max: f32,
    (numbers, first): (Exponential, u64),
    list: &mut List<'_>,
    k: usize,
) -> Option<usize> {
    let weights = Weights::Shifted { max };
    weights.apply(s, &mut list.values[..k]);
    let mut bar = 0.0;
    for (weight, &index) in list.values[..k].iter().zip(&list.indices[..k]) {
        let score = weight / numbers.least(s, first + index as u64, 1);
        bar = if score > bar { score } else { bar };
    }
    // Slack for the roundings of the bound, of exp and of its argument.
    let least = libm::log(f64::from(bar) * f64::from(SMALLEST)) - 1e-3;
    let bound = (f64::from(max) + least - 1e-6 * libm::fabs(f64::from(max))) as f32;
    let mut lead = Lead { place: 0, best: bar * NEAR * NEAR, second: -1.0 };
    let mut at = 0;
    while at < row.len() {
        let left = numbers.left_in_turn(first + at as u64);
        let end = if left < (row.len() - at) as u64 { at + left as usize } else { row.len() };
        pieces(
            s,
            &row[at..end],
            Above::from(bound),
            list,
            #[inline(always)]
            |list, n| {
                weights.apply(s, &mut list.values[..n]);
                lead.draw(s, &list.values[..n], &list.indices[..n], at, &numbers, first);
            },
        );
        at = end;
    }
    lead.certain()
}

/// The winner's place in a list of probabilities, and its score.
#[inline(never)]
pub fn race<S: Simd>(s: S, probabilities: &[f32], noise: &Noise<'_>) -> (usize, f32) {
    s.vectorize(
        #[inline(always)]
        || {
            first_place(
                s,
                probabilities.len(),
                #[inline(always)]
                |span| s.div(span.load(s, probabilities, 0.0), noise.at(s, span)),
            )
        },
    )
}

/// The winner's place in a row that no stage touched.
#[inline(never)]
pub fn race_row<S: Simd, T: Element>(s: S, row: &[T], weights: &Weights, noise: &Noise<'_>) -> (usize, f32) {
    s.vectorize(
        #[inline(always)]
        || {
            first_place(
                s,
                row.len(),
                #[inline(always)]
                |span| s.div(weights.of_span(s, row, span), noise.at(s, span)),
            )
        },
    )
}
