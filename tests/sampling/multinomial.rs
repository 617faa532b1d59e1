//! Multinomial: the worked examples, every draw against the scalar definition, whatever the strides and the threads; refusals.

use super::examples::{self, floats, integers};
use crate::common::{Buffer, Order, Random, every_host, refused, rounds, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::{Multinomial, Weight};
use tilekern::{Dims, Host, Isa, ParallelFor, Serial, Tensor, TensorMut};
use tilekern_kernels::reference;

/// A call that owns its weights.
#[derive(Clone, Debug)]
struct Case<T> {
    /// `[N,C]`, or `[C]` with N = 1.
    shape: Vec<usize>,
    probs: Vec<T>,
    num_samples: usize,
    replacement: bool,
    seed: i64,
    offset: i64,
}

impl<T: Weight + PartialEq + std::fmt::Debug + Into<f64>> Case<T> {
    fn drawn<P: ParallelFor>(&self, host: &Host<P>, order: Order, rubbish: T) -> Vec<i64> {
        let probs = Buffer::new(&self.shape, order, &self.probs, rubbish);
        let mut shape = self.shape.clone();
        *shape.last_mut().unwrap() = self.num_samples;
        let mut out = Buffer::empty(&shape, order, -5i64);
        let mut call = Multinomial::new(probs.view(), out.view_mut());
        (call.num_samples, call.replacement) = (self.num_samples as i64, self.replacement);
        (call.seed, call.offset) = (self.seed, self.offset);
        run(host, call).unwrap();
        out.values()
    }

    fn defined(&self) -> Vec<i64> {
        let (c, k) = (*self.shape.last().unwrap(), self.num_samples);
        let (seed, offset) = (self.seed as u64, self.offset as u64);
        let weights: Vec<f32> = self.probs.iter().map(|&w| w.into() as f32).collect();
        let mut out = Vec::new();
        for (n, row) in weights.chunks(c).enumerate() {
            if k == 1 || !self.replacement {
                let mut order = vec![0; c];
                let noise = |j| reference::exponential(seed, offset, weights.len() as u64, (n * c + j) as u64);
                reference::weight_race(row, noise, &mut order);
                out.extend(order[..k].iter().map(|&j| i64::from(j)));
            } else {
                let low = offset.div_ceil(4);
                out.extend((0..k).map(|s| {
                    let high = (n * k.next_multiple_of(128) + s) as u64;
                    let counter = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
                    let words = reference::philox4x32(counter, [seed as u32, (seed >> 32) as u32]);
                    reference::weight_search(row, reference::uniform(words[0])) as i64
                }));
            }
        }
        out
    }

    fn compare(&self, rubbish: T) {
        let expected = self.defined();
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let found = self.drawn(host, order, rubbish);
                assert!(found == expected, "{:?} {order:?} {:?} {}", host.isa(), self.shape, self.num_samples);
            });
        }
    }
}

/// Rows of ordinary weights, of ties above 1, with holes, of one weight alone, of none, hostile ones, such as a softmax gives, steps, what
/// top-k leaves, and weights far from a sum of 1.
fn weights(random: &mut Random, c: usize, kind: usize) -> Vec<f32> {
    let mut w: Vec<f32> = match kind {
        0 => (0..c).map(|_| random.unit().abs()).collect(),
        1 => vec![3.0; c],
        2 => (0..c).map(|_| if random.below(3) == 0 { random.unit().abs() } else { 0.0 }).collect(),
        3 => vec![0.0; c],
        4 => (0..c).map(|_| random.number()).collect(),
        5 => (0..c).map(|_| f32::from_bits(random.bits() as u32)).collect(),
        6 => (0..c).map(|_| (12.0 * random.unit()).exp()).collect(),
        7 => (0..c).map(|i| 1e-3f32.powi((i % 13) as i32)).collect(),
        8 => (0..c).map(|_| if random.below(200) == 0 { (6.0 * random.unit()).exp() } else { 0.0 }).collect(),
        9 => (0..c).map(|_| 1e30 * (12.0 * random.unit()).exp()).collect(),
        _ => (0..c).map(|_| 1e-20 * (12.0 * random.unit()).exp()).collect(),
    };
    if kind == 3 && random.below(2) == 0 {
        w[random.below(c)] = 1e-40;
    }
    if kind == 4 {
        for special in [f32::NAN, f32::INFINITY, f32::INFINITY, -0.0, f32::MAX] {
            w[random.below(c)] = special;
        }
    }
    w
}

