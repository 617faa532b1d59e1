//! Random draws and numbers.

use super::executors::{one, two};
use crate::operators::random::{Exponential, Multinomial, Seed};
use core::ffi::c_void;
use tilekern_acl::{aclOpExecutor, aclTensor, aclnnStatus, aclrtStream};

/// Draws numsamples indices from each row of weights.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnMultinomialGetWorkspaceSize(
    weights: *const aclTensor,
    numsamples: i64,
    replacement: bool,
    seed: i64,
    offset: i64,
    out: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnMultinomial", workspaceSize, executor, |a| {
            a.input("self", weights)?;
            a.output("out", out)?;
            Ok(Multinomial { num_samples: numsamples, replacement, seed: Seed::Numbers(seed, offset) })
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnMultinomial(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnMultinomial", workspace, workspaceSize, executor, stream)
}

/// The same, with seed and offset in tensors of one number each; the number offset is added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnMultinomialTensorGetWorkspaceSize(
    weights: *const aclTensor,
    numsamples: i64,
    replacement: bool,
    seedTensor: *const aclTensor,
    offsetTensor: *const aclTensor,
    offset: i64,
    out: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnMultinomialTensor", workspaceSize, executor, |a| {
            a.input("self", weights)?;
            a.input("seed", seedTensor)?;
            a.input("offset", offsetTensor)?;
            a.output("out", out)?;
            Ok(Multinomial { num_samples: numsamples, replacement, seed: Seed::Tensors(offset) })
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnMultinomialTensor(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnMultinomialTensor", workspace, workspaceSize, executor, stream)
}

/// Fills a tensor with exponential numbers of the rate lambd.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnStatelessExponentialTensorGetWorkspaceSize(
    values: *mut aclTensor,
    seedTensor: *const aclTensor,
    offsetTensor: *const aclTensor,
    offset: i64,
    lambd: f64,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnStatelessExponentialTensor", workspaceSize, executor, |a| {
            a.input("seed", seedTensor)?;
            a.input("offset", offsetTensor)?;
            a.output("self", values)?;
            Ok(Exponential { rate: lambd, seed: Seed::Tensors(offset) })
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnStatelessExponentialTensor(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnStatelessExponentialTensor", workspace, workspaceSize, executor, stream)
}
