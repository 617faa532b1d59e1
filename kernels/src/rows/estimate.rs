//! The sum of `exp(x - max)` between two bounds, in a quarter of the time of the sum: for choices that its last bits cannot change.
//!
//! The float whose upper 16 bits are the integer nearest to `128 (127 + (x - max) / ln 2)` is `2^y (1 + f) / 2^f` for y next to the
//! wanted exponent and f its fraction: at least the wanted power and at most 1.0861 times as much, 0.55 % for the roundings apart.

use super::vectors;
use crate::element::Element;
use crate::math::constants::{LOG2_E, ROUND};
use crate::simd::Simd;

/// How much an estimate can be below what it estimates.
pub const LOW: f64 = 1.0 / 1.006;
/// And above it.
const HIGH: f64 = 1.0862 * 1.006;
/// More than what the additions of an estimate can lose: 2^14 in each lane of the longest row, half an ulp each.
const LOST: f64 = 1.2e-3;

/// How far above what estimates are for an element can be.
const ABOVE: f32 = 64.0;

/// Estimates of `exp(x - center)`.
#[derive(Clone, Copy)]
pub struct Estimate {
    center: f32,
    shift: f32,
}

impl Estimate {
    /// For logits around `center`, if that is small enough.
    pub fn new(center: f32) -> Option<Estimate> {
        // 128 * 127 on top, and then one step for each 128th of an octave.
        let shift = f64::from(ROUND) + 16_256.0 - f64::from(center) * 128.0 * f64::from(LOG2_E);
        (center.abs() < 2e4).then_some(Estimate { center, shift: shift as f32 })
    }

    /// Of elements that do not exceed the center by more than 64.
    #[inline(always)]
    pub fn of<S: Simd>(self, s: S, v: S::F32) -> S::F32 {
        let steps = s.fma(v, s.splat(128.0 * LOG2_E), s.splat(self.shift));
        // What is smaller than the smallest normal number counts as that, and so does a NaN.
        s.from_bits(s.shl(s.bits(s.max(steps, s.splat(ROUND + 128.0))), 16))
    }

    /// Their sum over a part of a row.
    #[inline(always)]
    pub fn sum<S: Simd, T: Element>(self, s: S, row: &[T]) -> f32 {
        s.apart(
            #[inline(always)]
            move || {
                let mut sums = [s.splat(0.0); 4];
                let (fours, rest) = row.as_chunks::<64>();
                for four in fours {
                    for (sum, sixteen) in sums.iter_mut().zip(four.as_chunks::<16>().0) {
                        *sum = s.add(*sum, self.of(s, T::load(s, sixteen)));
                    }
                }
                vectors(
                    rest.len(),
                    #[inline(always)]
                    |span| sums[0] = s.add(sums[0], self.of(s, span.load(s, rest, T::NEG_INFINITY))),
                );
                total(s, sums)
            },
        )
    }
}

/// All lanes of four sums together.
#[inline(always)]
pub fn total<S: Simd>(s: S, sums: [S::F32; 4]) -> f32 {
    s.reduce_add(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])))
}

/// Estimates of all elements of a row, added up.
#[derive(Clone, Copy)]
pub struct Whole {
    estimate: Estimate,
    all: f32,
    /// What estimates are multiples of, as a multiple of what the largest element has.
    unit: f64,
}

impl Whole {
    /// Around the maximum, by a pass over the row.
    pub fn of<S: Simd, T: Element>(s: S, row: &[T], max: f32) -> Option<Whole> {
        let estimate = Estimate::new(max)?;
        Some(Whole { estimate, all: estimate.sum(s, row), unit: 1.0 })
    }

    /// Of estimates that were added up before the maximum was known, if it is not too far away.
    pub fn around(estimate: Estimate, all: f32, max: f32) -> Option<Whole> {
        let distance = f64::from(max) - f64::from(estimate.center);
        (distance <= f64::from(ABOVE)).then(|| Whole { estimate, all, unit: libm::exp(-distance) })
    }

    /// Bounds of the sum of all elements but these, as multiples of what the largest has.
    pub fn rest<S: Simd>(&self, s: S, these: &[f32]) -> [f64; 2] {
        let (all, these) = (f64::from(self.all), f64::from(self.estimate.sum(s, these)));
        let (rest, lost) = (all - these, all * LOST);
        [(rest - lost).max(0.0) / HIGH * self.unit, (rest + lost).max(0.0) / LOW * self.unit]
    }
}