fn case<T>(random: &mut Random, rows: usize, c: usize, num_samples: usize, replacement: bool, of: fn(f32) -> T) -> Case<T> {
    let probs = (0..rows).flat_map(|_| {
        let kind = random.below(8);
        weights(random, c, kind)
    });
    let probs = probs.collect::<Vec<f32>>().into_iter().map(of).collect();
    let shape = if rows == 1 { vec![c] } else { vec![rows, c] };
    Case { shape, probs, num_samples, replacement, seed: random.bits() as i64, offset: [0, 12, 7, -3][random.below(4)] }
}

fn every_draw<T: Weight + PartialEq + std::fmt::Debug + Into<f64>>(seed: u64, of: fn(f32) -> T) {
    let mut random = Random(seed);
    for c in [1, 2, 15, 16, 17, 100, 257, 4097, 255, 4095, 9000].into_iter().take(rounds(160)) {
        for rows in [1, 5].into_iter().take(rounds(2)) {
            case(&mut random, rows, c, 1, true, of).compare(of(9.0));
            case(&mut random, rows, c, c.div_ceil(2), false, of).compare(of(9.0));
            case(&mut random, rows, c, c, false, of).compare(of(9.0));
            case(&mut random, rows, c, c.min(5), false, of).compare(of(9.0));
            case(&mut random, rows, c, 3, true, of).compare(of(9.0));
        }
        case(&mut random, 2, c.min(300), 700, true, of).compare(of(9.0));
    }
}

/// One sample and some of every kind of row: what is known to win leaves few to draw, or tells nothing.
#[test]
fn every_kind() {
    let mut random = Random(8);
    for (c, kind) in [9000, 257, 4097, 300].into_iter().flat_map(|c| (0..8).map(move |kind| (c, kind))).take(rounds(240)) {
        for samples in [1, 5, 18] {
            let probs = weights(&mut random, c, kind);
            let case =
                Case { shape: vec![c], probs, num_samples: samples, replacement: false, seed: random.bits() as i64, offset: 0 };
            case.compare(9.0);
        }
    }
}

/// One sample of rows whose largest weights race first: of the shortest of these, of longer ones, and of one that is too short.
#[test]
fn whole_rows() {
    let mut random = Random(9);
    for (c, kind) in [2048, 20_000, 2047, 40_001].into_iter().flat_map(|c| (0..11).map(move |kind| (c, kind))).take(rounds(240)) {
        let (probs, seed) = (weights(&mut random, c, kind), random.bits() as i64);
        Case { shape: vec![c], probs, num_samples: 1, replacement: true, seed, offset: 4 }.compare(9.0);
    }
}

#[test]
fn f32_rows() {
    every_draw(1, |x| x);
    every_draw(2, |x| x);
}

#[test]
fn other_dtypes() {
    every_draw(3, f16::from_f32);
    every_draw(4, bf16::from_f32);
    every_draw(5, |x| f64::from(x) * 1.000_000_01);
}

