//! Probabilities of a row, and tokens drawn by one number: one element at a time, everything sorted.

use super::{clean, math::exp, row_sum};

/// The softmax of a row; 0 where every logit is -inf or NaN.
pub fn probabilities(row: &[f32], output: &mut [f32]) {
    let max = row.iter().fold(f32::NEG_INFINITY, |max, &x| max.max(clean(x)));
    if max == f32::NEG_INFINITY {
        return output.fill(0.0);
    }
    let sum = row_sum(row.len(), |i| exp(clean(row[i]) - max)) as f32;
    for (output, &x) in output.iter_mut().zip(row) {
        *output = exp(clean(x) - max) / sum;
    }
}

/// Writes the indices of a row to `order`, which is as long: larger values first, of equal ones the lower index.
fn sort(row: &[f32], order: &mut [u32]) {
    (0..row.len()).for_each(|i| order[i] = i as u32);
    let value = |i: u32| clean(row[i as usize]);
    order.sort_unstable_by(|&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
}

fn counted(random: f32) -> f32 {
    if random > 0.0 { random.min(1.0) } else { 0.0 }
}

/// The first of the k best whose running sum of `exp(logit + diversity * rank - max)` reaches `random` times their sum. `order` is as
/// long as the row.
pub fn top_k_choice(row: &[f32], k: usize, diversity: f32, random: f32, order: &mut [u32]) -> usize {
    sort(row, order);
    let logit = |rank: usize| clean(clean(row[order[rank] as usize]) + diversity * rank as f32);
    let max = (0..k).fold(f32::NEG_INFINITY, |max, rank| max.max(logit(rank)));
    let weight = |rank: usize| if max == f32::NEG_INFINITY { 0.0 } else { f64::from(exp(logit(rank) - max)) };
    let target = f64::from(counted(random)) * (0..k).fold(0.0, |sum, rank| sum + weight(rank));
    let mut sum = 0.0;
    let reaches = |&rank: &usize| {
        sum += weight(rank);
        sum >= target
    };
    order[(0..k).find(reaches).unwrap_or(0)] as usize
}

/// The first whose running mass reaches `random` times the kept mass: that of the smallest prefix of the descending probabilities that
/// exceeds p. Masses are `round(pr * 2^52)`, and nothing else is rounded. `order` is as long as the row.
pub fn top_p_choice(row: &[f32], p: f64, random: f32, order: &mut [u32]) -> usize {
    const ONE: f64 = 4_503_599_627_370_496.0;
    sort(row, order);
    let mass = |&i: &u32| libm::rint(f64::from(clean(row[i as usize]).clamp(0.0, 1.0)) * ONE) as u128;
    let mut kept = 0;
    for i in &*order {
        kept += mass(i);
        // In units of a mass: whether an integer is larger than p.
        if p < 0.0 || kept > (p * ONE) as u128 {
            break;
        }
    }
    let (mut sum, random) = (0, f64::from(counted(random)));
    let reaches = |i: &&u32| {
        sum += mass(i);
        at_least(sum, random, kept)
    };
    order.iter().find(reaches).map_or(0, |&i| i as usize)
}

/// Whether `sum >= random * kept`, exact: bit by bit of `random`, as in a long multiplication.
fn at_least(sum: u128, mut random: f64, kept: u128) -> bool {
    // sum - random * kept, in units that halve with each bit.
    let mut rest = sum as i128;
    let mut bits = 0;
    while random != 0.0 && rest >= 0 && bits < 150 {
        if random >= 1.0 {
            random -= 1.0;
            rest -= kept as i128;
        }
        if rest >= kept as i128 {
            // All bits to come take off less than that.
            return true;
        }
        random *= 2.0;
        rest *= 2;
        bits += 1;
    }
    rest >= 0
}

/// The first up to which the masses `round(pr * 2^52)` exceed `number * 2^-64` of all of them; `None` where none has a mass.
pub fn share_choice(probabilities: &[f32], number: u64) -> Option<usize> {
    const ONE: f64 = 4_503_599_627_370_496.0;
    let mass = |pr: f32| libm::rint(f64::from(pr) * ONE) as u128;
    let all: u128 = probabilities.iter().map(|&pr| mass(pr)).sum();
    let mut rest = (u128::from(number) * all) >> 64;
    probabilities.iter().position(|&pr| {
        let found = rest < mass(pr);
        rest = rest.saturating_sub(mass(pr));
        found
    })
}

/// Leaves the `k` largest of a row, of equal ones those of lower index, and makes the others -inf; a NaN counts as -inf. `order` is as
/// long as the row.
pub fn keep_largest(row: &mut [f32], k: usize, order: &mut [u32]) {
    (0..row.len()).for_each(|i| order[i] = i as u32);
    let value = |i: u32| if row[i as usize].is_nan() { f32::NEG_INFINITY } else { row[i as usize] + 0.0 };
    order.sort_unstable_by(|&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
    for &i in &order[k.min(row.len())..] {
        row[i as usize] = f32::NEG_INFINITY;
    }
}
