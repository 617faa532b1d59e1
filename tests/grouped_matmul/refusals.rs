//! What is refused, with which code and about which argument; nothing is written then.

use crate::case::{Case, Layouts};
use crate::common::Random;
use tilekern::ops::*;
use tilekern::{Dims, Host, Tensor, TensorMut};

fn case() -> Case {
    let mut random = Random(81);
    let mut bytes = |count: usize| -> Vec<i8> { (0..count).map(|_| random.int8()).collect() };
    Case {
        m: 6,
        k: 16,
        n: 32,
        e: 2,
        x: bytes(6 * 16),
        w: bytes(2 * 16 * 32),
        w_scale: vec![0.01; 64],
        x_scale: vec![0.01; 6],
        list: vec![2, 5],
        arithmetic: 1,
        ..Case::default()
    }
}

type Call<'a> = GroupedMatmulSwigluQuant<'a, Host>;

fn refuses(status: i32, argument: &str, change: impl for<'a> FnOnce(&mut Call<'a>)) {
    let case = case();
    let (result, output) = case.run(&Host::new(), |call, _| change(call), &Layouts::default());
    let error = result.unwrap_err();
    assert_eq!((error.status().code(), error.argument()), (status, argument), "{error}");
    assert!(output == case.untouched(), "nothing is written");
}

fn none<'a, T>(shape: &[usize]) -> Tensor<'a, T> {
    Tensor::shape_only(Dims::contiguous(shape).unwrap())
}

fn channel<'a>(view: Tensor<'a, f32>) -> GroupedScale<'a, Host> {
    GroupedScale::Channel(ChannelScale::F32(view))
}

#[test]
fn grouped_matmul_refusals() {
    refuses(161001, "x", |call| call.x = none(&[6, 16]));
    refuses(161001, "weight", |call| call.weight = GroupedWeight::I8(none(&[2, 16, 32])));
    refuses(161001, "weight_scale", |call| call.weight_scale = channel(none(&[2, 32])));
    refuses(161001, "x_scale", |call| call.x_scale = none(&[6]));
    refuses(161001, "group_list", |call| call.group_list = none(&[2]));
    refuses(161001, "output", |call| call.output = TensorMut::shape_only(Dims::contiguous(&[6, 16]).unwrap()));
    refuses(161001, "output_scale", |call| call.output_scale = TensorMut::shape_only(Dims::contiguous(&[6]).unwrap()));
    refuses(161002, "weight_scale", |call| call.weight_scale = GroupedScale::Bits(Tensor::new([2, 32], &[0; 64]).unwrap()));
    refuses(161002, "x", |call| call.x = none(&[6, 65_537]));
    refuses(161002, "x", |call| call.x = none(&[96]));
    refuses(161002, "weight", |call| call.x = none(&[6, 17]));
    refuses(161002, "weight", |call| call.weight = GroupedWeight::I8(none(&[2, 16, 33])));
    refuses(161002, "weight", |call| call.weight = GroupedWeight::I8(none(&[3, 16, 32])));
    refuses(161002, "weight", |call| call.weight_format = FORMAT_NZ);
    refuses(161002, "weight", |call| call.weight_format = FORMAT_PACKED);
    refuses(161002, "weight_format", |call| call.weight_format = 3);
    refuses(161002, "weight_scale", |call| call.weight_scale = channel(none(&[2, 31])));
    refuses(161002, "weight_scale", |call| call.weight_scale = channel(none(&[64])));
    refuses(161002, "x_scale", |call| call.x_scale = none(&[5]));
    refuses(161002, "group_list", |call| call.group_list = none(&[3]));
    refuses(161002, "group_list", |call| call.group_list = none(&[2, 1]));
    refuses(161002, "output", |call| call.output = TensorMut::shape_only(Dims::contiguous(&[6, 32]).unwrap()));
    refuses(161002, "output_scale", |call| call.output_scale = TensorMut::shape_only(Dims::contiguous(&[7]).unwrap()));
    refuses(161002, "output_offset", |call| call.output_offset = Some(TensorMut::shape_only(Dims::contiguous(&[7]).unwrap())));
    refuses(161002, "fp16_rounding", |call| {
        call.fp16_rounding = true;
        call.output_offset = Some(TensorMut::shape_only(Dims::contiguous(&[6]).unwrap()));
    });
    refuses(161002, "bias", |call| call.bias = Some(Bias::I32(none(&[32]))));
    refuses(161002, "offset", |call| call.offset = Some(none(&[2, 16])));
    refuses(161002, "group_list_type", |call| call.group_list_type = 2);
    refuses(161002, "arithmetic", |call| call.arithmetic = 0);
    // Ragged blocks.
    refuses(161002, "weight", |call| {
        call.weight_format = FORMAT_NZ;
        call.x = none(&[6, 24]);
        call.weight = GroupedWeight::I8(none(&[2, 1, 1, 16, 32]));
    });
}

