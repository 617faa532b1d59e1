//! The dispatch to CANN finds the installation, and what it computes there is what the host computes.

use crate::common::installation;
use crate::layout::Random;
use std::process::Command;
use tilekern::acl::{Buffer, Device, Stream, load};
use tilekern::ops::{ChannelScale, FORMAT_NZ, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Ascend, DeviceScratch, DeviceTensor, DeviceTensorMut, Host, Run, Scratch, Tensor, TensorMut};

/// The loader reads the environment of its process, so the test runs in one of its own.
#[test]
fn dispatch_through_an_installation() {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "loader::inside", "--ignored", "--nocapture"]).env("ASCEND_HOME_PATH", installation());
    for name in ["LD_LIBRARY_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH"] {
        test.env_remove(name);
    }
    let output = crate::common::succeed(&mut test);
    assert!(output.contains("3 draws and 2 products are those of the host"), "{output}");
}

#[test]
#[ignore = "dispatch_through_an_installation runs it"]
fn inside() {
    let table = load::cann().unwrap();
    assert!(table.is_host());
    let device = Device::open(table, 0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let (npu, host, mut random) = (Ascend::new(&stream), Host::new(), Random(11));
    let [b, v] = [5, 300];
    let logits = random.many(b * v, |r| r.float(4.0));
    let (top_k, top_p) = (vec![20i32; b], vec![0.9f32; b]);
    let noise = random.many(b * v, |r| r.float(1.0).abs() + 1e-3);
    let seeds = [3i64, 0, 4, 0, 5, 8];
    let on_device = (
        Buffer::from_slice(&stream, &logits).unwrap(),
        Buffer::from_slice(&stream, &top_k).unwrap(),
        Buffer::from_slice(&stream, &top_p).unwrap(),
        Buffer::from_slice(&stream, &noise).unwrap(),
        Buffer::from_slice(&stream, &seeds).unwrap(),
    );
    for post_sample in [PostSample::None, PostSample::QSample, PostSample::MultiNomial] {
        let mut tokens = Buffer::<i64>::new(&stream, b).unwrap();
        let mut call = TopKTopPSample::new(
            DeviceTensor::new([b, v], &on_device.0).unwrap(),
            DeviceTensor::new([b], &on_device.1).unwrap(),
            DeviceTensor::new([b], &on_device.2).unwrap(),
            DeviceTensorMut::new([b], &mut tokens).unwrap(),
        );
        call.post_sample = post_sample;
        call.q = match post_sample {
            PostSample::None => None,
            PostSample::QSample => Some(Noise::Exponential(DeviceTensor::new([b, v], &on_device.3).unwrap())),
            PostSample::MultiNomial => Some(Noise::Seeds(DeviceTensor::new([3, 2], &on_device.4).unwrap())),
        };
        let mut workspace = Buffer::new(&stream, npu.workspace(&call).unwrap().size().max(1)).unwrap();
        npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
        let mut found = vec![-1; b];
        tokens.read(&mut found).unwrap();

        let mut expected = vec![-2; b];
        let mut call = TopKTopPSample::new(
            Tensor::new([b, v], &logits).unwrap(),
            Tensor::new([b], &top_k).unwrap(),
            Tensor::new([b], &top_p).unwrap(),
            TensorMut::new([b], &mut expected).unwrap(),
        );
        call.post_sample = post_sample;
        call.q = match post_sample {
            PostSample::None => None,
            PostSample::QSample => Some(Noise::Exponential(Tensor::new([b, v], &noise).unwrap())),
            PostSample::MultiNomial => Some(Noise::Seeds(Tensor::new([3, 2], &seeds).unwrap())),
        };
        let mut scratch = Scratch::new(host.workspace(&call).unwrap());
        host.run(call, &mut scratch).unwrap();
        assert_eq!(found, expected, "{post_sample:?}");
    }

    let [m, k, n, e] = [9, 32, 64, 2];
    let (x, weight) = (random.many(m * k, |r| r.next() as i8), random.many(e * k * n, |r| r.next() as i8));
    let (scale, x_scale) = (random.many(e * n, |r| r.float(0.01).abs()), random.many(m, |r| r.float(0.01).abs()));
    let groups = [4i64, 9];
    for arithmetic in [1, 2] {
        let (x_b, weight_b) = (Buffer::from_slice(&stream, &x).unwrap(), Buffer::from_slice(&stream, &weight).unwrap());
        let (scale_b, x_scale_b) = (Buffer::from_slice(&stream, &scale).unwrap(), Buffer::from_slice(&stream, &x_scale).unwrap());
        let groups_b = Buffer::from_slice(&stream, &groups).unwrap();
        let (mut out, mut out_scale) = (Buffer::<i8>::new(&stream, m * n / 2).unwrap(), Buffer::<f32>::new(&stream, m).unwrap());
        let blocks = [e, n / 32, k / 16, 16, 32];
        let mut call = GroupedMatmulSwigluQuant::new(
            DeviceTensor::new([m, k], &x_b).unwrap(),
            GroupedWeight::I8(DeviceTensor::new(blocks, &weight_b).unwrap()),
            GroupedScale::Channel(ChannelScale::F32(DeviceTensor::new([e, n], &scale_b).unwrap())),
            DeviceTensor::new([m], &x_scale_b).unwrap(),
            DeviceTensor::new([e], &groups_b).unwrap(),
            DeviceTensorMut::new([m, n / 2], &mut out).unwrap(),
            DeviceTensorMut::new([m], &mut out_scale).unwrap(),
        );
        (call.weight_format, call.arithmetic, call.fp16_rounding) = (FORMAT_NZ, arithmetic, true);
        let mut workspace = Buffer::new(&stream, npu.workspace(&call).unwrap().size().max(1)).unwrap();
        npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
        let (mut found, mut found_scale) = (vec![0i8; m * n / 2], vec![0.0f32; m]);
        out.read(&mut found).unwrap();
        out_scale.read(&mut found_scale).unwrap();

        let (mut expected, mut expected_scale) = (vec![1i8; m * n / 2], vec![1.0f32; m]);
        let mut call = GroupedMatmulSwigluQuant::new(
            Tensor::new([m, k], &x).unwrap(),
            GroupedWeight::I8(Tensor::new(blocks, &weight).unwrap()),
            GroupedScale::Channel(ChannelScale::F32(Tensor::new([e, n], &scale).unwrap())),
            Tensor::new([m], &x_scale).unwrap(),
            Tensor::new([e], &groups).unwrap(),
            TensorMut::new([m, n / 2], &mut expected).unwrap(),
            TensorMut::new([m], &mut expected_scale).unwrap(),
        );
        (call.weight_format, call.arithmetic, call.fp16_rounding) = (FORMAT_NZ, arithmetic, true);
        let mut scratch = Scratch::new(host.workspace(&call).unwrap());
        host.run(call, &mut scratch).unwrap();
        assert_eq!((found, found_scale), (expected, expected_scale), "arithmetic {arithmetic}");
    }
    println!("3 draws and 2 products are those of the host");
}
