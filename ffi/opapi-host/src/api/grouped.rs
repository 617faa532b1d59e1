//! GroupedMatmulSwigluQuant. A groupList that decreases, is negative or goes beyond the rows fails the work, as 507015.

use super::executors::{one, two};
use crate::arguments::Arguments;
use crate::descriptor::{INT_ARRAYS, live};
use crate::failure::Failure;
use crate::operators::grouped::{Entry, Grouped, Version};
use core::ffi::c_void;
use tilekern_acl::{ACL_INT8, aclIntArray, aclOpExecutor, aclTensor, aclTensorList, aclnnStatus, aclrtStream};

/// The tensors of the first version.
struct V1 {
    inputs: [*const aclTensor; 7],
    outputs: [*mut aclTensor; 3],
}

impl V1 {
    fn list(self, a: &mut Arguments, entry: Entry) -> Result<Grouped, Failure> {
        let [x, weight, bias, offset, weight_scale, x_scale, group_list] = self.inputs;
        let [output, output_scale, output_offset] = self.outputs;
        a.input("x", x)?;
        a.input("weight", weight)?;
        a.optional("bias", bias)?;
        a.optional("offset", offset)?;
        a.input("weight_scale", weight_scale)?;
        a.input("x_scale", x_scale)?;
        a.input("group_list", group_list)?;
        a.output("output", output)?;
        a.output("output_scale", output_scale)?;
        a.optional("output_offset", output_offset)?;
        Grouped::new(a, entry, Version::One, 0)
    }
}

/// The tensors and attributes of the second version.
struct V2 {
    lists: [*const aclTensorList; 3],
    inputs: [*const aclTensor; 5],
    modes: [i64; 4],
    tuning: *const aclIntArray,
    outputs: [*mut aclTensor; 2],
}

impl V2 {
    fn list(self, a: &mut Arguments, entry: Entry) -> Result<Grouped, Failure> {
        let [weight, weight_scale, assist] = self.lists;
        let [x, bias, x_scale, smooth_scale, group_list] = self.inputs;
        let [dequant_mode, dequant_dtype, quant_mode, group_list_type] = self.modes;
        a.input("x", x)?;
        a.list("weight", weight)?;
        a.list("weight_scale", weight_scale)?;
        a.optional_list("weight_assist_matrix", assist)?;
        a.optional("bias", bias)?;
        a.input("x_scale", x_scale)?;
        a.optional("smooth_scale", smooth_scale)?;
        a.input("group_list", group_list)?;
        a.output("output", self.outputs[0])?;
        a.output("output_scale", self.outputs[1])?;
        if !self.tuning.is_null() {
            live(&INT_ARRAYS, "tuningConfigOptional", self.tuning as usize)?;
        }
        let eight = a.get("weight")?.spec.dtype == ACL_INT8;
        // What is missing comes before what is wrong, so the modes come last.
        let call = Grouped::new(a, entry, Version::Two { groups: dequant_mode == 1 }, group_list_type)?;
        let wrong = |name: &str, found: i64| Err(Failure::invalid(format!("{name}: {found} is not supported for these dtypes")));
        match (dequant_mode, dequant_dtype, quant_mode) {
            // The second is that of groups of K, which only int4 weights have.
            (1, ..) if eight => wrong("dequantMode", 1),
            (0 | 1, 0 | 1 | 27 | 28, 0) => Ok(call),
            (0 | 1, 0 | 1 | 27 | 28, found) => wrong("quantMode", found),
            (0 | 1, found, _) => wrong("dequantDtype", found),
            (found, ..) => wrong("dequantMode", found),
        }
    }
}

