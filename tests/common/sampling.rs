//! A call of TopKTopPSample that owns its tensors, and what comes out of it.

use super::{Buffer, Order, Random, run};
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;
use tilekern_kernels::rows::Stages;

/// What `q` holds.
#[derive(Clone, Debug)]
pub enum Q {
    None,
    /// `[B,V]`
    Exponential(Vec<f32>),
    /// `[r,2]`
    Seeds(Vec<i64>),
}

/// A call: rows, their parameters, the attributes.
#[derive(Clone, Debug)]
pub struct Case<T> {
    pub v: usize,
    pub logits: Vec<T>,
    pub top_k: Vec<i32>,
    pub top_p: Vec<T>,
    pub min_ps: Option<Vec<T>>,
    pub q: Q,
    pub generator: Option<[i64; 2]>,
    pub post_sample: PostSample,
    pub eps: f64,
    pub ks_max: i64,
    pub input_is_logits: bool,
}

/// Every output of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub chosen: Vec<i64>,
    pub status: Vec<u8>,
    /// Bits, all NaN alike.
    pub select: Vec<u32>,
    pub idx: Vec<i64>,
    /// Bits.
    pub sorted: Vec<u32>,
}

impl<T: Element + std::fmt::Debug> Case<T> {
    /// Rows of logits without any stage.
    pub fn new(v: usize, logits: Vec<T>) -> Case<T> {
        let rows = logits.len() / v;
        Case {
            v,
            logits,
            top_k: vec![0; rows],
            top_p: vec![T::narrow(1.0); rows],
            min_ps: None,
            q: Q::None,
            generator: None,
            post_sample: PostSample::QSample,
            eps: 1e-8,
            ks_max: 1024,
            input_is_logits: true,
        }
    }

    pub fn rows(&self) -> usize {
        self.top_k.len()
    }

    /// All outputs, with tensors that lie as `order` says, parameters as `[B]`, or as `[B,1]` where they do not lie row-major.
    pub fn answer<P: ParallelFor>(&self, host: &Host<P>, order: Order) -> Answer {
        let (b, v) = (self.rows(), self.v);
        let column = &order.column(b)[..];
        let logits = Buffer::new(&[b, v], order, &self.logits, T::narrow(77.0));
        let top_k = Buffer::new(column, order, &self.top_k, 1);
        let top_p = Buffer::new(column, order, &self.top_p, T::narrow(0.1));
        let min_ps = self.min_ps.as_ref().map(|m| Buffer::new(column, order, m, T::narrow(0.9)));
        let given = if let Q::Exponential(q) = &self.q { Some(Buffer::new(&[b, v], order, q, 1e-20)) } else { None };
        let lines = if let Q::Seeds(q) = &self.q { Some(Buffer::new(&[q.len() / 2, 2], order, q, -1)) } else { None };
        let generator = self.generator.map(|pair| Buffer::new(&[2], order, &pair, -1));
        let mut chosen = Buffer::empty(column, order, -9i64);
        let mut status = Buffer::empty(column, order, 0x77u8);
        let mut select = Buffer::empty(&[b, v], order, -9.5f32);
        let mut idx = Buffer::empty(&[b, v], order, -9i64);
        let mut sorted = Buffer::empty(&[b, v], order, -9.5f32);
        let q = given.as_ref().map(|q| Noise::Exponential(q.view()));
        let call = TopKTopPSample {
            q: q.or(lines.as_ref().map(|q| Noise::Seeds(q.view()))),
            min_ps: min_ps.as_ref().map(Buffer::view),
            eps: self.eps,
            is_need_logits: true,
            ks_max: self.ks_max,
            input_is_logits: self.input_is_logits,
            post_sample: self.post_sample,
            logits_top_kp_select: Some(select.view_mut()),
            row_status: Some(status.view_mut()),
            logits_idx: Some(idx.view_mut()),
            logits_sort_masked: Some(sorted.view_mut()),
            generator: generator.as_ref().map(Buffer::view),
            // Without effect.
            top_k_guess: i64::MIN,
            ..TopKTopPSample::new(logits.view(), top_k.view(), top_p.view(), chosen.view_mut())
        };
        run(host, call).unwrap();
        let bits = |buffer: Buffer<f32>| buffer.values().into_iter().map(super::bits).collect();
        Answer { chosen: chosen.values(), status: status.values(), select: bits(select), idx: idx.values(), sorted: bits(sorted) }
    }

    /// The chosen tokens of a call without any other output.
    pub fn chosen<P: ParallelFor>(&self, host: &Host<P>) -> Vec<i64> {
        let (b, v) = (self.rows(), self.v);
        let tensor = |data| Tensor::new([b, v], data).unwrap();
        let mut chosen = vec![-9; b];
        let call = TopKTopPSample {
            q: match &self.q {
                Q::None => None,
                Q::Exponential(q) => Some(Noise::Exponential(Tensor::new([b, v], q).unwrap())),
                Q::Seeds(q) => Some(Noise::Seeds(Tensor::new([q.len() / 2, 2], q).unwrap())),
            },
            min_ps: self.min_ps.as_ref().map(|m| Tensor::new([b], m).unwrap()),
            eps: self.eps,
            ks_max: self.ks_max,
            input_is_logits: self.input_is_logits,
            post_sample: self.post_sample,
            generator: self.generator.as_ref().map(|pair| Tensor::new([2], pair).unwrap()),
            ..TopKTopPSample::new(
                tensor(&self.logits),
                Tensor::new([b], &self.top_k).unwrap(),
                Tensor::new([b], &self.top_p).unwrap(),
                TensorMut::new([b], &mut chosen).unwrap(),
            )
        };
        run(host, call).unwrap();
        chosen
    }
}

