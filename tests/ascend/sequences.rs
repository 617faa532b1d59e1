//! The exact calls of each operation. Memory is written `m4+8`: byte 8 of the fourth allocation; `[2]` behind it is an offset in
//! elements.

use crate::recorder::{self, log};
use crate::{on_stream, open};
use tilekern::acl::{Buffer, Stream, Table};
use tilekern::ops::*;
use tilekern::{Ascend, Backend, DeviceScratch, DeviceTensor, DeviceTensorMut, Run, bf16, f16};

/// Queries, allocates that much, and runs; the calls of the run.
fn calls<'t, C>(stream: &'t Stream<'t>, call: C) -> Vec<String>
where
    Ascend<'t>: Run<C> + for<'a> Backend<Scratch<'a> = DeviceScratch<'a>>,
{
    let npu = Ascend::new(stream);
    let mut workspace = Buffer::new(stream, npu.workspace(&call).unwrap().size()).unwrap();
    log();
    npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
    log()
}

/// Memory of a buffer that no test reads.
fn buffer<'s, T: bytemuck::Pod>(stream: &'s Stream<'s>, len: usize) -> Buffer<'s, T> {
    Buffer::new(stream, len).unwrap()
}

/// What every call of sampling over `[2,4]` needs: m1 to m4.
pub struct Sampling<'s> {
    logits: Buffer<'s, f32>,
    top_k: Buffer<'s, i32>,
    top_p: Buffer<'s, f32>,
    chosen: Buffer<'s, i64>,
}

impl<'s> Sampling<'s> {
    pub fn new(stream: &'s Stream<'s>) -> Result<Sampling<'s>, tilekern::acl::Error> {
        Ok(Sampling {
            logits: Buffer::new(stream, 8)?,
            top_k: Buffer::new(stream, 2)?,
            top_p: Buffer::new(stream, 2)?,
            chosen: Buffer::new(stream, 2)?,
        })
    }

    pub fn call<'a, 't>(&'a mut self) -> TopKTopPSample<'a, Ascend<'t>, f32> {
        TopKTopPSample::new(
            DeviceTensor::new([2, 4], &self.logits).unwrap(),
            DeviceTensor::new([2, 1], &self.top_k).unwrap(),
            DeviceTensor::new([2], &self.top_p).unwrap(),
            DeviceTensorMut::new([2], &mut self.chosen).unwrap(),
        )
    }
}

const DEFAULTS: &str = "eps 1e-8, need false, guess 32, ks_max 1024, logits_in true, middle";

#[test]
fn the_largest_logit() {
    on_stream(64, |stream| {
        let mut s = Sampling::new(stream).unwrap();
        let q = buffer(stream, 8);
        let mut call = s.call();
        call.post_sample = PostSample::None;
        // Not looked at.
        call.q = Some(Noise::Exponential(DeviceTensor::new([2, 4], &q).unwrap()));
        let first = "TopKTopPSampleV2: f32[2,4] m1+0, i32[2] m2+0, f32[2] m3+0, -, -, i64[2] m4+0, f32[0], i64[0], f32[0]";
        assert_eq!(calls(stream, call), [&format!("{first}; {DEFAULTS} false"), "run in m6+0"]);
    });
}

#[test]
fn noise_min_p_and_logits() {
    on_stream(0, |stream| {
        let mut s = Sampling::new(stream).unwrap();
        let (q, min_ps, mut kept) = (buffer(stream, 8), buffer(stream, 2), buffer(stream, 8));
        let mut call = s.call();
        call.q = Some(Noise::Exponential(DeviceTensor::new([2, 4], &q).unwrap()));
        call.min_ps = Some(DeviceTensor::new([2], &min_ps).unwrap());
        (call.is_need_logits, call.input_is_logits) = (true, false);
        (call.eps, call.top_k_guess, call.ks_max) = (0.5, -3, 16);
        call.logits_top_kp_select = Some(DeviceTensorMut::new([2, 4], &mut kept).unwrap());
        let tensors =
            "f32[2,4] m1+0, i32[2] m2+0, f32[2] m3+0, f32[2,4] m5+0, f32[2] m6+0, i64[2] m4+0, f32[2,4] m7+0, i64[0], f32[0]";
        let rest = "eps 0.5, need true, guess 0, ks_max 16, logits_in false, middle false";
        assert_eq!(calls(stream, call), [&format!("TopKTopPSampleV2: {tensors}; {rest}"), "run in null"]);
    });
}

