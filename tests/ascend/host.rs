//! Dispatch to the library that runs aclnn's operators on the host's processor: every operation gives the bits that the host gives to a
//! direct call.

use crate::balance::Random;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{LazyLock, OnceLock};
use tilekern::acl::{Buffer, Device, Stream, Table, load};
use tilekern::ops::*;
use tilekern::{
    Ascend, Backend, DeviceScratch, DeviceTensor, DeviceTensorMut, Dims, Host, OrHost, Run, Scratch, Tensor, TensorMut,
};
use tilekern::{Element, Status, bf16, f16};

/// `libtilekern_opapi.so`. `cargo test` builds no such library, so it is built here, beside that of the C ABI.
fn library() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("library");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--profile", "test", "-p", "tilekern-opapi-host", "--target-dir"]).arg(&directory);
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    directory.join("debug/libtilekern_opapi.so")
}

/// Its functions.
fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // SAFETY: a library that is checked against the same prototypes.
    TABLE.get_or_init(|| unsafe { load::library(&library()) }.unwrap())
}

/// Its device, which no test gives back.
static DEVICE: LazyLock<Device<'static>> = LazyLock::new(|| Device::open(table(), 0).unwrap());

/// The same numbers in the host's memory and in the device's.
struct Pair<'s, T> {
    host: Vec<T>,
    device: Buffer<'s, T>,
}

impl<'s, T: bytemuck::Pod + PartialEq> Pair<'s, T> {
    fn new(stream: &'s Stream<'s>, host: Vec<T>) -> Pair<'s, T> {
        let device = Buffer::from_slice(stream, &host).unwrap();
        Pair { host, device }
    }

    fn random(stream: &'s Stream<'s>, len: usize, mut number: impl FnMut() -> T) -> Pair<'s, T> {
        Pair::new(stream, (0..len).map(|_| number()).collect())
    }

    /// Both sides hold the same bytes, and not those that they began with.
    fn agrees(&self, before: T) {
        let mut device = vec![before; self.host.len()];
        self.device.read(&mut device).unwrap();
        assert_eq!(bytemuck::cast_slice::<T, u8>(&device), bytemuck::cast_slice::<T, u8>(&self.host));
        assert!(device.iter().any(|value| *value != before));
    }
}

/// One of the two backends, and its tensors over pairs.
trait Side {
    type B: Backend;
    fn read<'a, T: bytemuck::Pod>(&self, pair: &'a Pair<'_, T>, dims: Dims) -> <Self::B as Backend>::View<'a, T>;
    fn write<'a, T: bytemuck::Pod>(&self, pair: &'a mut Pair<'_, T>, dims: Dims) -> <Self::B as Backend>::ViewMut<'a, T>;
}

struct OnHost;
struct OnDevice<'t>(std::marker::PhantomData<Ascend<'t>>);

/// The side of this stream.
fn device<'t>(_: &'t Stream<'t>) -> OnDevice<'t> {
    OnDevice(std::marker::PhantomData)
}

impl Side for OnHost {
    type B = Host;
    fn read<'a, T: bytemuck::Pod>(&self, pair: &'a Pair<'_, T>, dims: Dims) -> Tensor<'a, T> {
        Tensor::with(dims, &pair.host).unwrap()
    }
    fn write<'a, T: bytemuck::Pod>(&self, pair: &'a mut Pair<'_, T>, dims: Dims) -> TensorMut<'a, T> {
        TensorMut::with(dims, &mut pair.host).unwrap()
    }
}

impl<'t> Side for OnDevice<'t> {
    type B = Ascend<'t>;
    fn read<'a, T: bytemuck::Pod>(&self, pair: &'a Pair<'_, T>, dims: Dims) -> DeviceTensor<'a, T> {
        DeviceTensor::with(dims, &pair.device).unwrap()
    }
    fn write<'a, T: bytemuck::Pod>(&self, pair: &'a mut Pair<'_, T>, dims: Dims) -> DeviceTensorMut<'a, T> {
        DeviceTensorMut::with(dims, &mut pair.device).unwrap()
    }
}

fn on_host<C>(call: C)
where
    Host: Run<C> + for<'a> Backend<Scratch<'a> = &'a mut [u8]>,
{
    let host = Host::new();
    let mut scratch = Scratch::new(host.workspace(&call).unwrap());
    host.run(call, &mut scratch).unwrap();
}

