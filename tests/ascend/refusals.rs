//! Every way in which a call is refused or fails: status, argument, and nothing left behind.

use crate::sequences::Experts;
use crate::{on_stream, open, recorder};
use recorder::{fail_once, live, made};
use tilekern::acl::{Buffer, Stream};
use tilekern::ops::*;
use tilekern::{
    Ascend, Backend, DeviceScratch, DeviceTensor, DeviceTensorMut, Dims, Error, Host, OrHost, Run, Status, Value, f16,
};

/// The error of the query and of the run, which agree.
fn refused<'t, C>(stream: &'t Stream<'t>, call: C) -> (i32, &'static str)
where
    Ascend<'t>: Run<C> + for<'a> Backend<Scratch<'a> = DeviceScratch<'a>>,
{
    let npu = Ascend::new(stream);
    let query = npu.workspace(&call).unwrap_err();
    let before = made("executor");
    let run = npu.run(call, DeviceScratch::NONE).unwrap_err();
    assert_eq!(query.to_string(), run.to_string());
    assert_eq!(made("executor"), before);
    (run.status().code(), run.argument())
}

/// A call of sampling with all that there is, before a test takes something away.
struct Sampling<'s, T> {
    logits: Buffer<'s, T>,
    top_k: Buffer<'s, i32>,
    seeds: Buffer<'s, i64>,
    chosen: Buffer<'s, i64>,
    status: Buffer<'s, u8>,
    idx: Buffer<'s, i64>,
    sorted: Buffer<'s, f32>,
}

impl<'s, T: bytemuck::Pod> Sampling<'s, T> {
    fn new(stream: &'s Stream<'s>) -> Result<Self, tilekern::acl::Error> {
        Ok(Sampling {
            logits: Buffer::new(stream, 8)?,
            top_k: Buffer::new(stream, 2)?,
            seeds: Buffer::new(stream, 4)?,
            chosen: Buffer::new(stream, 2)?,
            status: Buffer::new(stream, 2)?,
            idx: Buffer::new(stream, 8)?,
            sorted: Buffer::new(stream, 8)?,
        })
    }

    /// With a (seed, offset) for each row, a status, and the middle result.
    fn call<'a, 't>(&'a mut self) -> TopKTopPSample<'a, Ascend<'t>, T> {
        let mut call = TopKTopPSample::new(
            DeviceTensor::new([2, 4], &self.logits).unwrap(),
            DeviceTensor::new([2], &self.top_k).unwrap(),
            DeviceTensor::new([2], &self.logits).unwrap(),
            DeviceTensorMut::new([2], &mut self.chosen).unwrap(),
        );
        call.post_sample = PostSample::MultiNomial;
        call.q = Some(Noise::Seeds(DeviceTensor::new([2, 2], &self.seeds).unwrap()));
        call.row_status = Some(DeviceTensorMut::new([2], &mut self.status).unwrap());
        call.logits_idx = Some(DeviceTensorMut::new([2, 4], &mut self.idx).unwrap());
        call.logits_sort_masked = Some(DeviceTensorMut::new([2, 4], &mut self.sorted).unwrap());
        call
    }
}

#[test]
fn sampling_that_the_npu_cannot_do() {
    on_stream(64, |stream| {
        let mut s = Sampling::<f32>::new(stream).unwrap();
        assert_eq!(refused(stream, s.call()), (-2, "row_status"));
        let mut call = s.call();
        call.row_status = None;
        assert_eq!(refused(stream, call), (-2, "logits_select_idx"));
        // Shapes come first.
        let mut call = s.call();
        call.logits_sort_masked = None;
        assert_eq!(refused(stream, call), (161_001, "logits_sort_masked"));

        let (logits, k) = (Buffer::<f32>::new(stream, 8).unwrap(), Buffer::new(stream, 2).unwrap());
        let mut chosen = Buffer::new(stream, 2).unwrap();
        let call = TopKTopPSampleV1::new(
            DeviceTensor::new([2, 4], &logits).unwrap(),
            DeviceTensor::new([2], &k).unwrap(),
            DeviceTensor::new([2], &logits).unwrap(),
            DeviceTensorMut::new([2], &mut chosen).unwrap(),
        );
        assert_eq!(refused(stream, call), (-2, "logits"));
        let (logits, mut status) = (Buffer::<f16>::new(stream, 8).unwrap(), Buffer::new(stream, 2).unwrap());
        let mut call = TopKTopPSampleV1::new(
            DeviceTensor::new([2, 4], &logits).unwrap(),
            DeviceTensor::new([2], &k).unwrap(),
            DeviceTensor::new([2], &logits).unwrap(),
            DeviceTensorMut::new([2], &mut chosen).unwrap(),
        );
        call.row_status = Some(DeviceTensorMut::new([2], &mut status).unwrap());
        assert_eq!(refused(stream, call), (-2, "row_status"));
    });
}

