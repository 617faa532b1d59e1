//! Rows that leave much open, or mislead what looks at a part of them.

use crate::answer::{KINDS, defined, found, row, to_bits};
use crate::common::{Random, levels, rounds};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{Noise, Stages};

/// Numbers below 0 that are taken for probabilities are drawn as if they were 0: the first of the list where nothing has more.
#[test]
fn drawn_below_zero() {
    let mut random = Random(14);
    let rows: [&[f32]; 5] = [&[-0.5, -0.25], &[-0.5, 0.0, -1.0], &[-1.0, -0.0], &[-1.0, 0.5, 0.5], &[-3.0; 20_000]];
    for row in rows {
        for (k, p, min_p) in [(0, 1.0, 0.0), (2, 1.0, 0.0), (0, 0.5, 0.0), (0, 1.0, 0.1)] {
            for _ in 0..rounds(30) {
                let (seed, elements) = (random.bits(), 1 << 30);
                let noise = Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: random.bits() % elements };
                let stages = Stages { k, p, min_p, is_logits: false };
                let expected = defined(row, &stages, &noise, elements, seed);
                for level in levels() {
                    let found = found(|row| level.run(row), row, stages, noise, [false; 2], usize::MAX);
                    assert_eq!(found.choice, expected.choice, "{level:?} {stages:?} {:?}", &row[..2]);
                }
            }
        }
    }
}

/// Min-p among probabilities below 0, where 0 is enough or the product underflows: what is -inf or NaN counts as 0, behind them, and is
/// not kept.
#[test]
fn least_probability_of_nothing() {
    const LOW: f32 = f32::NEG_INFINITY;
    let rows: [&[f32]; 4] = [
        &[0.0, -0.1, LOW, LOW],
        &[1e-30, -0.1, LOW, LOW, LOW, LOW],
        &[0.5, -0.1, LOW, LOW, LOW, LOW],
        &[1e-30, 0.0, -0.1, -0.2, LOW, LOW, LOW, LOW, LOW, LOW, f32::NAN],
    ];
    let q = [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    for row in rows {
        for (k, p) in [(row.len(), 1.0), (row.len(), 0.9), (0, 0.9), (0, 1.0)] {
            for min_p in [0.5, 1e-38, 1e-45] {
                for noise in [Noise::None, Noise::Given { q: &q, eps: 0.0 }] {
                    let stages = Stages { k, p, min_p, is_logits: false };
                    let expected = defined(row, &stages, &noise, 1, 0);
                    for level in levels() {
                        let found = found(|row| level.run(row), row, stages, noise, [true; 2], usize::MAX);
                        assert!(found == expected, "{level:?} {row:?} {stages:?} {noise:?}: {found:?} is not {expected:?}");
                    }
                }
            }
        }
    }
}

/// Survivors that no list takes, and a filtered row without a list.
#[test]
fn many_survivors() {
    let mut random = Random(15);
    for v in [9000, 17_001].into_iter().take(rounds(2)) {
        for spread in [0.2, 5.0] {
            let row: Vec<f32> = (0..v).map(|_| random.unit() * spread).collect();
            let q: Vec<f32> = (0..v).map(|_| random.unit()).collect();
            let (seed, elements) = (random.bits(), 1 << 30);
            let drawn = Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: random.bits() % elements };
            for (p, min_p) in [(1.0, 1e-3), (1.0, 0.3), (1.0, 0.7), (0.9, 0.0), (0.3, 0.0), (0.6, 0.4), (1.0, 0.0)] {
                for noise in [Noise::None, Noise::Given { q: &q, eps: 1e-8 }, drawn] {
                    let stages = Stages { k: 0, p, min_p, is_logits: true };
                    let expected = defined(&row, &stages, &noise, elements, seed);
                    for level in levels() {
                        for (filter, room) in [(true, usize::MAX), (true, 2048), (false, usize::MAX)] {
                            let found = found(|row| level.run(row), &row, stages, noise, [filter, false], room);
                            assert_eq!(found.choice, expected.choice, "{level:?} v={v} {stages:?} {noise:?} room={room}");
                            assert!(!filter || found.filtered == expected.filtered, "{level:?} v={v} {stages:?} room={room}");
                        }
                    }
                }
            }
        }
    }
}