/// The products of experts, SwiGLU and quantisation. int8 weights are in blocks, as their format must say; their view may be plain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
    x: *const aclTensor,
    weight: *const aclTensor,
    bias: *const aclTensor,
    offset: *const aclTensor,
    weightScale: *const aclTensor,
    xScale: *const aclTensor,
    groupList: *const aclTensor,
    output: *mut aclTensor,
    outputScale: *mut aclTensor,
    outputOffset: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    let inputs = [x, weight, bias, offset, weightScale, xScale, groupList];
    let call = V1 { inputs, outputs: [output, outputScale, outputOffset] };
    // SAFETY: as promised by the caller.
    unsafe { one("aclnnGroupedMatmulSwigluQuant", workspaceSize, executor, |a| call.list(a, Entry::Plain)) }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuant(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnGroupedMatmulSwigluQuant", workspace, workspaceSize, executor, stream)
}

/// The same for a weight in blocks, whatever its format says; its storage shape has five dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(
    x: *const aclTensor,
    weight: *const aclTensor,
    bias: *const aclTensor,
    offset: *const aclTensor,
    weightScale: *const aclTensor,
    xScale: *const aclTensor,
    groupList: *const aclTensor,
    output: *mut aclTensor,
    outputScale: *mut aclTensor,
    outputOffset: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    let inputs = [x, weight, bias, offset, weightScale, xScale, groupList];
    let call = V1 { inputs, outputs: [output, outputScale, outputOffset] };
    // SAFETY: as promised by the caller.
    unsafe { one("aclnnGroupedMatmulSwigluQuantWeightNZ", workspaceSize, executor, |a| call.list(a, Entry::Blocks)) }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantWeightNZ(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnGroupedMatmulSwigluQuantWeightNZ", workspace, workspaceSize, executor, stream)
}

/// The second version: lists of weights, ends or counts of rows, and its own order of the scales.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
    x: *const aclTensor,
    weight: *const aclTensorList,
    weightScale: *const aclTensorList,
    weightAssistMatrix: *const aclTensorList,
    bias: *const aclTensor,
    xScale: *const aclTensor,
    smoothScale: *const aclTensor,
    groupList: *const aclTensor,
    dequantMode: i64,
    dequantDtype: i64,
    quantMode: i64,
    groupListType: i64,
    tuningConfigOptional: *const aclIntArray,
    output: *mut aclTensor,
    outputScale: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    let call = V2 {
        lists: [weight, weightScale, weightAssistMatrix],
        inputs: [x, bias, xScale, smoothScale, groupList],
        modes: [dequantMode, dequantDtype, quantMode, groupListType],
        tuning: tuningConfigOptional,
        outputs: [output, outputScale],
    };
    // SAFETY: as promised by the caller.
    unsafe { one("aclnnGroupedMatmulSwigluQuantV2", workspaceSize, executor, |a| call.list(a, Entry::Plain)) }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantV2(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnGroupedMatmulSwigluQuantV2", workspace, workspaceSize, executor, stream)
}

/// The same for weights in blocks, whatever their formats say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize(
    x: *const aclTensor,
    weight: *const aclTensorList,
    weightScale: *const aclTensorList,
    weightAssistMatrix: *const aclTensorList,
    bias: *const aclTensor,
    xScale: *const aclTensor,
    smoothScale: *const aclTensor,
    groupList: *const aclTensor,
    dequantMode: i64,
    dequantDtype: i64,
    quantMode: i64,
    groupListType: i64,
    tuningConfigOptional: *const aclIntArray,
    output: *mut aclTensor,
    outputScale: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    let call = V2 {
        lists: [weight, weightScale, weightAssistMatrix],
        inputs: [x, bias, xScale, smoothScale, groupList],
        modes: [dequantMode, dequantDtype, quantMode, groupListType],
        tuning: tuningConfigOptional,
        outputs: [output, outputScale],
    };
    // SAFETY: as promised by the caller.
    unsafe { one("aclnnGroupedMatmulSwigluQuantWeightNzV2", workspaceSize, executor, |a| call.list(a, Entry::Blocks)) }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGroupedMatmulSwigluQuantWeightNzV2(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnGroupedMatmulSwigluQuantWeightNzV2", workspace, workspaceSize, executor, stream)
}