#[test]
fn operations_that_aclnn_lacks() {
    on_stream(64, |stream| {
        let (probs, k) = (Buffer::<f32>::new(stream, 8).unwrap(), Buffer::new(stream, 2).unwrap());
        let mut out = Buffer::<f32>::new(stream, 8).unwrap();
        let call = ApplyTopKTopPMinP::new(
            DeviceTensor::new([2, 4], &probs).unwrap(),
            DeviceTensor::new([2], &k).unwrap(),
            DeviceTensor::new([2], &probs).unwrap(),
            DeviceTensorMut::new([2, 4], &mut out).unwrap(),
        );
        assert_eq!(refused(stream, call), (-2, "backend"));
        assert_eq!(refused(stream, Exponential::new(DeviceTensorMut::new([8], &mut out).unwrap())), (-2, "backend"));
    });
}

#[test]
fn grouped_products_that_the_npu_cannot_do() {
    on_stream(64, |stream| {
        let (f32s, mut offsets) = (Buffer::<f32>::new(stream, 128).unwrap(), Buffer::<f32>::new(stream, 3).unwrap());
        let (i32s, packed) = (Buffer::<i32>::new(stream, 128).unwrap(), Buffer::<i8>::new(stream, 1 << 16).unwrap());
        let mut e = Experts::new(stream).unwrap();
        macro_rules! case {
            ($call:ident: $change:expr, $argument:literal) => {
                let mut $call = e.eight();
                $change;
                assert_eq!(refused(stream, $call), (-2, $argument));
            };
        }
        case!(c: c.fp16_rounding = false, "fp16_rounding");
        case!(c: c.group_list_type = 1, "group_list_type");
        let bytes = tilekern::kernels::pack::packed_bytes(2, 16, 64).unwrap();
        let packed = DeviceTensor::new([bytes], &packed).unwrap();
        case!(c: (c.weight, c.weight_format) = (GroupedWeight::I8(packed), FORMAT_PACKED), "weight_format");
        let rows = Buffer::<i8>::new(stream, 2048).unwrap();
        let rows = DeviceTensor::new([2, 16, 64], &rows).unwrap();
        case!(c: (c.weight, c.weight_format) = (GroupedWeight::I8(rows), FORMAT_ND), "weight_format");
        let bias = DeviceTensor::new([2, 64], &i32s).unwrap();
        case!(c: c.bias = Some(Bias::I32(bias)), "bias");
        let offset = DeviceTensor::new([2, 64], &f32s).unwrap();
        case!(c: c.offset = Some(offset), "offset");
        let mut call = e.eight();
        call.output_offset = Some(DeviceTensorMut::new([3], &mut offsets).unwrap());
        call.fp16_rounding = false;
        assert_eq!(refused(stream, call), (-2, "output_offset"));
        // Bytes of two numbers have no place for a stride.
        let nibbles = Buffer::<u8>::new(stream, 1024).unwrap();
        let columns = DeviceTensor::strided([2, 16, 32], [512, 1, 16], &nibbles).unwrap();
        let mut call = e.four();
        call.weight = GroupedWeight::I4(columns);
        assert_eq!(refused(stream, call), (-2, "weight"));
        // Blocks have no offset: their address must suit the device as it is.
        let mut call = e.eight();
        let shape = Dims::contiguous(&[2, 2, 1, 16, 32]).unwrap();
        // SAFETY: nothing follows the address here.
        call.weight = GroupedWeight::I8(unsafe { DeviceTensor::from_raw(shape, rows_address().wrapping_add(16)) });
        assert_eq!(refused(stream, call), (-2, "weight"));
    });
}

fn rows_address() -> *const i8 {
    std::ptr::without_provenance(0x10_0000)
}