/// Flat rows where a search could go round in circles, count twice or miss the end: runs of zeros, numbers around 0 and next to each
/// other, sums that never come to p or go far beyond 1, and negative probabilities.
#[test]
fn flat_rows_at_the_edges() {
    let mut random = Random(23);
    let positive = |random: &mut Random| random.unit().abs();
    let v = 20_480;
    let logits = |p| Stages { k: 0, p, min_p: 0.0, is_logits: true };
    let given = |p| Stages { is_logits: false, ..logits(p) };
    let zeros: Vec<f32> = (0..v).map(|i| if i % 90 == 0 && i < 9000 { 0.0099 } else { 0.0 }).collect();
    let low: Vec<f32> = (0..v).map(|i| if i % 5 < 3 { 0.0 } else { 0.1 * positive(&mut random) + 1e-3 }).collect();
    // The vectors that are sampled are lower than the others.
    let step = |random: &mut Random, i: usize| random.below(512).saturating_sub(if i / 16 % 10 == 0 { 17 } else { 0 });
    let close: Vec<f32> = (0..v).map(|i| 20_000.0 + step(&mut random, i) as f32 / 512.0).collect();
    // Together more than 2^64 in units of a mass, and none of it in the vectors that are sampled.
    let (vectors, mut left) = (300_000 / 16, 266_270);
    let mut large = vec![1e-4; 16 * vectors];
    for (i, sixteen) in large.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        if !(0..128).any(|part| part * vectors / 128 == i) {
            for x in sixteen.iter_mut().take(left) {
                (*x, left) = (1.0 / 65.0, left - 1);
            }
        }
    }
    let faint: Vec<f32> = (0..v).map(|i| if i == 7 { 1.234_567_8e-11 } else { 1e-15 }).collect();
    // Masses of a whole unit, where probabilities are little more than half of one.
    let units = vec![1.2e-16; v];
    let mut cases = vec![
        (units, given(3e-12)),
        (zeros, given(0.995)),
        (low.clone(), logits(0.999_999_94)),
        (low, logits(0.9999)),
        (large, given(0.99)),
        (faint, given(1e-30)),
    ];
    for _ in 0..rounds(8) {
        cases.push(((0..v).map(|_| [-1e-42, 0.0, 1e-42][random.below(3)]).collect(), logits(0.9)));
        cases.push(((0..v).map(|_| -0.5 * positive(&mut random) - 0.5).collect(), given(0.9)));
    }
    // A cut at every fourth border between values, or at fewer.
    let every = 80 / rounds(20);
    let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
    reference::survivors(&close, &logits(0.999_999_94), &mut order, &mut pr);
    let mut mass = 0.0;
    for j in 0..v {
        if j > 8000 && close[order[j] as usize] != close[order[j - 1] as usize] && j % every == 0 {
            cases.push((close.clone(), logits(mass as f32)));
        }
        mass += f64::from(pr[j]);
    }
    let q: Vec<f32> = (0..300_000).map(|_| -(1.0 - positive(&mut random)).ln()).collect();
    // The long row is much for an emulator.
    cases.retain(|(row, _)| row.len() == v || every == 4);
    for (i, (row, stages)) in cases.iter().enumerate() {
        for noise in [Noise::None, Noise::Given { q: &q, eps: 1e-8 }] {
            let mut expected = defined(row, stages, &noise, 1, 0);
            (expected.tokens, expected.probabilities) = (vec![9; row.len()], to_bits(&vec![9.0; row.len()]));
            for level in levels() {
                for room in [usize::MAX, 2048] {
                    let found = found(|row| level.run(row), row, *stages, noise, [true, false], room);
                    assert!(found == expected, "{level:?} case {i} {stages:?} room={room}");
                }
            }
        }
    }
}

/// Noise that decides nothing, sums that never come to p, rows of few values, infinities.
#[test]
fn rows_that_leave_much_open() {
    let mut random = Random(31);
    let v = if rounds(2) == 1 { 20_480 } else { 81_920 };
    let logits = |k, p| Stages { k, p, min_p: 0.0, is_logits: true };
    let given = |k, p| Stages { is_logits: false, ..logits(k, p) };
    let normal: Vec<f32> = (0..v).map(|_| (0..12).map(|_| random.unit()).sum()).collect();
    let logarithms: Vec<f32> = normal.iter().map(|x| x - 12.0).collect();
    let constant = vec![0.0f32; v];
    let infinite: Vec<f32> = (0..v).map(|i| if i % 2 == 0 { f32::INFINITY } else { normal[i] }).collect();
    let q: Vec<f32> = (0..v).map(|_| -random.unit().abs().ln()).collect();
    let some: Vec<f32> = (0..v).map(|i| if i % 100 == 7 { 0.0 } else { q[i] }).collect();
    let most: Vec<f32> = (0..v).map(|i| if i < v / 2 { f32::NAN } else { q[i] }).collect();
    let [zeros, infinities, nan] = [0.0, f32::INFINITY, f32::NAN].map(|x| vec![x; v]);
    let eps = |eps| (&q[..], eps);
    let usual = eps(1e-8);
    let cases: [(&str, &[f32], Stages, (&[f32], f32)); 14] = [
        ("no noise", &normal, logits(0, 0.9), (&zeros, 0.0)),
        ("some without noise", &normal, logits(0, 0.999), (&some, 0.0)),
        ("all the noise", &normal, logits(0, 0.9), (&infinities, 0.0)),
        ("no number as noise", &normal, logits(0, 0.9), (&nan, 0.0)),
        ("half no number as noise", &normal, logits(0, 0.999), (&most, 0.0)),
        ("an infinite eps", &normal, logits(0, 0.999), eps(f32::INFINITY)),
        ("logarithms", &logarithms, given(0, 0.9), usual),
        ("logarithms, no noise", &logarithms, given(0, 0.9), (&zeros, 0.0)),
        ("a constant", &constant, logits(0, 0.999), usual),
        ("a constant below p", &vec![0.5 / v as f32; v], given(0, 0.9), usual),
        ("infinities, 1", &infinite, logits(1, 1.0), usual),
        ("infinities, 50", &infinite, logits(50, 1.0), usual),
        ("infinities, 1024", &infinite, logits(1024, 1.0), usual),
        ("infinities, all", &infinite, logits(0, 0.9), usual),
    ];
    for (name, row, stages, (q, eps)) in cases {
        let noise = Noise::Given { q, eps };
        let mut expected = defined(row, &stages, &noise, 1, 0);
        (expected.tokens, expected.probabilities) = (vec![9; v], to_bits(&vec![9.0; v]));
        for level in levels() {
            for room in [usize::MAX, 2048] {
                let found = found(|row| level.run(row), row, stages, noise, [true, false], room);
                assert!(found == expected, "{level:?} {name} room={room}");
            }
        }
    }
}