/// Rows that are cut over the pool, many samples of one row, and rows whose numbers have more than one turn, which is of 159 744.
#[test]
fn long_rows() {
    let mut random = Random(6);
    for (rows, c, num_samples, replacement) in [
        (2, 20_000, 1, true),
        (1, 70_001, 5, false),
        (1, 40, 20_000, true),
        (1, 40_000, 30_000, false),
        (2, 300_000, 40, true),
        (3, 100_000, 1, true),
        (1, 1 << 20, 1, true),
        (1, (1 << 20) + 1, 1, true),
        (1, 200_001, 20, false),
    ]
    .into_iter()
    .take(rounds(70))
    {
        let case = case(&mut random, rows, c, num_samples, replacement, |x| x);
        let expected = case.defined();
        every_host(|host| assert!(case.drawn(host, Order::Contiguous, 9.0) == expected, "{:?} {rows} {c}", host.isa()));
    }
}

/// Where an f64 does not fit an f32.
#[test]
fn f64_weights_beyond_f32() {
    let case = Case {
        shape: vec![5],
        probs: vec![1e300, 1e-300, f64::NAN, -1e300, f64::INFINITY],
        num_samples: 64,
        replacement: true,
        seed: 3,
        offset: 0,
    };
    let drawn = case.drawn(&Host::new(), Order::Contiguous, 0.0);
    // Two weights count, and count alike.
    assert!(drawn.iter().all(|&i| i == 0 || i == 4) && drawn.contains(&0) && drawn.contains(&4), "{drawn:?}");
    assert_eq!(drawn, case.defined());
}

#[test]
fn rows_without_weight() {
    let zeros = [0.0f32, -1.0, f32::NAN, f32::NEG_INFINITY, -0.0];
    for (num_samples, replacement, expected) in
        [(1, true, vec![0]), (4, true, vec![0; 4]), (1, false, vec![0]), (4, false, vec![0, 1, 2, 3])]
    {
        let case = Case { shape: vec![5], probs: zeros.to_vec(), num_samples, replacement, seed: 1, offset: 0 };
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let host = Host::with(isa, Serial).unwrap();
            assert_eq!(case.drawn(&host, Order::Contiguous, 7.0), expected, "{isa:?}");
        }
    }
}

/// The first calls of a batch are those of its rows where every row has a line of its own: not here, where elements are numbered over
/// the tensor. So a row alone is the first row.
#[test]
fn a_vector_is_a_matrix_of_one_row() {
    let probs = [0.1f32, 0.2, 0.3, 0.4];
    for (num_samples, replacement) in [(1, true), (3, false), (9, true)] {
        let of =
            |shape: &[usize]| Case { shape: shape.to_vec(), probs: probs.to_vec(), num_samples, replacement, seed: 5, offset: 8 };
        let draw = |shape| of(shape).drawn(&Host::new(), Order::Contiguous, 0.0);
        assert_eq!(draw(&[4]), draw(&[1, 4]));
    }
}

#[test]
fn worked_examples() {
    let mut replayed = 0;
    for example in examples::of("Multinomial950") {
        let (attrs, probs) = (&example["attrs"], &example["inputs"]["self"]);
        let columns = probs[0].as_array().unwrap().len();
        let probs = floats(probs);
        let case = Case {
            shape: vec![probs.len() / columns, columns],
            probs,
            num_samples: attrs["numsamples"].as_u64().unwrap() as usize,
            replacement: attrs["replacement"].as_bool().unwrap(),
            seed: attrs["seed"].as_i64().unwrap(),
            offset: attrs["offset"].as_i64().unwrap(),
        };
        let expected = integers(&example["outputs"]["out"]);
        for host in crate::common::hosts() {
            assert_eq!(case.drawn(&host, Order::Pitched, 9.0), expected, "{}", example["name"]);
        }
        replayed += 1;
    }
    assert_eq!(replayed, 3);
}

type Call<'a> = Multinomial<'a, Host, f32>;

/// The query's answer for these shapes.
fn query(probs: &[usize], out: &[usize], num_samples: i64, replacement: bool) -> Result<(), (i32, &'static str)> {
    let mut call = Call::new(shape_only(probs), shape_only_mut(out));
    (call.num_samples, call.replacement) = (num_samples, replacement);
    tilekern::Run::workspace(&Host::new(), &call).map(|_| ()).map_err(|e| (e.status().code(), e.argument()))
}