/// Sizes beyond the NPU's, of which no memory is needed.
#[test]
fn sizes_that_the_npu_cannot_do() {
    on_stream(64, |stream| {
        let npu = Ascend::new(stream);
        let shape = |shape: &[usize]| Dims::contiguous(shape).unwrap();
        let sized = |k: usize, n: usize, arithmetic: i32| {
            let mut call = GroupedMatmulSwigluQuant::new(
                DeviceTensor::shape_only(shape(&[1, k])),
                GroupedWeight::I8(DeviceTensor::shape_only(shape(&[1, n / 32, k / 16, 16, 32]))),
                GroupedScale::Channel(ChannelScale::F32(DeviceTensor::shape_only(shape(&[1, n])))),
                DeviceTensor::shape_only(shape(&[1])),
                DeviceTensor::shape_only(shape(&[1])),
                DeviceTensorMut::shape_only(shape(&[1, n / 2])),
                DeviceTensorMut::shape_only(shape(&[1])),
            );
            (call.weight_format, call.fp16_rounding, call.arithmetic) = (FORMAT_NZ, true, arithmetic);
            npu.workspace(&call).map(|layout| layout.size()).map_err(|error| (error.status().code(), error.argument()))
        };
        for arithmetic in [1, 2] {
            assert_eq!(sized(65_520, 10_240, arithmetic), Ok(64));
            assert_eq!(sized(65_536, 10_240, arithmetic), Err((-2, "x")));
            assert_eq!(sized(16, 10_272, arithmetic), Err((-2, "weight_scale")));
        }
    });
}

/// On hardware V1 remembers the first kind for good; the library of the host does not.
#[test]
fn kinds_of_weights_do_not_mix() {
    on_stream(64, |stream| {
        let mut e = Experts::new(stream).unwrap();
        let npu = Ascend::new(stream);
        assert!(npu.workspace(&e.eight()).is_ok() && npu.workspace(&e.four()).is_ok());
    });
    let table = recorder::changed(|functions| functions.runtime.aclrtGetSocName = None);
    open(&table, 64, |stream| {
        let mut e = Experts::new(stream).unwrap();
        let npu = Ascend::new(stream);
        npu.workspace(&e.eight()).unwrap();
        assert_eq!(refused(stream, e.four()), (-2, "weight"));
        let mut call = e.eight();
        call.arithmetic = 2;
        assert!(npu.workspace(&call).is_ok() && npu.workspace(&e.eight()).is_ok());
    });
}

#[test]
fn a_cann_without_the_function() {
    let table = recorder::changed(|functions| functions.operators = Default::default());
    open(&table, 64, |stream| {
        let mut s = Sampling::<f32>::new(stream).unwrap();
        let mut call = s.call();
        (call.row_status, call.logits_idx, call.logits_sort_masked) = (None, None, None);
        let error = Ascend::new(stream).workspace(&call).unwrap_err();
        assert_eq!(error.to_string(), "backend: expected aclnnTopKTopPSampleV2, found a CANN without it (-2)");
        let mut e = Experts::new(stream).unwrap();
        assert_eq!(refused(stream, e.eight()), (-2, "backend"));
    });
    // V1 does not stand in for V2, and a draw needs its three functions before anything is enqueued.
    let table = recorder::changed(|functions| functions.operators.aclnnGather = None);
    open(&table, 64, |stream| {
        let mut s = Sampling::<f32>::new(stream).unwrap();
        let mut call = s.call();
        (call.row_status, call.logits_idx, call.logits_sort_masked) = (None, None, None);
        let error = Ascend::new(stream).workspace(&call).unwrap_err();
        assert_eq!((error.status(), error.expected()), (Status::Unsupported, Value::Text("aclnnGather")));
    });
}

/// Every function of ACL that a draw for two rows calls, failing at each of its calls in turn.
#[test]
fn failures_leave_nothing() {
    let functions = [
        ("aclCreateTensor", 18, -3, 200_000),
        ("TopKTopPSampleV2", 1, -3, 561_002),
        ("Gather", 1, -3, 561_003),
        ("MultinomialTensor", 2, -3, 161_002),
        ("run", 4, -3, 507_000),
    ];
    for (function, times, status, code) in functions {
        for n in 1..=times {
            on_stream(64, |stream| {
                let mut s = Sampling::<f32>::new(stream).unwrap();
                let npu = Ascend::new(stream);
                let mut call = s.call();
                (call.row_status, call.logits_idx, call.logits_sort_masked) = (None, None, None);
                let mut workspace = Buffer::new(stream, npu.workspace(&call).unwrap().size()).unwrap();
                fail_once(function, n, code);
                let error = npu.run(call, DeviceScratch::new(&mut workspace)).unwrap_err();
                assert_eq!(error.status().code(), status, "{function} {n}");
                assert!(matches!(error.found(), Value::Code { code: found, .. } if found == code), "{error}");
                assert_eq!(npu.recent_message().as_str(), "EZ9999: said the library");
                let left: Vec<_> = live().into_keys().collect();
                assert_eq!(left, ["device", "memory", "stream"], "{function} {n}");
            });
        }
    }
}

