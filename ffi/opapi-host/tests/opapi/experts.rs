//! GroupedMatmulSwigluQuant in all its forms against the host called directly.

use crate::common::{acl, message};
use crate::device::{Buffer, Plain, Session, Tensor, View, run};
use crate::layout::{Laid, Random};
use core::ptr::null;
use tilekern::ops::{Bias, ChannelScale, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use tilekern::{Host, Run, Scratch, Tensor as HostTensor, bf16, f16};
use tilekern_acl::*;

/// One case: sizes, activations and groups. Outputs begin full of something.
struct Case {
    sizes: [usize; 4],
    x: Laid<i8>,
    x_scale: Laid<f32>,
    list: Laid<i64>,
    output: Laid<i8>,
    output_scale: Laid<f32>,
}

impl Case {
    fn new(random: &mut Random, counts: bool) -> Case {
        let [m, k, n, e] = [1 + random.below(40), 16 * (1 + random.below(5)), 64 * (1 + random.below(3)), 1 + random.below(4)];
        let mut ends = random.many(e, |r| r.below(m + 1) as i64);
        ends.sort_unstable();
        if counts {
            for i in (1..e).rev() {
                ends[i] -= ends[i - 1];
            }
        }
        let values = random.many(m * k, |r| r.next() as i8);
        let scales = random.many(m, |r| r.float(0.01).abs() + 1e-4);
        let mut any = || random.below(4);
        Case {
            sizes: [m, k, n, e],
            x: Laid::new(&[m, k], &values, 1, any()),
            x_scale: Laid::new(&[m], &scales, 1.0, any()),
            list: Laid::new(&[e], &ends, -9, any()),
            output: Laid::new(&[m, n / 2], &vec![99; m * n / 2], 99, any()),
            output_scale: Laid::new(&[m], &vec![9.0; m], 9.0, any()),
        }
    }

    /// The device's answer through `begin`, then the host's.
    fn compare(
        mut self,
        session: &Session,
        name: &str,
        begin: impl FnOnce([*mut aclTensor; 5], *mut u64, *mut *mut aclOpExecutor) -> i32,
        weights: Weights<'_>,
    ) {
        let (x, x_scale, list) = (self.x.device(), self.x_scale.device(), self.list.device());
        let (output, output_scale) = (self.output.device(), self.output_scale.device());
        let handles = [&x.1, &x_scale.1, &list.1, &output.1, &output_scale.1].map(|tensor| tensor.0);
        assert_eq!(run(session, name, |s, e| begin(handles, s, e)), 0, "{}", message());
        let [_, k, n, e] = self.sizes;
        let weight = match weights.weight {
            Weight::Eight(values) => GroupedWeight::I8(HostTensor::new([e, k, n], values).unwrap()),
            Weight::Four(bytes) => GroupedWeight::I4(HostTensor::new([e, k, n / 2], bytes).unwrap()),
        };
        let scale = match weights.scale {
            Scale::F32(scale) => GroupedScale::Channel(ChannelScale::F32(scale.host())),
            Scale::F16(scale) => GroupedScale::Channel(ChannelScale::F16(scale.host())),
            Scale::BF16(scale) => GroupedScale::Channel(ChannelScale::BF16(scale.host())),
            Scale::Bits(scale) => GroupedScale::Bits(scale.host()),
        };
        let (to, to_scale) = (self.output.host_mut(), self.output_scale.host_mut());
        let (x, x_scale, list) = (self.x.host(), self.x_scale.host(), self.list.host());
        let mut call = GroupedMatmulSwigluQuant::new(x, weight, scale, x_scale, list, to, to_scale);
        call.bias = weights.assist.map(|assist| Bias::F32(assist.host()));
        (call.fp16_rounding, call.arithmetic, call.group_list_type) = (true, weights.arithmetic, weights.list_type);
        let host = Host::new();
        let mut scratch = Scratch::new(host.workspace(&call).unwrap());
        host.run(call, &mut scratch).unwrap();
        assert!(self.output.equals(&output.0) && self.output_scale.equals(&output_scale.0), "{name} {:?}", self.sizes);
    }
}

/// What the host is called with.
struct Weights<'a> {
    weight: Weight<'a>,
    scale: Scale<'a>,
    assist: Option<&'a Laid<f32>>,
    arithmetic: i32,
    list_type: i32,
}