fn on_device<'t, C>(stream: &'t Stream<'t>, call: C)
where
    Ascend<'t>: Run<C> + for<'a> Backend<Scratch<'a> = DeviceScratch<'a>>,
{
    let npu = Ascend::new(stream);
    let mut workspace = Buffer::new(stream, npu.workspace(&call).unwrap().size()).unwrap();
    npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
    stream.synchronize().unwrap();
}

fn dims<const R: usize>(shape: [usize; R]) -> Dims {
    Dims::contiguous(&shape).unwrap()
}

fn strided<const R: usize>(shape: [usize; R], strides: [usize; R]) -> Dims {
    Dims::strided(&shape, &strides).unwrap()
}

/// What sampling reads and writes: rows of 40 numbers, with gaps.
struct Sampling<'s, T> {
    logits: Pair<'s, T>,
    top_k: Pair<'s, i32>,
    top_p: Pair<'s, T>,
    min_ps: Pair<'s, T>,
    q: Pair<'s, f32>,
    seeds: Pair<'s, i64>,
    chosen: Pair<'s, i64>,
    kept: Pair<'s, f32>,
    status: Pair<'s, u8>,
}

const ROWS: usize = 5;
const COLUMNS: usize = 40;
/// Columns first, or rows with a gap.
const STRIDES: [[usize; 2]; 3] = [[COLUMNS, 1], [50, 1], [1, ROWS]];

impl<'s, T: Element> Sampling<'s, T> {
    fn new(stream: &'s Stream<'s>, random: &mut Random) -> Self {
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
    fn call<'a, S: Side>(&'a mut self, side: &S, n: usize) -> TopKTopPSample<'a, S::B, T> {
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

/// Experts' tensors: K = 32, N = 128, seven rows.
struct Experts<'s> {
    x: Pair<'s, i8>,
    eight: Pair<'s, i8>,
    four: Pair<'s, u8>,
    scale: Pair<'s, f32>,
    half: Pair<'s, bf16>,
    bits: Pair<'s, u64>,
    groups: Pair<'s, i64>,
    output: Pair<'s, i8>,
    output_scale: Pair<'s, f32>,
}

const M: usize = 7;
const K: usize = 32;
const N: usize = 128;
const EXPERTS: usize = 3;

impl<'s> Experts<'s> {
    fn new(stream: &'s Stream<'s>, random: &mut Random, groups: [i64; EXPERTS]) -> Experts<'s> {
        let mut byte = || random.below(256) as u8;
        let (x, eight) = (Pair::random(stream, M * 40, || byte() as i8), Pair::random(stream, EXPERTS * K * N, || byte() as i8));
        let four = Pair::random(stream, EXPERTS * K * N / 2, &mut byte);
        let mut float = || (1 + random.below(1000)) as f32 * 1e-5;
        Experts {
            x,
            eight,
            four,
            scale: Pair::random(stream, EXPERTS * N, &mut float),
            half: Pair::random(stream, EXPERTS * N, || bf16::from_f32(float())),
            bits: Pair::random(stream, EXPERTS * N, || u64::from(float().to_bits())),
            groups: Pair::new(stream, groups.into()),
            output: Pair::new(stream, vec![99; M * 80]),
            output_scale: Pair::new(stream, vec![-1.0; M]),
        }
    }

    fn call<'a, S: Side>(&'a mut self, side: &S, n: usize) -> GroupedMatmulSwigluQuant<'a, S::B> {
        let (four, blocks) = (n % 4 > 1, n % 4 != 2);
        let weight = match (four, blocks) {
            (false, _) => GroupedWeight::I8(side.read(&self.eight, dims([EXPERTS, N / 32, K / 16, 16, 32]))),
            (true, true) => GroupedWeight::I4(side.read(&self.four, dims([EXPERTS, N / 64, K / 16, 16, 32]))),
            (true, false) => GroupedWeight::I4(side.read(&self.four, dims([EXPERTS, K, N / 2]))),
        };
        let channels = dims([EXPERTS, N]);
        let scale = match (four, n % 3) {
            (true, _) => GroupedScale::Bits(side.read(&self.bits, channels)),
            (false, 0) => GroupedScale::Channel(ChannelScale::BF16(side.read(&self.half, channels))),
            (false, _) => GroupedScale::Channel(ChannelScale::F32(side.read(&self.scale, channels))),
        };
        let mut call = GroupedMatmulSwigluQuant::new(
            side.read(&self.x, strided([M, K], [40, 1])),
            weight,
            scale,
            side.read(&self.scale, dims([M])),
            side.read(&self.groups, dims([EXPERTS])),
            side.write(&mut self.output, strided([M, N / 2], [80, 1])),
            side.write(&mut self.output_scale, dims([M])),
        );
        (call.weight_format, call.fp16_rounding) = (if blocks { FORMAT_NZ } else { FORMAT_ND }, true);
        if four {
            call.bias = Some(Bias::F32(side.read(&self.scale, channels)));
        } else if n % 2 > 0 {
            (call.arithmetic, call.group_list_type) = (2, 1);
        }
        call
    }
}

