//! Nuclei of some tens of entries to nearly all, of rows in which few entries hold most: whichever way the row is searched, and wherever
//! the winner stands.

use crate::answer::{Answer, defined, found, to_bits};
use crate::common::{Random, levels, rounds};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{KeepLargest, List, Noise, Stages, Workspace, list_len, workspace_maxima};

/// Sums of four numbers, nearly normal.
fn normal(random: &mut Random) -> f32 {
    (0..4).map(|_| random.unit()).sum::<f32>() * 0.87
}

/// Logits whose weights fall off ever more steeply.
fn row(random: &mut Random, v: usize) -> Vec<f32> {
    let spread = [0.5, 1.0, 2.0, 4.0, 6.0][random.below(5)];
    let shift = [0.0, 15.0, -40.0][random.below(3)];
    let mut row: Vec<f32> = (0..v).map(|_| normal(random) * spread + shift).collect();
    if random.below(3) == 0 {
        for _ in 0..30 {
            row[random.below(v)] = 13.0 + 2.0 * normal(random) + shift;
        }
    }
    row
}

/// The answer without outputs that are not asked for.
fn compare<T: Element>(row: &[T], stages: Stages, noise: Noise<'_>, seed: u64, case: &str) -> usize {
    let v = row.len();
    let expected = defined(row, &stages, &noise, v as u64, seed);
    let nothing = || (to_bits(&vec![9.0; v]), vec![9; v], to_bits(&vec![9.0; v]));
    for level in levels() {
        for filter in [false, true] {
            let answer = found(|row| level.run(row), row, stages, noise, [filter, false], usize::MAX);
            let (filtered, tokens, probabilities) = nothing();
            let filtered = if filter { expected.filtered.clone() } else { filtered };
            let expected = Answer { choice: expected.choice, filtered, tokens, probabilities };
            assert!(answer == expected, "{level:?} v={v} {stages:?} {case} filter={filter} {:?}", expected.choice);
        }
    }
    expected.choice.token
}

const P: [f32; 9] = [0.3, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 0.999_999];
const MIN_P: [f32; 4] = [0.0, 0.05, 1e-3, 1e-5];

#[test]
fn nuclei_of_every_length() {
    let mut random = Random(31);
    for turn in 0..rounds(100) {
        let v = [3000, 9001, 20_000, 50_011][turn % 4];
        let (row, seed) = (row(&mut random, v), random.bits());
        let is_logits = random.below(4) > 0;
        let row = if is_logits {
            row
        } else {
            let mut probabilities = vec![0.0; v];
            reference::probabilities(&row, &mut probabilities);
            probabilities
        };
        let q: Vec<f32> = (0..v).map(|j| reference::exponential(seed, 4, v as u64, j as u64)).collect();
        let is_share = is_logits && turn % 5 == 1;
        // What no stage touches is chosen by index.
        let p = if is_share && random.below(2) == 0 { 1.0 } else { P[random.below(P.len())] };
        let stages = Stages { k: 0, p, min_p: MIN_P[random.below(4)], is_logits };
        let noise = match turn % 5 {
            0 => Noise::Drawn { numbers: Exponential::new(seed, 0, v as u64), first: 0 },
            1 if is_share => Noise::Share([0, random.bits() >> 40, random.bits(), u64::MAX][random.below(4)]),
            2 => Noise::None,
            _ => Noise::Given { q: &q, eps: [0.0, 1e-8][random.below(2)] },
        };
        match random.below(4) {
            0 => compare(&row.iter().map(|&x| f16::narrow(x)).collect::<Vec<_>>(), stages, noise, seed, "f16"),
            1 => compare(&row.iter().map(|&x| bf16::narrow(x)).collect::<Vec<_>>(), stages, noise, seed, "bf16"),
            _ => compare(&row, stages, noise, seed, "f32"),
        };
    }
}

/// Flat rows, of which more is kept than a list takes: by index and in order, to both ends.
#[test]
fn shares_of_long_nuclei() {
    let mut random = Random(34);
    for turn in 0..rounds(40) {
        let row: Vec<f32> = (0..[20_000, 50_011][turn % 2]).map(|_| normal(&mut random) * 0.5).collect();
        let stages = Stages { k: 0, p: [0.9, 0.999, 1.0][turn % 3], min_p: [0.0, 1e-3, 0.2][random.below(3)], is_logits: true };
        let number = [0, random.bits() >> 40, random.bits(), u64::MAX][turn % 4];
        compare(&row, stages, Noise::Share(number), 0, "share");
    }
}

