//! ApplyTopKTopP, by sorting.

use super::{math::exp, row_sum};
use crate::element::Element;

/// What an entry counts as: NaN as -inf, -0 as +0.
fn without_nan(x: f32) -> f32 {
    if x.is_nan() { f32::NEG_INFINITY } else { x + 0.0 }
}

/// Writes to `output` what top-k and top-p leave of a row, -inf elsewhere. `order` is as long as the row; `k` of the length of the
/// row, or more, and a `p` of NaN switch the stage off.
///
/// The row is sorted, smaller first, of equal ones the lower index first. Top-k drops what is below the k-th from the end. Top-p drops
/// from the front while the running sum of masses `round(pr * 2^52)`, rounded to f32, is at most `1 - p`; where that is 0, while the
/// probability is 0; and never the last.
pub fn apply_top_k_top_p<T: Element>(row: &[T], k: usize, p: f32, order: &mut [u32], output: &mut [T]) {
    const ONE: f64 = 4_503_599_627_370_496.0;
    let n = row.len();
    let x = |i: u32| without_nan(row[i as usize].as_());
    for i in 0..n {
        order[i] = i as u32;
    }
    order.sort_unstable_by(|&a, &b| x(a).total_cmp(&x(b)).then(a.cmp(&b)));
    let max = x(order[n - 1]);
    let least = if k < n { x(order[n - k]) } else { f32::NEG_INFINITY };
    let mut dropped = order.iter().take_while(|&&i| x(i) < least).count();
    let t = 1.0 - p;
    if max.is_finite() && t >= 0.0 {
        let e = |i: u32| if x(i) >= least { exp(x(i) - max) } else { 0.0 };
        let sum = row_sum(n, |i| e(i as u32)) as f32;
        let mut mass = 0u64;
        while dropped < n - 1 {
            let pr = e(order[dropped]) / sum;
            mass += libm::rint(f64::from(pr) * ONE) as u64;
            let drop = if t == 0.0 { pr == 0.0 } else { p <= 0.0 || mass as f32 / ONE as f32 <= t };
            if !drop {
                break;
            }
            dropped += 1;
        }
    }
    for (place, &i) in order.iter().enumerate() {
        output[i as usize] = if place < dropped { T::NEG_INFINITY } else { row[i as usize] };
    }
}