#[test]
fn experts() {
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(11));
    for n in 0..24 {
        let groups = if n % 4 == 1 { [2, 0, 3] } else { [1, 4, 6] };
        let mut e = Experts::new(&stream, &mut random, groups);
        on_host(e.call(&OnHost, n));
        on_device(&stream, e.call(&device(&stream), n));
        e.output.agrees(99);
        e.output_scale.agrees(-1.0);
    }
}

/// Nobody reads the list before the device does.
#[test]
fn a_bad_group_list_is_reported_late() {
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(12));
    let mut e = Experts::new(&stream, &mut random, [1, 9, 9]);
    let npu = Ascend::new(&stream);
    let call = e.call(&device(&stream), 0);
    let mut workspace = Buffer::new(&stream, npu.workspace(&call).unwrap().size()).unwrap();
    npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.code(), 507_015);
    assert!(error.message().contains("group_list"), "{error}");
    let mut output = [0; M * 80];
    e.output.device.read(&mut output).unwrap();
    assert_eq!(output, [99; M * 80]);
}

/// A thousand calls on each of four threads, each with a stream and data of its own, and logits that all share.
#[test]
fn threads() {
    let shared = Stream::new(&DEVICE).unwrap();
    let all = Sampling::<f32>::new(&shared, &mut Random(13));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let logits = &all.logits;
            scope.spawn(move || {
                let stream = Stream::new(&DEVICE).unwrap();
                let npu = Ascend::new(&stream);
                let mut s = Sampling::<f32>::new(&stream, &mut Random(14 + thread));
                let mut workspace = Buffer::new(&stream, 1 << 16).unwrap();
                for n in 0..1000 {
                    let n = n % 8;
                    let mut call = s.call(&device(&stream), n);
                    call.logits = device(&stream).read(logits, strided([ROWS, COLUMNS], STRIDES[n % 3]));
                    npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
                    if n == 7 {
                        let mut call = s.call(&OnHost, n);
                        call.logits = OnHost.read(logits, strided([ROWS, COLUMNS], STRIDES[n % 3]));
                        on_host(call);
                        s.chosen.agrees(-1);
                    }
                }
                stream.synchronize().unwrap();
            });
        }
    });
}

#[test]
fn a_stream_of_two_threads_in_order() {
    let stream = Stream::new(&DEVICE).unwrap();
    let mut s = Sampling::<f32>::new(&stream, &mut Random(20));
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                DEVICE.enter().unwrap();
                on_device(&stream, s.call(&device(&stream), 1));
            })
            .join()
            .unwrap()
    });
    // The last word is this thread's.
    on_device(&stream, s.call(&device(&stream), 3));
    on_host(s.call(&OnHost, 3));
    s.chosen.agrees(-1);
}

#[test]
fn a_thread_without_a_device() {
    let stream = Stream::new(&DEVICE).unwrap();
    let mut s = Sampling::<f32>::new(&stream, &mut Random(21));
    let npu = Ascend::new(&stream);
    let mut workspace = Buffer::new(&stream, 1 << 16).unwrap();
    let call = s.call(&device(&stream), 1);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| npu.run(call, DeviceScratch::new(&mut workspace)).unwrap_err()).join().unwrap()
    });
    assert_eq!(error.status(), Status::Backend);
    assert!(error.to_string().contains("107002 ACL_ERROR_RT_CONTEXT_NULL"), "{error}");
}