#[test]
fn the_largest_k_is_what_it_comes_to() {
    let largest = i64::from(i32::MAX);
    for (given, passed) in
        [(0, 0), (1, 8), (8, 8), (1025, 1024), (largest, 1024), (-7, 0), (-8, 0), (-largest - 1, 0), ((1 << 32) + 9, 16)]
    {
        on_stream(0, |stream| {
            let mut s = Sampling::new(stream).unwrap();
            let mut call = s.call();
            call.ks_max = given;
            let first = &calls(stream, call)[0];
            assert!(first.contains(&format!(", ks_max {passed}, ")), "{given}: {first}");
        });
    }
}

#[test]
fn the_middle_result() {
    on_stream(64, |stream| {
        let mut s = Sampling::new(stream).unwrap();
        let (mut idx, mut sorted) = (buffer(stream, 8), buffer(stream, 8));
        let mut call = s.call();
        call.logits_select_idx = None;
        call.logits_idx = Some(DeviceTensorMut::new([2, 4], &mut idx).unwrap());
        call.logits_sort_masked = Some(DeviceTensorMut::new([2, 4], &mut sorted).unwrap());
        let tensors = "f32[2,4] m1+0, i32[2] m2+0, f32[2] m3+0, -, -, i64[0], f32[0], i64[2,4] m5+0, f32[2,4] m6+0";
        assert_eq!(calls(stream, call), [&format!("TopKTopPSampleV2: {tensors}; {DEFAULTS} true"), "run in m7+0"]);
    });
}

/// The workspace m6 holds the tokens at 0, their probabilities at 128, the places drawn at 192, and the operators' own from 256 on.
#[test]
fn one_seed_for_the_batch() {
    on_stream(64, |stream| {
        let mut s = Sampling::new(stream).unwrap();
        let generator = buffer(stream, 2);
        let mut call = s.call();
        call.post_sample = PostSample::MultiNomial;
        call.generator = Some(DeviceTensor::new([2], &generator).unwrap());
        let tensors = "f32[2,4] m1+0, i32[2] m2+0, f32[2] m3+0, -, -, i64[0], f32[0], i64[2,4] m6+0, f32[2,4] m6+128";
        assert_eq!(
            calls(stream, call),
            [
                &format!("TopKTopPSampleV2: {tensors}; {DEFAULTS} true"),
                "Gather: i64[2,4] m6+0, i64[2,1] m6+192, i64[2,1] m4+0; dim 1",
                "MultinomialTensor: f32[2,4] m6+128, i64[1] m5+0, i64[1] of [2] m5+0[1], i64[2,1] m6+192; \
             samples 1, replacement true, offset 0",
                "run in m6+256",
                "run in m6+256",
                "run in m6+256",
            ]
        );
    });
}

