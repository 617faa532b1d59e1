//! The runtime: `libacl_rt.so`, or `libascendcl.so`.

use crate::types::*;
use core::ffi::{c_char, c_void};

/// Once for a process; null for the defaults. 100002 where somebody did it before.
pub type aclInit = unsafe extern "C" fn(config_path: *const c_char) -> aclError;
/// The end of ACL in this process.
pub type aclFinalize = unsafe extern "C" fn() -> aclError;
/// One owner fewer; how many are left.
pub type aclFinalizeReference = unsafe extern "C" fn(ref_count: *mut u64) -> aclError;
/// This thread works on that device, in its default context.
pub type aclrtSetDevice = unsafe extern "C" fn(device_id: i32) -> aclError;
/// The counterpart of `aclrtSetDevice`.
pub type aclrtResetDevice = unsafe extern "C" fn(device_id: i32) -> aclError;
/// Whatever the count.
pub type aclrtResetDeviceForce = unsafe extern "C" fn(device_id: i32) -> aclError;
/// This thread's device.
pub type aclrtGetDevice = unsafe extern "C" fn(device_id: *mut i32) -> aclError;
/// How many devices there are.
pub type aclrtGetDeviceCount = unsafe extern "C" fn(count: *mut u32) -> aclError;
/// Whether the program runs on the host or on the device.
pub type aclrtGetRunMode = unsafe extern "C" fn(run_mode: *mut aclrtRunMode) -> aclError;
/// The name of the chip.
pub type aclrtGetSocName = unsafe extern "C" fn() -> *const c_char;
/// What went wrong last on this thread; reading clears it.
pub type aclGetRecentErrMsg = unsafe extern "C" fn() -> *const c_char;
/// A context beside the default one.
pub type aclrtCreateContext = unsafe extern "C" fn(context: *mut aclrtContext, device_id: i32) -> aclError;
/// Of a context that was created, never of a default one.
pub type aclrtDestroyContext = unsafe extern "C" fn(context: aclrtContext) -> aclError;
/// This thread works in that context.
pub type aclrtSetCurrentContext = unsafe extern "C" fn(context: aclrtContext) -> aclError;
/// This thread's context; 107002 where it has none.
pub type aclrtGetCurrentContext = unsafe extern "C" fn(context: *mut aclrtContext) -> aclError;
/// A stream of this thread's context.
pub type aclrtCreateStream = unsafe extern "C" fn(stream: *mut aclrtStream) -> aclError;
/// The same, with flags.
pub type aclrtCreateStreamWithConfig = unsafe extern "C" fn(stream: *mut aclrtStream, priority: u32, flag: u32) -> aclError;
/// Waits, and destroys.
pub type aclrtDestroyStream = unsafe extern "C" fn(stream: aclrtStream) -> aclError;
/// Destroys without waiting.
pub type aclrtDestroyStreamForce = unsafe extern "C" fn(stream: aclrtStream) -> aclError;
/// Waits for everything in the stream; what failed meanwhile is reported here.
pub type aclrtSynchronizeStream = unsafe extern "C" fn(stream: aclrtStream) -> aclError;
/// The same, at most so many milliseconds; -1 is forever.
pub type aclrtSynchronizeStreamWithTimeout = unsafe extern "C" fn(stream: aclrtStream, timeout_ms: i32) -> aclError;
/// Waits for everything on this thread's device.
pub type aclrtSynchronizeDevice = unsafe extern "C" fn() -> aclError;
/// Whether everything in the stream is done.
pub type aclrtStreamQuery = unsafe extern "C" fn(stream: aclrtStream, status: *mut aclrtStreamStatus) -> aclError;
/// 0 runs on behind a failure, 1 stops.
pub type aclrtSetStreamFailureMode = unsafe extern "C" fn(stream: aclrtStream, mode: u64) -> aclError;
/// Memory of the device, aligned to 64 bytes; a size of 0 is an error.
pub type aclrtMalloc = unsafe extern "C" fn(device: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> aclError;
/// The same without the extra 32 bytes.
pub type aclrtMallocAlign32 = aclrtMalloc;
/// Of what `aclrtMalloc` gave.
pub type aclrtFree = unsafe extern "C" fn(device: *mut c_void) -> aclError;
/// Memory of the host that is not paged.
pub type aclrtMallocHost = unsafe extern "C" fn(host: *mut *mut c_void, size: usize) -> aclError;
/// Of what `aclrtMallocHost` gave.
pub type aclrtFreeHost = unsafe extern "C" fn(host: *mut c_void) -> aclError;
/// The same byte everywhere.
pub type aclrtMemset = unsafe extern "C" fn(device: *mut c_void, max_count: usize, value: i32, count: usize) -> aclError;
/// The same, in a stream.
pub type aclrtMemsetAsync =
    unsafe extern "C" fn(device: *mut c_void, max_count: usize, value: i32, count: usize, stream: aclrtStream) -> aclError;
/// A copy. It waits for itself, and not for what streams hold.
pub type aclrtMemcpy =
    unsafe extern "C" fn(to: *mut c_void, max: usize, from: *const c_void, count: usize, kind: aclrtMemcpyKind) -> aclError;
/// The same, in a stream.
pub type aclrtMemcpyAsync = unsafe extern "C" fn(
    to: *mut c_void,
    max: usize,
    from: *const c_void,
    count: usize,
    kind: aclrtMemcpyKind,
    stream: aclrtStream,
) -> aclError;
/// A copy of rows.
pub type aclrtMemcpy2d = unsafe extern "C" fn(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: aclrtMemcpyKind,
) -> aclError;
/// How much memory there is.
pub type aclrtGetMemInfo = unsafe extern "C" fn(attr: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError;
/// An event.
pub type aclrtCreateEvent = unsafe extern "C" fn(event: *mut aclrtEvent) -> aclError;
/// The same, with flags.
pub type aclrtCreateEventWithFlag = unsafe extern "C" fn(event: *mut aclrtEvent, flag: u32) -> aclError;
/// The end of an event.
pub type aclrtDestroyEvent = unsafe extern "C" fn(event: aclrtEvent) -> aclError;
/// The event comes to pass when the stream gets here.
pub type aclrtRecordEvent = unsafe extern "C" fn(event: aclrtEvent, stream: aclrtStream) -> aclError;
/// The stream waits here for the event.
pub type aclrtStreamWaitEvent = unsafe extern "C" fn(stream: aclrtStream, event: aclrtEvent) -> aclError;
/// This thread waits for the event.
pub type aclrtSynchronizeEvent = unsafe extern "C" fn(event: aclrtEvent) -> aclError;
/// Whether the event has come to pass.
pub type aclrtQueryEventStatus = unsafe extern "C" fn(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError;
/// Milliseconds between two.
pub type aclrtEventElapsedTime = unsafe extern "C" fn(ms: *mut f32, start: aclrtEvent, end: aclrtEvent) -> aclError;
/// The last error, and clears it.
pub type aclrtGetLastError = unsafe extern "C" fn(level: aclrtLastErrLevel) -> aclError;
/// The last error.
pub type aclrtPeekAtLastError = unsafe extern "C" fn(level: aclrtLastErrLevel) -> aclError;
/// When an operator counts as stuck.
pub type aclrtSetOpExecuteTimeOut = unsafe extern "C" fn(seconds: u32) -> aclError;
/// What arithmetic does with an overflow.
pub type aclrtSetDeviceSatMode = unsafe extern "C" fn(mode: aclrtFloatOverflowMode) -> aclError;
/// A setting of the process.
pub type aclrtSetSysParamOpt = unsafe extern "C" fn(opt: aclSysParamOpt, value: i64) -> aclError;
/// A setting of this thread's context.
pub type aclrtCtxSetSysParamOpt = aclrtSetSysParamOpt;
/// The version of a package, as text.
pub type aclsysGetVersionStr = unsafe extern "C" fn(package: *mut c_char, version: *mut c_char) -> aclError;
/// The version of a package: major * 10^7 + minor * 10^5 + patch * 10^3.
pub type aclsysGetVersionNum = unsafe extern "C" fn(package: *mut c_char, version: *mut i32) -> aclError;
/// Bytes of an element.
pub type aclDataTypeSize = unsafe extern "C" fn(data_type: aclDataType) -> usize;