/// Some ranks, mostly far behind, get a noise with which they win, or lose, by a little; of these those behind the end of the nucleus win
/// nothing.
#[test]
fn ranks_far_behind_win_and_lose() {
    let mut random = Random(32);
    let (mut won, mut lost) = (0, 0);
    for turn in 0..rounds(240) {
        let (v, seed, spread) = ([9001, 20_000][turn % 2], random.bits(), [3.0, 4.0, 6.0][random.below(3)]);
        let mut row: Vec<f32> = (0..v).map(|_| normal(&mut random) * spread).collect();
        if turn % 4 == 0 {
            // A run of equals.
            let least = normal(&mut random);
            row.iter_mut().for_each(|x| *x = x.max(least));
        }
        let stages = Stages { k: 0, p: P[3 + random.below(P.len() - 3)], min_p: 0.0, is_logits: true };
        let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
        let n = reference::survivors(&row, &stages, &mut order, &mut pr);
        let mut q: Vec<f32> = (0..v).map(|j| reference::exponential(seed, 4, v as u64, j as u64)).collect();
        let best = (0..n).map(|j| pr[j] / q[j]).fold(0.0, f32::max);
        // Weights by rank, beyond the nucleus too.
        reference::probabilities(&row, &mut pr);
        pr.sort_by(|a, b| b.total_cmp(a));
        for _ in 0..1 + random.below(3) {
            let rank = [random.below(n), random.below(v), n.saturating_sub(1 + random.below(3))][random.below(3)];
            let factor = [0.5, 0.99, 0.999_999, 1.0, 1.000_001, 1.01, 2.0][random.below(7)];
            q[rank] = pr[rank] / (best * factor);
        }
        let noise = Noise::Given { q: &q, eps: [0.0, 1e-19, 1e-12][random.below(3)] };
        let token = compare(&row, stages, noise, seed, "far behind");
        match order[..n].iter().position(|&i| i as usize == token) {
            Some(place) if place >= 1024 => won += 1,
            _ => lost += 1,
        }
    }
    assert!(rounds(240) < 240 || (won > 20 && lost > 60), "{won} {lost}");
}

/// Few hold much, all others hold the rest in equal parts, and most of these stay: drawn numbers let any of them win.
#[test]
fn drawn_winners_stand_anywhere_in_a_plateau() {
    let (mut random, mut won) = (Random(35), 0);
    for turn in 0..rounds(60) {
        let (v, seed) = ([9001_usize, 20_000, 40_003][turn % 3], random.bits());
        let (share, left) = ([0.1, 0.3, 0.6][random.below(3)], [0.02, 0.2, 0.5][random.below(3)]);
        let mut row: Vec<f32> = (0..v).map(|i| if i % 97 == 0 { 2.0 * normal(&mut random) } else { 0.0 }).collect();
        let head: f64 = row.iter().step_by(97).map(|&x| f64::from(x).exp()).sum();
        let level = (share / (1.0 - share) * head / (v - v.div_ceil(97)) as f64).ln() as f32;
        row.iter_mut().enumerate().filter(|(i, _)| i % 97 != 0).for_each(|(_, x)| *x = level);
        let stages = Stages { k: 0, p: (1.0 - left * share) as f32, min_p: 0.0, is_logits: true };
        let noise = Noise::Drawn { numbers: Exponential::new(seed, 0, v as u64), first: 0 };
        won += usize::from(row[compare(&row, stages, noise, seed, "a plateau")] == level);
    }
    assert!(rounds(60) < 60 || (6..50).contains(&won), "{won}");
}

#[test]
fn the_largest_stay() {
    let mut random = Random(33);
    for turn in 0..rounds(60) {
        let v = [1, 17, 300, 5000, 20_000, 40_003][turn % 6];
        let mut row = row(&mut random, v);
        match turn % 5 {
            0 => row.iter_mut().for_each(|x| *x = x.round()),
            1 => row
                .iter_mut()
                .for_each(|x| *x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 0.0, *x][random.below(7)]),
            2 => row.fill([f32::NAN, 0.0, f32::NEG_INFINITY, f32::INFINITY][random.below(4)]),
            _ => {}
        }
        let k = 1 + random.below(v);
        let mut expected = row.clone();
        reference::keep_largest(&mut expected, k, &mut vec![0; v]);
        for level in levels() {
            let (mut values, mut indices) = (vec![f32::NAN; list_len(v)], vec![-1; list_len(v)]);
            let mut maxima = vec![f32::NAN; workspace_maxima(v)];
            let mut found = row.clone();
            let work = Workspace { list: List { values: &mut values, indices: &mut indices }, maxima: &mut maxima };
            level.run(KeepLargest { row: &mut found, k, work });
            assert_eq!(to_bits(&found), to_bits(&expected), "{level:?} {k} of {v}, {turn}");
        }
    }
}
