//! ApplyTopKTopP: the worked examples, rows of every kind against the scalar definition, refusals.

use super::examples::{self, floats, integers};
use crate::common::{Buffer, Order, Random, every_host, hosts, refused, rounds, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::ApplyTopKTopP;
use tilekern::{Dims, Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;

/// A call that owns its tensors.
#[derive(Clone, Debug)]
pub struct Case<T> {
    pub v: usize,
    pub logits: Vec<T>,
    pub p: Option<Vec<T>>,
    pub k: Option<Vec<i32>>,
}

impl<T: Element + std::fmt::Debug> Case<T> {
    pub fn answer<P: ParallelFor>(&self, host: &Host<P>, order: Order) -> Vec<T> {
        let b = self.logits.len() / self.v;
        let column = &order.column(b)[..];
        let logits = Buffer::new(&[b, self.v], order, &self.logits, T::narrow(77.0));
        let p = self.p.as_ref().map(|p| Buffer::new(column, order, p, T::narrow(0.1)));
        let k = self.k.as_ref().map(|k| Buffer::new(column, order, k, 1));
        let mut out = Buffer::empty(&[b, self.v], order, T::narrow(-9.5));
        let mut call = ApplyTopKTopP::new(logits.view(), out.view_mut());
        (call.p, call.k) = (p.as_ref().map(Buffer::view), k.as_ref().map(Buffer::view));
        run(host, call).unwrap();
        out.values()
    }

    fn defined(&self) -> Vec<T> {
        let mut out = vec![T::default(); self.logits.len()];
        let mut order = vec![0; self.v];
        for (b, (row, out)) in self.logits.chunks(self.v).zip(out.chunks_mut(self.v)).enumerate() {
            let k = self.k.as_ref().map_or(0, |k| k[b]);
            let k = if k <= 0 { self.v } else { k as usize };
            reference::apply_top_k_top_p(row, k, self.p.as_ref().map_or(f32::NAN, |p| p[b].as_()), &mut order, out);
        }
        out
    }
}

/// The bits, sign and payload of a NaN with them: what stays is a copy.
fn bits<T: Element>(row: &[T]) -> &[u8] {
    bytemuck::cast_slice(row)
}

fn row(random: &mut Random, v: usize, kind: usize) -> Vec<f32> {
    let spread = [0.1, 1.0, 4.0, 30.0][random.below(4)];
    let mut x: Vec<f32> = match kind {
        0 => (0..v).map(|_| (random.unit() * 4.0).round()).collect(),
        1 => vec![spread; v],
        2 => (0..v).map(|i| i as f32 * 0.01).collect(),
        3 => (0..v).map(|i| i as f32 * -0.01).collect(),
        4 => (0..v).map(|_| random.number()).collect(),
        5 => (0..v).map(|_| if random.below(2) == 0 { f32::NEG_INFINITY } else { random.unit() * spread }).collect(),
        6 => (0..v).map(|_| f32::from_bits(random.bits() as u32)).collect(),
        7 => (0..v).map(|_| [0.0, -0.0, 1e-40, -1e-40][random.below(4)]).collect(),
        8 => vec![[f32::NEG_INFINITY, f32::NAN, f32::INFINITY, 0.0, -0.0, f32::MAX, f32::MIN][random.below(7)]; v],
        9 => (0..v).map(|_| random.unit() * 120.0).collect(),
        _ => (0..v).map(|_| (0..4).map(|_| random.unit()).sum::<f32>() * spread).collect(),
    };
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 20.0] {
        if random.below(12) == 0 {
            x[random.below(v)] = special;
        }
    }
    x
}

fn case<T: Element>(random: &mut Random, rows: usize, v: usize) -> Case<T> {
    let logits = (0..rows).flat_map(|_| {
        let kind = random.below(14);
        row(random, v, kind)
    });
    let logits = logits.collect::<Vec<f32>>().into_iter().map(T::narrow).collect();
    let p = |random: &mut Random| match random.below(14) {
        n @ 0..8 => [0.0, 0.5, 1.0, 1.5, -1.0, f32::NAN, 0.999_999_94, 1e-30][n],
        8 => 0.25 * random.below(5) as f32,
        _ => random.unit().abs(),
    };
    let k = |random: &mut Random| [random.below(v + 2) as i32, 1, -1, v as i32, v as i32 - 1, 50, i32::MAX][random.below(7)];
    let mode = random.below(3);
    Case {
        v,
        logits,
        p: (mode != 0).then(|| (0..rows).map(|_| T::narrow(p(random))).collect()),
        k: (mode != 1).then(|| (0..rows).map(|_| k(random)).collect()),
    }
}

fn every_row<T: Element + std::fmt::Debug>(seed: u64) {
    let mut random = Random(seed);
    for v in [1, 2, 3, 15, 16, 17, 64, 100, 257, 1000, 1025, 5000] {
        for _ in 0..rounds(16) {
            let case = case::<T>(&mut random, 5, v);
            let expected = case.defined();
            for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
                every_host(|host| {
                    let found = case.answer(host, order);
                    assert!(bits(&found) == bits(&expected), "{:?} {order:?} {v} {case:?}", host.isa());
                });
            }
        }
    }
}

