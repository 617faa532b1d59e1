//! Gather.

use super::executors::{one, two};
use crate::operators::gather::Gather;
use core::ffi::c_void;
use tilekern_acl::{aclOpExecutor, aclTensor, aclnnStatus, aclrtStream};

/// out[i][j] = input[i][index[i][j]] for dim 1. An index that is out of range fails the work, as 507015.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGatherGetWorkspaceSize(
    input: *const aclTensor,
    dim: i64,
    index: *const aclTensor,
    out: *mut aclTensor,
    workspaceSize: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    unsafe {
        one("aclnnGather", workspaceSize, executor, |a| {
            a.input("self", input)?;
            a.input("index", index)?;
            a.output("out", out)?;
            Ok(Gather { dim })
        })
    }
}

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnGather(
    workspace: *mut c_void,
    workspaceSize: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    two("aclnnGather", workspace, workspaceSize, executor, stream)
}
