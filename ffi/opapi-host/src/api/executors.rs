//! Executors, and the two phases of every operator.

use crate::arguments::{Among, Arguments};
use crate::boundary::{aclnn, null_argument, put};
use crate::executor::{EXECUTORS, Executor, Operator, gone, phase_one, phase_two};
use crate::failure::Failure;
use core::ffi::c_void;
use tilekern_acl::{aclOpExecutor, aclTensor, aclTensorList, aclnnStatus, aclrtStream};

/// The first phase of an operator, whose arguments `make` lists.
///
/// # Safety
///
/// Both places are null, or can be written.
pub(super) unsafe fn one<O: Operator + 'static>(
    name: &'static str,
    size: *mut u64,
    executor: *mut *mut aclOpExecutor,
    make: impl FnOnce(&mut Arguments) -> Result<O, Failure>,
) -> aclnnStatus {
    aclnn(&format!("{name}GetWorkspaceSize"), || {
        if size.is_null() || executor.is_null() {
            return Err(Failure::null(if size.is_null() { "workspaceSize" } else { "executor" }));
        }
        let mut arguments = Arguments::default();
        let operator = make(&mut arguments)?;
        let (bytes, handle) = phase_one(name, arguments, operator)?;
        // SAFETY: as promised by the caller.
        unsafe {
            put(size, null_argument("workspaceSize"), bytes)?;
            put(executor, null_argument("executor"), handle as *mut aclOpExecutor)
        }
    })
}

/// The second phase of an operator.
pub(super) fn two(
    name: &str,
    workspace: *mut c_void,
    size: u64,
    executor: *mut aclOpExecutor,
    stream: aclrtStream,
) -> aclnnStatus {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    aclnn(name, || phase_two(name, [workspace as usize, size], executor as usize, stream))
}

/// The second phase may run more than once, until the executor is destroyed. 561000 for an operator that cannot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetAclOpExecutorRepeatable(executor: *mut aclOpExecutor) -> aclnnStatus {
    aclnn("aclSetAclOpExecutorRepeatable", || Executor::of(executor as usize)?.repeat())
}

/// Of an executor that the second phase did not take, or of a repeatable one; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyAclOpExecutor(executor: *mut aclOpExecutor) -> aclnnStatus {
    aclnn("aclDestroyAclOpExecutor", || {
        if !executor.is_null() {
            EXECUTORS.remove(executor as usize).ok_or_else(gone)?;
        }
        Ok(())
    })
}

fn set(
    name: &str,
    among: Among,
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    aclnn(name, || Executor::of(executor as usize)?.set_address(among, [index, 0], tensor as usize, false, addr as usize))
}

fn set_member(
    name: &str,
    among: Among,
    executor: *mut aclOpExecutor,
    place: [usize; 2],
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    aclnn(name, || Executor::of(executor as usize)?.set_address(among, place, tensors as usize, true, addr as usize))
}

/// Another address for an input of a repeatable executor, counted in the order of the prototype.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetInputTensorAddr(
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    set("aclSetInputTensorAddr", Among::Inputs, executor, index, tensor, addr)
}

/// The same for an output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetOutputTensorAddr(
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    set("aclSetOutputTensorAddr", Among::Outputs, executor, index, tensor, addr)
}

/// The same for either; inputs come first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetTensorAddr(
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    set("aclSetTensorAddr", Among::Both, executor, index, tensor, addr)
}

/// Another address for a member of a list that is an input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetDynamicInputTensorAddr(
    executor: *mut aclOpExecutor,
    irIndex: usize,
    relativeIndex: usize,
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    set_member("aclSetDynamicInputTensorAddr", Among::Inputs, executor, [irIndex, relativeIndex], tensors, addr)
}

/// The same for an output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetDynamicOutputTensorAddr(
    executor: *mut aclOpExecutor,
    irIndex: usize,
    relativeIndex: usize,
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    set_member("aclSetDynamicOutputTensorAddr", Among::Outputs, executor, [irIndex, relativeIndex], tensors, addr)
}

/// The same for either; inputs come first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetDynamicTensorAddr(
    executor: *mut aclOpExecutor,
    irIndex: usize,
    relativeIndex: usize,
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    set_member("aclSetDynamicTensorAddr", Among::Both, executor, [irIndex, relativeIndex], tensors, addr)
}

/// aclSetInputTensorAddr under its older name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AclSetInputTensorAddr(
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    set("AclSetInputTensorAddr", Among::Inputs, executor, index, tensor, addr)
}

/// aclSetOutputTensorAddr under its older name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AclSetOutputTensorAddr(
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    set("AclSetOutputTensorAddr", Among::Outputs, executor, index, tensor, addr)
}

/// aclSetTensorAddr under its older name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AclSetTensorAddr(
    executor: *mut aclOpExecutor,
    index: usize,
    tensor: *mut aclTensor,
    addr: *mut c_void,
) -> aclnnStatus {
    set("AclSetTensorAddr", Among::Both, executor, index, tensor, addr)
}

/// aclSetDynamicInputTensorAddr under its older name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AclSetDynamicInputTensorAddr(
    executor: *mut aclOpExecutor,
    irIndex: usize,
    relativeIndex: usize,
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    set_member("AclSetDynamicInputTensorAddr", Among::Inputs, executor, [irIndex, relativeIndex], tensors, addr)
}

/// aclSetDynamicOutputTensorAddr under its older name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AclSetDynamicOutputTensorAddr(
    executor: *mut aclOpExecutor,
    irIndex: usize,
    relativeIndex: usize,
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    set_member("AclSetDynamicOutputTensorAddr", Among::Outputs, executor, [irIndex, relativeIndex], tensors, addr)
}

/// aclSetDynamicTensorAddr under its older name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AclSetDynamicTensorAddr(
    executor: *mut aclOpExecutor,
    irIndex: usize,
    relativeIndex: usize,
    tensors: *mut aclTensorList,
    addr: *mut c_void,
) -> aclnnStatus {
    set_member("AclSetDynamicTensorAddr", Among::Both, executor, [irIndex, relativeIndex], tensors, addr)
}
