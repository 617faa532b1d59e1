//! What the operators compute is what the host computes when it is called directly, bit for bit, whatever the layouts.

use crate::common::{acl, message};
use crate::device::{Buffer, Open, Plain, Tensor, View, run};
use crate::layout::{Laid, Random};
use core::ptr::{null, null_mut};
use tilekern::ops::{self, Noise, Weight};
use tilekern::{Backend, Element, Host, Run, Scratch, bf16, f16};
use tilekern_acl::*;

/// The host's own answer.
fn direct<C>(call: C)
where
    Host: Run<C> + for<'a> Backend<Scratch<'a> = &'a mut [u8]>,
{
    let host = Host::new();
    let mut scratch = Scratch::new(host.workspace(&call).unwrap());
    host.run(call, &mut scratch).unwrap();
}

/// Of the dtypes of logits.
trait Logit: Element + Plain + Weight {
    fn of(x: f32) -> Self;
}

macro_rules! logit {
    ($($type:ty: $of:expr;)*) => {$(impl Logit for $type { fn of(x: f32) -> Self { $of(x) } })*};
}
logit! { f32: |x| x; f16: f16::from_f32; bf16: bf16::from_f32; }

/// Logits and the parameters of their rows.
struct Batch<T> {
    logits: Laid<T>,
    top_k: Laid<i32>,
    top_p: Laid<T>,
    min_ps: Laid<T>,
    q: Laid<f32>,
    shape: [usize; 2],
}

impl<T: Logit> Batch<T> {
    fn new(random: &mut Random) -> Batch<T> {
        let [b, v] = [1 + random.below(5), 1 + random.below(700)];
        let lay = |random: &mut Random, shape: &[usize], scale: f32, base: f32| {
            let values = random.many(shape.iter().product(), |r| T::of(r.float(scale) + base));
            Laid::new(shape, &values, T::of(9.0), random.below(4))
        };
        let logits = lay(random, &[b, v], 6.0, 0.0);
        let (top_p, min_ps) = (lay(random, &[b], 0.7, 0.5), lay(random, &[b], 0.3, 0.1));
        let ks = random.many(b, |r| r.below(40) as i32 - 3);
        let noise = random.many(b * v, |r| r.float(1.0).abs() + 1e-3);
        let top_k = Laid::new(&[b], &ks, 1, random.below(4));
        let q = Laid::new(&[b, v], &noise, 0.5, random.below(4));
        Batch { logits, top_k, top_p, min_ps, q, shape: [b, v] }
    }
}

/// An output in any layout, full of something.
fn output<T: Plain>(random: &mut Random, shape: &[usize], fill: T) -> Laid<T> {
    Laid::new(shape, &vec![fill; shape.iter().product()], fill, random.below(4))
}

fn handle(tensor: &Option<(Buffer, Tensor)>) -> *mut aclTensor {
    tensor.as_ref().map_or(null_mut(), |(_, tensor)| tensor.0)
}

