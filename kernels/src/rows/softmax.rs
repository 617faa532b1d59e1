//! Probabilities of logits: `exp(x - max) / sum`, where the sum is a row sum in `f64`, rounded once to `f32`.
//!
//! The sum runs over a list in list order where top-k made one, else over the row in its own order: so it is the same whichever way
//! the row is searched afterwards. A row that holds probabilities needs none of this.

use super::key::clean;
use super::mass::clamp;
use super::survivors::Above;
use super::{Span, of_one, row_sum, vectors};
use crate::element::Element;
use crate::math::exp_or_zero;
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
    /// `exp(x - max)`: what probabilities are in proportion to, for questions that the sum cannot change.
    Shifted {
        /// The largest logit.
        max: f32,
    },
    /// The softmax of probabilities: `exp(pr - top) / total` of `pr = exp(x - max) / sum`.
    Twice {
        /// The largest logit.
        max: f32,
        /// The sum of `exp(x - max)`.
        sum: f32,
        /// The largest probability.
        top: f32,
        /// The sum of `exp(pr - top)`.
        total: f32,
    },
    /// The value itself, 0 for -inf.
    Given,
}

/// `exp(v - max)`, where +inf counts as `max` and NaN as -inf.
#[inline(always)]
pub fn weight<S: Simd>(s: S, v: S::F32, max: f32) -> S::F32 {
    let max = s.splat(max);
    exp_or_zero(s, s.sub(s.min(max, v), max))
}

/// `exp(v - max) / sum`
#[inline(always)]
fn softmax<S: Simd>(s: S, v: S::F32, max: f32, sum: f32) -> S::F32 {
    s.div(weight(s, v, max), s.splat(sum))
}

/// `exp(v - max)` where nothing is above `max`.
#[inline(always)]
fn below<S: Simd>(s: S, v: S::F32, max: f32) -> S::F32 {
    exp_or_zero(s, s.sub(v, s.splat(max)))
}

/// Writes the probabilities of logits, of which `max` is the largest; each is asked for before something is written in its place.
#[inline(always)]
pub fn write_softmax<S: Simd>(s: S, max: f32, output: &mut [f32], mut logits: impl FnMut(Span, &[f32]) -> S::F32) {
    let sum = row_sum(
        s,
        output.len(),
        #[inline(always)]
        |span| {
            let e = weight(s, logits(span, output), max);
            span.store(s, e, output);
            e
        },
    );
    let sum = s.splat(sum as f32);
    vectors(
        output.len(),
        #[inline(always)]
        |span| span.store(s, s.div(span.load(s, output, 0.0), sum), output),
    );
}

/// Makes probabilities of a sorted list of values.
#[inline(always)]
pub fn softmax_of_list<S: Simd>(s: S, values: &mut [f32], is_logits: bool) {
    if !is_logits {
        return Weights::Given.apply(s, values);
    }
    s.apart(
        #[inline(always)]
        move || {
            write_softmax(
                s,
                values[0],
                values,
                #[inline(always)]
                |span, values| span.load(s, values, f32::NEG_INFINITY),
            )
        },
    );
}

impl Weights {
    /// [`Weights::of_row`] of logits that are all below +inf, and a `copy`, as long as the row, of nothing but -inf: its memory is
    /// fetched while exponentials are computed.
    #[inline(always)]
    pub fn of_row_and_fill<S: Simd, T: Element, U: Element>(s: S, row: &[T], max: f32, copy: &mut [U]) -> Weights {
        s.apart(
            #[inline(always)]
            move || {
                let sum = row_sum(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| {
                        span.store(s, s.splat(f32::NEG_INFINITY), copy);
                        below(s, span.load(s, row, T::NEG_INFINITY), max)
                    },
                );
                Weights::Softmax { max, sum: sum as f32 }
            },
        )
    }

    /// Of a whole row with a finite maximum.
    #[inline(always)]
    pub fn of_row<S: Simd, T: Element>(s: S, row: &[T], max: f32, is_logits: bool) -> Weights {
        s.apart(
            #[inline(always)]
            move || {
                if !is_logits {
                    return Weights::Given;
                }
                // Only a +inf is above the maximum, and then that is the largest number.
                let sum = match max < f32::MAX {
                    true => row_sum(
                        s,
                        row.len(),
                        #[inline(always)]
                        |span| below(s, span.load(s, row, T::NEG_INFINITY), max),
                    ),
                    false => row_sum(
                        s,
                        row.len(),
                        #[inline(always)]
                        |span| weight(s, span.load(s, row, T::NEG_INFINITY), max),
                    ),
                };
                Weights::Softmax { max, sum: sum as f32 }
            },
        )
    }

