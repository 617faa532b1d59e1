//! Top-k, top-p and the choice of a token.

use super::executors::{one, two};
use crate::operators::apply::ApplyTopKTopP;
use crate::operators::sample::{SampleV1, SampleV2};
use core::ffi::c_void;
use tilekern_acl::{aclOpExecutor, aclTensor, aclnnStatus, aclrtStream};

/// Filters logits, and chooses a token of each row or gives what is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnTopKTopPSampleV2GetWorkspaceSize(
    logits: *const aclTensor,
    topK: *const aclTensor,
    topP: *const aclTensor,
    qOptional: *const aclTensor,
    minPsOptional: *const aclTensor,
    eps: f64,
    isNeedLogits: bool,
    topKGuess: i64,
    ksMax: i64,
    inputIsLogits: bool,
    isNeedSampleResult: bool,
    logitsSelectIdx: *const aclTensor,
    logitsTopKpSelect: *const aclTensor,
    logitsIdx: *const aclTensor,
    logitsSortMasked: *const aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnTopKTopPSampleV2", workspaceSize, executor, |a| {
            a.input("logits", logits)?;
            a.input("top_k", topK)?;
            a.input("top_p", topP)?;
            a.optional("q", qOptional)?;
            a.optional("min_ps", minPsOptional)?;
            a.output("logits_select_idx", logitsSelectIdx)?;
            a.output("logits_top_kp_select", logitsTopKpSelect)?;
            a.output("logits_idx", logitsIdx)?;
            a.output("logits_sort_masked", logitsSortMasked)?;
            let operator = SampleV2 {
                eps,
                is_need_logits: isNeedLogits,
                top_k_guess: topKGuess,
                ks_max: ksMax,
                input_is_logits: inputIsLogits,
                is_need_sample_result: isNeedSampleResult,
            };
            a.ignore(&operator.unused());
            Ok(operator)
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnTopKTopPSampleV2(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnTopKTopPSampleV2", workspace, workspaceSize, executor, stream)
}

/// The first version of the same, for f16 and bf16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnTopKTopPSampleGetWorkspaceSize(
    logits: *const aclTensor,
    topK: *const aclTensor,
    topP: *const aclTensor,
    qOptional: *const aclTensor,
    eps: f64,
    isNeedLogits: bool,
    topKGuess: i64,
    logitsSelectIdx: *const aclTensor,
    logitsTopKpSelect: *const aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnTopKTopPSample", workspaceSize, executor, |a| {
            a.input("logits", logits)?;
            a.input("top_k", topK)?;
            a.input("top_p", topP)?;
            a.optional("q", qOptional)?;
            a.output("logits_select_idx", logitsSelectIdx)?;
            a.output("logits_top_kp_select", logitsTopKpSelect)?;
            Ok(SampleV1 { eps, is_need_logits: isNeedLogits, top_k_guess: topKGuess })
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnTopKTopPSample(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnTopKTopPSample", workspace, workspaceSize, executor, stream)
}

/// Makes every logit -inf that top-k or top-p drops. p comes before k.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnApplyTopKTopPGetWorkspaceSize(
    logits: *const aclTensor,
    p: *const aclTensor,
    k: *const aclTensor,
    out: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnApplyTopKTopP", workspaceSize, executor, |a| {
            a.input("logits", logits)?;
            a.optional("p", p)?;
            a.optional("k", k)?;
            a.output("out", out)?;
            Ok(ApplyTopKTopP)
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnApplyTopKTopP(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnApplyTopKTopP", workspace, workspaceSize, executor, stream)
}
