//! Descriptions, executors and operators.

use super::*;
use std::ffi::c_void;
use tilekern::acl::table::{Functions, Grouped, GroupedV1, GroupedV2, Meta, Operator, Operators, Table};
use tilekern::acl::*;

/// The dtype as it is written here.
fn dtype(of: aclDataType) -> String {
    let names = [(0, "f32"), (1, "f16"), (2, "i8"), (3, "i32"), (9, "i64"), (10, "u64"), (11, "f64"), (27, "bf16"), (29, "i4")];
    names.iter().find(|(code, _)| *code == of.0).map_or(format!("{of:?}"), |(_, name)| name.to_string())
}

unsafe extern "C" fn create_tensor(
    dims: *const i64,
    rank: u64,
    kind: aclDataType,
    strides: *const i64,
    offset: i64,
    format: aclFormat,
    storage: *const i64,
    storage_rank: u64,
    data: *mut c_void,
) -> *mut aclTensor {
    with(|r| {
        if r.failure("aclCreateTensor").is_some() {
            return std::ptr::null_mut();
        }
        let handle = r.handle("tensor");
        if r.log.is_some() {
            // SAFETY: arrays of these lengths.
            let array = |first: *const i64, length: u64| unsafe { std::slice::from_raw_parts(first, length as usize) };
            let (shape, strides, storage) = (array(dims, rank), array(strides, rank), array(storage, storage_rank));
            let rest: i64 = shape.iter().product();
            let mut contiguous: Vec<i64> = vec![1; shape.len()];
            (1..shape.len()).rev().for_each(|i| contiguous[i - 1] = contiguous[i] * shape[i]);
            let mut text = format!("{}{shape:?}", dtype(kind));
            if strides != contiguous {
                text += &format!("/{strides:?}");
            }
            if storage != shape {
                text += &format!(" of {storage:?}");
            }
            if format == ACL_FORMAT_FRACTAL_NZ {
                text += " nz";
            } else {
                assert_eq!(format, ACL_FORMAT_ND);
            }
            if rest > 0 {
                text += &format!(" {}", r.place(data.addr()));
            }
            if offset > 0 {
                text += &format!("[{offset}]");
            }
            assert_eq!(data.addr() % 32, 0);
            r.shown.insert(handle, text.replace(", ", ","));
        }
        std::ptr::without_provenance_mut(handle)
    })
}

unsafe extern "C" fn destroy_tensor(tensor: *const aclTensor) -> i32 {
    with(|r| r.end("tensor", tensor.addr()));
    0
}

unsafe extern "C" fn create_list(tensors: *const *const aclTensor, size: u64) -> *mut aclTensorList {
    assert_eq!(size, 1);
    with(|r| {
        if r.failure("aclCreateTensorList").is_some() {
            return std::ptr::null_mut();
        }
        // SAFETY: an array of one.
        let tensor = unsafe { *tensors };
        let shown = r.log.is_some().then(|| format!("{{{}}}", r.shown(tensor)));
        // The list owns it.
        r.end("tensor", tensor.addr());
        let handle = r.handle("list");
        r.shown.extend(shown.map(|shown| (handle, shown)));
        std::ptr::without_provenance_mut(handle)
    })
}

unsafe extern "C" fn destroy_list(list: *const aclTensorList) -> i32 {
    with(|r| r.end("list", list.addr()));
    0
}

unsafe extern "C" fn destroy_executor(executor: *mut aclOpExecutor) -> i32 {
    with(|r| r.end("executor", executor.addr()));
    simple("aclDestroyAclOpExecutor")
}

