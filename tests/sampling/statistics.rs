//! Draws follow the weights: chi-square over a million of them, and over pairs of draws that must not know each other.

use crate::common::{Random, run};
use tilekern::ops::{Exponential, Multinomial, Noise, PostSample, TopKTopPSample};
use tilekern::{Host, Isa, Rayon, Tensor, TensorMut};

/// P(chi-square with `freedom` degrees > `x`) by the incomplete gamma function.
fn tail(x: f64, freedom: usize) -> f64 {
    let (a, x) = (freedom as f64 / 2.0, x / 2.0);
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-15 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - sum * scale;
    }
    // Lentz's continued fraction.
    let (mut b, mut c) = (x + 1.0 - a, f64::MAX);
    let (mut d, mut h) = (1.0 / b, 1.0 / b);
    for i in 1..10_000 {
        let an = -(i as f64) * (i as f64 - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    scale * h
}

#[test]
fn the_tail_is_right() {
    for (x, freedom, p) in [(3.841_459, 1, 0.05), (18.307_038, 10, 0.05), (29.588_298, 10, 0.001), (124.342_113, 100, 0.05)] {
        assert!((tail(x, freedom) - p).abs() < 1e-6 * p.max(1e-3) * 1e3, "{x} {freedom} {}", tail(x, freedom));
    }
}

/// Whether counts follow weights: p > 1e-3. Cells with less than 10 expected are taken together.
fn follows(name: &str, counts: &[u64], weights: &[f64]) {
    let draws = counts.iter().sum::<u64>() as f64;
    let sum: f64 = weights.iter().sum();
    let (mut chi, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
    for (&count, weight) in counts.iter().zip(weights) {
        let (count, expected) = (count as f64, draws * weight / sum);
        assert!(expected > 0.0 || count == 0.0, "{name}: drawn without weight");
        if expected < 10.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            chi += (count - expected) * (count - expected) / expected;
            cells += 1;
        }
    }
    if rest.1 >= 10.0 {
        chi += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
        cells += 1;
    }
    let p = tail(chi, cells - 1);
    assert!(p > 1e-3, "{name}: chi-square {chi} of {cells} cells, p {p}");
}

/// A million, but where an emulator draws them.
const DRAWS: usize = if cfg!(target_arch = "aarch64") { 50_000 } else { 1_000_000 };

/// Distributions of several shapes: few and even, steep, long, with holes.
fn shapes() -> [(&'static str, Vec<f32>); 5] {
    let mut random = Random(1);
    [
        ("even", vec![0.25; 4]),
        ("steep", (0..12).map(|i| 0.5f32.powi(i)).collect()),
        ("zipf", (1..=200).map(|i| 1.0 / i as f32).collect()),
        ("softmax", (0..100).map(|_| (4.0 * random.unit()).exp()).collect()),
        ("holes", (0..64).map(|i| if i % 3 == 0 { 0.0 } else { random.unit().abs() }).collect()),
    ]
}

fn counts(drawn: impl IntoIterator<Item = i64>, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    drawn.into_iter().for_each(|i| counts[i as usize] += 1);
    counts
}

fn multinomial(weights: &[f32], rows: usize, num_samples: usize, replacement: bool, seed: i64, offset: i64) -> Vec<i64> {
    let mut out = vec![0; rows * num_samples];
    // One row of weights, broadcast.
    let probs = Tensor::strided([rows, weights.len()], [0, 1], weights).unwrap();
    let mut call = Multinomial::new(probs, TensorMut::new([rows, num_samples], &mut out).unwrap());
    (call.num_samples, call.replacement, call.seed, call.offset) = (num_samples as i64, replacement, seed, offset);
    run(&Host::with(Isa::detect(), Rayon::new(2).unwrap()).unwrap(), call).unwrap();
    out
}

#[test]
fn searches_follow_the_weights() {
    for (name, weights) in shapes() {
        let drawn = multinomial(&weights, 10, DRAWS / 10, true, 5, 0);
        follows(name, &counts(drawn, weights.len()), &weights.iter().map(|&w| f64::from(w)).collect::<Vec<_>>());
    }
}

#[test]
fn races_follow_the_weights() {
    for (name, weights) in shapes() {
        let drawn = multinomial(&weights, DRAWS, 1, true, 6, 0);
        follows(name, &counts(drawn, weights.len()), &weights.iter().map(|&w| f64::from(w)).collect::<Vec<_>>());
    }
}

/// Without replacement: pairs (i, j) have w_i / W * w_j / (W - w_i).
#[test]
fn pairs_without_replacement() {
    let weights = [0.4f32, 0.3, 0.2, 0.1];
    let drawn = multinomial(&weights, DRAWS, 2, false, 9, 4);
    let pairs = counts(drawn.chunks(2).map(|pair| 4 * pair[0] + pair[1]), 16);
    let expected = |i: usize| {
        let (a, b) = (f64::from(weights[i / 4]), f64::from(weights[i % 4]));
        if i / 4 == i % 4 { 0.0 } else { a * b / (1.0 - a) }
    };
    follows("pairs", &pairs, &(0..16).map(expected).collect::<Vec<_>>());
}

/// Of two calls with different seeds, or offsets 4 or 12 apart, and of neighbouring rows of one call, neither knows the other.
#[test]
fn draws_do_not_know_each_other() {
    let weights = [0.1f32, 0.2, 0.3, 0.4];
    let expected: Vec<f64> = (0..16).map(|i| f64::from(weights[i / 4]) * f64::from(weights[i % 4])).collect();
    for num_samples in [1, 50] {
        let rows = DRAWS / 2 / num_samples;
        let draw = |seed, offset| multinomial(&weights, rows, num_samples, true, seed, offset);
        let first = draw(7, 0);
        let others = [
            ("seed", draw(8, 0)),
            ("high half of the seed", draw(7 + (1 << 32), 0)),
            ("offset", draw(7, 4)),
            ("offset", draw(7, 12)),
        ];
        for (name, other) in others {
            let pairs = counts(first.iter().zip(&other).map(|(a, b)| 4 * a + b), 16);
            follows(name, &pairs, &expected);
        }
        let neighbours = first.chunks(2 * num_samples).filter(|c| c.len() == 2 * num_samples);
        let pairs = neighbours.flat_map(|c| (0..num_samples).map(move |s| 4 * c[s] + c[num_samples + s]));
        follows("neighbouring rows", &counts(pairs, 16), &expected);
        // Offsets inside one counter are the same counter.
        assert_eq!(draw(7, 1), draw(7, 4));
    }
}

/// The distribution function of the exponential numbers, in cells of equal probability.
#[test]
fn exponential_numbers_are_exponential() {
    let mut e = vec![0.0f32; DRAWS];
    let mut call = Exponential::new(TensorMut::new([DRAWS / 1000, 1000], &mut e).unwrap());
    (call.rate, call.seed) = (2.0, 11);
    run(&Host::new(), call).unwrap();
    const CELLS: usize = 1000;
    let cell = |&e: &f32| (((1.0 - (-2.0 * f64::from(e)).exp()) * CELLS as f64) as usize).min(CELLS - 1) as i64;
    follows("exponential", &counts(e.iter().map(cell), CELLS), &[1.0; CELLS]);
}

/// What is kept of a row.
#[derive(Clone, Copy, Debug)]
struct Stages {
    k: i32,
    p: f32,
    min_p: f32,
}

/// How a call of TopKTopPSample draws.
enum Draws<'a> {
    /// With `q`, `[rows,V]`.
    Given(&'a [f32]),
    /// With one pair of the generator.
    Generator(i64, i64),
    /// With lines of seeds.
    Lines(&'a [i64]),
}

/// The tokens of `rows` rows with the same logits.
fn sampled(logits: &[f32], stages: Stages, rows: usize, draws: &Draws<'_>) -> Vec<i64> {
    let v = logits.len();
    let (k, p, min_p) = ([stages.k], [stages.p], [stages.min_p]);
    let mut chosen = vec![-1; rows];
    let pair = if let Draws::Generator(seed, offset) = *draws { [seed, offset] } else { [0; 2] };
    // One row and its parameters, broadcast.
    let mut call = TopKTopPSample::new(
        Tensor::strided([rows, v], [0, 1], logits).unwrap(),
        Tensor::strided([rows], [0], &k).unwrap(),
        Tensor::strided([rows], [0], &p).unwrap(),
        TensorMut::new([rows], &mut chosen).unwrap(),
    );
    call.min_ps = Some(Tensor::strided([rows], [0], &min_p).unwrap());
    call.eps = 0.0;
    call.post_sample = PostSample::MultiNomial;
    match draws {
        Draws::Given(q) => {
            call.post_sample = PostSample::QSample;
            call.q = Some(Noise::Exponential(Tensor::new([rows, v], q).unwrap()));
        }
        Draws::Generator(..) => call.generator = Some(Tensor::new([2], &pair).unwrap()),
        Draws::Lines(lines) => call.q = Some(Noise::Seeds(Tensor::new([lines.len() / 2, 2], lines).unwrap())),
    }
    run(&Host::with(Isa::detect(), Rayon::new(2).unwrap()).unwrap(), call).unwrap();
    chosen
}

/// The probabilities of the survivors, by sorting and sums of f64; 0 for the others.
fn survivors(logits: &[f32], stages: Stages) -> Vec<f64> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    order.truncate(if stages.k > 0 { stages.k as usize } else { logits.len() });
    let e: Vec<f64> = order.iter().map(|&i| f64::from(logits[i]).exp()).collect();
    let sum: f64 = e.iter().sum();
    let (mut before, mut weights) = (0.0, vec![0.0; logits.len()]);
    for (&i, e) in order.iter().zip(&e) {
        if before < f64::from(stages.p) * sum && *e >= f64::from(stages.min_p) * f64::from(logits[order[0]]).exp() {
            weights[i] = *e;
        }
        before += e;
    }
    weights
}

const STAGES: [Stages; 5] = [
    Stages { k: 0, p: 1.0, min_p: 0.0 },
    Stages { k: 12, p: 1.0, min_p: 0.0 },
    Stages { k: 0, p: 0.8, min_p: 0.0 },
    // A part of the largest that no weight of the shapes is at.
    Stages { k: 0, p: 1.0, min_p: 0.11 },
    Stages { k: 20, p: 0.9, min_p: 0.03 },
];

/// The logits of every shape.
fn rows() -> [(&'static str, Vec<f32>); 5] {
    shapes().map(|(name, weights)| (name, weights.into_iter().map(f32::ln).collect()))
}

/// Each shape with other stages: those that cut with one that they cut from.
fn cases() -> impl Iterator<Item = (String, Vec<f32>, Stages)> {
    let stages = STAGES.into_iter().cycle().skip(4);
    rows().into_iter().zip(stages).map(|((name, logits), stages)| (format!("{name} {stages:?}"), logits, stages))
}

/// q-sampling with exponential q of the library's own.
#[test]
fn q_sampling_follows_the_survivors() {
    for (name, logits, stages) in cases() {
        let (v, rows) = (logits.len(), DRAWS / 10);
        let (mut q, mut counts) = (vec![0.0f32; rows * v], vec![0; v]);
        for part in 0..10 {
            let mut call = Exponential::new(TensorMut::new([rows, v], &mut q).unwrap());
            (call.seed, call.offset) = (31, 400 * part);
            run(&Host::with(Isa::detect(), Rayon::new(2).unwrap()).unwrap(), call).unwrap();
            sampled(&logits, stages, rows, &Draws::Given(&q)).iter().for_each(|&i| counts[i as usize] += 1);
        }
        follows(&name, &counts, &survivors(&logits, stages));
    }
}

/// The choice that draws for itself, all rows from one pair, or each from its own.
#[test]
fn multinomial_sampling_follows_the_survivors() {
    let lines: Vec<i64> = (0..2 * DRAWS as i64).map(|i| if i % 2 == 0 { 1000 + i } else { 0 }).collect();
    for (name, logits, stages) in cases() {
        for (which, draws) in [("generator", Draws::Generator(41, 0)), ("lines", Draws::Lines(&lines))] {
            let drawn = counts(sampled(&logits, stages, DRAWS, &draws), logits.len());
            follows(&format!("{which} {name}"), &drawn, &survivors(&logits, stages));
        }
    }
}

/// Rows that share a line share their noise; rows of one generator, and of neighbouring seeds, know nothing of each other.
#[test]
fn rows_of_a_generator_are_independent_and_rows_of_a_line_are_not() {
    let logits: Vec<f32> = [0.1f32, 0.2, 0.3, 0.4].map(f32::ln).to_vec();
    let stages = STAGES[0];
    let expected: Vec<f64> = (0..16).map(|i| (i / 4 + 1) as f64 * (i % 4 + 1) as f64).collect();
    let pairs = |tokens: &[i64]| counts(tokens.chunks_exact(2).map(|pair| 4 * pair[0] + pair[1]), 16);
    let drawn = sampled(&logits, stages, DRAWS, &Draws::Generator(51, 0));
    follows("neighbours of a generator", &pairs(&drawn), &expected);
    let later = sampled(&logits, stages, DRAWS, &Draws::Generator(51, 12));
    let both: Vec<i64> = drawn.iter().zip(&later).flat_map(|(&a, &b)| [a, b]).collect();
    follows("calls 12 apart", &pairs(&both), &expected);
    let lines: Vec<i64> = (0..DRAWS as i64 / 4).flat_map(|i| [i, 0]).collect();
    let of_lines = sampled(&logits, stages, DRAWS / 4, &Draws::Lines(&lines));
    follows("neighbouring seeds", &pairs(&of_lines), &expected);
    // The last line serves the rows beyond.
    let shared = sampled(&logits, stages, 1000, &Draws::Lines(&lines[..20]));
    assert_eq!(shared[..10], of_lines[..10]);
    assert!(shared[9..].iter().all(|&token| token == shared[9]));
}