enum Weight<'a> {
    Eight(&'a [i8]),
    Four(&'a [u8]),
}

enum Scale<'a> {
    F32(&'a Laid<f32>),
    F16(&'a Laid<f16>),
    BF16(&'a Laid<bf16>),
    Bits(&'a Laid<u64>),
}

/// Weights `[e,k,n]` in blocks of 16 rows by `width` columns.
fn in_blocks<T: Copy>([_, k, n, e]: [usize; 4], plain: &[T], width: usize) -> Vec<T> {
    let mut blocks = plain.to_vec();
    for expert in 0..e {
        for row in 0..k {
            for column in 0..n {
                let at = expert * k * n + column / width * width * k + row * width + column % width;
                blocks[at] = plain[(expert * k + row) * n + column];
            }
        }
    }
    blocks
}

/// Two int4 to a byte, the low half first.
fn packed(values: &[i8]) -> Vec<u8> {
    values.chunks_exact(2).map(|pair| (pair[0] & 15) as u8 | (pair[1] << 4) as u8).collect()
}

fn sizes<const R: usize>(of: [usize; R]) -> [i64; R] {
    of.map(|n| n as i64)
}

/// A weight in blocks: five dimensions, or three with a storage of five.
fn weight_view([_, k, n, e]: [usize; 4], plain: bool, format: aclFormat) -> View {
    let storage = sizes([e, n / 32, k / 16, 16, 32]);
    let view = View::contiguous(&if plain { sizes([e, k, n]).to_vec() } else { storage.to_vec() }, ACL_INT8);
    View { format, storage: storage.to_vec(), ..view }
}

fn channel_scales<T: Plain>(random: &mut Random, [_, _, n, e]: [usize; 4], of: impl Fn(f32) -> T) -> Laid<T> {
    let values = random.many(e * n, |r| of(r.float(0.01).abs() + 1e-4));
    Laid::new(&[e, n], &values, of(1.0), random.below(4))
}

#[test]
fn first_version() {
    let (session, mut random) = (Session::new(), Random(4));
    for round in 0..60 {
        let case = Case::new(&mut random, false);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.next() as i8);
        let weight = Buffer::of(&in_blocks(case.sizes, &plain, 32));
        let (nz, flat) = (round % 2 == 1, random.below(2) == 1);
        let format = if nz { ACL_FORMAT_ND } else { ACL_FORMAT_FRACTAL_NZ };
        let described = weight_view(case.sizes, flat, format).describe(weight.address);
        let name = if nz { "aclnnGroupedMatmulSwigluQuantWeightNZ" } else { "aclnnGroupedMatmulSwigluQuant" };
        let begin = |scale: *mut aclTensor| {
            let weight = described.0;
            move |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| match nz {
                false => acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
                    x,
                    weight,
                    null(),
                    null(),
                    scale,
                    x_scale,
                    list,
                    out,
                    out_scale,
                    core::ptr::null_mut(),
                    s,
                    e
                )),
                true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(
                    x,
                    weight,
                    null(),
                    null(),
                    scale,
                    x_scale,
                    list,
                    out,
                    out_scale,
                    core::ptr::null_mut(),
                    s,
                    e
                )),
            }
        };
        macro_rules! with_scale {
            ($variant:ident, $of:expr) => {{
                let scale = channel_scales(&mut random, case.sizes, $of);
                let device = scale.device();
                let (weight, scale) = (Weight::Eight(&plain), Scale::$variant(&scale));
                let weights = Weights { weight, scale, assist: None, arithmetic: 1, list_type: 0 };
                case.compare(&session, name, begin(device.1.0), weights);
            }};
        }
        match round % 3 {
            0 => with_scale!(F32, |x| x),
            1 => with_scale!(F16, f16::from_f32),
            _ => with_scale!(BF16, bf16::from_f32),
        }
    }
}

