//! 80 000 rows against the operators' numpy reference.
//!
//! The calls are made here and, where python3 with numpy and the reference are there (`TILEKERN_REFERENCE` names its folder,
//! `PYTHON` the interpreter), handed to `reference.py` in a file; what differs from its answers must differ by no more than the
//! roundings of an exponential explain. Everywhere the digest of the answers is compared with the committed one.
//!
//! What differs are six rows of Multinomial, two of them of less than 4 097 weights: draws of hundreds without replacement, in the order of
//! their ratios, of which two neighbours are equal or one unit of the last place apart. They change places where a logarithm is not the
//! nearest f32: in five rows one of numpy's, in one ours.

use super::{apply_top_k_top_p, apply_top_k_top_p_min_p, top_k_top_p_sample_v1};
use crate::common::{Order, Random, run};
use half::{bf16, f16};
use std::io::Write;
use std::process::{Command, Stdio};
use tilekern::ops::{Exponential, Multinomial};
use tilekern::{Host, Tensor, TensorMut};
use tilekern_kernels::element::Element;

/// An emulated processor makes the first of them.
const CALLS: usize = if cfg!(target_arch = "x86_64") { 20_000 } else { FIRST };
const FIRST: usize = 4_000;
const ROWS: usize = 4;
const SIZES: [usize; 24] = [1, 2, 3, 5, 8, 11, 16, 17, 24, 31, 33, 48, 50, 64, 64, 65, 100, 100, 128, 150, 257, 300, 700, 1100];

/// Of the answers to the first calls, and to all: FNV-1a, 64 bits.
const DIGESTS: [(usize, u64); 2] = [(FIRST, 0x66EC_B556_3DAE_A6BD), (20_000, 0x52C0_14BE_14CA_E3C9)];

