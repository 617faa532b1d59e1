//! A row of TopKTopPSample against its scalar definition, bit for bit, on every instruction set and for several sizes of block.

#[path = "../common/mod.rs"]
mod common;

mod answer;
mod hard;
mod nuclei;
mod ranks;

use answer::{KINDS, blocks, check, compare, defaults, defined, found, row};
use common::{Random, levels, rounds};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{FirstMax, List, Noise, Stages, TopK, list_len, maxima_len};

const LENGTHS: [usize; 18] = [1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 1024, 1025, 1100, 2049, 4096, 8191];

#[test]
fn rows_equal_the_definition() {
    let mut random = Random(11);
    for v in LENGTHS {
        for kind in 0..KINDS {
            for repeat in 0..rounds(if v < 300 { 16 } else { 6 }) {
                compare(blocks::<f32, 256>, &mut random, v, kind, repeat % 3 != 1);
            }
            compare(blocks::<f16, 1024>, &mut random, v, kind, true);
            compare(defaults::<bf16>, &mut random, v, kind, true);
        }
    }
}

/// Long enough that the nucleus is found by halving, and the exponential numbers take turns.
#[test]
fn long_rows_equal_the_definition() {
    let mut random = Random(12);
    for v in [17_000, 40_001].into_iter().take(rounds(2)) {
        for kind in 0..KINDS {
            compare(blocks::<f32, 256>, &mut random, v, kind, true);
            for _ in 0..2 {
                compare(blocks::<f32, 256>, &mut random, v, kind, false);
            }
            if kind < 3 {
                compare(defaults::<bf16>, &mut random, v, kind, false);
            }
        }
    }
}

/// Of long rows of f32 some processors look for a choice among few in longer blocks.
#[test]
fn choices_among_few_of_long_rows_equal_the_definition() {
    let mut random = Random(17);
    // Much for an emulator.
    for v in [1 << 16, 70_001, 140_003].into_iter().filter(|_| rounds(2) == 2) {
        for kind in [0, 1, 2, 3, 4, 6, 10, 11] {
            let row = row(&mut random, kind, v);
            let q: Vec<f32> = (0..v).map(|_| -random.unit().abs().ln()).collect();
            let k = [1, 24, 50, 100, v / 512][random.below(5)];
            let (seed, elements) = (random.bits(), 1 << 30);
            let ranks = [(1.0, 0.0), (0.9, 0.0), (0.5, 0.0), (0.9, 0.05), (1.0, 0.3)].map(|(p, min_p)| (k, p, min_p));
            for (k, p, min_p) in ranks.into_iter().chain([(0, 1.0, 0.05), (0, 1.0, 0.5)]) {
                let stages = Stages { k, p, min_p, is_logits: true };
                let numbers = Exponential::new(seed, 0, elements);
                for noise in [Noise::Given { q: &q, eps: 1e-8 }, Noise::Drawn { numbers, first: seed % elements }] {
                    check(blocks::<f32, 256>, &row, stages, noise, (elements, seed), false, kind);
                }
            }
        }
    }
}

/// What min-p leaves of 16-bit rows is looked for as integers where it is above 0; below that, or where much is left, it is not.
#[test]
fn min_p_of_half_rows_equals_the_definition() {
    let mut random = Random(18);
    for v in [100, 1000, 5000, 40_001].into_iter().take(2 + rounds(2)) {
        for kind in 0..KINDS {
            for up in [0.0, 12.0, -40.0] {
                let row: Vec<f32> = row(&mut random, kind, v).into_iter().map(|x| x + up).collect();
                let q: Vec<f32> = (0..v).map(|_| -random.unit().abs().ln()).collect();
                let (seed, elements) = (random.bits(), 1 << 30);
                let min_p = [0.05, 0.3, 1e-3, 1e-6, 0.999, 1e-25][random.below(6)];
                let stages = Stages { k: 0, p: 1.0, min_p, is_logits: true };
                let numbers = Exponential::new(seed, 0, elements);
                for noise in [Noise::Given { q: &q, eps: 1e-8 }, Noise::Drawn { numbers, first: seed % elements }] {
                    let narrowed: Vec<bf16> = row.iter().map(|&x| bf16::narrow(x)).collect();
                    check(defaults::<bf16>, &narrowed, stages, noise, (elements, seed), false, kind);
                    let narrowed: Vec<f16> = row.iter().map(|&x| f16::narrow(x)).collect();
                    check(blocks::<f16, 1024>, &narrowed, stages, noise, (elements, seed), false, kind);
                    let expected = defined(&narrowed, &stages, &noise, elements, seed);
                    for level in levels() {
                        let found = found(|row| level.run(row), &narrowed, stages, noise, [true, false], usize::MAX);
                        assert!(found.filtered == expected.filtered, "{level:?} v={v} kind={kind} {stages:?} {noise:?}");
                    }
                }
            }
        }
    }
}

/// As long as they may be, where lists are longer and a first pass may drop candidates.
#[test]
fn the_longest_rows_equal_the_definition() {
    let mut random = Random(16);
    // Much for an emulator.
    for kind in [0, 3, 5].into_iter().filter(|_| rounds(2) == 2) {
        compare(blocks::<f32, 256>, &mut random, 1 << 20, kind, kind > 0);
    }
}