/// Rows that no stage touches, the noise drawn: lists that ties fill, turns that end within a row.
#[test]
fn drawn_rows() {
    let mut random = Random(17);
    let stages = Stages { k: 0, p: 1.0, min_p: 0.0, is_logits: true };
    for v in [1, 17, 300, 5000, 40_001] {
        for kind in 0..KINDS {
            for turn in 0..rounds(if v < 1000 { 8 } else { 3 }) {
                let row = row(&mut random, kind, v);
                let (seed, elements) = (random.bits(), 1 << 30);
                // One time in three a turn ends within the row.
                let first = 624 * 256 * random.below(9) as u64 + if turn % 3 == 0 { 624 * 256 - v as u64 / 2 } else { 7 };
                let noise = Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first };
                let expected = defined(&row, &stages, &noise, elements, seed).choice;
                for level in levels() {
                    for room in [usize::MAX, 2048] {
                        let found = found(|row| level.run(row), &row, stages, noise, [false; 2], room).choice;
                        assert_eq!(found, expected, "{level:?} v={v} kind={kind} first={first} room={room}");
                    }
                }
            }
        }
    }
}

/// Cuts around 32 entries, for so many of which numbers are drawn early: by k, by min-p, by top-p.
#[test]
fn drawn_around_32() {
    let mut random = Random(18);
    for v in [40, 3000, 20_001] {
        for n in 29..=36 {
            for (k, p, min_p) in [(n, 1.0, 0.0), (50, 1.0, 0.05), (50, 1.0 - 1e-4, 0.0), (200, 0.999, 0.05), (0, 1.0 - 1e-4, 0.0)]
            {
                for _ in 0..rounds(8) {
                    let mut row: Vec<f32> = (0..v).map(|_| random.unit() - 40.0).collect();
                    for i in 0..n {
                        row[i * v / n] = random.unit();
                    }
                    let (seed, elements) = (random.bits(), 1 << 30);
                    let noise = Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: random.bits() % elements };
                    let stages = Stages { k: k.min(v), p, min_p, is_logits: true };
                    let expected = defined(&row, &stages, &noise, elements, seed).choice;
                    for level in levels() {
                        let found = found(|row| level.run(row), &row, stages, noise, [false; 2], usize::MAX).choice;
                        assert_eq!(found, expected, "{level:?} v={v} n={n} {stages:?}");
                    }
                }
            }
        }
    }
}

