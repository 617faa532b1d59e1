//! The operators: `libopapi*.so`, and `libcust_opapi.so` of packages beside CANN.
//!
//! Phase one, `..GetWorkspaceSize`, validates and makes an executor; phase two, of one prototype for all, enqueues it and takes it.

use crate::types::*;
use core::ffi::c_void;

/// Phase two of every operator.
pub type aclnnRun = unsafe extern "C" fn(
    workspace: *mut c_void,
    workspace_size: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus;

/// Top-k, top-p, min-p and the choice of a token.
pub type aclnnTopKTopPSampleV2GetWorkspaceSize = unsafe extern "C" fn(
    logits: *const aclTensor,
    top_k: *const aclTensor,
    top_p: *const aclTensor,
    q_optional: *const aclTensor,
    min_ps_optional: *const aclTensor,
    eps: f64,
    is_need_logits: bool,
    top_k_guess: i64,
    ks_max: i64,
    input_is_logits: bool,
    is_need_sample_result: bool,
    logits_select_idx: *const aclTensor,
    logits_top_kp_select: *const aclTensor,
    logits_idx: *const aclTensor,
    logits_sort_masked: *const aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// The first version of the same.
pub type aclnnTopKTopPSampleGetWorkspaceSize = unsafe extern "C" fn(
    logits: *const aclTensor,
    top_k: *const aclTensor,
    top_p: *const aclTensor,
    q_optional: *const aclTensor,
    eps: f64,
    is_need_logits: bool,
    top_k_guess: i64,
    logits_select_idx: *const aclTensor,
    logits_top_kp_select: *const aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// Top-k and top-p on logits; p comes before k.
pub type aclnnApplyTopKTopPGetWorkspaceSize = unsafe extern "C" fn(
    logits: *const aclTensor,
    p: *const aclTensor,
    k: *const aclTensor,
    out: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// Indices drawn from rows of weights.
pub type aclnnMultinomialGetWorkspaceSize = unsafe extern "C" fn(
    weights: *const aclTensor,
    numsamples: i64,
    replacement: bool,
    seed: i64,
    offset: i64,
    out: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// The same, seed and offset in tensors of one i64 each; `offset` is added.
pub type aclnnMultinomialTensorGetWorkspaceSize = unsafe extern "C" fn(
    weights: *const aclTensor,
    numsamples: i64,
    replacement: bool,
    seed_tensor: *const aclTensor,
    offset_tensor: *const aclTensor,
    offset: i64,
    out: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// Exponential numbers of a rate, seed and offset in tensors of one i64 each; `offset` is added.
pub type aclnnStatelessExponentialTensorGetWorkspaceSize = unsafe extern "C" fn(
    values: *mut aclTensor,
    seed_tensor: *const aclTensor,
    offset_tensor: *const aclTensor,
    offset: i64,
    lambd: f64,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// `out[i][j] = input[i][index[i][j]]` for dim 1.
pub type aclnnGatherGetWorkspaceSize = unsafe extern "C" fn(
    input: *const aclTensor,
    dim: i64,
    index: *const aclTensor,
    out: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// The most columns of a weight of the experts' products.
pub const GROUPED_MAX_N: usize = 10_240;
/// Their largest K: of int8 weights, and of int4 weights.
pub const GROUPED_MAX_K: [usize; 2] = [65_535, 19_999];

/// Experts' products, SwiGLU and quantisation, V1 arithmetic.
pub type aclnnGroupedMatmulSwigluQuantGetWorkspaceSize = unsafe extern "C" fn(
    x: *const aclTensor,
    weight: *const aclTensor,
    bias: *const aclTensor,
    offset: *const aclTensor,
    weight_scale: *const aclTensor,
    x_scale: *const aclTensor,
    group_list: *const aclTensor,
    output: *mut aclTensor,
    output_scale: *mut aclTensor,
    output_offset: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;
/// The same for weights in blocks.
pub type aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize = aclnnGroupedMatmulSwigluQuantGetWorkspaceSize;

/// What vllm-ascend's package exports under the names of V1: `limited` clamps the activations, 0 does not.
pub type aclnnGroupedMatmulSwigluQuantGetWorkspaceSizeLimited = unsafe extern "C" fn(
    x: *const aclTensor,
    weight: *const aclTensor,
    bias: *const aclTensor,
    offset: *const aclTensor,
    weight_scale: *const aclTensor,
    x_scale: *const aclTensor,
    group_list: *const aclTensor,
    limited: f64,
    output: *mut aclTensor,
    output_scale: *mut aclTensor,
    output_offset: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// Experts' products, SwiGLU and quantisation, V2 arithmetic.
pub type aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize = unsafe extern "C" fn(
    x: *const aclTensor,
    weight: *const aclTensorList,
    weight_scale: *const aclTensorList,
    weight_assist_matrix: *const aclTensorList,
    bias: *const aclTensor,
    x_scale: *const aclTensor,
    smooth_scale: *const aclTensor,
    group_list: *const aclTensor,
    dequant_mode: i64,
    dequant_dtype: i64,
    quant_mode: i64,
    group_list_type: i64,
    tuning_config_optional: *const aclIntArray,
    output: *mut aclTensor,
    output_scale: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;
/// The same for weights in blocks: `aclnnGroupedMatmulSwigluQuantWeightNzV2`.
pub type aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize = aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize;

/// What vllm-ascend's package exports under the names of V2: `swiglu_limit` clamps the activations, 0 does not.
pub type aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSizeLimited = unsafe extern "C" fn(
    x: *const aclTensor,
    weight: *const aclTensorList,
    weight_scale: *const aclTensorList,
    weight_assist_matrix: *const aclTensorList,
    bias: *const aclTensor,
    x_scale: *const aclTensor,
    smooth_scale: *const aclTensor,
    group_list: *const aclTensor,
    dequant_mode: i64,
    dequant_dtype: i64,
    quant_mode: i64,
    group_list_type: i64,
    tuning_config_optional: *const aclIntArray,
    swiglu_limit: f64,
    output: *mut aclTensor,
    output_scale: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;

/// Of vllm-ascend's package alone: V1 over lists of weights.
pub type aclnnGroupedMatmulSwigluQuantWeightNzTensorListGetWorkspaceSize = unsafe extern "C" fn(
    x: *const aclTensor,
    weight: *const aclTensorList,
    bias: *const aclTensor,
    offset: *const aclTensor,
    weight_scale: *const aclTensorList,
    x_scale: *const aclTensor,
    group_list: *const aclTensor,
    swiglu_limit: f32,
    output: *mut aclTensor,
    output_scale: *mut aclTensor,
    output_offset: *mut aclTensor,
    workspace_size: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus;
