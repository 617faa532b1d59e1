//! TopKTopPSampleV1: the worked examples, rows of every kind against the scalar definition, refusals.

use super::examples::{self, floats, integers};
use crate::common::{Buffer, Order, Random, bits, every_host, hosts, refused, rounds, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::TopKTopPSampleV1;
use tilekern::{Host, ParallelFor, Run, Tensor, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;

/// A call that owns its tensors.
#[derive(Clone, Debug)]
pub struct Case<T> {
    pub v: usize,
    pub logits: Vec<T>,
    pub top_k: Vec<i32>,
    pub top_p: Vec<T>,
    pub q: Option<Vec<f32>>,
    pub eps: f64,
}

/// Chosen tokens, status, bits of the filtered copy.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub chosen: Vec<i64>,
    pub status: Vec<u8>,
    pub select: Vec<u32>,
}

impl<T: Element + std::fmt::Debug> Case<T> {
    pub fn answer<P: ParallelFor>(&self, host: &Host<P>, order: Order) -> Answer {
        let (b, v) = (self.top_k.len(), self.v);
        let column = &order.column(b)[..];
        let logits = Buffer::new(&[b, v], order, &self.logits, T::narrow(77.0));
        let top_k = Buffer::new(column, order, &self.top_k, 1);
        let top_p = Buffer::new(column, order, &self.top_p, T::narrow(0.1));
        let q = self.q.as_ref().map(|q| Buffer::new(&[b, v], order, q, 1e-20));
        let mut chosen = Buffer::empty(column, order, -9i64);
        let mut status = Buffer::empty(column, order, 0x77u8);
        let mut select = Buffer::empty(&[b, v], order, -9.5f32);
        let call = TopKTopPSampleV1 {
            q: q.as_ref().map(Buffer::view),
            eps: self.eps,
            is_need_logits: true,
            logits_top_kp_select: Some(select.view_mut()),
            row_status: Some(status.view_mut()),
            ..TopKTopPSampleV1::new(logits.view(), top_k.view(), top_p.view(), chosen.view_mut())
        };
        run(host, call).unwrap();
        let select = select.values().into_iter().map(bits).collect();
        Answer { chosen: chosen.values(), status: status.values(), select }
    }

    /// The chosen tokens of a call without any other output.
    fn chosen<P: ParallelFor>(&self, host: &Host<P>) -> Vec<i64> {
        let (b, v) = (self.top_k.len(), self.v);
        let mut chosen = vec![-9; b];
        let mut call = TopKTopPSampleV1::new(
            Tensor::new([b, v], &self.logits).unwrap(),
            Tensor::new([b], &self.top_k).unwrap(),
            Tensor::new([b], &self.top_p).unwrap(),
            TensorMut::new([b], &mut chosen).unwrap(),
        );
        (call.q, call.eps) = (self.q.as_ref().map(|q| Tensor::new([b, v], q).unwrap()), self.eps);
        run(host, call).unwrap();
        chosen
    }

    fn defined(&self) -> Answer {
        let (b, v) = (self.top_k.len(), self.v);
        let mut answer = Answer { chosen: vec![0; b], status: vec![0; b], select: vec![bits(f32::NEG_INFINITY); b * v] };
        for (row, logits) in self.logits.chunks(v).enumerate() {
            let k = usize::try_from(self.top_k[row]).ok().filter(|&k| k <= v.min(1024)).unwrap_or(0);
            let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
            let n = reference::survivors_v1(logits, k, self.top_p[row].as_(), &mut order, &mut pr);
            answer.status[row] = reference::row_status(logits, true);
            for &token in &order[..n] {
                answer.select[v * row + token as usize] = bits(logits[token as usize].as_());
            }
            let token = match &self.q {
                _ if n == 0 => 0,
                None => reference::first_max(v, |i| reference::clean(logits[i].as_())),
                Some(q) => order[reference::first_max(n, |j| pr[j] / (q[v * row + j].abs() + self.eps as f32))] as usize,
            };
            answer.chosen[row] = token as i64;
        }
        answer
    }
}

fn case<T: Element>(random: &mut Random, rows: usize, v: usize) -> Case<T> {
    let mut logits = Vec::new();
    for _ in 0..rows {
        let (kind, spread) = (random.below(7), [0.1, 1.0, 8.0][random.below(3)]);
        let start = logits.len();
        logits.extend((0..v).map(|_| match kind {
            0 => spread,
            1 => (random.unit() * 3.0).round(),
            2 if random.below(2) == 0 => f32::NEG_INFINITY,
            3 => random.number(),
            4 => f32::from_bits(random.bits() as u32),
            _ => random.unit() * spread,
        }));
        for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 12.0] {
            if random.below(8) == 0 {
                logits[start + random.below(v)] = special;
            }
        }
        if random.below(24) == 0 {
            logits[start..].fill(f32::NEG_INFINITY);
        }
    }
    let p = |random: &mut Random| match random.below(12) {
        n @ 0..6 => [0.0, 1.0, -1.0, f32::NAN, 0.999_999_94, 0.5][n],
        6 => 0.25 * random.below(5) as f32,
        _ => random.unit().abs(),
    };
    let k = |random: &mut Random| [0, random.below(60) as i32, random.below(2000) as i32, -1, v as i32, 1024][random.below(6)];
    let q = (random.below(3) > 0).then(|| (0..rows * v).map(|_| random.number()).collect());
    Case {
        v,
        logits: logits.into_iter().map(T::narrow).collect(),
        top_k: (0..rows).map(|_| k(random)).collect(),
        top_p: (0..rows).map(|_| T::narrow(p(random))).collect(),
        q,
        eps: [1e-8, 0.0, 1e-3][random.below(3)],
    }
}