/// Phase one.
fn one(
    name: &'static str,
    tensors: &[*const aclTensor],
    rest: String,
    bytes: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> i32 {
    with(|r| {
        tensors.iter().filter(|tensor| !tensor.is_null()).for_each(|tensor| {
            let kind = r.live[&tensor.addr()].0;
            assert!(matches!(kind, "tensor" | "list"));
        });
        r.say(|r| format!("{name}: {}; {rest}", tensors.iter().map(|tensor| r.shown(*tensor)).collect::<Vec<_>>().join(", ")));
        if let Some(code) = r.failure(name) {
            // One that is gone already, as a library may leave it: to release it again panics.
            answer(executor, std::ptr::without_provenance_mut(0xDEAD_0000));
            return code;
        }
        answer(bytes, r.workspace);
        answer(executor, std::ptr::without_provenance_mut(r.handle("executor")));
        0
    })
}

/// Phase two: it takes the executor, whatever comes of it.
unsafe extern "C" fn two(workspace: *mut c_void, size: u64, executor: *mut aclOpExecutor, stream: aclrtStream) -> i32 {
    with(|r| {
        r.end("executor", executor.addr());
        r.expect_stream(stream.addr());
        assert_eq!(size, r.workspace);
        r.say(|r| format!("run in {}", r.place(workspace.addr())));
        r.failure("run").unwrap_or(0)
    })
}

macro_rules! phase_ones {
    ($($name:ident($($tensor:ident)*; $($rest:ident: $kind:ty),*; $($output:ident)*) $pointer:tt = $text:expr;)*) => {
        $(
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $name(
                $($tensor: *const aclTensor,)* $($rest: $kind,)* $($output: *$pointer aclTensor,)*
                bytes: *mut u64,
                executor: *mut *mut aclOpExecutor,
            ) -> i32 {
                let rest: &[(&str, &dyn std::fmt::Debug)] = &[$((stringify!($rest), &$rest)),*];
                let rest = rest.iter().map(|(name, value)| format!("{name} {value:?}")).collect::<Vec<_>>().join(", ");
                one($text, &[$($tensor,)* $($output.cast()),*], rest, bytes, executor)
            }
        )*
    };
}
phase_ones! {
    apply(logits p k;; out) mut = "ApplyTopKTopP";
    v1(logits k p q; eps: f64, need: bool, guess: i64; chosen select) const = "TopKTopPSample";
    v2(logits k p q m; eps: f64, need: bool, guess: i64, ks_max: i64, logits_in: bool, middle: bool; chosen select idx sorted)
        const = "TopKTopPSampleV2";
    multinomial(weights; samples: i64, replacement: bool, seed: i64, offset: i64; out) mut = "Multinomial";
    grouped_v1(x weight bias offset scale x_scale groups;; out out_scale out_offset) mut = "Grouped";
    grouped_v1_nz(x weight bias offset scale x_scale groups;; out out_scale out_offset) mut = "GroupedWeightNZ";
    grouped_v1_limited(x weight bias offset scale x_scale groups; limited: f64; out out_scale out_offset) mut = "GroupedLimited";
}

// Those that do not begin with all their tensors.
unsafe extern "C" fn multinomial_tensor(
    weights: *const aclTensor,
    samples: i64,
    replacement: bool,
    seed: *const aclTensor,
    offset_tensor: *const aclTensor,
    offset: i64,
    out: *mut aclTensor,
    bytes: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> i32 {
    let rest = format!("samples {samples}, replacement {replacement}, offset {offset}");
    one("MultinomialTensor", &[weights, seed, offset_tensor, out], rest, bytes, executor)
}

unsafe extern "C" fn gather(
    from: *const aclTensor,
    dim: i64,
    index: *const aclTensor,
    out: *mut aclTensor,
    bytes: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> i32 {
    one("Gather", &[from, index, out], format!("dim {dim}"), bytes, executor)
}

/// The arguments of V2, official or not.
macro_rules! grouped_v2 {
    ($name:ident $text:literal $(, $limit:ident)?) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name(
            x: *const aclTensor,
            weight: *const aclTensorList,
            scale: *const aclTensorList,
            assist: *const aclTensorList,
            bias: *const aclTensor,
            x_scale: *const aclTensor,
            smooth: *const aclTensor,
            groups: *const aclTensor,
            mode: i64,
            kind: i64,
            quant: i64,
            list: i64,
            tuning: *const aclIntArray,
            $($limit: f64,)?
            out: *mut aclTensor,
            out_scale: *mut aclTensor,
            bytes: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> i32 {
            assert!(tuning.is_null());
            #[allow(unused_mut)]
            let mut rest = format!("modes {mode} {kind} {quant} {list}");
            $(rest += &format!(" limit {:?}", $limit);)?
            let tensors = [x, weight.cast(), scale.cast(), assist.cast(), bias, x_scale, smooth, groups, out, out_scale];
            one($text, &tensors, rest, bytes, executor)
        }
    };
}
grouped_v2!(grouped_v2 "GroupedV2");
grouped_v2!(grouped_v2_nz "GroupedWeightNzV2");
grouped_v2!(grouped_v2_limited "GroupedV2Limited", limit);

/// The functions above, all there.
pub fn table() -> Table {
    changed(|_| ())
}

/// The same, but for what is changed.
pub fn changed(change: impl FnOnce(&mut Functions)) -> Table {
    let mut functions = Functions {
        runtime: super::runtime::functions(),
        meta: Meta {
            aclCreateTensor: create_tensor,
            aclDestroyTensor: destroy_tensor,
            aclCreateTensorList: create_list,
            aclDestroyTensorList: destroy_list,
            aclDestroyAclOpExecutor: destroy_executor,
        },
        operators: Operators {
            aclnnTopKTopPSampleV2: Some(Operator { workspace: v2, run: two }),
            aclnnTopKTopPSample: Some(Operator { workspace: v1, run: two }),
            aclnnApplyTopKTopP: Some(Operator { workspace: apply, run: two }),
            aclnnMultinomial: Some(Operator { workspace: multinomial, run: two }),
            aclnnMultinomialTensor: Some(Operator { workspace: multinomial_tensor, run: two }),
            aclnnGather: Some(Operator { workspace: gather, run: two }),
            aclnnGroupedMatmulSwigluQuant: Some(Operator { workspace: Grouped::Official(grouped_v1), run: two }),
            aclnnGroupedMatmulSwigluQuantWeightNZ: Some(Operator { workspace: Grouped::Official(grouped_v1_nz), run: two }),
            aclnnGroupedMatmulSwigluQuantV2: Some(Operator { workspace: Grouped::Official(grouped_v2), run: two }),
            aclnnGroupedMatmulSwigluQuantWeightNzV2: Some(Operator { workspace: Grouped::Official(grouped_v2_nz), run: two }),
        },
    };
    change(&mut functions);
    // SAFETY: they follow the protocol, and check that they are called by it.
    unsafe { Table::new(functions) }
}

/// The functions that vllm-ascend's package has under the official names.
pub fn custom() -> Table {
    let limited_v1: Option<Operator<GroupedV1>> = Some(Operator { workspace: Grouped::Limited(grouped_v1_limited), run: two });
    let limited_v2: Option<Operator<GroupedV2>> = Some(Operator { workspace: Grouped::Limited(grouped_v2_limited), run: two });
    changed(|functions| {
        functions.operators.aclnnGroupedMatmulSwigluQuant = limited_v1;
        functions.operators.aclnnGroupedMatmulSwigluQuantWeightNZ = limited_v1;
        functions.operators.aclnnGroupedMatmulSwigluQuantV2 = limited_v2;
        functions.operators.aclnnGroupedMatmulSwigluQuantWeightNzV2 = limited_v2;
    })
}
