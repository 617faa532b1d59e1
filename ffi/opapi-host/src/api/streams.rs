//! Streams.

use crate::boundary::{null_parameter, put, runtime};
use crate::context::Context;
use crate::failure::Failure;
use crate::stream::{STREAMS, Stream, unknown};
use core::time::Duration;
use tilekern_acl::{ACL_CONTINUE_ON_FAILURE, ACL_STOP_ON_FAILURE, ACL_STREAM_STATUS_COMPLETE, ACL_STREAM_STATUS_NOT_READY};
use tilekern_acl::{aclError, aclrtStream, aclrtStreamStatus};

/// A stream of this thread's context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStream(stream: *mut aclrtStream) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtCreateStream", || unsafe { create(stream) })
}

/// The same; priority and flags make no difference here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStreamWithConfig(stream: *mut aclrtStream, priority: u32, flag: u32) -> aclError {
    let _ = (priority, flag);
    // SAFETY: as promised by the caller.
    runtime("aclrtCreateStreamWithConfig", || unsafe { create(stream) })
}

/// # Safety
///
/// `stream` is null, or can be written.
unsafe fn create(stream: *mut aclrtStream) -> Result<(), Failure> {
    let context = Context::current()?.handle();
    if stream.is_null() {
        return Err(null_parameter("stream")());
    }
    let created = STREAMS.insert_with(|handle| Stream::new(handle, context)) as aclrtStream;
    // SAFETY: as promised by the caller.
    unsafe { put(stream, null_parameter("stream"), created) }
}

fn destroy(stream: aclrtStream, drain: bool) -> Result<(), Failure> {
    // It goes when it is done: whoever waits for the device waits for it, too.
    if !STREAMS.get(stream as usize).is_some_and(|stream| stream.close(drain)) {
        return Err(unknown());
    }
    STREAMS.remove(stream as usize);
    Ok(())
}

/// Runs what is queued, and destroys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyStream(stream: aclrtStream) -> aclError {
    runtime("aclrtDestroyStream", || destroy(stream, true))
}

/// Destroys; what has not begun does not run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyStreamForce(stream: aclrtStream) -> aclError {
    runtime("aclrtDestroyStreamForce", || destroy(stream, false))
}

/// Waits for everything in the stream; what failed is reported here, as 507015.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeStream(stream: aclrtStream) -> aclError {
    runtime("aclrtSynchronizeStream", || synchronise(stream, None))
}

/// The same, for at most so many milliseconds; -1 is forever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout: i32) -> aclError {
    runtime("aclrtSynchronizeStreamWithTimeout", || match u64::try_from(timeout) {
        Ok(limit) => synchronise(stream, Some(Duration::from_millis(limit))),
        Err(_) if timeout == -1 => synchronise(stream, None),
        Err(_) => Err(Failure::parameter(format!("timeout: expected -1 or more, found {timeout}"))),
    })
}

fn synchronise(stream: aclrtStream, limit: Option<Duration>) -> Result<(), Failure> {
    let stream = Stream::of(stream)?;
    stream.synchronise(stream.submitted(), limit)
}

/// Whether everything in the stream is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamQuery(stream: aclrtStream, status: *mut aclrtStreamStatus) -> aclError {
    runtime("aclrtStreamQuery", || {
        let done = Stream::of(stream)?.query();
        let found = if done { ACL_STREAM_STATUS_COMPLETE } else { ACL_STREAM_STATUS_NOT_READY };
        // SAFETY: as promised by the caller.
        unsafe { put(status, null_parameter("status"), found) }
    })
}

/// Whether work behind a failure runs (0) or not (1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetStreamFailureMode(stream: aclrtStream, mode: u64) -> aclError {
    runtime("aclrtSetStreamFailureMode", || match mode {
        ACL_CONTINUE_ON_FAILURE | ACL_STOP_ON_FAILURE => {
            Stream::of(stream)?.set_stops(mode == ACL_STOP_ON_FAILURE);
            Ok(())
        }
        _ => Err(Failure::parameter(format!("mode: expected 0 or 1, found {mode}"))),
    })
}