#[test]
fn checks_in_their_order() {
    let invalid = |argument| Err((161002, argument));
    assert_eq!(query(&[2, 4], &[2, 3], 3, false), Ok(()));
    assert_eq!(query(&[4], &[3], 3, true), Ok(()));
    assert_eq!(query(&[], &[], 1, true), invalid("probs"));
    assert_eq!(query(&[2, 2, 4], &[2, 2, 1], 1, true), invalid("probs"));
    assert_eq!(query(&[2, 4], &[2], 2, true), invalid("out"));
    assert_eq!(query(&[4], &[1, 1], 1, true), invalid("out"));
    assert_eq!(query(&[2, 4], &[2, 3], 2, true), invalid("out"));
    assert_eq!(query(&[2, 4], &[3, 2], 2, true), invalid("out"));
    // The shape of out comes before the number of samples, that before C.
    assert_eq!(query(&[2, 4], &[2, 1], 0, true), invalid("out"));
    assert_eq!(query(&[2, 4], &[2, 0], 0, true), invalid("num_samples"));
    assert_eq!(query(&[2, 4], &[2, 1], -1, true), invalid("out"));
    assert_eq!(query(&[2, 4], &[2, 5], 5, false), invalid("num_samples"));
    assert_eq!(query(&[2, 4], &[2, 5], 5, true), Ok(()));
    assert_eq!(query(&[1, 1 << 24], &[1, 1], 1, true), Ok(()));
    assert_eq!(query(&[1, (1 << 24) + 1], &[1, 1], 1, true), invalid("probs"));
    // Nothing to draw from.
    assert_eq!(query(&[2, 0], &[2, 1], 1, false), invalid("num_samples"));
    for (probs, out) in [(&[0, 4][..], &[0, 2][..]), (&[2, 0], &[2, 2]), (&[0], &[2])] {
        let mut call = Call::new(shape_only(probs), shape_only_mut(out));
        call.num_samples = 2;
        assert_eq!(run(&Host::new(), call), Ok(()));
    }
}

#[test]
fn a_run_needs_data_and_memory_of_its_own() {
    let (probs, mut out) = ([0.5f32; 8], [-1i64; 4]);
    let mut data = |probs| {
        let mut call = Call::new(probs, TensorMut::new([2, 2], &mut out).unwrap());
        call.num_samples = 2;
        refused(&Host::new(), call)
    };
    assert_eq!(data(shape_only(&[2, 4])), (161001, "probs"));
    let mut missing = Call::new(Tensor::new([2, 4], &probs).unwrap(), shape_only_mut(&[2, 2]));
    missing.num_samples = 2;
    assert_eq!(refused(&Host::new(), missing), (161001, "out"));
    let doubled = TensorMut::with(Dims::strided(&[2, 2], &[1, 1]).unwrap(), &mut out).unwrap();
    let mut overlapping = Call::new(Tensor::new([2, 4], &probs).unwrap(), doubled);
    overlapping.num_samples = 2;
    assert_eq!(refused(&Host::new(), overlapping), (161002, "out"));
    assert_eq!(out, [-1; 4]);
}

/// The workspace is bounded, but for the keys of samples without replacement.
#[test]
fn workspace() {
    let size = |c: usize, k: usize, replacement| {
        let mut call = Call::new(shape_only(&[3, c]), shape_only_mut(&[3, k]));
        (call.num_samples, call.replacement) = (k as i64, replacement);
        tilekern::Run::workspace(&Host::new(), &call).unwrap().size()
    };
    for c in [1, 1000, 16_384, 16_385, 1 << 20, 1 << 24] {
        assert!(size(c, 1, true) <= 256 << 10 && size(c, 1 << 20, true) <= 256 << 10, "{c}");
        assert!(size(c, c.min(8000), false) <= 256 << 10, "{c}");
    }
    assert!(size(1 << 24, 1 << 23, false) <= (64 << 20) * 3 / 2 + (256 << 10));
}
