//! What only contents show: group lists, and numbers that are small.

use super::*;
use core::ptr::null;

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
    let (open, mut random) = (Open::new(), Random(7));
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
        assert_eq!(run(&open, "aclnnGroupedMatmulSwigluQuant", begin), 507015);
        let said = message();
        assert!(said.contains("group_list") && said.contains(text), "{said}");
        assert!(case.output.equals(&out.0) && case.output_scale.equals(&out_scale.0), "nothing was written");
        assert_eq!(open.synchronise(), 0);
    }
}