impl<T: Element + std::fmt::Debug> Case<T> {
    /// Rows of every kind, stages and noise as chance will have it.
    pub fn random(random: &mut Random, rows: usize, v: usize) -> Case<T> {
        let mut case = Case::new(v, Vec::new());
        case.input_is_logits = random.below(3) > 0;
        for _ in 0..rows {
            let (kind, spread) = (random.below(6), [0.1, 1.0, 8.0][random.below(3)]);
            let start = case.logits.len();
            for _ in 0..v {
                let x = match kind {
                    0 => spread,
                    1 => (random.unit() * 3.0).round(),
                    2 if random.below(2) == 0 => f32::NEG_INFINITY,
                    3 => random.number(),
                    _ => random.unit() * spread,
                };
                let probability = !case.input_is_logits && kind != 3;
                case.logits.push(T::narrow(if probability { x.abs() / v as f32 } else { x }));
            }
            for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 12.0] {
                if random.below(6) == 0 {
                    case.logits[start + random.below(v)] = T::narrow(special);
                }
            }
        }
        let largest = [0, 8, 60, 2000][random.below(4)];
        case.top_k = (0..rows).map(|_| random.below(largest + 3) as i32 - 1).collect();
        let mut fractions = |special: [f32; 3]| -> Vec<T> {
            let number = |random: &mut Random| match random.below(6) {
                n @ 0..3 => special[n],
                _ => random.unit().abs(),
            };
            (0..rows).map(|_| T::narrow(number(random))).collect()
        };
        case.top_p = fractions([0.0, 1.0, f32::NAN]);
        case.min_ps = Some(fractions([0.0, 1.0, f32::NAN]));
        // Cut at 1024, rounded up to a multiple of 8, and its low 32 bits alone.
        case.ks_max = [1024, 5000, 3, 0, -9, (7 << 32) + 16][random.below(6)];
        case.post_sample = [PostSample::None, PostSample::QSample, PostSample::MultiNomial][random.below(3)];
        match case.post_sample {
            PostSample::QSample => case.q = Q::Exponential((0..rows * v).map(|_| random.number()).collect()),
            // Seeds, a generator, both, or neither.
            _ => {
                let sources = random.below(4);
                if sources % 2 == 0 {
                    case.q = Q::Seeds((0..4).map(|_| random.bits() as i64).collect());
                }
                if sources < 2 {
                    case.generator = Some([random.bits() as i64, random.below(100) as i64]);
                }
            }
        }
        case
    }

    /// One row as a call of its own; its line of seeds goes with it.
    pub fn row(&self, row: usize) -> Case<T> {
        let of = |all: &[T]| vec![all[row]];
        let at = self.v * row..self.v * (row + 1);
        Case {
            logits: self.logits[at.clone()].to_vec(),
            top_k: vec![self.top_k[row]],
            top_p: of(&self.top_p),
            min_ps: self.min_ps.as_deref().map(of),
            q: match &self.q {
                Q::None => Q::None,
                Q::Exponential(q) => Q::Exponential(q[at].to_vec()),
                Q::Seeds(q) => Q::Seeds(q[2 * row.min(q.len() / 2 - 1)..][..2].to_vec()),
            },
            ..self.clone()
        }
    }

    /// The answer by the scalar definition of the kernels.
    pub fn defined(&self) -> Answer {
        let (b, v) = (self.rows(), self.v);
        let fill: f32 = if self.input_is_logits { f32::NEG_INFINITY } else { 0.0 };
        let mut answer = Answer {
            chosen: vec![0; b],
            status: vec![0; b],
            select: vec![super::bits(fill); b * v],
            idx: vec![0; b * v],
            sorted: vec![0; b * v],
        };
        for row in 0..b {
            let logits = &self.logits[v * row..v * (row + 1)];
            let k = self.top_k[row];
            let max_k = ((i64::from(self.ks_max as i32) + 7) / 8 * 8).min(1024).min(v as i64);
            let stages = Stages {
                k: if k >= 1 && i64::from(k) <= max_k { k as usize } else { 0 },
                p: self.top_p[row].as_(),
                min_p: self.min_ps.as_ref().map_or(0.0, |m| m[row].as_()),
                is_logits: self.input_is_logits,
            };
            let (mut order, mut pr) = (vec![0; v], vec![0.0; v]);
            let n = reference::survivors(logits, &stages, &mut order, &mut pr);
            answer.status[row] = reference::row_status(logits, self.input_is_logits);
            for j in 0..n {
                let token = order[j] as usize;
                answer.select[v * row + token] = super::bits(logits[token].as_());
                answer.idx[v * row + j] = token as i64;
                answer.sorted[v * row + j] = super::bits(pr[j]);
            }
            let best = || reference::first_max(v, |i| reference::clean(logits[i].as_()));
            let race = |noise: &dyn Fn(usize) -> f32| order[reference::first_max(n, |j| pr[j] / noise(j))] as usize;
            let drawn = |pair: &[i64], elements, first| {
                race(&|j| reference::exponential(pair[0] as u64, pair[1] as u64, elements as u64, (first + j) as u64))
            };
            let token = match (self.post_sample, &self.q, &self.generator) {
                _ if n == 0 => 0,
                (PostSample::QSample, Q::Exponential(q), _) => race(&|j| q[v * row + j].abs() + self.eps as f32),
                (PostSample::MultiNomial, Q::Seeds(q), _) => drawn(&q[2 * row.min(q.len() / 2 - 1)..], v, 0),
                (PostSample::MultiNomial, Q::None, Some(pair)) => drawn(pair, b * v, row * v),
                _ => best(),
            };
            answer.chosen[row] = token as i64;
        }
        answer
    }
}
