//! Sampling, one row and one number at a time, sorting whatever has to be in order.

use super::{math::exp, row_sum};
use crate::element::Element;
use crate::rows::{Stages, status};

/// What a logit counts as: NaN as -inf, +inf as the largest finite number, -0 as +0.
pub fn clean(x: f32) -> f32 {
    if x.is_nan() { f32::NEG_INFINITY } else { x.min(f32::MAX) + 0.0 }
}

/// The probability that a number stands for where the row holds probabilities.
fn given(x: f32) -> f32 {
    if x == f32::NEG_INFINITY { 0.0 } else { x }
}

/// The status bits of a row.
pub fn row_status<T: Element>(row: &[T], is_logits: bool) -> u8 {
    let bit = |bit, holds| if holds { bit } else { 0 };
    let value = |x: &T| -> f32 { x.as_() };
    let nothing = |x: &T| {
        let x = clean(value(x));
        x == f32::NEG_INFINITY || (!is_logits && x == 0.0)
    };
    bit(status::NAN, row.iter().any(|x| value(x).is_nan()))
        | bit(status::INFINITE, row.iter().any(|x| value(x) == f32::INFINITY))
        | bit(status::EMPTY, row.iter().all(nothing))
}

/// Place of the first maximum of `value(0) .. value(n - 1)`. A NaN never wins; 0 where nothing does.
pub fn first_max(n: usize, value: impl Fn(usize) -> f32) -> usize {
    let mut best = (f32::NEG_INFINITY, 0);
    for i in 0..n {
        if value(i) > best.0 {
            best = (value(i), i);
        }
    }
    best.1
}

/// How many of `probabilities`, which descend, top-p keeps: all j up to the first with `f32(prefix_j - pr_j) >= p`.
pub fn nucleus(probabilities: &[f32], p: f32) -> usize {
    let mut prefix = 0u64;
    for (j, &pr) in probabilities.iter().enumerate() {
        let pr = pr.clamp(0.0, 1.0);
        prefix += libm::rint(f64::from(pr) * 4_503_599_627_370_496.0) as u64;
        if j > 0 && prefix as f32 / 4_503_599_627_370_496.0 - pr >= p {
            return j;
        }
    }
    probabilities.len()
}

/// Writes the list that the stages keep of a row to the front of `order` and `probabilities`, both as long as the row, and returns
/// its length.
///
/// The normaliser is a row sum in the order of the list with top-k, in the order of the row without, in `f64` and rounded once.
pub fn survivors<T: Element>(row: &[T], stages: &Stages, order: &mut [u32], probabilities: &mut [f32]) -> usize {
    if row_status(row, stages.is_logits) & status::EMPTY != 0 {
        return 0;
    }
    let x = |i: u32| clean(row[i as usize].as_());
    for i in 0..row.len() {
        order[i] = i as u32;
    }
    let best_only = stages.p <= 0.0;
    let nucleus_on = stages.p > 0.0 && stages.p < 1.0;
    if stages.k > 0 || best_only || nucleus_on {
        order.sort_unstable_by(|&a, &b| x(b).total_cmp(&x(a)).then(a.cmp(&b)));
    }
    let mut n = if stages.k > 0 { stages.k } else { row.len() };

    let max = x(order[first_max(n, |j| x(order[j]))]);
    let sum = match stages.k {
        0 => row_sum(n, |i| exp(x(i as u32) - max)),
        k => row_sum(k, |j| exp(x(order[j]) - max)),
    } as f32;
    for j in 0..n {
        let x = x(order[j]);
        probabilities[j] = if stages.is_logits { exp(x - max) / sum } else { given(x) };
    }

    if best_only {
        n = 1;
        if stages.is_logits {
            probabilities[0] = 1.0;
        }
    } else if nucleus_on {
        n = nucleus(&probabilities[..n], stages.p);
    }

    let best = first_max(n, |j| x(order[j]));
    let top = probabilities[best];
    if stages.min_p >= 1.0 {
        (order[0], probabilities[0]) = (order[best], top);
        n = 1;
    } else if stages.min_p > 0.0 && top >= 0.0 {
        let mut kept = 0;
        for j in 0..n {
            let is_one = stages.is_logits || x(order[j]) > f32::NEG_INFINITY;
            if is_one && probabilities[j] >= top * stages.min_p {
                (order[kept], probabilities[kept]) = (order[j], probabilities[j]);
                kept += 1;
            }
        }
        n = kept;
    }
    n
}