#[test]
fn f32_rows() {
    every_row::<f32>(1);
    every_row::<f32>(2);
}

#[test]
fn half_rows() {
    every_row::<f16>(3);
    every_row::<bf16>(4);
}

#[test]
fn long_rows() {
    let mut random = Random(5);
    for v in [20_000, 70_001, 130_000] {
        for _ in 0..rounds(8) {
            let case = case::<f32>(&mut random, 2, v);
            let expected = case.defined();
            every_host(|host| assert!(bits(&case.answer(host, Order::Contiguous)) == bits(&expected), "{:?} {v}", host.isa()));
        }
    }
}

#[test]
fn long_rows_of_halves() {
    fn of<T: Element + std::fmt::Debug>(seed: u64) {
        let mut random = Random(seed);
        for _ in 0..rounds(6) {
            let case = case::<T>(&mut random, 2, 20_000);
            let expected = case.defined();
            every_host(|host| assert!(bits(&case.answer(host, Order::Contiguous)) == bits(&expected), "{:?}", host.isa()));
        }
    }
    of::<bf16>(6);
    of::<f16>(11);
}

/// Rows whose every 19th or 20th vector is not like the others, or that have more equals at a cut than a list takes.
fn misleading<T: Element + std::fmt::Debug>(seed: u64) {
    let (v, mut random) = (40_000, Random(seed));
    let sampled = |i: usize| (0..128).any(|part| part * (v / 16) / 128 == i / 16);
    for kind in 0..6 {
        let row: Vec<f32> = (0..v)
            .map(|i| match kind {
                0 => random.unit() * 3.0 - if sampled(i) { 5.0 } else { 0.0 },
                1 => random.unit() * 3.0 + if sampled(i) { 5.0 } else { 0.0 },
                2 => {
                    if sampled(i) {
                        f32::NEG_INFINITY
                    } else {
                        random.unit()
                    }
                }
                3 => {
                    if sampled(i) {
                        random.unit()
                    } else {
                        0.25
                    }
                }
                4 => [-1.0, 0.0, 0.5][random.below(3)],
                _ => {
                    if i % 4 == 0 {
                        random.unit()
                    } else {
                        -0.5
                    }
                }
            })
            .collect();
        let logits: Vec<T> = row.into_iter().map(T::narrow).collect();
        for _ in 0..rounds(8) {
            let p = [0.1, 0.5, 0.9, 0.99, 0.9999, f32::NAN, random.unit().abs()][random.below(7)];
            let k = [0, 2000, 20_000, 39_999, 1 + random.below(v) as i32][random.below(5)];
            let case = Case { v, logits: logits.clone(), p: Some(vec![T::narrow(p)]), k: Some(vec![k]) };
            let expected = case.defined();
            every_host(|host| {
                assert!(bits(&case.answer(host, Order::Contiguous)) == bits(&expected), "{:?} {kind} {p} {k}", host.isa())
            });
        }
    }
}

#[test]
fn what_a_sample_misses() {
    misleading::<f32>(7);
    misleading::<bf16>(8);
}

/// Cuts within a unit of a running sum: whether an entry goes depends on the last bits of the masses of all.
#[test]
fn cuts_in_doubt() {
    let mut random = Random(10);
    for _ in 0..rounds(24) {
        let (v, spread) = (3000, [0.01, 1.0, 3.0][random.below(3)]);
        let logits: Vec<f32> = (0..v).map(|_| spread * random.unit()).collect();
        let mut sorted = logits.clone();
        sorted.sort_by(f32::total_cmp);
        let sum: f64 = sorted.iter().map(|&x| f64::from(x).exp()).sum();
        let below = random.below(v);
        let t = sorted[..below].iter().map(|&x| f64::from(x).exp()).sum::<f64>() / sum;
        let p = (1.0 - t) as f32;
        for p in [p.next_down(), p, p.next_up()] {
            let case = Case { v, logits: logits.clone(), p: Some(vec![p]), k: None };
            let expected = case.defined();
            every_host(|host| assert!(bits(&case.answer(host, Order::Contiguous)) == bits(&expected), "{:?} {p}", host.isa()));
        }
    }
}

