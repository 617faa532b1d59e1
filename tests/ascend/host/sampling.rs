//! The sampling operations.

use super::*;
use crate::balance::Random;
use tilekern::ops::*;
use tilekern::{Element, OrHost, Status, bf16, f16};

/// What sampling reads and writes: rows of 40 numbers, with gaps.
pub struct Sampling<'s, T> {
    pub logits: Pair<'s, T>,
    pub top_k: Pair<'s, i32>,
    pub top_p: Pair<'s, T>,
    pub min_ps: Pair<'s, T>,
    pub q: Pair<'s, f32>,
    pub seeds: Pair<'s, i64>,
    pub chosen: Pair<'s, i64>,
    pub kept: Pair<'s, f32>,
    pub status: Pair<'s, u8>,
}

pub const ROWS: usize = 5;
pub const COLUMNS: usize = 40;
/// Columns first, or rows with a gap.
pub const STRIDES: [[usize; 2]; 3] = [[COLUMNS, 1], [50, 1], [1, ROWS]];

impl<'s, T: Element> Sampling<'s, T> {
    pub fn new(stream: &'s Stream<'s>, random: &mut Random) -> Self {
        let mut float = |below: f32| T::narrow(random.below(1000) as f32 / 1000.0 * below);
        let logits = Pair::random(stream, ROWS * 50, || float(8.0));
        let top_p = Pair::random(stream, 2 * ROWS, || float(1.2));
        let min_ps = Pair::random(stream, ROWS, || float(0.2));
        Sampling {
            logits,
            top_p,
            min_ps,
            top_k: Pair::random(stream, ROWS, || random.below(50) as i32),
            q: Pair::random(stream, ROWS * COLUMNS, || random.below(1000) as f32 / 100.0),
            seeds: Pair::random(stream, 6, || random.below(1000) as i64),
            chosen: Pair::new(stream, vec![-1; 2 * ROWS]),
            kept: Pair::new(stream, vec![7.0; ROWS * 50]),
            status: Pair::new(stream, vec![9; ROWS]),
        }
    }

    /// The `n`th way of calling.
    pub fn call<'a, S: Side>(&'a mut self, side: &S, n: usize) -> TopKTopPSample<'a, S::B, T> {
        let rows = strided([ROWS, COLUMNS], STRIDES[n % 3]);
        let mut call = TopKTopPSample::new(
            side.read(&self.logits, rows),
            side.read(&self.top_k, dims([ROWS, 1])),
            side.read(&self.top_p, strided([ROWS], [2])),
            side.write(&mut self.chosen, strided([ROWS, 1], [2, 1])),
        );
        call.post_sample = [PostSample::None, PostSample::QSample, PostSample::MultiNomial, PostSample::MultiNomial][n % 4];
        match n % 4 {
            1 => call.q = Some(Noise::Exponential(side.read(&self.q, dims([ROWS, COLUMNS])))),
            2 => call.q = Some(Noise::Seeds(side.read(&self.seeds, strided([3, 2], [1, 3])))),
            3 => call.generator = Some(side.read(&self.seeds, strided([2], [3]))),
            _ => {}
        }
        if n % 5 > 1 {
            call.min_ps = Some(side.read(&self.min_ps, dims([ROWS])));
        }
        call.is_need_logits = n % 2 == 0;
        call.input_is_logits = n % 7 > 0;
        if call.is_need_logits {
            call.logits_top_kp_select = Some(side.write(&mut self.kept, strided([ROWS, COLUMNS], [50, 1])));
        }
        call
    }
}

fn sampling_of<T: Element + tilekern::DeviceType>(seed: u64) {
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(seed));
    for n in 0..60 {
        let mut s = Sampling::<T>::new(&stream, &mut random);
        on_host(s.call(&OnHost, n));
        on_device(&stream, s.call(&device(&stream), n));
        s.chosen.agrees(-1);
        if n % 2 == 0 {
            s.kept.agrees(7.0);
        }
    }
}

#[test]
fn sampling() {
    sampling_of::<f32>(1);
    sampling_of::<f16>(2);
    sampling_of::<bf16>(3);
}

/// What the NPU refuses, the host answers.
#[test]
fn sampling_with_a_status() {
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(4));
    let backend = OrHost::new(Ascend::new(&stream), Host::new());
    for n in 0..20 {
        let mut s = Sampling::<f16>::new(&stream, &mut random);
        let mut status = std::mem::replace(&mut s.status, Pair::new(&stream, Vec::new()));
        let mut call = s.call(&OnHost, n);
        call.row_status = Some(OnHost.write(&mut status, dims([ROWS])));
        on_host(call);
        let side = device(&stream);
        let mut call = s.call(&side, n);
        call.row_status = Some(side.write(&mut status, dims([ROWS])));
        assert_eq!(Ascend::new(&stream).workspace(&call).unwrap_err().status(), Status::Unsupported);
        backend.run(call, DeviceScratch::NONE).unwrap();
        s.chosen.agrees(-1);
        status.agrees(9);
    }
}

