//! Min-p alone: the value from which on elements stay, and the choice where it does not hang on the sum of the row.

use super::blocks::{block_maxima, half_maxima};
use super::first_max::Summary;
use super::key::{bisect, value_to_ascending};
use super::largest::{First, WIDE};
use super::lead::{certain_race, certain_race_above, forgives_division};
use super::race::Noise;
use super::sample::{Sample, Stages, Workspace, first_of};
use super::select::gather;
use super::softmax::Weights;
use super::survivors::Above;
use super::threshold::count;
use super::{Span, of_one};
use crate::element::Element;
use crate::math::log;
use crate::simd::Simd;

/// Below this, what is too small for an `f32` takes part in the comparison.
pub const TINY: f32 = 1e-20;

/// Two values close to where min-p cuts, the former surely not above it, the latter not below: what lies between them hangs on the
/// sum of the row.
#[inline(always)]
pub fn surroundings<S: Simd>(s: S, min_p: f32, max: f32) -> Option<(f32, f32)> {
    if min_p < TINY {
        return None;
    }
    let least = of_one(
        s,
        min_p,
        #[inline(always)]
        |s, v| log(s, v),
    );
    let bound = f64::from(max) + f64::from(least);
    // More than all roundings of exp, of its argument, of the logarithm and of the bound itself.
    let slack = 1e-5 + 4.0 * f64::from(f32::EPSILON) * (libm::fabs(f64::from(max)) + 50.0);
    Some(((bound - slack) as f32, (bound + slack) as f32))
}

/// Whether a sample of the row suggests that more than `n` elements reach a bound.
#[inline(always)]
pub fn reaches_often<S: Simd, T: Element>(s: S, row: &[T], bound: f32, n: usize) -> bool {
    const SAMPLE: usize = 32;
    if row.len() <= n {
        return false;
    }
    s.apart(
        #[inline(always)]
        move || {
            let mut hits = 0;
            for part in 0..SAMPLE {
                let v = Span { at: part * (row.len() / SAMPLE), len: 16 }.load(s, row, T::NEG_INFINITY);
                hits += s.mask_bits(s.le(s.splat(bound), v)).count_ones() as usize;
            }
            hits * (row.len() / SAMPLE) > 16 * n
        },
    )
}

/// The smallest value whose probability is at least `least`. Probabilities do not fall where values rise, so bisection over the numbers
/// in their order finds it.
#[inline(never)]
pub fn min_p_bound<S: Simd>(s: S, weights: &Weights, max: f32, least: f32) -> f32 {
    let nothing = value_to_ascending(f32::NEG_INFINITY);
    // A logit of -inf has the probability 0, which may be enough; a probability of -inf is none.
    let low = nothing - i32::from(!matches!(weights, Weights::Given));
    bisect(low, value_to_ascending(max), |value| weights.of_one(s, value) >= least).1
}

impl<T: Element> Sample<'_, T> {
    /// Whether min-p is all there is, and neither keeps one nor counts what is too small for an `f32`.
    #[inline(always)]
    pub(super) fn is_min_p_alone(&self) -> bool {
        let Stages { k, p, min_p, is_logits } = self.stages;
        k == 0 && p >= 1.0 && (TINY..1.0).contains(&min_p) && is_logits
    }

    /// The first pass for min-p alone over a row of 16-bit numbers, as integers: maxima of what is above 0, in wide blocks. `None` for other
    /// rows and questions, where the maximum is not above 0, and where a NaN was in the way.
    #[inline(always)]
    pub(super) fn scan_halves<S: Simd>(&mut self, s: S) -> Option<Summary> {
        if const { size_of::<T>() != 2 } || !self.is_min_p_alone() || self.middle.is_some() || !forgives_division(&self.noise) {
            return None;
        }
        s.apart(
            #[inline(always)]
            move || half_maxima::<S, T, WIDE>(s, self.row, self.work.maxima, 0, self.nan).map(|(summary, _)| summary),
        )
    }

    /// The choice, if it hangs on no entry that may stay or not. `halves` says that the first pass was [`Sample::scan_halves`].
    #[inline(always)]
    pub(super) fn certain_min_p<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, halves: bool) -> Option<usize> {
        s.apart(
            #[inline(always)]
            move || {
                if const { size_of::<T>() == 2 } && halves {
                    if let Some(token) = self.certain_halves::<S, BLOCK>(s, max) {
                        return Some(token);
                    }
                    block_maxima::<S, T, BLOCK>(s, self.row, self.work.maxima, false);
                }
                let Workspace { list, maxima } = &mut self.work;
                let (row, sure) = (self.row, surroundings(s, self.stages.min_p, max)?);
                let blocks = row.len().div_ceil(BLOCK);
                let (n, at) = match First::Blocks.near::<S, T, BLOCK>(s, row, sure.0, maxima, list) {
                    Some(n) => (n, blocks),
                    None if reaches_often(s, row, sure.0, list.values.len() / 2) => (0, 0),
                    None => gather::<S, T, BLOCK>(s, row, maxima, sure.0, 0, list, 0),
                };
                if at < blocks {
                    if matches!(self.noise, Noise::None) {
                        return None;
                    }
                    let token = certain_race_above(s, row, max, sure, &self.noise, list)?;
                    let fill = self.fill();
                    if let Some(filtered) = &mut self.filtered {
                        Above::from(sure.0).copy(s, row, fill, filtered);
                    }
                    return Some(token);
                }
                self.certain_few::<S, BLOCK>(s, max, n, sure.1)
            },
        )
    }

    /// The same by maxima of what is above 0, where few stay.
    #[inline(always)]
    fn certain_halves<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32) -> Option<usize> {
        s.apart(
            #[inline(always)]
            move || {
                let Workspace { list, maxima } = &mut self.work;
                let (least, sure) = surroundings(s, self.stages.min_p, max)?;
                let n = First::Half.near::<S, T, BLOCK>(s, self.row, least, maxima, list)?;
                self.certain_few::<S, BLOCK>(s, max, n, sure)
            },
        )
    }

    /// The choice from the list of all that min-p may leave, if it surely leaves all of them.
    #[inline(always)]
    fn certain_few<S: Simd, const BLOCK: usize>(&mut self, s: S, max: f32, n: usize, sure: f32) -> Option<usize> {
        let Workspace { list, maxima } = &mut self.work;
        if count(s, &list.values[..n], sure) < n {
            return None;
        }
        Weights::Shifted { max }.apply(s, &mut list.values[..n]);
        let token = match self.noise {
            Noise::None => first_of::<S, T, BLOCK>(s, self.row, maxima, max),
            noise => list.indices[certain_race(s, &list.values[..n], &noise)?] as usize,
        };
        if self.filtered.is_some() {
            self.finish_list_outputs(s, n, false);
        }
        Some(token)
    }
}
