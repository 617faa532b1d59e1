//! What is kept of a descending row of probabilities.

use crate::element::Element;

/// Writes to `output`, as long as the row, what stays of the first `k` entries: those whose exclusive sum is not above p and which are
/// not below `row[0] * min_p`. Sums in f64, each rounded to f32 before the entry is subtracted.
pub fn keep_prefix<T: Element>(row: &[T], k: usize, p: f32, min_p: Option<f32>, output: &mut [T]) {
    output.fill(T::default());
    let mut sum = 0.0f64;
    for j in 0..k {
        let v: f32 = row[j].as_();
        sum += f64::from(v);
        let beyond = sum as f32 - v > p;
        let small = min_p.is_some_and(|m| v < row[0].as_() * m);
        if !beyond && !small {
            output[j] = row[j];
        }
    }
}
