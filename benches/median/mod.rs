//! What counts of many times.
#![allow(dead_code)]

/// The middle one.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// r, of a time that is floor + (r - 1) x the floor, or x 34 ps for each of `v` elements where that is longer.
pub fn ratio(time: f64, floor: f64, v: usize) -> f64 {
    1.0 + (time - floor) / floor.max(34e-12 * v as f64)
}