#[test]
fn top_k_of_every_k() {
    let mut random = Random(13);
    for v in [1, 17, 300, 5000] {
        for kind in [0, 1, 2, 3, 4, 6] {
            let row = row(&mut random, kind, v);
            for k in [1, 2, 3, 50, 255, 1024].into_iter().filter(|&k| k <= v) {
                compare_top_k(&row, k, list_len(v) >> random.below(2), &format!("kind={kind}"));
            }
        }
    }
}

/// With room for so many in the list.
fn compare_top_k(row: &[f32], k: usize, room: usize, case: &str) {
    let v = row.len();
    let mut order: Vec<u32> = (0..v as u32).collect();
    let x = |i: u32| reference::clean(row[i as usize]);
    order.sort_by(|&a, &b| x(b).total_cmp(&x(a)));
    let (mut maxima, mut values, mut indices) = (vec![0.0; maxima_len(v, 32)], vec![0.0; room], vec![0; room]);
    for level in levels() {
        let list = List { values: &mut values, indices: &mut indices };
        level.run(TopK::<f32, 32> { row, k, maxima: &mut maxima, list });
        let found: Vec<u32> = indices[..k].iter().map(|&i| i as u32).collect();
        assert_eq!(found, order[..k], "{level:?} v={v} k={k} {case} room={room}");
    }
}

/// The largest stand close together: on slopes, and in clusters of a few blocks, also with ties, infinities and NaN among them.
#[test]
fn top_k_of_neighbours() {
    let mut random = Random(21);
    for v in [700, 5003, 20_011] {
        let cluster = |i: usize| i % (v / 2) / 192 == 1;
        let kinds: [&dyn Fn(usize, f32) -> f32; 6] = [
            &|i, _| i as f32 * 1e-3,
            &|i, _| i as f32 * -1e-3,
            &|i, x| if cluster(i) { x + 9.0 } else { x },
            &|i, x| if cluster(i) { 9.0 + (3.0 * x).round() } else { x },
            &|i, x| if cluster(i) { [f32::INFINITY, f32::MAX, x][i % 3] } else { x },
            &|i, x| if cluster(i) { [f32::NAN, 9.0, x + 9.0][i % 3] } else { f32::NEG_INFINITY },
        ];
        for (kind, of) in kinds.iter().enumerate() {
            let row: Vec<f32> = (0..v).map(|i| of(i, random.unit())).collect();
            for k in [1, 20, 32, 50, 70, 200] {
                compare_top_k(&row, k, list_len(v), &format!("kind={kind}"));
            }
        }
    }
}

/// The least room that a list needs, and more candidates than that sorts.
#[test]
fn top_k_in_the_least_room() {
    for (v, k) in [(140, 65), (140, 70), (250, 100), (300, 128), (300, 16), (2000, 1)] {
        let row: Vec<f32> = (0..v).map(|i| (i % 3) as f32).collect();
        let room = (2 * usize::next_power_of_two(k)).max(32).max((k + 72).next_power_of_two());
        let (mut maxima, mut values, mut indices) = (vec![0.0; maxima_len(v, 64)], vec![0.0; room], vec![0; room]);
        let mut order: Vec<usize> = (0..v).collect();
        order.sort_by_key(|i| 2 - i % 3);
        for level in levels() {
            let list = List { values: &mut values, indices: &mut indices };
            level.run(TopK::<f32, 64> { row: &row, k, maxima: &mut maxima, list });
            let found: Vec<usize> = indices[..k].iter().map(|&i| i as usize).collect();
            assert_eq!(found, order[..k], "{level:?} v={v} k={k} room={room}");
        }
    }
}

#[test]
fn first_maximum() {
    let mut random = Random(14);
    for v in [1, 15, 16, 17, 64, 127, 1024, 2047, 2048, 2049, 3000, 6145] {
        for kind in 0..KINDS {
            let row = row(&mut random, kind, v);
            let expected = reference::first_max(v, |i| reference::clean(row[i]));
            for level in levels() {
                let (index, summary) = level.run(FirstMax { row: &row });
                assert_eq!(index, expected, "{level:?} v={v} kind={kind}");
                assert_eq!(summary.nan, row.iter().any(|x| x.is_nan()), "{level:?} v={v} kind={kind}");
                assert_eq!(summary.infinite, row.contains(&f32::INFINITY), "{level:?} v={v} kind={kind}");
            }
        }
    }
}

/// The end of a long row is read first, and still the first of equals counts, wherever they lie.
#[test]
fn first_of_equals_in_a_row_that_is_read_from_its_end() {
    let mut random = Random(15);
    for round in 0..60 {
        // Of the longer rows those of 16-bit numbers are read in their order.
        let v = [40_007, 70_001][round % 2];
        // Where a run that is read begins, about: so far from the end, in elements of four bytes or of two.
        let parts = [0, 2_048, 6_144, 12_288, 18_432, 24_576, v];
        let mut row: Vec<f32> = (0..v).map(|_| -1.0 - random.unit().abs()).collect();
        for _ in 0..2 + random.below(3) {
            let near = (v - parts[random.below(parts.len())] + random.below(2_100)).saturating_sub(1_050);
            row[near.min(v - 1)] = [0.5, 0.5, 0.5, f32::MAX, f32::INFINITY][random.below(5)];
        }
        first_is_found(&row);
        first_is_found(&row.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
        first_is_found(&row.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>());
    }
}

fn first_is_found<T: Element>(row: &[T]) {
    let expected = reference::first_max(row.len(), |i| reference::clean(row[i].as_()));
    for level in levels() {
        assert_eq!(level.run(FirstMax { row }).0, expected, "{level:?}");
    }
}
