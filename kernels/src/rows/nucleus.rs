//! Top-p: of a sorted list the entries before whose exact sum is below p.
//!
//! The mass of an entry is the integer `round(pr * 2^52)`; integers have no order, so a sum is the same however it is gathered. Entry
//! j stays iff `f32(f32(prefix_j) - pr_j) < p`. Probabilities descend with the list, so this never turns true again once it was
//! false, and any search finds the one cut.
//!
//! A row without top-k is searched from its large end: the 64 largest, the 1024 largest, then all above a value that so little lies
//! below that p must be reached, and only if even that fails the whole row. Of long candidate lists no more is sorted than what
//! is kept: halving by selection finds the cut.

use super::key::{clean, value_of, values_of};
use super::row_sum;
use super::select::{gather, top_k};
use super::softmax::Weights;
use crate::element::Element;
use crate::simd::Simd;

/// 2^52
const ONE: f64 = 4_503_599_627_370_496.0;

/// `round(pr * 2^52)`, half to even, for a probability in [0,1].
#[inline(always)]
fn mass(pr: f32) -> u64 {
    // Adding 2^52 rounds to an integer, which then stands in the low bits; 2^52 itself carries into the exponent, to the same effect.
    (f64::from(pr) * ONE + ONE).to_bits() - ONE.to_bits()
}

#[inline(always)]
fn bounded(pr: f32) -> f32 {
    pr.clamp(0.0, 1.0)
}

/// Whether an entry stays, from the mass up to and with it.
#[inline(always)]
fn stays(prefix: u64, pr: f32, p: f32) -> bool {
    // Exact: a division by a power of two.
    prefix as f32 / ONE as f32 - pr < p
}

/// How many entries of a list stay, given the mass before it.
#[inline(always)]
pub fn cut(probabilities: &[f32], before: u64, p: f32) -> usize {
    let mut prefix = before;
    for (j, &pr) in probabilities.iter().enumerate() {
        let pr = bounded(pr);
        // Stops before it could wrap: beyond 2^52 nothing stays.
        prefix += mass(pr);
        if !stays(prefix, pr, p) {
            return j;
        }
    }
    probabilities.len()
}

/// Mass of a list in any order; sums that no nucleus has saturate.
#[inline(never)]
fn total<S: Simd>(s: S, weights: &Weights, keys: &[u64]) -> u64 {
    s.vectorize(
        #[inline(always)]
        || {
            let mut sum = 0u64;
            for sixteen in keys.chunks(16) {
                let mut lanes = [0.0; 16];
                s.store(weights.of(s, values_of(s, sixteen, f32::NEG_INFINITY)), &mut lanes);
                sum = lanes[..sixteen.len()].iter().fold(sum, |sum, &pr| sum.saturating_add(mass(bounded(pr))));
            }
            sum
        },
    )
}

/// A value below which all entries of the row together have less than what p can spare; -inf if it can spare nothing.
#[inline(always)]
fn safe_bound<S: Simd, T: Element>(s: S, row: &[T], weights: &Weights, p: f32) -> f32 {
    let sum = match weights {
        Weights::Softmax { .. } => 1.0,
        Weights::Given => row_sum(
            s,
            row.len(),
            #[inline(always)]
            |span| {
                let pr = s.min(s.max(clean(s, span.load(s, row, T::NEG_INFINITY)), s.splat(0.0)), s.splat(1.0));
                s.add(pr, s.splat(0.0))
            },
        ),
    };
    // One part in 10^5 is more than all roundings of the sums.
    let spare = (sum * (1.0 - 1e-5) - f64::from(p) * (1.0 + 1e-5)) / row.len() as f64;
    match *weights {
        _ if spare <= 0.0 => f32::NEG_INFINITY,
        Weights::Softmax { max, sum } => max + (libm::log(spare * f64::from(sum)) - 1e-3) as f32,
        Weights::Given => (spare * (1.0 - 1e-5)) as f32,
    }
}

/// Writes the sorted keys and the probabilities of the nucleus of a whole row and returns its length. `keys` and `probabilities` are as
/// long as the row; the maxima are its block maxima.
#[inline(always)]
pub fn top_p<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    p: f32,
    weights: &Weights,
    maxima: &[f32],
    keys: &mut [u64],
    probabilities: &mut [f32],
) -> usize {
    for k in [64, 1024] {
        let k = row.len().min(k);
        top_k::<S, T, BLOCK>(s, row, k, maxima, keys);
        weights.write(s, &keys[..k], probabilities);
        let n = cut(&probabilities[..k], 0, p);
        if n < k || k == row.len() {
            return n;
        }
    }
    for bound in [safe_bound(s, row, weights, p), f32::NEG_INFINITY] {
        let candidates = gather::<S, T, BLOCK>(s, row, maxima, bound, row.len(), keys);
        let n = cut_unsorted(s, p, weights, &mut keys[..candidates], probabilities);
        if n < candidates || candidates == row.len() {
            keys[..n].sort_unstable();
            weights.write(s, &keys[..n], probabilities);
            return n;
        }
    }
    unreachable!("the whole row is a list of candidates")
}

/// How many entries stay of a list that begins, once sorted, as the row does. Brings these to the front.
#[inline(always)]
fn cut_unsorted<S: Simd>(s: S, p: f32, weights: &Weights, keys: &mut [u64], probabilities: &mut [f32]) -> usize {
    // Everything before `low` stays and has mass `before`; nothing from `high` on stays.
    let (mut low, mut high, mut before) = (0, keys.len(), 0u64);
    while high - low > 256 {
        let middle = low + (high - low) / 2;
        keys[low..high].select_nth_unstable(middle - low);
        let mass_to_middle = before.saturating_add(total(s, weights, &keys[low..middle]));
        let pr = bounded(weights.of_one(s, value_of(keys[middle])));
        if stays(mass_to_middle.saturating_add(mass(pr)), pr, p) {
            (low, before) = (middle, mass_to_middle);
        } else {
            high = middle;
        }
    }
    keys[low..high].sort_unstable();
    weights.write(s, &keys[low..high], &mut probabilities[low..high]);
    low + cut(&probabilities[low..high], before, p)
}
