//! What [`super::Reach`] adds up.

use crate::rows::mass::{ONE, Total, mass};
use crate::rows::softmax::Weights;
use crate::rows::vectors;
use crate::simd::Simd;

/// What is added up.
pub trait Sums: Copy {
    /// What 1 in [`Sums::about`] is in [`Sums::each`].
    const UNIT: f64;

    /// Of each of some values.
    fn each<S: Simd>(self, s: S, v: S::F32) -> [u64; 16];

    /// Of all of a list.
    fn all<S: Simd>(self, s: S, values: &[f32]) -> u64;

    /// Puts in the place of values what they count for, nearly.
    fn about<S: Simd>(self, s: S, values: &mut [f32]);
}

/// One for each.
#[derive(Clone, Copy)]
pub struct Ones;

impl Sums for Ones {
    const UNIT: f64 = 1.0;

    #[inline(always)]
    fn each<S: Simd>(self, _: S, _: S::F32) -> [u64; 16] {
        [1; 16]
    }

    #[inline(always)]
    fn all<S: Simd>(self, _: S, values: &[f32]) -> u64 {
        values.len() as u64
    }

    #[inline(always)]
    fn about<S: Simd>(self, _: S, values: &mut [f32]) {
        values.fill(1.0);
    }
}

/// The masses of probabilities, which are a softmax.
#[derive(Clone, Copy)]
pub struct Masses(pub Weights);

impl Sums for Masses {
    const UNIT: f64 = ONE;

    #[inline(always)]
    fn each<S: Simd>(self, s: S, v: S::F32) -> [u64; 16] {
        let mut lanes = [0.0; 16];
        s.store(self.0.bounded(s, v), &mut lanes);
        lanes.map(mass)
    }

    #[inline(always)]
    fn all<S: Simd>(self, s: S, values: &[f32]) -> u64 {
        let mut total = Total::new(s);
        vectors(
            values.len(),
            #[inline(always)]
            |span| total.add(s, self.0.bounded(s, span.load(s, values, f32::NEG_INFINITY))),
        );
        // About 1 for a whole row.
        total.get(s) as u64
    }

    #[inline(always)]
    fn about<S: Simd>(self, s: S, values: &mut [f32]) {
        self.0.apply(s, values);
    }
}