#[test]
fn a_seed_for_each_row() {
    on_stream(64, |stream| {
        let rows = 3;
        let (logits, top_k, top_p) = (buffer::<f32>(stream, 12), buffer(stream, 3), buffer(stream, 3));
        let (mut chosen, seeds) = (buffer(stream, 6), buffer(stream, 8));
        let mut call = TopKTopPSample::new(
            DeviceTensor::new([rows, 4], &logits).unwrap(),
            DeviceTensor::new([rows], &top_k).unwrap(),
            DeviceTensor::new([rows], &top_p).unwrap(),
            DeviceTensorMut::strided([rows, 1], [2, 1], &mut chosen).unwrap(),
        );
        call.post_sample = PostSample::MultiNomial;
        // Two lines, columns first: the second serves the third row, too.
        call.q = Some(Noise::Seeds(DeviceTensor::strided([2, 2], [1, 4], &seeds).unwrap()));
        let tensors = "f32[3,4] m1+0, i32[3] m2+0, f32[3] m3+0, -, -, i64[0], f32[0], i64[3,4] m6+0, f32[3,4] m6+128";
        let (line, end) = ("i64[1] of [2] m5+0[1], i64[1] of [2] m5+32[1]", "samples 1, replacement true, offset 0");
        assert_eq!(
            calls(stream, call),
            [
                &format!("TopKTopPSampleV2: {tensors}; {DEFAULTS} true"),
                "Gather: i64[3,4] m6+0, i64[3,1] m6+256, i64[3,1]/[2,1] of [5] m4+0; dim 1",
                &format!("MultinomialTensor: f32[1,4] m6+128, i64[1] m5+0, i64[1] m5+32, i64[1,1] m6+256; {end}"),
                "run in m6+320",
                "run in m6+320",
                &format!("MultinomialTensor: f32[1,4] of [8] m6+128[4], {line}, i64[1,1] of [2] m6+256[1]; {end}"),
                "run in m6+320",
                &format!("MultinomialTensor: f32[1,4] m6+160, {line}, i64[1,1] of [3] m6+256[2]; {end}"),
                "run in m6+320",
                "run in m6+320",
            ]
        );
    });
}

#[test]
fn the_first_version() {
    on_stream(64, |stream| {
        let (logits, top_k, top_p) = (buffer::<bf16>(stream, 20), buffer(stream, 2), buffer(stream, 2));
        let (q, mut chosen) = (buffer(stream, 8), buffer(stream, 2));
        let tensors = "bf16[2,4]/[10,2] of [17] m1+0, i32[2] m2+0, bf16[2] m3+0, f32[2,4] m4+0, i64[2] m5+0";
        let guesses = [(32, 32), (0, 1), (-7, 1), (i64::from(i32::MAX), i32::MAX), ((9 << 32) + 5, 5)];
        // Each call has a workspace of its own.
        for ((guess, sent), m) in guesses.into_iter().zip(6..) {
            let mut call = TopKTopPSampleV1::new(
                DeviceTensor::strided([2, 4], [10, 2], &logits).unwrap(),
                DeviceTensor::new([2], &top_k).unwrap(),
                DeviceTensor::new([2], &top_p).unwrap(),
                DeviceTensorMut::new([2], &mut chosen).unwrap(),
            );
            assert_eq!(call.top_k_guess, 32, "the default");
            call.top_k_guess = guess;
            call.q = Some(DeviceTensor::new([2, 4], &q).unwrap());
            let expected = format!("TopKTopPSample: {tensors}, f32[2,4] m{m}+0; eps 1e-8, need false, guess {sent}");
            assert_eq!(calls(stream, call), [expected, format!("run in m{m}+64")]);
        }
    });
}

#[test]
fn filters_with_p_before_k() {
    on_stream(64, |stream| {
        let (logits, p, k, mut out) = (buffer::<f16>(stream, 8), buffer(stream, 2), buffer(stream, 2), buffer(stream, 8));
        let mut call =
            ApplyTopKTopP::new(DeviceTensor::new([2, 4], &logits).unwrap(), DeviceTensorMut::new([2, 4], &mut out).unwrap());
        call.k = Some(DeviceTensor::new([2], &k).unwrap());
        let only_k = "ApplyTopKTopP: f16[2,4] m1+0, -, i32[2] m3+0, f16[2,4] m4+0; ";
        assert_eq!(calls(stream, call), [only_k, "run in m5+0"]);
        let mut call =
            ApplyTopKTopP::new(DeviceTensor::new([2, 4], &logits).unwrap(), DeviceTensorMut::new([2, 4], &mut out).unwrap());
        // Each row the same p.
        call.p = Some(DeviceTensor::strided([2, 1], [0, 1], &p).unwrap());
        let only_p = "ApplyTopKTopP: f16[2,4] m1+0, f16[2]/[0] of [1] m2+0, -, f16[2,4] m4+0; ";
        assert_eq!(calls(stream, call), [only_p, "run in m6+0"]);
    });
}