fn sample_v2<T: Logit>(open: &Open, random: &mut Random) {
    let batch = Batch::<T>::new(random);
    let [b, v] = batch.shape;
    let [with_q, with_min_p, need_logits, middle, is_logits] = [(); 5].map(|()| random.below(2) == 1);
    let with_q = with_q && !middle;
    let (mut index, mut select) = (output(random, &[b], -5i64), output(random, &[b, v], 3.0f32));
    let (mut places, mut sorted) = (output(random, &[b, v], -5i64), output(random, &[b, v], 3.0f32));
    let [logits, k, p] = [batch.logits.device(), batch.top_k.device(), batch.top_p.device()];
    let (q, m) = (with_q.then(|| batch.q.device()), with_min_p.then(|| batch.min_ps.device()));
    let outs = [index.device(), select.device(), places.device(), sorted.device()];
    let status = run(open, "aclnnTopKTopPSampleV2", |s, e| {
        let [i, f, n, o] = [0, 1, 2, 3].map(|place| outs[place].1.0.cast_const());
        let (q, m) = (handle(&q), handle(&m));
        acl!(operators::aclnnTopKTopPSampleV2GetWorkspaceSize(
            logits.1.0,
            k.1.0,
            p.1.0,
            q,
            m,
            1e-6,
            need_logits,
            32,
            24,
            is_logits,
            middle,
            i,
            f,
            n,
            o,
            s,
            e
        ))
    });
    assert_eq!(status, 0, "{}", message());
    let mut call = ops::TopKTopPSample::new(batch.logits.host(), batch.top_k.host(), batch.top_p.host(), index.host_mut());
    call.q = with_q.then(|| Noise::Exponential(batch.q.host()));
    call.min_ps = with_min_p.then(|| batch.min_ps.host());
    (call.eps, call.ks_max, call.is_need_logits, call.input_is_logits) = (1e-6, 24, need_logits, is_logits);
    call.logits_top_kp_select = Some(select.host_mut());
    if middle {
        call.logits_select_idx = None;
        (call.logits_idx, call.logits_sort_masked) = (Some(places.host_mut()), Some(sorted.host_mut()));
    }
    direct(call);
    let equal = [index.equals(&outs[0].0), select.equals(&outs[1].0), places.equals(&outs[2].0), sorted.equals(&outs[3].0)];
    assert_eq!(equal, [true; 4], "{b} x {v}, q {with_q}, min-p {with_min_p}, middle {middle}");
}

fn sample_v1<T: Logit>(open: &Open, random: &mut Random) {
    let batch = Batch::<T>::new(random);
    let [b, v] = batch.shape;
    let [with_q, need_logits] = [(); 2].map(|()| random.below(2) == 1);
    let (mut index, mut select) = (output(random, &[b], -5i64), output(random, &[b, v], 3.0f32));
    let [logits, k, p] = [batch.logits.device(), batch.top_k.device(), batch.top_p.device()];
    let q = with_q.then(|| batch.q.device());
    let outs = [index.device(), select.device()];
    let status = run(open, "aclnnTopKTopPSample", |s, e| {
        let (i, f) = (outs[0].1.0, outs[1].1.0);
        acl!(operators::aclnnTopKTopPSampleGetWorkspaceSize(
            logits.1.0,
            k.1.0,
            p.1.0,
            handle(&q),
            1e-8,
            need_logits,
            32,
            i,
            f,
            s,
            e
        ))
    });
    assert_eq!(status, 0, "{}", message());
    let mut call = ops::TopKTopPSampleV1::new(batch.logits.host(), batch.top_k.host(), batch.top_p.host(), index.host_mut());
    call.q = with_q.then(|| batch.q.host());
    call.is_need_logits = need_logits;
    call.logits_top_kp_select = Some(select.host_mut());
    direct(call);
    assert!(index.equals(&outs[0].0) && select.equals(&outs[1].0), "{b} x {v}, q {with_q}");
}

fn apply<T: Logit>(open: &Open, random: &mut Random) {
    let batch = Batch::<T>::new(random);
    let [b, v] = batch.shape;
    let which = random.below(3);
    let mut out = output(random, &[b, v], T::of(2.0));
    let (logits, k, p) = (batch.logits.device(), batch.top_k.device(), batch.top_p.device());
    let device = out.device();
    let status = run(open, "aclnnApplyTopKTopP", |s, e| {
        let (k, p) = (if which == 1 { null() } else { k.1.0.cast_const() }, if which == 2 { null() } else { p.1.0.cast_const() });
        acl!(operators::aclnnApplyTopKTopPGetWorkspaceSize(logits.1.0, p, k, device.1.0, s, e))
    });
    assert_eq!(status, 0, "{}", message());
    let mut call = ops::ApplyTopKTopP::new(batch.logits.host(), out.host_mut());
    call.k = (which != 1).then(|| batch.top_k.host());
    call.p = (which != 2).then(|| batch.top_p.host());
    direct(call);
    assert!(out.equals(&device.0), "{b} x {v}, {which}");
}

