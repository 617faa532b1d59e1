//! A row and its answers: by the definition, and by the kernel.

use crate::common::{self, Random, levels};
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::reference;
use tilekern_kernels::rows::{
    Blocked, Choice, InPlace, List, Middle, Noise, Sample, Stages, Workspace, list_len, workspace_maxima,
};

/// Everything that a row gives.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub choice: Choice,
    pub filtered: Vec<u32>,
    pub tokens: Vec<i64>,
    pub probabilities: Vec<u32>,
}

pub fn to_bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|&x| common::bits(x)).collect()
}

fn noise_at(noise: &Noise<'_>, elements: u64, seed: u64, j: usize) -> f32 {
    match *noise {
        Noise::None | Noise::Share(_) => 1.0,
        Noise::Given { q, eps } => q[j].abs() + eps,
        Noise::Drawn { first, .. } => reference::exponential(seed, 0, elements, first + j as u64),
    }
}

pub fn defined<T: Element>(row: &[T], stages: &Stages, noise: &Noise<'_>, elements: u64, seed: u64) -> Answer {
    let v = row.len();
    let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
    let n = reference::survivors(row, stages, &mut order, &mut pr);
    let status = reference::row_status(row, stages.is_logits);
    let best = || reference::first_max(v, |i| reference::clean(row[i].as_()));
    let token = match noise {
        _ if n == 0 => 0,
        Noise::None => best(),
        Noise::Share(number) => reference::share_choice(&pr[..n], *number).map_or_else(best, |place| order[place] as usize),
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
pub fn found<T: Element>(
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

pub const KINDS: usize = 12;

pub fn row(random: &mut Random, kind: usize, v: usize) -> Vec<f32> {
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

/// A choice, by blocks of some size.
pub type By<T> = fn(Level, InPlace<'_, T>) -> Choice;

/// By those of the instruction set.
pub fn defaults<T: Element>(level: Level, row: InPlace<'_, T>) -> Choice {
    level.run(row)
}

/// By others: with each the whole choice is compiled again.
pub fn blocks<T: Element, const BLOCK: usize>(level: Level, row: InPlace<'_, T>) -> Choice {
    level.run(Blocked::<T, BLOCK>(row))
}

/// Compares a choice by default, and another with a short list, with the definition.
pub fn compare<T: Element>(other: By<T>, random: &mut Random, v: usize, kind: usize, outputs: bool) {
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
    let noise = match random.below(4) {
        0 => Noise::None,
        3 if is_logits => Noise::Share([random.bits(), random.bits() >> 40, 0, u64::MAX][random.below(4)]),
        1 | 3 => Noise::Given { q: &q, eps: [0.0, 1e-8][random.below(2)] },
        _ => Noise::Drawn { numbers: Exponential::new(seed, 0, elements), first: random.bits() % elements },
    };
    check(other, &row, stages, noise, (elements, seed), outputs, kind);
}

/// The same of given stages and noise, which is drawn from `seed` for so many elements, if it is.
pub fn check<T: Element>(
    other: By<T>,
    row: &[T],
    stages: Stages,
    noise: Noise<'_>,
    (elements, seed): (u64, u64),
    outputs: bool,
    kind: usize,
) {
    let v = row.len();
    let mut expected = defined(row, &stages, &noise, elements, seed);
    if !outputs {
        (expected.filtered, expected.tokens, expected.probabilities) =
            (to_bits(&vec![9.0; v]), vec![9; v], to_bits(&vec![9.0; v]));
    }
    for level in levels() {
        let found = [
            found(|row| defaults(level, row), row, stages, noise, [outputs; 2], usize::MAX),
            found(|row| other(level, row), row, stages, noise, [outputs; 2], 2048),
        ];
        for found in found {
            assert!(found == expected, "{level:?} v={v} kind={kind} {stages:?} {noise:?}");
        }
    }
}
