//! What a sample of a row says: where its weights, from the largest element down, reach a part of their sum.

use super::estimate::total as total_of;
use super::key::{ascending_to_value, clean};
use super::mass::ONE;
use super::select::{List, next_above};
use super::threshold::{count, range};
use super::window::Question;
use super::{Span, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// How far off a guess may be.
pub const NEARLY: f32 = 1e-3;

/// The largest value down to which the weights of `values` sum up to `part` of their whole, or not more than `slack` of that beyond it.
#[inline(always)]
pub fn quantile<S: Simd>(s: S, values: &[f32], weights: &[f32], part: f32, slack: f32) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            let (mut low, mut high) = range(s, values);
            let whole = weight_from(s, values, weights, f32::NEG_INFINITY);
            let target = whole * part;
            let mut reached = whole;
            while reached - target > slack * target && i64::from(high) - i64::from(low) > 1 {
                let middle = low.midpoint(high);
                let found = weight_from(s, values, weights, ascending_to_value(middle));
                if found >= target {
                    (low, reached) = (middle, found);
                } else {
                    high = middle;
                }
            }
            ascending_to_value(low)
        },
    )
}

/// The sum of the weights of values from `bound` on.
#[inline(always)]
pub fn weight_from<S: Simd>(s: S, values: &[f32], weights: &[f32], bound: f32) -> f32 {
    let bound = s.splat(bound);
    // Four sums, none of which waits for the one before.
    let (mut sums, fours) = ([s.splat(0.0); 4], values.len() / 64 * 64);
    for at in (0..fours).step_by(64) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = s.add(*sum, weights_under(s, values, weights, bound, Span { at: at + 16 * i, len: 16 }));
        }
    }
    vectors(
        values.len() - fours,
        #[inline(always)]
        |span| sums[0] = s.add(sums[0], weights_under(s, values, weights, bound, span.moved(fours))),
    );
    total_of(s, sums)
}

/// The weights under a span whose values reach `bound`, else 0.
#[inline(always)]
fn weights_under<S: Simd>(s: S, values: &[f32], weights: &[f32], bound: S::F32, span: Span) -> S::F32 {
    s.select(s.le(bound, span.load(s, values, f32::NAN)), span.load(s, weights, 0.0), s.splat(0.0))
}

/// Elements of a sample, if not more are asked for: its weight up to a value is off by 1 % then and now, by three times that at times.
pub const SAMPLE: usize = 2048;

/// Puts a sample of a row, of `most` elements if there are so many, into the front half of the list, nothing of less than 16 elements;
/// returns its size.
#[inline(always)]
pub fn sample<S: Simd, T: Element>(s: S, row: &[T], most: usize, list: &mut List<'_>) -> usize {
    s.apart(
        #[inline(always)]
        move || {
            let vectors = row.len() / 16;
            let taken = vectors.min(list.values.len() / 32).min(most / 16);
            for (i, to) in list.values.as_chunks_mut::<16>().0[..taken].iter_mut().enumerate() {
                let v = Span { at: (i * vectors / taken) * 16, len: 16 }.load(s, row, T::NEG_INFINITY);
                s.store(clean(s, v), to);
            }
            16 * taken
        },
    )
}

/// A window of values.
pub struct Window {
    /// Its least value.
    pub least: f32,
    /// Its largest.
    pub most: f32,
    /// About the part of the row that reaches the least.
    reaches: f32,
}

impl Window {
    /// Whether about as many of a row of `n` as reach it have room in half of a list.
    pub fn suits(&self, n: usize, list: &List<'_>) -> bool {
        self.reaches * n as f32 <= 0.45 * list.values.len() as f32
    }
}

impl Question<'_> {
    /// A window that a sample of the row suggests, of `most` elements if there are so many: where its weights reach the end, give or take
    /// a little. The list is lost.
    #[inline(always)]
    pub fn guess<S: Simd, T: Element>(&self, s: S, row: &[T], most: usize, list: &mut List<'_>) -> Window {
        let taken = sample(s, row, most, list);
        let half = list.values.len() / 2;
        let (values, e) = list.values.split_at_mut(half);
        // Most of what the list takes: the sample may be wrong about that too.
        let room = 0.8 * half as f32 * taken as f32 / row.len() as f32;
        self.quantiles(s, &values[..taken], &mut e[..taken], room)
    }

    /// Where a sample of the row says that the cut is, give or take what such a sample is mostly off by, or with about `room` elements
    /// of it, if these are not far fewer. `e` is as long as the sample.
    #[inline(always)]
    pub fn quantiles<S: Simd>(&self, s: S, values: &[f32], e: &mut [f32], room: f32) -> Window {
        let Question { weights, end, before, whole, known } = *self;
        e.copy_from_slice(values);
        weights.apply(s, e);
        let n = unknown(s, values, e, known.from);
        let mass = |mass: u128| mass as f64 / ONE;
        let part = (end.sum() - mass(before) - mass(known.mass)) / (f64::from(whole) - mass(known.mass));
        let part = (part as f32).clamp(0.0, 1.0);
        let window = |off: f32| {
            let least = if part + off < 1.0 { quantile(s, values, e, part + off, NEARLY) } else { f32::NEG_INFINITY };
            (least, quantile(s, values, e, part - off, NEARLY).max(least))
        };
        // Three standard deviations.
        let off = (3.0 * libm::sqrtf(part * (1.0 - part) / n)).max(8.0 / n);
        let (mut least, mut most) = window(off);
        let inside = reach(s, values, least) - reach(s, values, next_above(most));
        if room < inside && inside < 1.5 * room {
            (least, most) = window(off * room / inside);
        }
        Window { least, most, reaches: reach(s, values, least) / values.len() as f32 }
    }
}

/// Takes the weights of what is known off a sample; returns how many of equal weight would tell as much as those that are left.
#[inline(always)]
fn unknown<S: Simd>(s: S, values: &[f32], e: &mut [f32], from: f32) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            let (mut sum, mut squares) = (s.splat(0.0), s.splat(0.0));
            vectors(
                values.len(),
                #[inline(always)]
                |span| {
                    let is_known = s.le(s.splat(from), span.load(s, values, f32::INFINITY));
                    let weight = s.select(is_known, s.splat(0.0), span.load(s, e, 0.0));
                    span.store(s, weight, e);
                    (sum, squares) = (s.add(sum, weight), s.fma(weight, weight, squares));
                },
            );
            let (sum, squares) = (s.reduce_add(sum), s.reduce_add(squares));
            if squares > 0.0 { sum * sum / squares } else { 1.0 }
        },
    )
}

/// How many of a sample reach a value.
#[inline(always)]
fn reach<S: Simd>(s: S, values: &[f32], value: f32) -> f32 {
    s.apart(
        #[inline(always)]
        move || count(s, values, value) as f32,
    )
}