#[test]
fn workspaces() {
    on_stream(64, |stream| {
        let mut s = Sampling::<f32>::new(stream).unwrap();
        let npu = Ascend::new(stream);
        let mut run = |bytes: usize, misplaced: usize| -> Result<(), Error> {
            let mut call = s.call();
            (call.row_status, call.logits_idx, call.logits_sort_masked) = (None, None, None);
            let workspace = Buffer::<u8>::new(stream, 1 << 12).unwrap();
            // SAFETY: nothing follows the address here.
            npu.run(call, unsafe { DeviceScratch::from_raw(workspace.as_ptr().add(misplaced), bytes) })
        };
        // 2 * 4 tokens and probabilities, two places, each with 32 bytes behind, and 64 of the operators.
        assert_eq!(run(128 + 64 + 64 + 64, 0), Ok(()));
        let before = made("executor");
        assert_eq!(run(319, 0).unwrap_err().status(), Status::Workspace);
        assert_eq!(run(320, 8).unwrap_err().status(), Status::Workspace);
        // Nothing of it was enqueued.
        assert_eq!((made("executor") - before, live().get("executor")), (6, None));
    });
}

#[test]
fn a_shape_alone_does_not_run() {
    on_stream(64, |stream| {
        let npu = Ascend::new(stream);
        let (logits, k) = (Dims::contiguous(&[2, 4]).unwrap(), Dims::contiguous(&[2]).unwrap());
        let call = || {
            let mut call: ApplyTopKTopP<'_, Ascend<'_>, f32> =
                ApplyTopKTopP::new(DeviceTensor::shape_only(logits), DeviceTensorMut::shape_only(logits));
            call.k = Some(DeviceTensor::shape_only(k));
            call
        };
        assert_eq!(npu.workspace(&call()).unwrap().size(), 64);
        let error = npu.run(call(), DeviceScratch::NONE).unwrap_err();
        assert_eq!((error.status(), error.argument()), (Status::Null, "logits"));
    });
}

/// The host in the NPU's stead, for what the NPU refuses and for nothing else.
#[test]
fn or_the_host() {
    on_stream(64, |stream| {
        let backend = OrHost::new(Ascend::new(stream), Host::new());
        let probs = Buffer::from_slice(stream, &[0.5f32, 0.25, 0.125, 0.125]).unwrap();
        let (k, p) = (Buffer::from_slice(stream, &[2]).unwrap(), Buffer::from_slice(stream, &[0.9f32]).unwrap());
        // Every second column of it, so that what lies between is left alone.
        let mut out = Buffer::from_slice(stream, &[7.0f32; 8]).unwrap();
        let call = ApplyTopKTopPMinP::new(
            DeviceTensor::new([1, 4], &probs).unwrap(),
            DeviceTensor::new([1], &k).unwrap(),
            DeviceTensor::new([1], &p).unwrap(),
            DeviceTensorMut::strided([1, 4], [8, 2], &mut out).unwrap(),
        );
        assert_eq!(backend.workspace(&call).unwrap().size(), 0);
        backend.run(call, DeviceScratch::NONE).unwrap();
        let mut values = [0.0; 8];
        out.read(&mut values).unwrap();
        assert_eq!(values, [0.5, 7.0, 0.25, 7.0, 0.0, 7.0, 0.0, 7.0]);
        assert_eq!(made("executor"), 0);

        let call =
            ApplyTopKTopP::new(DeviceTensor::new([1, 4], &probs).unwrap(), DeviceTensorMut::new([1, 4], &mut out).unwrap());
        assert_eq!(backend.run(call, DeviceScratch::NONE).unwrap_err().status(), Status::Null);
        let mut call =
            ApplyTopKTopP::new(DeviceTensor::new([1, 4], &probs).unwrap(), DeviceTensorMut::new([1, 4], &mut out).unwrap());
        call.k = Some(DeviceTensor::new([1], &k).unwrap());
        fail_once("ApplyTopKTopP", 1, 561_003);
        assert_eq!(backend.run(call, DeviceScratch::NONE).unwrap_err().status(), Status::Backend);
    });
}