fn every_row<T: Element + std::fmt::Debug>(seed: u64) {
    let mut random = Random(seed);
    for v in [1, 2, 15, 16, 17, 64, 100, 257, 1000, 1024, 1025, 3000] {
        for _ in 0..rounds(8) {
            let case = case::<T>(&mut random, 5, v);
            let expected = case.defined();
            every_host(|host| {
                for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
                    assert!(case.answer(host, order) == expected, "{:?} {order:?} {v} {case:?}", host.isa());
                }
                assert_eq!(case.chosen(host), expected.chosen, "{:?} {v} {case:?}", host.isa());
            });
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

/// Rows of which more is kept than a list takes, and few of many.
#[test]
fn long_rows() {
    let mut random = Random(5);
    // The last is the longest that there may be.
    for (v, more) in [(20_000, 10), (70_001, 10), (1 << 20, 1)] {
        for i in 0..2 + rounds(more) {
            let mut case = case::<f32>(&mut random, 2, v);
            if i == 0 {
                // A row of equals, and one that is nearly flat.
                case.logits = (0..2 * v).map(|i| if i < v { 1.5 } else { 0.1 * random.unit() }).collect();
                (case.top_k, case.top_p) = (vec![0; 2], vec![0.9; 2]);
                case.q = Some((0..2 * v).map(|_| random.unit().abs()).collect());
            } else if i == 1 {
                // Rows with a few values, and with ever smaller probabilities, far behind the list.
                case.logits = (0..2 * v).map(|i| if i < v { random.unit().round() } else { 3.0 * random.unit() }).collect();
                (case.top_k, case.top_p) = (vec![0; 2], vec![0.97, 0.999]);
                case.q = Some((0..2 * v).map(|_| random.unit().abs() + random.unit().powi(2)).collect());
            } else if i < 6 && v < 1 << 20 {
                // Few of many.
                case.logits = (0..2 * v).map(|_| 4.0 * (random.unit() + random.unit() + random.unit())).collect();
                (case.top_k, case.top_p) = (vec![50, 1 + random.below(130) as i32], vec![1.0, [0.5, 0.9, 0.98][random.below(3)]]);
                case.q = Some((0..2 * v).map(|_| -random.unit().abs().ln()).collect());
            }
            let expected = case.defined();
            for host in hosts() {
                assert!(
                    case.answer(&host, Order::Contiguous) == expected,
                    "{:?} {v} {:?} {:?}",
                    host.isa(),
                    case.top_k,
                    case.top_p
                );
                assert_eq!(case.chosen(&host), expected.chosen, "{:?} {v}", host.isa());
            }
        }
    }
}

/// Noise as large as the probability that it divides, or would divide if the row had another sum, so that all scores are nearly one, or
/// all of those around the cut: whoever wins by a few roundings, wins.
#[test]
fn scores_close_together() {
    let mut random = Random(6);
    for v in [40, 900, 20_000] {
        for round in 0..rounds(60) {
            let apart = [0.0, 1e-7, 1e-6, 1e-5, 1e-3, 0.1][round % 6];
            let spread = [0.5, 4.0, 12.0][random.below(3)];
            let logits: Vec<f32> = (0..v).map(|_| spread * (random.unit() + random.unit())).collect();
            let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
            let k = [0, 0, 20, 50, 300][random.below(5)].min(v);
            let p = [0.9, 0.9, 0.9, 0.5, 1e-3, 1e-42, 0.999_999_94][random.below(7)];
            let n = reference::survivors_v1(&logits, k, p, &mut order, &mut pr);
            let other_sum = [0.0, 0.0, 0.03, -0.1, 1.0][random.below(5)] * random.unit();
            let near_the_cut = random.below(3) == 0;
            let noise = |(place, &weight): (usize, &f32)| {
                let far = near_the_cut && place.abs_diff(n) > 2;
                weight * (weight / pr[0]).powf(other_sum) * (1.0 + apart * random.unit()) * if far { 9.0 } else { 1.0 }
            };
            let q = Some(pr.iter().enumerate().map(noise).collect());
            let eps = [1e-8, 1e-8, 0.0, 1e-20, 1e-19][random.below(5)];
            let case = Case { v, logits, top_k: vec![k as i32], top_p: vec![p], q, eps };
            let expected = case.defined();
            for host in hosts() {
                assert_eq!(case.chosen(&host), expected.chosen, "{:?} {v} {k} {p} {apart} {spread}", host.isa());
            }
        }
    }
}

#[test]
fn worked_examples() {
    let examples = examples::of("TopKTopPSample");
    assert_eq!(examples.len(), 3);
    for example in examples {
        let (inputs, attrs) = (&example["inputs"], &example["attrs"]);
        assert_eq!(attrs["dtype"], "float16");
        let halves = |name: &str| floats(&inputs[name]).into_iter().map(f16::from_f32).collect::<Vec<_>>();
        let case = Case {
            v: inputs["logits"][0].as_array().unwrap().len(),
            logits: halves("logits"),
            top_k: integers(&inputs["top_k"]).into_iter().map(|k| k as i32).collect(),
            top_p: halves("top_p"),
            q: Some(&inputs["q"]).filter(|q| !q.is_null()).map(floats),
            eps: attrs["eps"].as_f64().unwrap(),
        };
        for host in hosts() {
            let answer = case.answer(&host, Order::Contiguous);
            assert_eq!(answer.chosen, integers(&example["outputs"]["logits_select_idx"]), "{}", example["name"]);
            if attrs["is_need_logits"] == true {
                let select: Vec<u32> = floats(&example["outputs"]["logits_top_kp_select"]).into_iter().map(bits).collect();
                assert_eq!(answer.select, select, "{}", example["name"]);
            }
        }
    }
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut TopKTopPSampleV1<'a, Host, f32>)) {
    let (logits, k, p) = ([0.25f32; 8], [2; 2], [0.5f32; 2]);
    let (mut chosen, mut select, mut bytes) = ([-9i64; 2], [-9.0f32; 8], [9u8; 2]);
    let mut call = TopKTopPSampleV1::new(
        Tensor::new([2, 4], &logits).unwrap(),
        Tensor::new([2], &k).unwrap(),
        Tensor::new([2], &p).unwrap(),
        TensorMut::new([2], &mut chosen).unwrap(),
    );
    call.is_need_logits = true;
    call.logits_top_kp_select = Some(TensorMut::new([2, 4], &mut select).unwrap());
    call.row_status = Some(TensorMut::new([2], &mut bytes).unwrap());
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!((chosen, select, bytes), ([-9; 2], [-9.0; 8], [9; 2]));
}

#[test]
fn refusals() {
    refuses(161001, "logits", |call| call.logits = shape_only(&[2, 4]));
    refuses(161001, "top_k", |call| call.top_k = shape_only(&[2]));
    refuses(161001, "top_p", |call| call.top_p = shape_only(&[2, 1]));
    refuses(161001, "q", |call| call.q = Some(shape_only(&[2, 4])));
    refuses(161001, "logits_select_idx", |call| call.logits_select_idx = shape_only_mut(&[2]));
    refuses(161001, "logits_top_kp_select", |call| call.logits_top_kp_select = None);
    refuses(161002, "logits", |call| call.logits = shape_only(&[8]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[0, 4]));
    refuses(161002, "logits", |call| call.logits = shape_only(&[2, 0]));
    refuses(561002, "logits", |call| call.logits = shape_only(&[2, (1 << 20) + 1]));
    refuses(161002, "top_k", |call| call.top_k = shape_only(&[3]));
    refuses(161002, "top_p", |call| call.top_p = shape_only(&[1, 2]));
    refuses(161002, "q", |call| call.q = Some(shape_only(&[2, 3])));
    refuses(161002, "eps", |call| call.eps = -1.0);
    refuses(161002, "eps", |call| call.eps = f64::NAN);
    refuses(161002, "logits_select_idx", |call| call.logits_select_idx = shape_only_mut(&[2, 2]));
    refuses(161002, "logits_top_kp_select", |call| call.logits_top_kp_select = Some(shape_only_mut(&[4, 2])));
    refuses(161002, "row_status", |call| call.row_status = Some(shape_only_mut(&[1])));
}

/// The largest vocabulary is one; without is_need_logits nobody looks at the filtered copy.
#[test]
fn accepted() {
    let v = 1 << 20;
    let mut call =
        TopKTopPSampleV1::<Host, f32>::new(shape_only(&[1, v]), shape_only(&[1]), shape_only(&[1, 1]), shape_only_mut(&[1, 1]));
    call.logits_top_kp_select = Some(shape_only_mut(&[7]));
    call.top_k_guess = -5;
    assert!(Host::new().workspace(&call).is_ok());
}