#[test]
fn weights_of_a_list() {
    on_stream(64, |stream| {
        let (probs, mut out) = (buffer::<f64>(stream, 5), buffer(stream, 3));
        let mut call = Multinomial::new(DeviceTensor::new([5], &probs).unwrap(), DeviceTensorMut::new([3], &mut out).unwrap());
        (call.num_samples, call.replacement, call.seed, call.offset) = (3, false, -1, 12);
        let expected = "Multinomial: f64[5] m1+0, i64[3] m2+0; samples 3, replacement false, seed -1, offset 12";
        assert_eq!(calls(stream, call), [expected, "run in m3+0"]);
    });
}

/// Two experts of K = 16 and N = 64, three rows: m1 to m6, m7 a bias.
pub struct Experts<'s> {
    x: Buffer<'s, i8>,
    weight: Buffer<'s, i8>,
    four: Buffer<'s, u8>,
    scale: Buffer<'s, f32>,
    bits: Buffer<'s, u64>,
    bias: Buffer<'s, f32>,
    groups: Buffer<'s, i64>,
    output: Buffer<'s, i8>,
    output_scale: Buffer<'s, f32>,
}

impl<'s> Experts<'s> {
    pub fn new(stream: &'s Stream<'s>) -> Result<Experts<'s>, tilekern::acl::Error> {
        Ok(Experts {
            x: Buffer::new(stream, 48)?,
            weight: Buffer::new(stream, 2048)?,
            four: Buffer::new(stream, 1024)?,
            scale: Buffer::new(stream, 128)?,
            bits: Buffer::new(stream, 128)?,
            bias: Buffer::new(stream, 128)?,
            groups: Buffer::new(stream, 2)?,
            output: Buffer::new(stream, 96)?,
            output_scale: Buffer::new(stream, 3)?,
        })
    }

    /// int8 weights in blocks.
    pub fn eight<'a, 't>(&'a mut self) -> GroupedMatmulSwigluQuant<'a, Ascend<'t>> {
        let mut call = GroupedMatmulSwigluQuant::new(
            DeviceTensor::new([3, 16], &self.x).unwrap(),
            GroupedWeight::I8(DeviceTensor::new([2, 2, 1, 16, 32], &self.weight).unwrap()),
            GroupedScale::Channel(ChannelScale::F32(DeviceTensor::new([2, 64], &self.scale).unwrap())),
            DeviceTensor::new([3], &self.scale).unwrap(),
            DeviceTensor::new([2], &self.groups).unwrap(),
            DeviceTensorMut::new([3, 32], &mut self.output).unwrap(),
            DeviceTensorMut::new([3], &mut self.output_scale).unwrap(),
        );
        (call.weight_format, call.fp16_rounding) = (FORMAT_NZ, true);
        call
    }

    /// int4 weights in rows, with their assist matrix.
    pub fn four<'a, 't>(&'a mut self) -> GroupedMatmulSwigluQuant<'a, Ascend<'t>> {
        let mut call = GroupedMatmulSwigluQuant::new(
            DeviceTensor::new([3, 16], &self.x).unwrap(),
            GroupedWeight::I4(DeviceTensor::new([2, 16, 32], &self.four).unwrap()),
            GroupedScale::Bits(DeviceTensor::new([2, 64], &self.bits).unwrap()),
            DeviceTensor::new([3], &self.scale).unwrap(),
            DeviceTensor::new([2], &self.groups).unwrap(),
            DeviceTensorMut::new([3, 32], &mut self.output).unwrap(),
            DeviceTensorMut::new([3], &mut self.output_scale).unwrap(),
        );
        call.bias = Some(Bias::F32(DeviceTensor::new([2, 64], &self.bias).unwrap()));
        call.fp16_rounding = true;
        call
    }
}