#[test]
fn first_version_of_four_bits() {
    let (session, mut random) = (Session::new(), Random(5));
    for round in 0..40 {
        let case = Case::new(&mut random, false);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.below(16) as i8 - 8);
        let bytes = packed(&plain);
        let nz = round % 2 == 1;
        let stored = if nz { packed(&in_blocks(case.sizes, &plain, 64)) } else { bytes.clone() };
        let weight = Buffer::of(&stored);
        let shape = if nz { sizes([e, n / 64, k / 16, 16, 64]).to_vec() } else { sizes([e, k, n]).to_vec() };
        let mut view = View::contiguous(&shape, ACL_INT4);
        if round % 4 >= 2 {
            // Eight of them in an int32.
            *view.shape.last_mut().unwrap() /= 8;
            view = View::contiguous(&view.shape.clone(), ACL_INT32);
        }
        view.format = if nz { ACL_FORMAT_FRACTAL_NZ } else { ACL_FORMAT_ND };
        let described = view.describe(weight.address);
        let groups = [1, 2, 4][random.below(3)];
        let scale_shape = if groups == 1 { vec![e, n] } else { vec![e, groups, n] };
        let values = random.many(e * groups * n, |r| u64::from((r.float(0.01).abs() + 1e-4).to_bits()));
        let scale = Laid::new(&scale_shape, &values, 0, random.below(4));
        let assists = random.many(e * n, |r| r.float(1.0));
        let assist = Laid::new(&[e, n], &assists, 0.0, random.below(4));
        let (scale_device, assist_device) = (scale.device(), assist.device());
        let (weight, scale) = (Weight::Four(&bytes), Scale::Bits(&scale));
        let weights = Weights { weight, scale, assist: Some(&assist), arithmetic: 1, list_type: 0 };
        let begin = |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| {
            let (weight, bias, scale) = (described.0, assist_device.1.0, scale_device.1.0);
            acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
                x,
                weight,
                bias,
                null(),
                scale,
                x_scale,
                list,
                out,
                out_scale,
                core::ptr::null_mut(),
                s,
                e
            ))
        };
        case.compare(&session, "aclnnGroupedMatmulSwigluQuant", begin, weights);
    }
}

/// A list, and the memory of its members.
struct List {
    handle: *mut aclTensorList,
    _memory: Vec<Buffer>,
}

impl List {
    fn new(members: Vec<(Buffer, Tensor)>) -> List {
        let handles: Vec<_> = members.iter().map(|(_, tensor)| tensor.0).collect();
        let handle = acl!(meta::aclCreateTensorList(handles.as_ptr().cast(), handles.len() as u64));
        assert!(!handle.is_null());
        let (memory, tensors): (Vec<Buffer>, Vec<Tensor>) = members.into_iter().unzip();
        // The list owns them.
        tensors.into_iter().for_each(core::mem::forget);
        List { handle, _memory: memory }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        assert_eq!(acl!(meta::aclDestroyTensorList(self.handle)), 0);
    }
}

