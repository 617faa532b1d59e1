//! A row of TopKTopPSample against its scalar definition, bit for bit, on every instruction set and for several sizes of block.

mod common;
use common::{Random, levels, rounds};
use half::{bf16, f16};
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{
    Blocked, Choice, FirstMax, InPlace, List, Middle, Noise, Sample, Stages, TopK, Workspace, list_len, maxima_len,
    workspace_maxima,
};

/// Everything that a row gives.
#[derive(Debug, PartialEq)]
struct Answer {
    choice: Choice,
    filtered: Vec<u32>,
    tokens: Vec<i64>,
    probabilities: Vec<u32>,
}

fn to_bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|&x| common::bits(x)).collect()
}

fn noise_at(noise: &Noise<'_>, elements: u64, seed: u64, j: usize) -> f32 {
    match *noise {
        Noise::None => 1.0,
        Noise::Given { q, eps } => q[j].abs() + eps,
        Noise::Drawn { first, .. } => reference::exponential(seed, 0, elements, first + j as u64),
    }
}

fn defined<T: Element>(row: &[T], stages: &Stages, noise: &Noise<'_>, elements: u64, seed: u64) -> Answer {
    let v = row.len();
    let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
    let n = reference::survivors(row, stages, &mut order, &mut pr);
    let status = reference::row_status(row, stages.is_logits);
    let token = match noise {
        _ if n == 0 => 0,
        Noise::None => reference::first_max(v, |i| reference::clean(row[i].as_())),
        noise => {
            // What is drawn has no less than no weight.
            let weight = |j: usize| if let Noise::Drawn { .. } = noise { pr[j].max(0.0) } else { pr[j] };
            order[reference::first_max(n, |j| weight(j) / noise_at(noise, elements, seed, j))] as usize
        }
    };
    let mut filtered = vec![if stages.is_logits { f32::NEG_INFINITY } else { 0.0 }; v];
    let (mut tokens, mut probabilities) = (vec![0; v], vec![0.0; v]);
    for j in 0..n {
        filtered[order[j] as usize] = row[order[j] as usize].as_();
        (tokens[j], probabilities[j]) = (order[j].into(), pr[j]);
    }
    let choice = Choice { token, status };
    Answer { choice, filtered: to_bits(&filtered), tokens, probabilities: to_bits(&probabilities) }
}

/// `room` entries at most go into a list.
fn found<T: Element>(
    run: impl Fn(InPlace<'_, T>) -> Choice,
    row: &[T],
    stages: Stages,
    noise: Noise<'_>,
    [filter, middle]: [bool; 2],
    room: usize,
) -> Answer {
    let v = row.len();
    let room = list_len(v).min(room);
    let (mut values, mut indices) = (vec![f32::NAN; room], vec![-1; room]);
    let mut maxima = vec![f32::NAN; workspace_maxima(v)];
    let (mut filtered, mut tokens, mut probabilities) = (vec![9.0; v], vec![9; v], vec![9.0; v]);
    let choice = run(&mut Sample {
        row,
        stages,
        noise,
        nan: true,
        filtered: filter.then_some(&mut filtered),
        middle: middle.then_some(Middle { tokens: &mut tokens, probabilities: &mut probabilities }),
        work: Workspace { list: List { values: &mut values, indices: &mut indices }, maxima: &mut maxima },
    });
    Answer { choice, filtered: to_bits(&filtered), tokens, probabilities: to_bits(&probabilities) }
}

const KINDS: usize = 12;

fn row(random: &mut Random, kind: usize, v: usize) -> Vec<f32> {
    let spread = [0.1, 1.0, 4.0, 30.0][random.below(4)];
    let mut x: Vec<f32> = match kind {
        0 => (0..v).map(|_| random.unit() * spread).collect(),
        1 => (0..v).map(|_| (random.unit() * 4.0).round()).collect(),
        2 => vec![spread; v],
        3 => (0..v).map(|i| i as f32 * 0.01).collect(),
        4 => (0..v).map(|i| i as f32 * -0.01).collect(),
        5 => (0..v).map(|_| random.number()).collect(),
        6 => (0..v).map(|_| if random.below(2) == 0 { f32::NEG_INFINITY } else { random.unit() * spread }).collect(),
        7 => (0..v).map(|_| f32::from_bits(random.bits() as u32)).collect(),
        8 => vec![[f32::NEG_INFINITY, f32::NAN, f32::INFINITY, 0.0, -0.0, f32::MAX, f32::MIN][random.below(7)]; v],
        9 => (0..v).map(|_| [0.0, -0.0, 1e-40, -1e-40][random.below(4)]).collect(),
        _ => (0..v).map(|_| (0..4).map(|_| random.unit()).sum::<f32>() * spread).collect(),
    };
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 20.0] {
        if random.below(6) == 0 {
            x[random.below(v)] = special;
        }
    }
    x
}

