//! Probabilities of logits: `exp(x - max) / sum`, where the sum is a row sum in `f64`, rounded once to `f32`.
//!
//! The sum runs over a list in list order where top-k made one, else over the row in its own order: so it is the same whichever way
//! the row is searched afterwards. A row that holds probabilities needs none of this.

use super::key::{clean, values_of};
use super::{Span, row_sum, vectors};
use crate::element::Element;
use crate::math::exp_not_positive;
use crate::simd::Simd;

/// How a cleaned value becomes a probability.
#[derive(Clone, Copy, Debug)]
pub enum Weights {
    /// `exp(x - max) / sum`
    Softmax {
        /// The largest logit.
        max: f32,
        /// The sum of `exp(x - max)`.
        sum: f32,
    },
    /// The value itself, 0 for -inf.
    Given,
}

impl Weights {
    /// Of a whole row with a finite maximum.
    #[inline(never)]
    pub fn of_row<S: Simd, T: Element>(s: S, row: &[T], max: f32, is_logits: bool) -> Weights {
        s.vectorize(
            #[inline(always)]
            || {
                if !is_logits {
                    return Weights::Given;
                }
                let shift = s.splat(max);
                let sum = row_sum(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| {
                        // Behind a tail: exp(-inf) = 0.
                        exp_not_positive(s, s.sub(clean(s, span.load(s, row, T::NEG_INFINITY)), shift))
                    },
                );
                Weights::Softmax { max, sum: sum as f32 }
            },
        )
    }

    /// Of a sorted list of keys.
    #[inline(never)]
    pub fn of_list<S: Simd>(s: S, keys: &[u64], is_logits: bool) -> Weights {
        s.vectorize(
            #[inline(always)]
            || {
                if !is_logits {
                    return Weights::Given;
                }
                let max = super::key::value_of(keys[0]);
                let shift = s.splat(max);
                let sum = row_sum(
                    s,
                    keys.len(),
                    #[inline(always)]
                    |Span { at, len }| exp_not_positive(s, s.sub(values_of(s, &keys[at..at + len], f32::NEG_INFINITY), shift)),
                );
                Weights::Softmax { max, sum: sum as f32 }
            },
        )
    }

    /// The probabilities of cleaned values.
    #[inline(always)]
    pub fn of<S: Simd>(&self, s: S, v: S::F32) -> S::F32 {
        match *self {
            Weights::Softmax { max, sum } => s.div(exp_not_positive(s, s.sub(v, s.splat(max))), s.splat(sum)),
            Weights::Given => {
                let nothing = s.eq(v, s.splat(f32::NEG_INFINITY));
                s.select(nothing, s.splat(0.0), s.add(v, s.splat(0.0)))
            }
        }
    }

    /// The probabilities of the elements of a row under a span.
    #[inline(always)]
    pub fn of_span<S: Simd, T: Element>(&self, s: S, row: &[T], span: Span) -> S::F32 {
        self.of(s, clean(s, span.load(s, row, T::NEG_INFINITY)))
    }

    /// Writes the probabilities of a list.
    #[inline(never)]
    pub fn write<S: Simd>(&self, s: S, keys: &[u64], probabilities: &mut [f32]) {
        s.vectorize(
            #[inline(always)]
            || {
                vectors(
                    keys.len(),
                    #[inline(always)]
                    |span| {
                        let v = values_of(s, &keys[span.at..span.at + span.len], f32::NEG_INFINITY);
                        span.store(s, self.of(s, v), probabilities);
                    },
                );
            },
        )
    }

    /// The probability of one value.
    #[inline(never)]
    pub fn of_one<S: Simd>(&self, s: S, value: f32) -> f32 {
        let mut lanes = [0.0; 16];
        s.vectorize(
            #[inline(always)]
            || s.store(self.of(s, s.splat(value)), &mut lanes),
        );
        lanes[0]
    }
}
