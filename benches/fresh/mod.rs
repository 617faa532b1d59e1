//! Rows in the cache.

use std::hint::black_box;
use tilekern::kernels::element::Element;

/// Writes a row, and reads a number of each of its cache lines: some processors copy past their nearer caches.
pub fn fill<T: Element>(row: &mut [T], values: impl Iterator<Item = T>) {
    row.iter_mut().zip(values).for_each(|(to, value)| *to = value);
    let sum: f32 = row.iter().step_by(64 / size_of::<T>()).map(|x| -> f32 { x.as_() }).sum();
    black_box(sum);
}
