//! Probabilities and choices by one number, bit for bit as their definitions, on every instruction set.

mod common;
use common::{LENGTHS, Random, bits, levels, rounds};
use tilekern_kernels::reference;
use tilekern_kernels::rows::{List, Probabilities, TopKChoice, TopPChoice, choice_len, list_len, workspace_maxima};

fn number(random: &mut Random) -> f32 {
    match random.below(8) {
        0 => 0.0,
        1 => 1.0f32.next_down(),
        2 => f32::from_bits(random.below(1 << 30) as u32),
        _ => (random.bits() >> 40) as f32 / 16_777_216.0,
    }
}

/// Rows of numbers, of few different ones, and of odd ones.
fn row(random: &mut Random, n: usize) -> Vec<f32> {
    let kind = random.below(4);
    (0..n)
        .map(|_| match (kind, random.below(30)) {
            (0, _) => random.below(5) as f32 * 0.25,
            (1, 0) => f32::NAN,
            (1, 1) => f32::INFINITY,
            (1, 2) => f32::NEG_INFINITY,
            (2, _) => (random.unit() + 1.0) / n as f32,
            _ => random.number(),
        })
        .collect()
}

#[test]
fn probabilities() {
    let mut random = Random(1);
    for n in LENGTHS {
        for _ in 0..rounds(20) {
            let row = row(&mut random, n);
            let (mut output, mut expected) = (vec![9.0; n], vec![9.0; n]);
            reference::probabilities(&row, &mut expected);
            for level in levels() {
                level.run(Probabilities { row: &row, output: &mut output });
                let (found, expected): (Vec<u32>, Vec<u32>) =
                    output.iter().zip(&expected).map(|(a, b)| (bits(*a), bits(*b))).unzip();
                assert_eq!(found, expected, "{} {n}", level.isa().name());
            }
        }
    }
}

/// Memory for choices, full of rubbish.
struct Memory {
    maxima: Vec<f32>,
    values: Vec<f32>,
    indices: Vec<i32>,
}

impl Memory {
    fn new(n: usize, list: usize) -> Memory {
        let maxima = workspace_maxima(n);
        Memory { maxima: vec![f32::NAN; maxima], values: vec![f32::NAN; list], indices: vec![-1; list] }
    }

    fn list(&mut self) -> (&mut [f32], List<'_>) {
        (&mut self.maxima, List { values: &mut self.values, indices: &mut self.indices })
    }
}

#[test]
fn among_the_k_best() {
    let mut random = Random(2);
    for n in LENGTHS.into_iter().chain([1500, 4000]) {
        for _ in 0..rounds(20) {
            let (row, k, number) = (row(&mut random, n), 1 + random.below(n), number(&mut random));
            let diversity = [0.0, random.unit(), -1e30, f32::MAX][random.below(4)];
            let expected = reference::top_k_choice(&row, k, diversity, number, &mut vec![0; n]);
            for level in levels() {
                let mut memory = Memory::new(n, choice_len(k));
                let (maxima, list) = memory.list();
                let found = level.run(TopKChoice { row: &row, k, diversity, random: number, maxima, list });
                assert_eq!(found, expected, "{} {k} of {n}, {diversity} {number}", level.isa().name());
            }
        }
    }
}

/// More ranks than 2^16, so close together that their distances share a step of a key though one is far off.
#[test]
fn among_very_many() {
    for n in [70_000, 140_000] {
        let close = |i: usize| 1.0 + (i * 7919 % n) as f32 / n as f32 / 16.0;
        let mut row: Vec<f32> = (0..n).map(close).collect();
        row[n / 2] = -1e30;
        for number in [0.0, 0.3, 1.0f32.next_down()] {
            let expected = reference::top_k_choice(&row, n, 0.0, number, &mut vec![0; n]);
            for level in levels() {
                let mut memory = Memory::new(n, choice_len(n));
                let (maxima, list) = memory.list();
                let call = TopKChoice { row: &row, k: n, diversity: 0.0, random: number, maxima, list };
                assert_eq!(level.run(call), expected, "{} of {n}, {number}", level.isa().name());
            }
        }
    }
}

#[test]
fn among_the_most_probable() {
    let mut random = Random(3);
    for n in LENGTHS.into_iter().chain([1024, 1025, 1500, 4000, 20_000]) {
        for _ in 0..rounds(20) {
            let (row, number) = (row(&mut random, n), number(&mut random));
            // Some of these rows have masses of more than 64 bits.
            let sum: f64 = row.iter().filter(|x| !x.is_nan()).map(|x| f64::from(x.clamp(0.0, 1.0))).sum();
            let part = sum * f64::from(random.unit());
            let p = [f64::from(random.unit()), f64::from(random.number()), 0.999_999, 1e9, 0.0, part][random.below(6)];
            let expected = reference::top_p_choice(&row, p, number, &mut vec![0; n]);
            for level in levels() {
                let mut memory = Memory::new(n, list_len(n));
                let (maxima, list) = memory.list();
                let found = level.run(TopPChoice { row: &row, p, random: number, maxima, list });
                assert_eq!(found, expected, "{} of {n}, {p} {number}", level.isa().name());
            }
        }
    }
}