#[test]
fn second_version() {
    let (session, mut random) = (Session::new(), Random(6));
    for round in 0..60 {
        let counts = round % 2 == 1;
        let case = Case::new(&mut random, counts);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.next() as i8);
        let blocks = in_blocks(case.sizes, &plain, 32);
        let scales = channel_scales(&mut random, case.sizes, |x| x);
        let nz = round % 3 == 0;
        let format = if nz { ACL_FORMAT_ND } else { ACL_FORMAT_FRACTAL_NZ };
        let lists = match round % 4 < 2 {
            true => {
                let buffer = Buffer::of(&blocks);
                let view = weight_view(case.sizes, random.below(2) == 1, format).describe(buffer.address);
                (List::new(vec![(buffer, view)]), List::new(vec![scales.device()]))
            }
            false => {
                let each = |expert: usize| {
                    let buffer = Buffer::of(&blocks[expert * k * n..][..k * n]);
                    let view = View { format, ..View::contiguous(&sizes([n / 32, k / 16, 16, 32]), ACL_INT8) };
                    let tensor = view.describe(buffer.address);
                    (buffer, tensor)
                };
                let scale = |expert: usize| {
                    let first = scales.offset + expert * scales.strides[0];
                    let row: Vec<f32> = (0..n).map(|i| scales.memory[first + i * scales.strides[1]]).collect();
                    Laid::new(&[n], &row, 0.0, 0).device()
                };
                (List::new((0..e).map(each).collect()), List::new((0..e).map(scale).collect()))
            }
        };
        let name = if nz { "aclnnGroupedMatmulSwigluQuantWeightNzV2" } else { "aclnnGroupedMatmulSwigluQuantV2" };
        let kind = i64::from(counts);
        let hint = acl!(meta::aclCreateIntArray([4i64].as_ptr(), 1));
        let begin = |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| {
            let (w, ws) = (lists.0.handle, lists.1.handle);
            match nz {
                false => acl!(operators::aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
                    x,
                    w,
                    ws,
                    null(),
                    null(),
                    x_scale,
                    null(),
                    list,
                    0,
                    0,
                    0,
                    kind,
                    hint,
                    out,
                    out_scale,
                    s,
                    e
                )),
                true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize(
                    x,
                    w,
                    ws,
                    null(),
                    null(),
                    x_scale,
                    null(),
                    list,
                    0,
                    0,
                    0,
                    kind,
                    null(),
                    out,
                    out_scale,
                    s,
                    e
                )),
            }
        };
        let (weight, scale) = (Weight::Eight(&plain), Scale::F32(&scales));
        case.compare(&session, name, begin, Weights { weight, scale, assist: None, arithmetic: 2, list_type: kind as i32 });
        assert_eq!(acl!(meta::aclDestroyIntArray(hint)), 0);
    }
}

#[test]
fn second_version_of_four_bits() {
    let (session, mut random) = (Session::new(), Random(8));
    for round in 0..30 {
        let case = Case::new(&mut random, round % 2 == 1);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.below(16) as i8 - 8);
        let bytes = packed(&plain);
        let scales = random.many(e * n, |r| u64::from((r.float(0.01).abs() + 1e-4).to_bits()));
        let assists = random.many(e * n, |r| r.float(1.0));
        let (scale, assist) = (Laid::new(&[e, n], &scales, 0, 0), Laid::new(&[e, n], &assists, 0.0, 0));
        // One tensor for all experts, or one for each.
        let parts = if round % 3 == 0 { 1 } else { e };
        let list = |part: &dyn Fn(usize) -> (Buffer, Tensor)| List::new((0..parts).map(part).collect());
        fn part<T: Plain>(values: &[T], part: usize, parts: usize, shape: &[usize], dtype: aclDataType) -> (Buffer, Tensor) {
            let size = values.len() / parts;
            let buffer = Buffer::of(&values[part * size..][..size]);
            let shape: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
            let tensor = View::contiguous(&shape[usize::from(parts > 1)..], dtype).describe(buffer.address);
            (buffer, tensor)
        }
        let weights = list(&|i| part(&bytes, i, parts, &[e, k, n], ACL_INT4));
        let scale_list = list(&|i| part(&scales, i, parts, &[e, n], ACL_UINT64));
        let assist_list = list(&|i| part(&assists, i, parts, &[e, n], ACL_FLOAT));
        let kind = i64::from(round % 2 == 1);
        let begin = |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| {
            let (w, ws, assist) = (weights.handle, scale_list.handle, assist_list.handle);
            acl!(operators::aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
                x,
                w,
                ws,
                assist,
                null(),
                x_scale,
                null(),
                list,
                0,
                0,
                0,
                kind,
                null(),
                out,
                out_scale,
                s,
                e
            ))
        };
        let (weight, scale) = (Weight::Four(&bytes), Scale::Bits(&scale));
        let called = Weights { weight, scale, assist: Some(&assist), arithmetic: 1, list_type: kind as i32 };
        case.compare(&session, "aclnnGroupedMatmulSwigluQuantV2", begin, called);
    }
}

