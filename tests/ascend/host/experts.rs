//! The grouped product.

use super::*;
use crate::balance::Random;
use tilekern::ops::*;
use tilekern::{OrHost, bf16};

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

/// Asymmetric output of plain weights, which the NPU refuses and the host computes.
#[test]
fn or_the_host() {
    let (stream, mut random) = (Stream::new(&DEVICE).unwrap(), Random(13));
    let mut e = Experts::new(&stream, &mut random, [1, 4, 6]);
    let mut offset = Pair::new(&stream, vec![-1.0f32; M]);
    fn asymmetric<'a, S: Side>(
        e: &'a mut Experts<'_>,
        offset: &'a mut Pair<'_, f32>,
        side: &S,
    ) -> GroupedMatmulSwigluQuant<'a, S::B> {
        let mut call = e.call(side, 0);
        call.fp16_rounding = false;
        call.output_offset = Some(side.write(offset, dims([M])));
        call
    }
    on_host(asymmetric(&mut e, &mut offset, &OnHost));
    let backend = OrHost::new(Ascend::new(&stream), Host::new());
    let call = asymmetric(&mut e, &mut offset, &device(&stream));
    assert_eq!(Ascend::new(&stream).workspace(&call).unwrap_err().argument(), "output_offset");
    backend.run(call, DeviceScratch::NONE).unwrap();
    e.output.agrees(99);
    e.output_scale.agrees(-1.0);
    offset.agrees(-1.0);
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
