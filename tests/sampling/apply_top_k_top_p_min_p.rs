//! ApplyTopKTopPMinP: the worked examples, rows of every kind against the scalar definition, refusals.

use super::examples::{self, floats, integers};
use crate::common::{Buffer, Order, Random, every_host, hosts, refused, rounds, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::ApplyTopKTopPMinP;
use tilekern::{Dims, Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;

/// A call that owns its tensors.
#[derive(Clone, Debug)]
pub struct Case<T> {
    pub v: usize,
    pub probs: Vec<T>,
    pub k: Vec<i32>,
    pub p: Vec<T>,
    pub min_p: Option<Vec<T>>,
}

impl<T: Element + std::fmt::Debug> Case<T> {
    pub fn answer<P: ParallelFor>(&self, host: &Host<P>, order: Order) -> Vec<T> {
        let b = self.k.len();
        let column = &order.column(b)[..];
        let probs = Buffer::new(&[b, self.v], order, &self.probs, T::narrow(0.9));
        let k = Buffer::new(column, order, &self.k, 1);
        let p = Buffer::new(column, order, &self.p, T::narrow(0.1));
        let min_p = self.min_p.as_ref().map(|m| Buffer::new(column, order, m, T::narrow(0.9)));
        let mut out = Buffer::empty(&[b, self.v], order, T::narrow(-9.5));
        let mut call = ApplyTopKTopPMinP::new(probs.view(), k.view(), p.view(), out.view_mut());
        call.min_p = min_p.as_ref().map(Buffer::view);
        run(host, call).unwrap();
        out.values()
    }

    fn defined(&self) -> Vec<T> {
        let mut out = vec![T::default(); self.probs.len()];
        for (b, (row, out)) in self.probs.chunks(self.v).zip(out.chunks_mut(self.v)).enumerate() {
            let k = if self.k[b] < 0 || self.k[b] as usize > self.v { self.v } else { self.k[b] as usize };
            reference::keep_prefix(row, k, self.p[b].as_(), self.min_p.as_ref().map(|m| m[b].as_()), out);
        }
        out
    }
}

/// The bits, sign and payload of a NaN with them: kept entries are copies.
fn bits<T: Element>(row: &[T]) -> &[u8] {
    bytemuck::cast_slice(row)
}

fn row(random: &mut Random, v: usize, kind: usize) -> Vec<f32> {
    let mut x: Vec<f32> = (0..v).map(|_| (random.unit() * [0.1, 4.0, 30.0][kind % 3]).exp()).collect();
    x.sort_by(|a, b| b.total_cmp(a));
    let sum: f32 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
    match kind {
        // Partial sums that are exact.
        6 => x = (0..v).map(|j| if j < 40 { 0.5f32.powi(j as i32 + 1) } else { 0.0 }).collect(),
        7 => x = vec![1.0 / v as f32; v],
        // No such row at all.
        8 => x = (0..v).map(|_| random.number()).collect(),
        9 => x = (0..v).map(|_| f32::from_bits(random.bits() as u32)).collect(),
        _ => {}
    }
    if kind < 8 && random.below(4) == 0 {
        x[random.below(v)] = [f32::NAN, f32::INFINITY, -0.5, 0.7, -0.0][random.below(5)];
    }
    x
}

fn case<T: Element>(random: &mut Random, rows: usize, v: usize) -> Case<T> {
    let narrow = |x: Vec<f32>| x.into_iter().map(T::narrow).collect::<Vec<T>>();
    let probs = (0..rows).flat_map(|_| {
        let kind = random.below(10);
        row(random, v, kind)
    });
    let probs = narrow(probs.collect());
    let fraction = |random: &mut Random, special: [f32; 5]| match random.below(9) {
        n @ 0..5 => special[n],
        _ => random.unit().abs(),
    };
    Case {
        v,
        probs,
        k: (0..rows).map(|_| [random.below(v + 2) as i32, -1, 0, v as i32, i32::MAX][random.below(5)]).collect(),
        p: narrow((0..rows).map(|_| fraction(random, [0.0, 0.5, 1.0, 0.75, f32::NAN])).collect()),
        min_p: (random.below(2) == 0)
            .then(|| narrow((0..rows).map(|_| fraction(random, [0.0, 0.5, 1.0, -1.0, f32::NAN])).collect())),
    }
}

fn every_row<T: Element + std::fmt::Debug>(seed: u64) {
    let mut random = Random(seed);
    for v in [1, 2, 15, 16, 17, 100, 257, 2047, 2048, 2049, 5000] {
        for _ in 0..rounds(12) {
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
}

#[test]
fn half_rows() {
    every_row::<f16>(2);
    every_row::<bf16>(3);
}

#[test]
fn worked_examples() {
    let examples = examples::of("ApplyTopKTopPMinP");
    assert_eq!(examples.len(), 2);
    for example in examples {
        let inputs = &example["inputs"];
        let case = Case::<f32> {
            v: 4,
            probs: floats(&inputs["probs"]),
            k: integers(&inputs["k"]).into_iter().map(|k| k as i32).collect(),
            p: floats(&inputs["p"]),
            min_p: Some(&inputs["min_p"]).filter(|m| !m.is_null()).map(floats),
        };
        for host in hosts() {
            let expected = floats(&example["outputs"]["sampled_res"]);
            assert_eq!(case.answer(&host, Order::Contiguous), expected, "{}", example["name"]);
        }
    }
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut ApplyTopKTopPMinP<'a, Host, f32>)) {
    let (probs, k, p, mut out) = ([0.25f32; 8], [2; 2], [0.5f32; 2], [-1.0f32; 8]);
    let mut call = ApplyTopKTopPMinP::new(
        Tensor::new([2, 4], &probs).unwrap(),
        Tensor::new([2], &k).unwrap(),
        Tensor::new([2], &p).unwrap(),
        TensorMut::new([2, 4], &mut out).unwrap(),
    );
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!(out, [-1.0; 8]);
}

#[test]
fn refusals() {
    refuses(161001, "probs", |call| call.probs = shape_only(&[2, 4]));
    refuses(161001, "k", |call| call.k = shape_only(&[2]));
    refuses(161001, "p", |call| call.p = shape_only(&[2, 1]));
    refuses(161001, "min_p", |call| call.min_p = Some(shape_only(&[2])));
    refuses(161001, "sampled_res", |call| call.sampled_res = shape_only_mut(&[2, 4]));
    refuses(161002, "probs", |call| call.probs = shape_only(&[8]));
    refuses(161002, "probs", |call| call.probs = shape_only(&[2, 0]));
    refuses(161002, "k", |call| call.k = shape_only(&[3]));
    refuses(161002, "p", |call| call.p = shape_only(&[1, 2]));
    refuses(161002, "min_p", |call| call.min_p = Some(shape_only(&[])));
    refuses(161002, "sampled_res", |call| call.sampled_res = shape_only_mut(&[4, 2]));
    let overlapping = Dims::strided(&[2, 4], &[3, 1]).unwrap();
    refuses(161002, "sampled_res", |call| call.sampled_res = TensorMut::shape_only(overlapping));
}

#[test]
fn no_rows_write_nothing() {
    let call =
        ApplyTopKTopPMinP::<Host, f32>::new(shape_only(&[0, 4]), shape_only(&[0]), shape_only(&[0]), shape_only_mut(&[0, 4]));
    assert_eq!(run(&Host::new(), call), Ok(()));
}