#[test]
fn sampling_operators() {
    let (open, mut random) = (Open::new(), Random(1));
    for _ in 0..40 {
        sample_v2::<f32>(&open, &mut random);
        sample_v2::<f16>(&open, &mut random);
        sample_v2::<bf16>(&open, &mut random);
        sample_v1::<f16>(&open, &mut random);
        sample_v1::<bf16>(&open, &mut random);
        apply::<f32>(&open, &mut random);
        apply::<f16>(&open, &mut random);
        apply::<bf16>(&open, &mut random);
    }
}

fn multinomial<T: Weight + Plain>(open: &Open, random: &mut Random, of: impl Fn(f32) -> T) {
    let (n, c) = (1 + random.below(4), 1 + random.below(60));
    let replacement = random.below(2) == 1;
    let samples = if replacement { 1 + random.below(90) } else { 1 + random.below(c) };
    let flat = random.below(3) == 0;
    let rows = if flat { 1 } else { n };
    let shape = |columns| if flat { vec![columns] } else { vec![n, columns] };
    let values = random.many(rows * c, |r| of(r.float(1.0).abs()));
    let weights = Laid::new(&shape(c), &values, of(3.0), random.below(4));
    let mut out = output(random, &shape(samples), -5i64);
    let (seed, offset, added) = (random.next() as i64, random.below(100) as i64, random.below(50) as i64);
    let (from, to) = (weights.device(), out.device());
    let tensors = random.below(2) == 1;
    let (first, second) = (Buffer::of(&[seed]), Buffer::of(&[offset - added]));
    let (first, second) = ((Tensor::new(&first, &[1], ACL_INT64), first), (Tensor::new(&second, &[1], ACL_INT64), second));
    let count = samples as i64;
    let status = match tensors {
        false => run(open, "aclnnMultinomial", |s, e| {
            acl!(operators::aclnnMultinomialGetWorkspaceSize(from.1.0, count, replacement, seed, offset, to.1.0, s, e))
        }),
        true => run(open, "aclnnMultinomialTensor", |s, e| {
            let (seed, offset) = (first.0.0, second.0.0);
            acl!(operators::aclnnMultinomialTensorGetWorkspaceSize(
                from.1.0,
                count,
                replacement,
                seed,
                offset,
                added,
                to.1.0,
                s,
                e
            ))
        }),
    };
    assert_eq!(status, 0, "{}", message());
    let mut call = ops::Multinomial::new(weights.host(), out.host_mut());
    (call.num_samples, call.replacement, call.seed, call.offset) = (count, replacement, seed, offset);
    direct(call);
    assert!(out.equals(&to.0), "{rows} x {c}, {samples} samples, replacement {replacement}");
}

fn exponential<T: Logit>(open: &Open, random: &mut Random) {
    let shape = [1 + random.below(5), 1 + random.below(70)];
    let mut out = output(random, &shape, T::of(2.0));
    let device = out.device();
    let (seed, rate) = (random.next() as i64, 0.25 + random.below(5) as f64);
    let (first, second) = (Buffer::of(&[seed]), Buffer::of(&[8i64]));
    let tensors = [Tensor::new(&first, &[1], ACL_INT64), Tensor::new(&second, &[1], ACL_INT64)];
    let status = run(open, "aclnnStatelessExponentialTensor", |s, e| {
        let (seed, offset) = (tensors[0].0, tensors[1].0);
        acl!(operators::aclnnStatelessExponentialTensorGetWorkspaceSize(device.1.0, seed, offset, 4, rate, s, e))
    });
    assert_eq!(status, 0, "{}", message());
    let mut call = ops::Exponential::new(out.host_mut());
    (call.rate, call.seed, call.offset) = (rate, seed, 12);
    direct(call);
    assert!(out.equals(&device.0), "{shape:?}");
}

