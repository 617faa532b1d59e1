//! The way into every operation.

use crate::args::{self, Args};
use crate::context::{Context, tk_context};
use crate::environment::Environment;
use crate::memory::answer;
use crate::status::TK_STATUS_SUCCESS;
use crate::target::{Npu, Processor, Target};
use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilekern::{Error, Run, Status};

/// What C asks of an operation: its workspace, or to run in one.
pub(crate) enum Job<'a, B: Target = Processor> {
    Query(B, &'a mut usize),
    Run(B, B::Scratch<'a>),
}

impl<B: Target> Job<'_, B> {
    /// Answers, for the operation whose arguments were made from the struct. They stay where they were made: a copy of them would
    /// cost as much as validating them.
    #[inline(never)]
    pub fn answer<C>(self, call: &mut C) -> Result<(), Error>
    where
        B: Run<C>,
    {
        match self {
            Job::Query(target, bytes) => target.workspace(call).map(|layout| *bytes = layout.size()),
            Job::Run(target, scratch) => target.run_mut(call, scratch),
        }
    }
}

/// The struct of an operation.
pub(crate) trait Operation: Args {
    /// The tensors that must be there are, where a missing one comes before a wrong dtype.
    fn check_presence(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the library's call out of the struct, and lets `job` answer it.
    fn call(&self, job: Job<'_>) -> Result<(), Error>;

    /// The same on an NPU, for what aclnn has a function for.
    fn call_npu(&self, _job: Job<'_, Npu>) -> Result<(), Error> {
        Err(no_function())
    }
}

/// The struct of a call, with what must be there.
///
/// # Safety
///
/// As [`args::lend`]'s.
#[inline(always)]
unsafe fn lend<A: Operation>(args: *const A, room: &mut Option<A>) -> Result<&A, Error> {
    // SAFETY: as promised by the caller.
    let args = unsafe { args::lend("args", args, room) }?;
    args.check_presence()?;
    Ok(args)
}

/// A workspace query.
///
/// # Safety
///
/// The pointers are null or what the header says, for the time of the call.
pub(crate) unsafe fn query<A: Operation>(context: *mut tk_context, args: *const A, bytes: *mut usize) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |context: Context| unsafe {
        let mut room = None;
        if context.is_npu()? {
            let npu = context.npu()?;
            let args = lend(args, &mut room)?;
            return args.call_npu(Job::Query(npu, answer("bytes", bytes)?));
        }
        let host = context.host()?;
        let args = lend(args, &mut room)?;
        args.call(Job::Query(host, answer("bytes", bytes)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter_any(context, body) }
}

/// A run.
///
/// # Safety
///
/// The pointers are null or what the header says, for the time of the call.
pub(crate) unsafe fn run<A: Operation>(context: *mut tk_context, args: *const A, workspace: *mut c_void, bytes: usize) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |context: Context| unsafe {
        let mut room = None;
        if context.is_npu()? {
            let npu = context.npu()?;
            return lend(args, &mut room)?.call_npu(Job::Run(npu, Npu::scratch(workspace, bytes)));
        }
        let host = context.host()?;
        lend(args, &mut room)?.call(Job::Run(host, Processor::scratch(workspace, bytes)))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter_any(context, body) }
}

/// Runs `body` in the default floating-point environment, on the processor that the context describes. Its panic, too, becomes a
/// status.
///
/// # Safety
///
/// `context` is null or valid for the time of the call.
pub(crate) unsafe fn enter(context: *mut tk_context, body: impl FnOnce(Processor) -> Result<(), Error>) -> i32 {
    let body = |context: Context| match context.is_npu()? {
        true => context.npu().and(Err(no_function())),
        false => body(context.host()?),
    };
    // SAFETY: as promised by the caller.
    unsafe { enter_any(context, body) }
}

/// The same, wherever the context says.
///
/// # Safety
///
/// `context` is null or valid for the time of the call.
unsafe fn enter_any(context: *mut tk_context, body: impl FnOnce(Context) -> Result<(), Error>) -> i32 {
    let _environment = Environment::enter();
    // SAFETY: as promised by the caller.
    let context = match unsafe { Context::new(context) } {
        Ok(context) => context,
        // Of a struct of unknown size nothing more is known, so nothing is written to it.
        Err(error) => return error.status().code(),
    };
    let result = catch_unwind(AssertUnwindSafe(|| body(context)));
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

fn no_function() -> Error {
    Error::new(Status::Unsupported, "backend", "0 for this function", "an NPU, for which aclnn has none")
}
