//! The choice among probabilities: the first maximum of `pr / noise`, an exponential race; or by one number.

use super::softmax::Weights;
use super::{Span, vectors};
use crate::element::Element;
use crate::philox::Exponential;
use crate::simd::Simd;

/// What is added to a noise, at least, for weights that win to be no smaller than a division forgives; no drawn number is changed by
/// so little.
pub(super) const SAFE_EPS: f32 = 1e-20;

/// What the probabilities are divided by.
#[derive(Clone, Copy, Debug)]
pub enum Noise<'a> {
    /// Nothing: the choice is the largest logit.
    None,
    /// One number for the row: the choice is the first entry up to which the masses exceed `number * 2^-64` of all. For logits.
    Share(u64),
    /// `|q| + eps`, by place in the list.
    Given {
        /// At least as long as the row.
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
            Noise::None | Noise::Share(_) => *self,
            Noise::Given { q, eps } => Noise::Given { q: &q[place..], eps },
            Noise::Drawn { numbers, first } => Noise::Drawn { numbers, first: first + place as u64 },
        }
    }

    /// The noise of as many places as `to` has; drawn numbers are written there, which takes less time than vector after vector. None of
    /// them is so small that what is added changes it.
    #[inline(always)]
    pub(super) fn drawn<S: Simd>(self, s: S, to: &'a mut [f32]) -> Self {
        match self {
            Noise::Drawn { numbers, first } => {
                numbers.write(s, first, to);
                Noise::Given { q: to, eps: SAFE_EPS }
            }
            noise => noise,
        }
    }

    /// Whether one of the first `n` may be at most a limit. Of those that are given, all are looked at.
    #[inline(always)]
    pub(super) fn comes_near<S: Simd>(&self, s: S, n: usize, limit: f32) -> bool {
        let Noise::Given { q, eps } = *self else { return true };
        let mut least = [s.splat(f32::INFINITY); 4];
        let (fours, rest) = q[..n].as_chunks::<64>();
        for four in fours {
            for (least, sixteen) in least.iter_mut().zip(four.as_chunks::<16>().0) {
                *least = s.min(magnitude(s, s.load(sixteen)), *least);
            }
        }
        vectors(
            rest.len(),
            #[inline(always)]
            |span| least[0] = s.min(magnitude(s, span.load(s, rest, f32::INFINITY)), least[0]),
        );
        let least = s.min(s.min(least[0], least[1]), s.min(least[2], least[3]));
        s.mask_bits(s.le(s.add(least, s.splat(eps)), s.splat(limit))) != 0
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
            Noise::None | Noise::Share(_) => s.splat(1.0),
            Noise::Given { q, eps } => s.add(magnitude(s, span.load(s, q, 1.0)), s.splat(eps)),
            Noise::Drawn { numbers, first } => numbers.at(s, first + span.at as u64),
        }
    }
}

#[inline(always)]
fn magnitude<S: Simd>(s: S, v: S::F32) -> S::F32 {
    s.from_bits(s.and(s.bits(v), s.splat_i32(i32::MAX)))
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