fn first_version_of<T: Element + tilekern::DeviceType>(seed: u64) {
    fn call<'a, T: Element, S: Side>(s: &'a mut Sampling<'_, T>, side: &S, n: usize) -> TopKTopPSampleV1<'a, S::B, T> {
        let mut call = TopKTopPSampleV1::new(
            side.read(&s.logits, strided([ROWS, COLUMNS], STRIDES[n % 3])),
            side.read(&s.top_k, dims([ROWS])),
            side.read(&s.top_p, dims([ROWS])),
            side.write(&mut s.chosen, strided([ROWS], [2])),
        );
        if n % 2 > 0 {
            call.q = Some(side.read(&s.q, dims([ROWS, COLUMNS])));
        }
        if n % 4 > 1 {
            call.is_need_logits = true;
            call.logits_top_kp_select = Some(side.write(&mut s.kept, strided([ROWS, COLUMNS], [50, 1])));
        }
        call
    }
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(seed));
    for n in 0..24 {
        let mut s = Sampling::<T>::new(&stream, &mut random);
        on_host(call(&mut s, &OnHost, n));
        on_device(&stream, call(&mut s, &device(&stream), n));
        s.chosen.agrees(-1);
        if n % 4 > 1 {
            s.kept.agrees(7.0);
        }
    }
}

#[test]
fn first_version() {
    first_version_of::<f16>(5);
    first_version_of::<bf16>(6);
}

fn filters_of<T: Element + tilekern::DeviceType>(seed: u64) {
    fn call<'a, T: Element, S: Side>(
        s: &'a Sampling<'_, T>,
        out: &'a mut Pair<'_, T>,
        side: &S,
        n: usize,
    ) -> ApplyTopKTopP<'a, S::B, T> {
        let logits = side.read(&s.logits, strided([ROWS, COLUMNS], STRIDES[n % 3]));
        let mut call = ApplyTopKTopP::new(logits, side.write(out, strided([ROWS, COLUMNS], STRIDES[(n + 1) % 3])));
        if n % 4 != 1 {
            call.k = Some(side.read(&s.top_k, dims([ROWS])));
        }
        if n % 4 != 2 {
            call.p = Some(side.read(&s.top_p, strided([ROWS, 1], [2, 1])));
        }
        call
    }
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(seed));
    for n in 0..24 {
        let s = Sampling::<T>::new(&stream, &mut random);
        let before = T::narrow(9.0);
        let mut out = Pair::new(&stream, vec![before; ROWS * 50]);
        on_host(call(&s, &mut out, &OnHost, n));
        on_device(&stream, call(&s, &mut out, &device(&stream), n));
        out.agrees(before);
    }
}

#[test]
fn filters() {
    filters_of::<f32>(7);
    filters_of::<f16>(8);
    filters_of::<bf16>(9);
}

fn draws_of<T: Weight + tilekern::DeviceType + bytemuck::Pod + PartialEq>(number: impl Fn(u64) -> T) {
    fn call<'a, T: Weight + bytemuck::Pod, S: Side>(
        probs: &'a Pair<'_, T>,
        out: &'a mut Pair<'_, i64>,
        side: &S,
        n: usize,
    ) -> Multinomial<'a, S::B, T> {
        let samples = 1 + n % 3;
        let probs = side.read(probs, strided([ROWS, COLUMNS], STRIDES[n % 3]));
        let mut call = Multinomial::new(probs, side.write(out, strided([ROWS, samples], [4, 1])));
        (call.num_samples, call.replacement, call.seed, call.offset) = (samples as i64, n % 2 > 0, n as i64 - 3, 12 * n as i64);
        call
    }
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(10));
    for n in 0..12 {
        let probs = Pair::random(&stream, ROWS * 50, || number(random.below(100)));
        let mut out = Pair::new(&stream, vec![-1; ROWS * 4]);
        on_host(call(&probs, &mut out, &OnHost, n));
        on_device(&stream, call(&probs, &mut out, &device(&stream), n));
        out.agrees(-1);
    }
}

#[test]
fn draws() {
    draws_of(|n| n as f32);
    draws_of(|n| n as f64);
    draws_of(|n| f16::from_f32(n as f32));
    draws_of(|n| bf16::from_f32(n as f32));
}

#[test]
fn exponential_numbers() {
    let stream = Stream::new(&DEVICE).unwrap();
    let mut numbers = Pair::new(&stream, vec![f16::NEG_INFINITY; ROWS * 50]);
    fn call<'a, S: Side>(numbers: &'a mut Pair<'_, f16>, side: &S) -> Exponential<'a, S::B, f16> {
        let mut call = Exponential::new(side.write(numbers, strided([ROWS, COLUMNS], [50, 1])));
        (call.rate, call.seed, call.offset) = (0.5, 3, 8);
        call
    }
    on_host(call(&mut numbers, &OnHost));
    let backend = OrHost::new(Ascend::new(&stream), Host::new());
    backend.run(call(&mut numbers, &device(&stream)), DeviceScratch::NONE).unwrap();
    numbers.agrees(f16::NEG_INFINITY);
}
