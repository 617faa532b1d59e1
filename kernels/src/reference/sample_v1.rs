//! The stages of TopKTopPSampleV1.

use super::{clean, math::exp, row_status, row_sum};
use crate::element::Element;
use crate::rows::status;

/// How many of `probabilities`, which descend, the first version's top-p keeps: all j up to the first with `f32(prefix_j - pr_j) > p`.
fn nucleus_v1(probabilities: &[f32], p: f32) -> usize {
    const ONE: f64 = 4_503_599_627_370_496.0;
    let mut prefix = 0u64;
    for (j, &pr) in probabilities.iter().enumerate() {
        prefix += libm::rint(f64::from(pr) * ONE) as u64;
        if j > 0 && prefix as f32 / ONE as f32 - pr > p {
            return j;
        }
    }
    probabilities.len()
}

/// Writes the list that the stages keep of a row to the front of `order` and `probabilities`, both as long as the row, and returns its
/// length. `k` of 0 is off, as is a p outside (0,1).
///
/// The first normaliser is a row sum over the list with top-k, over the row without; the second is over the logits of what is kept,
/// in list order, with top-k, and without over its probabilities, in the order of the row.
pub fn survivors_v1<T: Element>(row: &[T], k: usize, p: f32, order: &mut [u32], probabilities: &mut [f32]) -> usize {
    if row_status(row, true) & status::EMPTY != 0 {
        return 0;
    }
    let x = |i: u32| clean(row[i as usize].as_());
    for i in 0..row.len() {
        order[i] = i as u32;
    }
    let nucleus = p > 0.0 && p < 1.0;
    if k > 0 || nucleus {
        order.sort_unstable_by(|&a, &b| x(b).total_cmp(&x(a)).then(a.cmp(&b)));
    }
    let mut n = if k > 0 { k } else { row.len() };
    let max = order.iter().map(|&i| x(i)).fold(f32::NEG_INFINITY, f32::max);
    let sum = if k > 0 { row_sum(n, |j| exp(x(order[j]) - max)) } else { row_sum(n, |i| exp(x(i as u32) - max)) } as f32;
    let pr = |i: u32| exp(x(i) - max) / sum;
    for j in 0..n {
        probabilities[j] = pr(order[j]);
    }
    if !nucleus {
        return n;
    }
    n = nucleus_v1(&probabilities[..n], p);
    if k > 0 {
        let sum = row_sum(n, |j| exp(x(order[j]) - max)) as f32;
        for j in 0..n {
            probabilities[j] = exp(x(order[j]) - max) / sum;
        }
        return n;
    }
    // What is kept is above the last, or equal to it with a lower index.
    let (top, last) = (probabilities[0], order[n - 1]);
    let is_kept = |i: u32| x(i) > x(last) || (x(i) == x(last) && i <= last);
    let sum = row_sum(row.len(), |i| if is_kept(i as u32) { exp(pr(i as u32) - top) } else { 0.0 }) as f32;
    for probability in &mut probabilities[..n] {
        *probability = exp(*probability - top) / sum;
    }
    n
}