#[test]
fn grouped_matmul_refusals_of_four_bits() {
    let four = |call: &mut Call<'_>| {
        call.weight = GroupedWeight::I4(none(&[2, 16, 16]));
        call.weight_scale = GroupedScale::Bits(none(&[2, 32]));
        call.bias = Some(Bias::F32(none(&[2, 32])));
    };
    refuses(161001, "weight", four);
    refuses(161001, "bias", |call| {
        four(call);
        call.bias = None;
    });
    refuses(161002, "arithmetic", |call| {
        four(call);
        call.arithmetic = 2;
    });
    refuses(161002, "offset", |call| {
        four(call);
        call.offset = Some(none(&[2, 32]));
    });
    refuses(161002, "output_offset", |call| {
        four(call);
        call.output_offset = Some(TensorMut::shape_only(Dims::contiguous(&[6]).unwrap()));
    });
    refuses(161002, "bias", |call| {
        four(call);
        call.bias = Some(Bias::I32(none(&[2, 32])));
    });
    refuses(161002, "weight_scale", |call| {
        four(call);
        call.weight_scale = GroupedScale::Bits(none(&[2, 3, 32]));
    });
    refuses(161002, "weight_scale", |call| {
        four(call);
        call.weight_scale = channel(none(&[2, 32]));
    });
}

#[test]
fn grouped_matmul_lists_that_make_no_rows() {
    let host = Host::new();
    for (list, counts, message) in [
        (vec![3, 2], false, "entry 1 of 2 after row 3 of 6"),
        (vec![3, 7], false, "entry 1 of 7 after row 3 of 6"),
        (vec![-1, 2], false, "entry 0 of -1 after row 0 of 6"),
        (vec![2, -1], true, "entry 1 of -1 after row 2 of 6"),
        (vec![4, 3], true, "entry 1 of 3 after row 4 of 6"),
        (vec![i64::MAX, i64::MAX], true, "entry 0 of 9223372036854775807 after row 0 of 6"),
        (vec![1, i64::MAX], true, "entry 1 of 9223372036854775807 after row 1 of 6"),
    ] {
        let case = Case { list, counts, ..case() };
        let (result, output) = case.run(&host, |_, _| {}, &Layouts::default());
        let error = result.unwrap_err();
        assert_eq!((error.status().code(), error.argument()), (161002, "group_list"));
        assert!(error.to_string().contains(message), "{error}");
        assert!(output == case.untouched(), "nothing is written");
    }
    // Without rows the list is not looked at.
    let case_of_none = Case { m: 0, x: vec![], x_scale: vec![], list: vec![5, 3], ..case() };
    assert!(case_of_none.run(&host, |_, _| {}, &Layouts::default()).0 == Ok(()));
    // Empty lists and empty groups are none of that.
    for list in [vec![], vec![0], vec![0, 0]] {
        let case = Case { list, ..case() };
        let (result, output) = case.run(&host, |_, _| {}, &Layouts::default());
        assert!(result == Ok(()) && output == case.untouched());
    }
}