/// Compares blocks of 64 and of `OTHER` with the definition.
fn compare<T: Element, const OTHER: usize>(random: &mut Random, v: usize, kind: usize, outputs: bool) {
    let is_logits = random.below(3) > 0;
    let mut x = row(random, kind, v);
    if !is_logits && random.below(2) == 0 {
        x.iter_mut().for_each(|x| *x = x.abs() / (8.0 * v as f32));
    }
    let row: Vec<T> = x.iter().map(|&x| T::narrow(x)).collect();
    let largest = [0, 0, 1024, 50][random.below(4)].min(v);
    let stages = Stages {
        k: random.below(largest + 1),
        p: [0.9, 0.5, 0.999_999_94, 1.0, 0.0, f32::NAN, random.unit().abs(), 1e-30][random.below(8)],
        min_p: [0.0, 0.05, 1.0, 1e-38, 1e-45, f32::NAN, random.unit(), -1.0][random.below(8)],
        is_logits,
    };
    let q: Vec<f32> = (0..v).map(|_| [random.unit(), random.number()][random.below(2)]).collect();
    let (seed, elements) = (random.bits(), 1 << 30);
    let noise = match random.below(3) {
        0 => Noise::None,
        1 => Noise::Given { q: &q, eps: [0.0, 1e-8][random.below(2)] },
        _ => Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: random.bits() % elements },
    };
    let mut expected = defined(&row, &stages, &noise, elements, seed);
    if !outputs {
        (expected.filtered, expected.tokens, expected.probabilities) =
            (to_bits(&vec![9.0; v]), vec![9; v], to_bits(&vec![9.0; v]));
    }
    for level in levels() {
        let found = [
            found(|row| level.run(row), &row, stages, noise, [outputs; 2], usize::MAX),
            found(|row| level.run(Blocked::<T, OTHER>(row)), &row, stages, noise, [outputs; 2], 2048),
        ];
        for found in found {
            assert!(found == expected, "{level:?} v={v} kind={kind} {stages:?} {noise:?}");
        }
    }
}

const LENGTHS: [usize; 18] = [1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 1024, 1025, 1100, 2049, 4096, 8191];

#[test]
fn rows_equal_the_definition() {
    let mut random = Random(11);
    for v in LENGTHS {
        for kind in 0..KINDS {
            for repeat in 0..if v < 300 { 16 } else { 6 } {
                compare::<f32, 256>(&mut random, v, kind, repeat % 3 > 0);
            }
            compare::<f16, 64>(&mut random, v, kind, true);
            compare::<bf16, 64>(&mut random, v, kind, true);
        }
    }
}

/// Long enough that the nucleus is found by halving, and the exponential numbers take turns.
#[test]
fn long_rows_equal_the_definition() {
    let mut random = Random(12);
    for v in [17_000, 40_001] {
        for kind in 0..KINDS {
            compare::<f32, 256>(&mut random, v, kind, true);
            for _ in 0..2 {
                compare::<f32, 256>(&mut random, v, kind, false);
            }
            if kind < 3 {
                compare::<bf16, 64>(&mut random, v, kind, false);
            }
        }
    }
}

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

/// Survivors that no list takes, and a filtered row without a list.
#[test]
fn many_survivors() {
    let mut random = Random(15);
    for v in [9000, 17_001] {
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
    let mut cases = vec![
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
            for turn in 0..if v < 1000 { 8 } else { 3 } {
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
            let (stages, noise) = (Stages { k: 1024, p: 1.0, min_p: 0.0, is_logits: true }, Noise::Given { q: &q, eps: 1e-8 });
            let expected = defined(&row, &stages, &noise, 1, 0);
            for level in levels() {
                let found = found(|row| level.run(row), &row, stages, noise, [true; 2], usize::MAX);
                assert!(found == expected, "{level:?} v={v} kind={kind}");
            }
        }
    }
}

#[test]
fn top_k_of_every_k() {
    let mut random = Random(13);
    for v in [1, 17, 300, 5000] {
        for kind in [0, 1, 2, 3, 4, 6] {
            let row = row(&mut random, kind, v);
            let mut order: Vec<u32> = (0..v as u32).collect();
            let x = |i: u32| reference::clean(row[i as usize]);
            order.sort_by(|&a, &b| x(b).total_cmp(&x(a)));
            for k in [1, 2, 3, 50, 255, 1024].into_iter().filter(|&k| k <= v) {
                let room = list_len(v) >> random.below(2);
                let (mut maxima, mut values, mut indices) = (vec![0.0; maxima_len(v, 32)], vec![0.0; room], vec![0; room]);
                for level in levels() {
                    let list = List { values: &mut values, indices: &mut indices };
                    level.run(TopK::<f32, 32> { row: &row, k, maxima: &mut maxima, list });
                    let found: Vec<u32> = indices[..k].iter().map(|&i| i as u32).collect();
                    assert_eq!(found, order[..k], "{level:?} v={v} k={k} kind={kind} room={room}");
                }
            }
        }
    }
}

#[test]
fn first_maximum() {
    let mut random = Random(14);
    for v in [1, 15, 16, 17, 64, 1023, 1024, 1025, 3000] {
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
