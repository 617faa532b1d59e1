//! Drawing from weights, one at a time.

/// What a weight counts as: nothing if it is negative or NaN, the largest finite number if it is infinite.
pub fn weight(x: f32) -> f32 {
    if x > 0.0 { x.min(f32::MAX) } else { 0.0 }
}

/// Writes the places of `weights` to `order`, which is as long, by descending `weight / noise(i)`, of equal ones the lower first.
pub fn weight_race(weights: &[f32], noise: impl Fn(usize) -> f32, order: &mut [u32]) {
    let ratio = |i: u32| weight(weights[i as usize]) / noise(i as usize);
    for i in 0..weights.len() {
        order[i] = i as u32;
    }
    order.sort_unstable_by(|&a, &b| ratio(b).total_cmp(&ratio(a)).then(a.cmp(&b)));
}

/// The first place whose running sum of masses `round(weight / sum * 2^52)`, rounded to `f32`, reaches `u`; where the last stays below
/// u, the first that is as large as the last.
pub fn weight_search(weights: &[f32], u: f32) -> usize {
    const ONE: f64 = 4_503_599_627_370_496.0;
    let sum = |scale: f32| super::row_sum(weights.len(), |i| weight(weights[i]) * scale) as f32;
    // 2^-30 where the sum overflows.
    let scale = if sum(1.0) < f32::INFINITY { 1.0 } else { f32::from_bits(0x3080_0000) };
    let sum = sum(scale);
    let share = |x: f32| if sum > 0.0 { weight(x) * scale / sum } else { 0.0 };
    let first = |target: f32| {
        let mut prefix = 0u64;
        weights.iter().position(|&x| {
            prefix += libm::rint(f64::from(share(x)) * ONE) as u64;
            prefix as f32 / ONE as f32 >= target
        })
    };
    let all: u64 = weights.iter().map(|&x| libm::rint(f64::from(share(x)) * ONE) as u64).sum();
    first(u).or(first(all as f32 / ONE as f32)).unwrap_or(0)
}