/// A program with flush-to-zero on gets subnormal numbers all the same, although it is its threads that make ours.
#[test]
fn fast_math_changes_nothing() {
    let program = crate::programs::compile_test_with("fast_math.c", &["-O2", "-ffast-math"]);
    let output = crate::common::succeed(&mut crate::programs::command(&program));
    // Sixteen times one, as activation and, times 2^-140, as gate.
    let (weight, mut scale) = ([1i8; 16 * 32], [1.0f32; 32]);
    scale[16..].fill(f32::from_bits(1 << 9));
    let (mut out, mut out_scale) = ([0i8; 16], [0.0f32]);
    let host = Host::new();
    let call = GroupedMatmulSwigluQuant::new(
        HostTensor::new([1, 16], &[1i8; 16]).unwrap(),
        GroupedWeight::I8(HostTensor::new([1, 16, 32], &weight).unwrap()),
        GroupedScale::Channel(ChannelScale::F32(HostTensor::new([1, 32], &scale).unwrap())),
        HostTensor::new([1], &[1.0]).unwrap(),
        HostTensor::new([1], &[1]).unwrap(),
        tilekern::TensorMut::new([1, 16], &mut out).unwrap(),
        tilekern::TensorMut::new([1], &mut out_scale).unwrap(),
    );
    let mut scratch = Scratch::new(host.workspace(&call).unwrap());
    host.run(call, &mut scratch).unwrap();
    assert!(out_scale[0] > 0.0 && out_scale[0].is_subnormal());
    assert_eq!(output, format!("{:08x}\n", out_scale[0].to_bits()));
}

/// What a group list contains is seen when it is used.
#[test]
fn group_lists_that_are_wrong() {
    let (session, mut random) = (Session::new(), Random(7));
    let mut case = Case::new(&mut random, false);
    while case.sizes[3] < 2 {
        case = Case::new(&mut random, false);
    }
    let [m, k, n, e] = case.sizes;
    let weight = Buffer::of(&vec![1i8; e * k * n]);
    let described = weight_view(case.sizes, true, ACL_FORMAT_FRACTAL_NZ).describe(weight.address);
    let scale = channel_scales(&mut random, case.sizes, |x| x).device();
    let mut list = vec![m as i64; e];
    for (wrong, text) in [(0, "after row"), (m as i64 + 1, "entry"), (-1, "entry")] {
        list[e - 1] = wrong;
        let list = Laid::new(&[e], &list, 0, 0).device();
        let (x, x_scale) = (case.x.device(), case.x_scale.device());
        let (out, out_scale) = (case.output.device(), case.output_scale.device());
        let begin = |s, e| {
            let (x, x_scale, list, out, out_scale) = (x.1.0, x_scale.1.0, list.1.0, out.1.0, out_scale.1.0);
            let (weight, scale, none) = (described.0, scale.1.0, core::ptr::null_mut());
            acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
                x,
                weight,
                null(),
                null(),
                scale,
                x_scale,
                list,
                out,
                out_scale,
                none,
                s,
                e
            ))
        };
        assert_eq!(run(&session, "aclnnGroupedMatmulSwigluQuant", begin), 507015);
        let said = message();
        assert!(said.contains("group_list") && said.contains(text), "{said}");
        assert!(case.output.equals(&out.0) && case.output_scale.equals(&out_scale.0), "nothing was written");
        assert_eq!(session.synchronise(), 0);
    }
}
