//! The way into every operation.

use crate::args::{self, Args};
use crate::context::{Context, tk_context};
use crate::environment::Environment;
use crate::memory::answer;
use crate::pool::Pool;
use crate::status::TK_STATUS_SUCCESS;
use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilekern::{Error, Host, Run, Status};

/// What C asks of an operation: its workspace, or to run in one.
pub(crate) enum Job<'a> {
    Query(Host<Pool>, &'a mut usize),
    Run(Host<Pool>, &'a mut [u8]),
}

impl Job<'_> {
    /// Answers, for the operation whose arguments were made from the struct.
    pub fn answer<C>(self, call: C) -> Result<(), Error>
    where
        Host<Pool>: Run<C> + for<'a> tilekern::Backend<Scratch<'a> = &'a mut [u8]>,
    {
        match self {
            Job::Query(host, bytes) => {
                *bytes = host.workspace(&call)?.size();
                Ok(())
            }
            Job::Run(host, scratch) => host.run(call, scratch),
        }
    }
}

/// The struct of an operation.
pub(crate) trait Operation: Args {
    /// Makes the library's call out of the struct, and lets `job` answer it.
    fn call(&self, job: Job<'_>) -> Result<(), Error>;
}

/// A workspace query.
///
/// # Safety
///
/// The pointers are null or what the header says, for the time of the call.
pub(crate) unsafe fn query<A: Operation>(context: *mut tk_context, args: *const A, bytes: *mut usize) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |host| unsafe {
        let args = args::read("args", args)?;
        args.call(Job::Query(host, answer("bytes", bytes)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// A run.
///
/// # Safety
///
/// The pointers are null or what the header says, for the time of the call.
pub(crate) unsafe fn run<A: Operation>(context: *mut tk_context, args: *const A, workspace: *mut c_void, bytes: usize) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |host| unsafe { args::read("args", args)?.call(Job::Run(host, memory(workspace, bytes))) };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// # Safety
///
/// `data` is null, or `bytes` bytes that are the callee's during `'a`.
unsafe fn memory<'a>(data: *mut c_void, bytes: usize) -> &'a mut [u8] {
    if data.is_null() {
        return &mut [];
    }
    // SAFETY: as promised by the caller; no object is larger than `isize::MAX`.
    unsafe { core::slice::from_raw_parts_mut(data.cast(), bytes.min(isize::MAX as usize)) }
}

/// Runs `body` in the default floating-point environment, on the host that the context describes. Its panic, too, becomes a status.
///
/// # Safety
///
/// `context` is null or valid for the time of the call.
pub(crate) unsafe fn enter(context: *mut tk_context, body: impl FnOnce(Host<Pool>) -> Result<(), Error>) -> i32 {
    let _environment = Environment::enter();
    // SAFETY: as promised by the caller.
    let context = match unsafe { Context::new(context) } {
        Ok(context) => context,
        // Of a struct of unknown size nothing more is known, so nothing is written to it.
        Err(error) => return error.status().code(),
    };
    let result = catch_unwind(AssertUnwindSafe(|| body(context.host()?)));
    let result = result.unwrap_or_else(|payload| {
        // A pool that failed has thrown the error itself.
        let bug = || Error::new(Status::Internal, "tilekern", "no panic", "a panic");
        Err(payload.downcast().map_or_else(|_| bug(), |error| *error))
    });
    match result {
        Ok(()) => TK_STATUS_SUCCESS,
        Err(error) => {
            context.report(&error);
            error.status().code()
        }
    }
}