/// So many elements above a low rest, far apart: distinct, equal, zeros of both signs, infinite, or blocks of NaN beside them.
fn some_above<T: Element + std::fmt::Debug>(most: usize) {
    let (v, k) = (20_000, 50);
    let cases = [50, 51, 512, 513, 1023, 1024, 1025, 1088, 1089].into_iter().flat_map(|m| (0..5).map(move |kind| (m, kind)));
    for (m, kind) in cases.take(most) {
        let mut row: Vec<f32> = (0..v).map(|i| if i % 3 == 0 { f32::NEG_INFINITY } else { -5.0 - (i % 7) as f32 }).collect();
        for i in 0..m {
            let above = [(i * 7919 % m + 1) as f32 / 64.0, 3.0, [0.0, -0.0][i % 2], f32::INFINITY, 2.0 + (i % 100) as f32 / 64.0];
            row[i * (v / m)] = above[kind];
        }
        if kind == 4 {
            row[640..960].fill(f32::NAN);
        }
        let logits: Vec<T> = row.into_iter().map(T::narrow).collect();
        for p in [None, Some(0.9), Some(1.0)] {
            let case = Case { v, logits: logits.clone(), p: p.map(|p| vec![T::narrow(p)]), k: Some(vec![k]) };
            let expected = case.defined();
            every_host(|host| {
                assert!(bits(&case.answer(host, Order::Contiguous)) == bits(&expected), "{:?} {m} {kind} {p:?}", host.isa())
            });
        }
    }
}

#[test]
fn the_kth_among_few_and_many() {
    some_above::<f32>(rounds(45 * 20));
    some_above::<f16>(rounds(60));
    some_above::<bf16>(rounds(60));
}

/// Rows with fewer blocks than k: the bound is -inf, which all elements reach.
#[test]
fn all_but_one() {
    let mut random = Random(9);
    for v in [1024, 1025] {
        let logits = (0..v).map(|_| random.unit()).collect();
        let case = Case::<f32> { v, logits, p: None, k: Some(vec![v as i32 - 1]) };
        every_host(|host| assert!(bits(&case.answer(host, Order::Contiguous)) == bits(&case.defined()), "{:?} {v}", host.isa()));
    }
}

#[test]
fn worked_examples() {
    let examples = examples::of("ApplyTopKTopP");
    assert_eq!(examples.len(), 6);
    for example in examples {
        let inputs = &example["inputs"];
        let given = |name: &str| Some(&inputs[name]).filter(|x| !x.is_null());
        let case = Case::<f32> {
            v: inputs["logits"][0].as_array().unwrap().len(),
            logits: floats(&inputs["logits"]),
            p: given("p").map(floats),
            k: given("k").map(|k| integers(k).into_iter().map(|k| k as i32).collect()),
        };
        for host in hosts() {
            let expected = floats(&example["outputs"]["out"]);
            assert_eq!(case.answer(&host, Order::Contiguous), expected, "{}", example["name"]);
        }
    }
}

/// The patterns of -inf.
#[test]
fn infinities() {
    fn of<T: Element + std::fmt::Debug>(pattern: &[u8]) {
        let case = Case::<T> { v: 2, logits: vec![T::narrow(1.0), T::narrow(2.0)], p: None, k: Some(vec![1]) };
        for host in hosts() {
            assert_eq!(&bits(&case.answer(&host, Order::Contiguous))[..size_of::<T>()], pattern);
        }
    }
    of::<f32>(&0xFF80_0000u32.to_le_bytes());
    of::<f16>(&0xFC00u16.to_le_bytes());
    of::<bf16>(&0xFF80u16.to_le_bytes());
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut ApplyTopKTopP<'a, Host, f32>)) {
    let (logits, k, p, mut out) = ([0.25f32; 8], [2; 2], [0.5f32; 2], [-1.0f32; 8]);
    let mut call = ApplyTopKTopP::new(Tensor::new([2, 4], &logits).unwrap(), TensorMut::new([2, 4], &mut out).unwrap());
    (call.p, call.k) = (Some(Tensor::new([2], &p).unwrap()), Some(Tensor::new([2], &k).unwrap()));
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!(out, [-1.0; 8]);
}

#[test]
fn refusals() {
    refuses(161001, "p", |call| (call.p, call.k) = (None, None));
    refuses(161001, "logits", |call| call.logits = shape_only(&[2, 4]));
    refuses(161001, "k", |call| call.k = Some(shape_only(&[2])));
    refuses(161001, "p", |call| call.p = Some(shape_only(&[2, 1])));
    refuses(161001, "out", |call| call.out = shape_only_mut(&[2, 4]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[8]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[1, 2, 4]));
    refuses(161002, "k", |call| call.k = Some(shape_only(&[3])));
    refuses(161002, "k", |call| call.k = Some(shape_only(&[0])));
    refuses(161002, "p", |call| call.p = Some(shape_only(&[1, 2])));
    refuses(161002, "out", |call| call.out = shape_only_mut(&[4, 2]));
    let overlapping = Dims::strided(&[2, 4], &[3, 1]).unwrap();
    refuses(161002, "out", |call| call.out = TensorMut::shape_only(overlapping));
}

#[test]
fn empty_logits_write_nothing() {
    for (shape, rows) in [([0, 4], 0), ([2, 0], 2)] {
        let mut call = ApplyTopKTopP::<Host, f32>::new(shape_only(&shape), shape_only_mut(&shape));
        call.k = Some(shape_only(&[rows]));
        assert_eq!(tilekern::Run::workspace(&Host::new(), &call).unwrap().size(), 0);
        assert_eq!(run(&Host::new(), call), Ok(()));
    }
}
