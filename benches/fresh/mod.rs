//! Rows in the cache.

use std::hint::black_box;
use tilekern::kernels::element::Element;

/// Reads a number of each cache line of a row that was just written: some processors copy past their nearer caches.
pub fn touch<T: Element>(row: &[T]) {
    let sum: f32 = row.iter().step_by(64 / size_of::<T>()).map(|x| -> f32 { x.as_() }).sum();
    black_box(sum);
}
