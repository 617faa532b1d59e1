//! Devices and contexts.

use crate::boundary::{null_parameter, put, runtime};
use crate::context::{self, Context, DEVICES};
use crate::failure::Failure;
use core::ffi::c_char;
use tilekern_acl::{ACL_HOST, aclError, aclSysParamOpt, aclrtContext, aclrtFloatOverflowMode, aclrtRunMode, codes};

/// This thread works on the device, in its default context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetDevice(deviceId: i32) -> aclError {
    runtime("aclrtSetDevice", || context::set_device(deviceId))
}

/// The counterpart of aclrtSetDevice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtResetDevice(deviceId: i32) -> aclError {
    runtime("aclrtResetDevice", || context::reset_device(deviceId, false))
}

/// The same, however often the device was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtResetDeviceForce(deviceId: i32) -> aclError {
    runtime("aclrtResetDeviceForce", || context::reset_device(deviceId, true))
}

/// This thread's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDevice(deviceId: *mut i32) -> aclError {
    runtime("aclrtGetDevice", || {
        Context::current()?;
        // SAFETY: as promised by the caller.
        unsafe { put(deviceId, null_parameter("deviceId"), 0) }
    })
}

/// How many devices there are: one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDeviceCount(count: *mut u32) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtGetDeviceCount", || unsafe { put(count, null_parameter("count"), DEVICES as u32) })
}

/// The program runs on the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetRunMode(runMode: *mut aclrtRunMode) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtGetRunMode", || unsafe { put(runMode, null_parameter("runMode"), ACL_HOST) })
}

/// Ascend910B_tilekern: the operators are those of that generation, and this is not it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetSocName() -> *const c_char {
    c"Ascend910B_tilekern".as_ptr()
}

/// A context beside the default one; this thread works in it from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateContext(context: *mut aclrtContext, deviceId: i32) -> aclError {
    runtime("aclrtCreateContext", || {
        if context.is_null() {
            return Err(null_parameter("context")());
        }
        let created = context::create(deviceId)? as aclrtContext;
        // SAFETY: as promised by the caller.
        unsafe { put(context, null_parameter("context"), created) }
    })
}

/// Of a context that was created, never of a default one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyContext(context: aclrtContext) -> aclError {
    runtime("aclrtDestroyContext", || context::destroy(context))
}

/// This thread works in that context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetCurrentContext(context: aclrtContext) -> aclError {
    runtime("aclrtSetCurrentContext", || context::set_current(context))
}

/// This thread's context; 107002 where it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetCurrentContext(context: *mut aclrtContext) -> aclError {
    runtime("aclrtGetCurrentContext", || {
        let current = Context::current()?.handle() as aclrtContext;
        // SAFETY: as promised by the caller.
        unsafe { put(context, null_parameter("context"), current) }
    })
}

/// Waits for every stream of this thread's device, and reports what failed in the first that has a failure; the others keep theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeDevice() -> aclError {
    runtime("aclrtSynchronizeDevice", || {
        Context::current()?;
        let streams = context::streams();
        streams.iter().try_for_each(|stream| stream.wait(stream.submitted(), None))?;
        streams.iter().try_for_each(|stream| stream.synchronise(stream.submitted(), None))
    })
}

/// Saturation or infinities: accepted, and without effect. Host operators say themselves what an overflow gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetDeviceSatMode(mode: aclrtFloatOverflowMode) -> aclError {
    runtime("aclrtSetDeviceSatMode", || {
        Context::current()?;
        in_range("mode", i64::from(mode.0), 0..=2)
    })
}

/// When an operator counts as stuck: accepted, none does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetOpExecuteTimeOut(timeout: u32) -> aclError {
    let _ = timeout;
    runtime("aclrtSetOpExecuteTimeOut", || Context::current().map(|_| ()))
}

/// A setting of the process: accepted, results are deterministic anyway.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetSysParamOpt(opt: aclSysParamOpt, value: i64) -> aclError {
    let _ = value;
    runtime("aclrtSetSysParamOpt", || in_range("opt", i64::from(opt.0), 0..=2))
}

/// A setting of this thread's context: accepted likewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCtxSetSysParamOpt(opt: aclSysParamOpt, value: i64) -> aclError {
    let _ = value;
    runtime("aclrtCtxSetSysParamOpt", || {
        Context::current()?;
        in_range("opt", i64::from(opt.0), 0..=2)
    })
}

fn in_range(name: &str, value: i64, range: core::ops::RangeInclusive<i64>) -> Result<(), Failure> {
    let wrong = || Failure::new(codes::ACL_ERROR_INVALID_PARAM, format!("{name}: expected {range:?}, found {value}"));
    range.contains(&value).then_some(()).ok_or_else(wrong)
}