    /// The softmax of a row, taken again of the probabilities of what is kept of it.
    #[inline(always)]
    pub fn again<S: Simd, T: Element>(&self, s: S, row: &[T], mut kept: Above) -> Weights {
        let Weights::Softmax { max, sum } = *self else { return *self };
        let top = self.of_one(s, max);
        let total = s.apart(
            #[inline(always)]
            move || {
                row_sum(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| {
                        let v = clean(s, span.load(s, row, T::NEG_INFINITY));
                        let m = kept.mask(s, v, span.len);
                        // Nearly every vector of most rows has nothing left.
                        if s.mask_bits(m) == 0 {
                            return s.splat(0.0);
                        }
                        s.select(m, weight(s, self.of(s, v), top), s.splat(0.0))
                    },
                )
            },
        );
        Weights::Twice { max, sum, top, total: total as f32 }
    }

    /// The probabilities of values; of a NaN, 0, unless they are given.
    #[inline(always)]
    pub fn of<S: Simd>(&self, s: S, v: S::F32) -> S::F32 {
        match *self {
            Weights::Softmax { max, sum } => softmax(s, v, max, sum),
            Weights::Shifted { max } => weight(s, v, max),
            Weights::Twice { max, sum, top, total } => {
                let pr = softmax(s, v, max, sum);
                softmax(s, pr, top, total)
            }
            Weights::Given => {
                let nothing = s.eq(v, s.splat(f32::NEG_INFINITY));
                s.select(nothing, s.splat(0.0), s.add(v, s.splat(0.0)))
            }
        }
    }

    /// [`Weights::of`] cleaned values of the row, bounded to [0,1], without a division: exact down to 2^-60, less than 2^-59 below that.
    #[inline(always)]
    pub fn bounded<S: Simd>(&self, s: S, v: S::F32) -> S::F32 {
        let Weights::Softmax { max, sum } = *self else {
            return clamp(s, self.of(s, v));
        };
        // A quotient that is off by less than a unit, as the reciprocal in two parts gives it, and its remainder, which is exact: that
        // rounds correctly with a reciprocal that does (Markstein).
        let reciprocal = 1.0 / sum;
        let rest = (1.0 / f64::from(sum) - f64::from(reciprocal)) as f32;
        let (e, divisor, reciprocal) = (below(s, v, max), s.splat(-sum), s.splat(reciprocal));
        let quotient = s.fma(e, reciprocal, s.mul(e, s.splat(rest)));
        s.fma(s.fma(quotient, divisor, e), reciprocal, quotient)
    }

    /// The probabilities of the elements of a row under a span.
    #[inline(always)]
    pub fn of_span<S: Simd, T: Element>(&self, s: S, row: &[T], span: Span) -> S::F32 {
        let v = span.load(s, row, T::NEG_INFINITY);
        self.of(s, if matches!(self, Weights::Given) { clean(s, v) } else { v })
    }

    /// A value whose weight is `e^nats` times less than that of the largest; of a softmax taken twice the first counts.
    pub fn below_largest(&self, max: f32, nats: f32) -> f32 {
        if matches!(self, Weights::Given) { max * libm::expf(-nats) } else { max - nats }
    }

    /// Makes probabilities of a list of values.
    #[inline(always)]
    pub fn apply<S: Simd>(&self, s: S, values: &mut [f32]) {
        s.apart(
            #[inline(always)]
            move || {
                vectors(
                    values.len(),
                    #[inline(always)]
                    |span| span.store(s, self.of(s, span.load(s, values, f32::NEG_INFINITY)), values),
                );
            },
        )
    }

    /// The probability of one value.
    #[inline(always)]
    pub fn of_one<S: Simd>(&self, s: S, value: f32) -> f32 {
        of_one(
            s,
            value,
            #[inline(always)]
            move |s, v| self.of(s, v),
        )
    }
}