const NZ: &str = "i8[2,2,1,16,32] nz m2+0";
const OUTPUTS: &str = "i8[3,32] m8+0, f32[3] m9+0";

/// The calls with these functions.
fn grouped(table: &Table, call: impl FnOnce(&Stream<'_>) -> Vec<String>) -> Vec<String> {
    let mut calls = Vec::new();
    open(table, 64, |stream| calls = call(stream));
    calls
}

fn v1(stream: &Stream<'_>) -> Vec<String> {
    let mut experts = Experts::new(stream).unwrap();
    calls(stream, experts.eight())
}

fn v2(stream: &Stream<'_>) -> Vec<String> {
    let mut experts = Experts::new(stream).unwrap();
    let mut call = experts.eight();
    (call.arithmetic, call.group_list_type) = (2, 1);
    calls(stream, call)
}

#[test]
fn grouped_v1() {
    let tensors = format!("i8[3,16] m1+0, {NZ}, -, -, f32[2,64] m4+0, f32[3] m4+0, i64[2] m7+0, {OUTPUTS}, -");
    assert_eq!(grouped(&recorder::table(), v1), [&format!("GroupedWeightNZ: {tensors}; "), "run in m10+0"]);
    // Without that entry the plain one, with the same blocks.
    let table = recorder::changed(|functions| functions.operators.aclnnGroupedMatmulSwigluQuantWeightNZ = None);
    assert_eq!(grouped(&table, v1), [&format!("Grouped: {tensors}; "), "run in m10+0"]);
    // The wider prototype, without a limit.
    assert_eq!(grouped(&recorder::custom(), v1), [&format!("GroupedLimited: {tensors}; limited 0.0"), "run in m10+0"]);
}

#[test]
fn grouped_v2() {
    let tensors = format!("i8[3,16] m1+0, {{{NZ}}}, {{f32[2,64] m4+0}}, -, -, f32[3] m4+0, -, i64[2] m7+0, {OUTPUTS}");
    assert_eq!(grouped(&recorder::table(), v2), [&format!("GroupedWeightNzV2: {tensors}; modes 0 0 0 1"), "run in m10+0"]);
    let table = recorder::changed(|functions| functions.operators.aclnnGroupedMatmulSwigluQuantWeightNzV2 = None);
    assert_eq!(grouped(&table, v2), [&format!("GroupedV2: {tensors}; modes 0 0 0 1"), "run in m10+0"]);
    // That package's entry for blocks would take the weights for int4.
    let expected = format!("GroupedV2Limited: {tensors}; modes 0 0 0 1 limit 0.0");
    assert_eq!(grouped(&recorder::custom(), v2), [&expected, "run in m10+0"]);
}

#[test]
fn nothing_to_do_calls_nothing() {
    on_stream(64, |stream| {
        let mut experts = Experts::new(stream).unwrap();
        let mut call = experts.eight();
        let groups = buffer(stream, 0);
        call.group_list = DeviceTensor::new([0], &groups).unwrap();
        let none: [&str; 0] = [];
        assert_eq!(calls(stream, call), none);
        let (logits, k, mut out) = (buffer::<f32>(stream, 0), buffer(stream, 0), buffer(stream, 0));
        let mut call =
            ApplyTopKTopP::new(DeviceTensor::new([0, 4], &logits).unwrap(), DeviceTensorMut::new([0, 4], &mut out).unwrap());
        call.k = Some(DeviceTensor::new([0], &k).unwrap());
        assert_eq!(calls(stream, call), none);
    });
}