/// Rows of 16 bits with about as many blocks of 128 above 0 as are looked for: of the others their maxima tell nothing.
#[test]
fn few_halves_above_zero() {
    fn check<T: Element>(random: &mut Random) {
        let (v, seed, elements) = (128 * 120 + 77, random.bits(), 1 << 30);
        let q: Vec<f32> = (0..v).map(|_| random.unit().abs()).collect();
        for k in [1, 2, 7, 24, 50, 59] {
            for blocks in k.max(2) - 2..k + 3 {
                for drawn in [false, true] {
                    let mut row: Vec<T> = (0..v).map(|_| T::narrow(-8.0 * random.unit().abs())).collect();
                    for block in 0..blocks {
                        row[128 * (block * 117 / blocks) + random.below(128)] = T::narrow(4.0 * random.unit().abs());
                    }
                    let noise = match drawn {
                        false => Noise::Given { q: &q, eps: 1e-8 },
                        true => Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: 5 },
                    };
                    let stages = Stages { k, p: 1.0, min_p: 0.0, is_logits: true };
                    let expected = defined(&row, &stages, &noise, elements, seed);
                    for level in levels() {
                        for outputs in [[false; 2], [true; 2]] {
                            let found = found(|row| level.run(row), &row, stages, noise, outputs, usize::MAX);
                            assert_eq!(found.choice, expected.choice, "{level:?} k={k} blocks={blocks} {outputs:?}");
                            assert!(!outputs[0] || found == expected, "{level:?} k={k} blocks={blocks}");
                        }
                    }
                }
            }
        }
    }
    let mut random = Random(19);
    check::<f16>(&mut random);
    check::<bf16>(&mut random);
}

/// Rows of which one vector in 32 tells nothing about the others, or nothing at all.
#[test]
fn misleading_samples() {
    let mut random = Random(16);
    for v in [5003, 33_001] {
        let sampled = |i: usize| i / 16 % 32 == 7 * (i / 512) % 32;
        let rows: [&dyn Fn(usize, f32) -> f32; 6] = [
            &|i, x| if sampled(i) { x + 100.0 } else { x },
            &|i, x| if sampled(i) { x - 100.0 } else { x },
            &|i, x| if sampled(i) { f32::NEG_INFINITY } else { x },
            &|i, x| if sampled(i) { f32::NAN } else { x },
            &|i, x| if i % 4 == 0 { x } else { f32::NEG_INFINITY },
            &|i, x| if i % 64 == 5 { x } else { f32::NAN },
        ];
        for (kind, of) in rows.iter().enumerate() {
            let row: Vec<f32> = (0..v).map(|i| of(i, random.unit())).collect();
            let q: Vec<f32> = (0..v).map(|_| random.unit().abs()).collect();
            let noise = Noise::Given { q: &q, eps: 1e-8 };
            for k in [1024, 300] {
                let stages = Stages { k, p: 1.0, min_p: 0.0, is_logits: true };
                let expected = defined(&row, &stages, &noise, 1, 0);
                for level in levels() {
                    let all = found(|row| level.run(row), &row, stages, noise, [true; 2], usize::MAX);
                    assert!(all == expected, "{level:?} v={v} kind={kind} k={k}");
                    // By as many as decide it.
                    let led = found(|row| level.run(row), &row, stages, noise, [false; 2], usize::MAX);
                    assert_eq!(led.choice, expected.choice, "{level:?} v={v} kind={kind} k={k}");
                }
            }
        }
    }
}

/// Choices that a few of the largest decide, or nearly: lists of any length around what is sorted at once, ties at their ends, and noise
/// that lets the others win.
#[test]
fn choices_of_a_few() {
    let mut random = Random(17);
    for round in 0..rounds(600) {
        let v = [1100, 5003, 9001, 33_000][random.below(4)];
        // Of these the r-th largest weighs about 1 / r^spread.
        let (spread, step) = ([0.7, 1.0, 2.0][random.below(3)], [0.0, 0.0, 0.25][random.below(3)]);
        let high = [0, 0, 1, 12, 16, 31, 32, 33, 50, 64, 65, 130][random.below(12)];
        let mut tail = || -(1.0 - random.unit().abs()).max(1e-7).ln();
        let mut row: Vec<f32> = (0..v).map(|_| tail() * spread).collect();
        let mut q: Vec<f32> = (0..v).map(|_| tail()).collect();
        for _ in 0..high {
            row[random.below(v)] += 3.0 * spread;
        }
        if step > 0.0 {
            row.iter_mut().for_each(|x| *x = (*x / step).round() * step);
        }
        let k = [1, 2, 12, 31, 32, 33, 50, 64, 65, 100, 200, 256][random.below(12)];
        let stages = Stages {
            k,
            p: [1.0, 1.0, 0.9, 0.3][random.below(4)],
            min_p: [0.0, 0.0, 0.05, 0.5][random.below(4)],
            is_logits: true,
        };
        if round % 3 == 0 {
            q[random.below(k)] = [0.0, 1e-6, f32::NAN, f32::INFINITY][random.below(4)];
        }
        let (seed, elements) = (random.bits(), 1 << 30);
        let drawn = Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: random.bits() % elements };
        for noise in [Noise::Given { q: &q, eps: 1e-8 }, drawn] {
            let expected = defined(&row, &stages, &noise, elements, seed);
            for level in levels() {
                let found = found(|row| level.run(row), &row, stages, noise, [false; 2], usize::MAX);
                assert_eq!(found.choice, expected.choice, "{level:?} v={v} {spread} {step} {high} {stages:?}");
            }
        }
    }
}