fn digest(answers: &[u32]) -> u64 {
    let bytes = answers.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |digest, b| (digest ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}

/// Call after call as words of 32 bits: operator, dtype, V, five numbers of the operator, its tensors.
#[derive(Default)]
struct Words(Vec<u32>);

impl Words {
    fn call(&mut self, operator: u32, dtype: usize, v: usize, numbers: [u32; 5]) {
        self.0.extend([operator, dtype as u32, v as u32]);
        self.0.extend(numbers);
    }

    fn floats<T: Element>(&mut self, tensor: &[T]) {
        self.0.extend(tensor.iter().map(|x| x.as_().to_bits()));
    }

    fn integers(&mut self, tensor: &[i32]) {
        self.0.extend(tensor.iter().map(|&x| x as u32));
    }
}

fn narrowed<T: Element>(x: impl IntoIterator<Item = f32>) -> Vec<T> {
    x.into_iter().map(T::narrow).collect()
}

/// Logits: fine, heavy ties, all equal, half masked, wide.
fn logits(random: &mut Random, v: usize) -> Vec<f32> {
    let kind = random.below(5);
    let mut row: Vec<f32> = (0..v)
        .map(|_| match kind {
            0 => (random.unit() * 4.0).round() / 2.0,
            1 => 1.5,
            2 if random.below(2) == 0 => f32::NEG_INFINITY,
            3 => random.unit() * 60.0,
            _ => random.unit() * 6.0,
        })
        .collect();
    row[random.below(v)] = 1.5;
    row
}

fn fraction(random: &mut Random) -> f32 {
    match random.below(10) {
        n @ 0..5 => [0.0, 1.0, -0.5, 1.5, 0.5][n],
        _ => random.unit().abs(),
    }
}

fn apply<T: Element + std::fmt::Debug>(random: &mut Random, words: &mut Words, dtype: usize, v: usize, order: Order) -> Vec<u32> {
    let mode = random.below(3);
    let case = apply_top_k_top_p::Case::<T> {
        v,
        logits: narrowed((0..ROWS).flat_map(|_| logits(random, v)).collect::<Vec<_>>()),
        p: (mode != 0).then(|| narrowed((0..ROWS).map(|_| fraction(random)).collect::<Vec<_>>())),
        k: (mode != 1).then(|| (0..ROWS).map(|_| random.below(v + 3) as i32 - 1).collect()),
    };
    words.call(0, dtype, v, [u32::from(mode != 0), u32::from(mode != 1), 0, 0, 0]);
    words.floats(&case.logits);
    words.floats(case.p.as_deref().unwrap_or_default());
    words.integers(case.k.as_deref().unwrap_or_default());
    case.answer(&Host::new(), order).iter().map(|x| x.as_().to_bits()).collect()
}

/// Probabilities that descend: multiples of a power of two, so that partial sums hit p exactly, or any.
fn min_p<T: Element + std::fmt::Debug>(random: &mut Random, words: &mut Words, dtype: usize, v: usize, order: Order) -> Vec<u32> {
    let probs = (0..ROWS).flat_map(|_| {
        let exact = random.below(2) == 0;
        let unit = 1.0 / (8.0 * v.next_power_of_two() as f32);
        let mut row: Vec<f32> =
            (0..v).map(|_| if exact { random.below(9) as f32 * unit } else { random.unit().abs() * 8.0 * unit }).collect();
        row.sort_by(|a, b| b.total_cmp(a));
        row
    });
    let case = apply_top_k_top_p_min_p::Case::<T> {
        v,
        probs: narrowed(probs.collect::<Vec<_>>()),
        k: (0..ROWS).map(|_| random.below(v + 3) as i32 - 1).collect(),
        p: narrowed((0..ROWS).map(|_| (fraction(random) * 64.0).round() / 64.0).collect::<Vec<_>>()),
        min_p: (random.below(2) == 0).then(|| narrowed((0..ROWS).map(|_| fraction(random)).collect::<Vec<_>>())),
    };
    words.call(1, dtype, v, [u32::from(case.min_p.is_some()), 0, 0, 0, 0]);
    words.floats(&case.probs);
    words.integers(&case.k);
    words.floats(&case.p);
    words.floats(case.min_p.as_deref().unwrap_or_default());
    case.answer(&Host::new(), order).iter().map(|x| x.as_().to_bits()).collect()
}

fn first_version<T: Element + std::fmt::Debug>(
    random: &mut Random,
    words: &mut Words,
    dtype: usize,
    v: usize,
    order: Order,
) -> Vec<u32> {
    let case = top_k_top_p_sample_v1::Case::<T> {
        v,
        logits: narrowed((0..ROWS).flat_map(|_| logits(random, v)).collect::<Vec<_>>()),
        top_k: (0..ROWS).map(|_| if random.below(2) == 0 { 0 } else { random.below(v + 3) as i32 - 1 }).collect(),
        top_p: narrowed((0..ROWS).map(|_| fraction(random)).collect::<Vec<_>>()),
        q: (random.below(3) > 0).then(|| (0..ROWS * v).map(|_| random.unit() * 4.0).collect()),
        eps: 1e-8,
    };
    words.call(2, dtype, v, [u32::from(case.q.is_some()), 0, 0, 0, 0]);
    words.floats(&case.logits);
    words.integers(&case.top_k);
    words.floats(&case.top_p);
    words.floats(case.q.as_deref().unwrap_or_default());
    let answer = case.answer(&Host::new(), order);
    answer.chosen.iter().map(|&token| token as u32).chain(answer.select).collect()
}

fn multinomial<T: Element + tilekern::ops::Weight>(random: &mut Random, words: &mut Words, dtype: usize, v: usize) -> Vec<u32> {
    let weights = (0..ROWS * v).map(|i| match random.below(6) {
        0 if i % v > 0 => 0.0,
        1 => 0.25,
        _ => random.unit().abs() + 0.01,
    });
    let probs: Vec<T> = narrowed(weights.collect::<Vec<_>>());
    let (seed, offset, replacement) = (random.bits(), random.below(1000) as u32, random.below(2) == 0);
    let samples = if replacement { 1 + random.below(6) } else { 1 + random.below(v) };
    let mut out = vec![0; ROWS * samples];
    let mut call = Multinomial::new(Tensor::new([ROWS, v], &probs).unwrap(), TensorMut::new([ROWS, samples], &mut out).unwrap());
    (call.num_samples, call.replacement, call.seed, call.offset) = (samples as i64, replacement, seed as i64, offset.into());
    run(&Host::new(), call).unwrap();
    words.call(3, dtype, v, [samples as u32, replacement.into(), seed as u32, (seed >> 32) as u32, offset]);
    words.floats(&probs);
    out.into_iter().map(|i| i as u32).collect()
}

fn exponential<T: Element>(random: &mut Random, words: &mut Words, dtype: usize, v: usize) -> Vec<u32> {
    let (seed, offset) = (random.bits(), random.below(1000) as u32);
    let rate = [1.0f32, 2.0, 0.7][random.below(3)];
    let mut out = vec![T::default(); ROWS * v];
    let mut call = Exponential::new(TensorMut::new([ROWS, v], &mut out).unwrap());
    (call.rate, call.seed, call.offset) = (rate.into(), seed as i64, offset.into());
    run(&Host::new(), call).unwrap();
    words.call(4, dtype, v, [rate.to_bits(), 0, seed as u32, (seed >> 32) as u32, offset]);
    out.iter().map(|x| x.as_().to_bits()).collect()
}

fn answer<T: Element + tilekern::ops::Weight + std::fmt::Debug>(call: usize, dtype: usize, words: &mut Words) -> Vec<u32> {
    let mut random = Random(call as u64);
    let v = if call % 500 < 5 { 5000 } else { SIZES[random.below(24)] };
    let order = [Order::Contiguous, Order::Pitched, Order::Transposed][call / 15 % 3];
    match call % 5 {
        0 => apply::<T>(&mut random, words, dtype, v, order),
        1 => min_p::<T>(&mut random, words, dtype, v, order),
        2 => first_version::<T>(&mut random, words, dtype, v, order),
        3 => multinomial::<T>(&mut random, words, dtype, v),
        _ => exponential::<T>(&mut random, words, dtype, v),
    }
}

/// Hands the calls, and what was answered, to the reference; what it says of them.
fn compare(calls: &Words, answers: &[u32]) -> Option<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = std::env::var("TILEKERN_REFERENCE").unwrap_or(format!("{root}/../shared/spec"));
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let numpy = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    if !numpy.is_ok_and(|s| s.success()) || !std::path::Path::new(&folder).join("ref_sampling.py").exists() {
        return None;
    }
    let path = |name| std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (name, words) in [("calls", &calls.0[..]), ("answers", answers)] {
        std::fs::write(path(name), bytemuck::cast_slice(words)).unwrap();
    }
    let script = format!("{root}/tests/sampling/reference.py");
    let output = Command::new(python).args([&script, &folder]).args([path("calls"), path("answers")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn eighty_thousand_rows() {
    let (mut calls, mut answers, mut ends) = (Words::default(), Vec::new(), vec![0]);
    for call in 0..CALLS {
        let dtype = call / 5 % 3;
        answers.extend(match dtype {
            0 => answer::<f32>(call, dtype, &mut calls),
            1 => answer::<f16>(call, dtype, &mut calls),
            _ => answer::<bf16>(call, dtype, &mut calls),
        });
        ends.push(answers.len());
    }
    let report = compare(&calls, &answers).unwrap_or(format!(
        "compared the digest of {} rows (python3 with numpy and ref_sampling.py are not there)",
        CALLS * ROWS
    ));
    // Not through the macros, whose output the test harness keeps for itself.
    let _ = writeln!(std::io::stderr(), "sampling operations: {}", report.trim_end());
    for (calls, expected) in DIGESTS.into_iter().filter(|(calls, _)| *calls <= CALLS) {
        let found = digest(&answers[..ends[calls]]);
        assert_eq!(found, expected, "{calls} calls: {found:#018X}");
    }
}
