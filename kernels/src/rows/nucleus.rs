//! Top-p of a row without top-k: from its large end, in steps that ask for more only where the step before cannot tell.
//!
//! 1. The 64 largest. Where their mass and a bound on that of all others (block maxima again) leave only one possible cut, that is all.
//! 2. The exact sum. The 64 once more, then everything within 8, 10 and 12 of the maximum, then all above a value that so little lies below that p
//!    must be reached. Of such a list no more is sorted than what can be kept.
//! 3. A row too flat for a list: see [`super::window`].

use super::mass::{clamp, cut};
use super::row_sum;
use super::select::{List, gather, top_k};
use super::softmax::Weights;
use super::survivors::Above;
use super::vectors;
use super::window::{Question, flat_cut};
use crate::element::Element;
use crate::math::exp_or_zero;
use crate::simd::Simd;

/// How many are looked at first.
const FIRST: usize = 64;

/// What top-p keeps of a row.
pub enum Nucleus {
    /// The first entries of the list, sorted, with the weights that their probabilities come from.
    List(usize, Weights),
    /// More than a list takes.
    Above(Above, Weights),
}

/// The sum of the probabilities of a row, nearly.
#[inline(never)]
fn whole<S: Simd, T: Element>(s: S, row: &[T], weights: &Weights) -> f64 {
    match weights {
        Weights::Given => s.vectorize(
            #[inline(always)]
            || {
                row_sum(
                    s,
                    row.len(),
                    #[inline(always)]
                    |span| clamp(s, span.load(s, row, T::NEG_INFINITY)),
                )
            },
        ),
        _ => 1.0,
    }
}

/// A value below which all of `n` entries together have less than what p can spare of the `whole`; -inf if it can spare nothing.
fn safe_bound(n: usize, whole: f64, weights: &Weights, p: f32) -> f32 {
    // One part in 10^5 is more than all roundings of the sums.
    let spare = (whole * (1.0 - 1e-5) - f64::from(p) * (1.0 + 1e-5)) / n as f64;
    match *weights {
        _ if spare <= 0.0 => f32::NEG_INFINITY,
        Weights::Softmax { max, sum } => max + (libm::log(spare * f64::from(sum)) - 1e-3) as f32,
        _ => (spare * (1.0 - 1e-5)) as f32,
    }
}

/// More than what all elements that are at most `bound` and outside a list have together, as multiples of the largest; `block` is the
/// size of the blocks.
#[inline(always)]
fn rest<S: Simd>(s: S, maxima: &[f32], block: usize, bound: f32, max: f32) -> f32 {
    let mut sum = s.splat(0.0);
    vectors(
        maxima.len(),
        #[inline(always)]
        |span| {
            let top = s.min(span.load(s, maxima, f32::NEG_INFINITY), s.splat(bound));
            sum = s.add(sum, exp_or_zero(s, s.sub(top, s.splat(max))));
        },
    );
    s.reduce_add(sum) * block as f32 * 1.001
}

/// How many entries of a sorted list of values stay, if that is certain without the sum of the row: what is outside has less than `rest`.
#[inline(always)]
fn certain_cut<S: Simd>(s: S, values: &[f32], rest: f32, p: f32) -> Option<usize> {
    let weights = Weights::Shifted { max: values[0] };
    let mut e = [0.0; FIRST];
    let e = &mut e[..values.len()];
    e.copy_from_slice(values);
    weights.apply(s, e);
    let sum: f32 = e.iter().sum();
    // One part in 10^4 is more than all roundings.
    let (least, most) = (p * sum * (1.0 - 1e-4), p * (sum + rest) * (1.0 + 1e-4));
    let mut before = 0.0;
    for (j, &e) in e.iter().enumerate() {
        if before > most {
            return Some(j);
        }
        if before >= least {
            return None;
        }
        before += e;
    }
    (before > most).then_some(values.len())
}

/// How many of the largest elements, sorted in the list, top-p keeps, 0 < p < 1, if that is certain without the sum of the row.
#[inline(always)]
pub fn certain_top_p<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    p: f32,
    max: f32,
    maxima: &[f32],
    list: &mut List<'_>,
) -> Option<usize> {
    let k = row.len().min(FIRST);
    top_k::<S, T, BLOCK>(s, row, k, maxima, list);
    let blocks = row.len().div_ceil(BLOCK);
    let rest = if k == row.len() { 0.0 } else { rest(s, &maxima[..blocks], BLOCK, list.values[k - 1], max) };
    certain_cut(s, &list.values[..k], rest, p)
}

/// What top-p keeps of a row, 0 < p < 1. The maxima are its block maxima.
#[inline(always)]
pub fn top_p<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    p: f32,
    max: f32,
    is_logits: bool,
    maxima: &[f32],
    list: &mut List<'_>,
) -> Nucleus {
    let k = row.len().min(FIRST);
    top_k::<S, T, BLOCK>(s, row, k, maxima, list);
    let weights = Weights::of_row(s, row, max, is_logits);
    let mut first = [0.0; FIRST];
    first[..k].copy_from_slice(&list.values[..k]);
    weights.apply(s, &mut first[..k]);
    let n = cut(&first[..k], 0, p);
    if n < k || k == row.len() {
        return Nucleus::List(n, weights);
    }
    let whole = whole(s, row, &weights);
    let safe = safe_bound(row.len(), whole, &weights, p);
    let near = |nats: f32| if is_logits { safe.max(max - nats) } else { safe };
    for bound in [near(8.0), near(10.0), near(12.0), safe] {
        let half = list.values.len() / 2;
        let mut part = List { values: &mut list.values[..half], indices: &mut list.indices[..half] };
        let (found, at) = gather::<S, T, BLOCK>(s, row, maxima, bound, 0, &mut part, 0);
        if at < row.len().div_ceil(BLOCK) {
            break;
        }
        if let Some(n) = list.nucleus(s, found, found == row.len(), &weights, p) {
            return Nucleus::List(n, weights);
        }
    }
    let asked = Question { weights: &weights, p, before: 0, whole: whole as f32 };
    Nucleus::Above(flat_cut(s, row, asked, list).unwrap_or(Above::ALL), weights)
}