#[test]
fn random_operators() {
    let (open, mut random) = (Open::new(), Random(2));
    for _ in 0..40 {
        multinomial::<f32>(&open, &mut random, |x| x);
        multinomial::<f64>(&open, &mut random, f64::from);
        multinomial::<f16>(&open, &mut random, f16::from_f32);
        multinomial::<bf16>(&open, &mut random, bf16::from_f32);
        exponential::<f32>(&open, &mut random);
        exponential::<bf16>(&open, &mut random);
    }
}

fn gather<T: Plain, I: Plain + TryFrom<usize>>(open: &Open, random: &mut Random, make: impl Fn(usize) -> T) {
    let rank = 1 + random.below(4);
    let shape = random.many(rank, |r| 1 + r.below(5));
    let dim = random.below(rank);
    let to: Vec<usize> = (0..rank).map(|d| 1 + random.below(if d == dim { 8 } else { shape[d] })).collect();
    let values: Vec<T> = (0..shape.iter().product()).map(make).collect();
    let chosen = random.many(to.iter().product(), |r| r.below(shape[dim]));
    // By the definition, over row-major values.
    let expected: Vec<T> = (0..chosen.len())
        .map(|i| {
            let (mut rest, mut at, mut stride) = (i, 0, 1);
            for d in (0..rank).rev() {
                at += stride * if d == dim { chosen[i] } else { rest % to[d] };
                rest /= to[d];
                stride *= shape[d];
            }
            values[at]
        })
        .collect();
    let index: Vec<I> = chosen.iter().map(|&i| I::try_from(i).ok().unwrap()).collect();
    let layouts = [(); 3].map(|()| random.below(4));
    let (from, index) = (Laid::new(&shape, &values, values[0], layouts[0]), Laid::new(&to, &index, index[0], layouts[1]));
    let blank = Laid::new(&to, &vec![values[0]; chosen.len()], values[0], layouts[2]);
    let (from, index, out) = (from.device(), index.device(), blank.device());
    let dim = dim as i64 - if random.below(2) == 1 { rank as i64 } else { 0 };
    let status =
        run(open, "aclnnGather", |s, e| acl!(operators::aclnnGatherGetWorkspaceSize(from.1.0, dim, index.1.0, out.1.0, s, e)));
    assert_eq!(status, 0, "{}", message());
    let expected = Laid::new(&to, &expected, values[0], layouts[2]);
    assert!(expected.equals(&out.0), "{shape:?} by {to:?} along {dim}");
}

#[test]
fn gathers() {
    let (open, mut random) = (Open::new(), Random(3));
    for _ in 0..60 {
        gather::<f32, i32>(&open, &mut random, |i| i as f32);
        gather::<i64, i64>(&open, &mut random, |i| -(i as i64));
        gather::<u16, i64>(&open, &mut random, |i| i as u16);
        gather::<i8, i32>(&open, &mut random, |i| i as i8);
    }
    // Rank 8 too.
    let (from, index, out) = (Buffer::of(&[1.0f32, 2.0]), Buffer::of(&[1i64, 0]), Buffer::empty(8));
    let [from_8, out_8] = [&from, &out].map(|buffer| Tensor::new(buffer, &[1, 1, 1, 1, 1, 1, 1, 2], ACL_FLOAT));
    let index_8 = View::contiguous(&[1, 1, 1, 1, 1, 1, 1, 2], ACL_INT64).describe(index.address);
    let begin = |s, e| acl!(operators::aclnnGatherGetWorkspaceSize(from_8.0, 7, index_8.0, out_8.0, s, e));
    assert_eq!(run(&open, "aclnnGather", begin), 0);
    assert_eq!(out.read::<f32>(2), [2.0, 1.0]);
}
