//! The floor of a row that has just been written.

use crate::fresh::fill;
use crate::logits::Floor;
use std::hint::black_box;
use std::time::Instant;
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::element::Element;

/// Writes a row; the seconds of its floor, and its largest. The row is as fresh behind it as it was before.
pub fn floor_of_row<T: Element>(level: Level, row: &mut [T], next: &[T]) -> (f64, f32) {
    // A row from afar pushes some of its copy out: one pass goes before.
    fill(row, next.iter().copied());
    black_box(level.run(Floor(black_box(&*row))));
    fill(row, next.iter().copied());
    let start = Instant::now();
    let top = black_box(level.run(Floor(black_box(&*row))));
    let seconds = start.elapsed().as_secs_f64();
    fill(row, next.iter().copied());
    (seconds, top)
}
