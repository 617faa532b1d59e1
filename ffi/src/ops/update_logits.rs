//! The logits that the next token is chosen from.

use crate::args::{Args, CBool};
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{read, read_bools, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Error, ops};

/// The logits of the last of S tokens; of a row that is finished FLT_MAX at end_id and -FLT_MAX elsewhere. With softmax the
/// probabilities of that row, where a NaN counts as -inf and a +inf as FLT_MAX.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_update_logits_args<'a> {
    /// sizeof(tk_update_logits_args)
    struct_size: usize,
    /// f32[B,S,V]
    logits: Option<&'a tk_tensor>,
    /// ? bool[B]
    finished: Option<&'a tk_tensor>,
    /// 0: inside [0,V) where finished is given
    end_id: i32,
    /// false
    softmax: CBool,
    /// f32[B,V]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns numbers, NULL or tensors.
unsafe impl Args for tk_update_logits_args<'_> {
    const INIT: Self =
        Self { struct_size: size_of::<Self>(), logits: None, finished: None, end_id: 0, softmax: CBool::FALSE, output: None };
}

impl Operation for tk_update_logits_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::UpdateLogits {
            logits: read("logits", self.logits)?,
            finished: read_bools("finished", self.finished)?,
            end_id: self.end_id,
            softmax: self.softmax.get(),
            output: write("output", self.output)?,
        })
    }
}

/// The workspace of tk_update_logits, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_update_logits_workspace_size(
    context: *mut tk_context,
    args: *const tk_update_logits_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The logits of the last token, or their probabilities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_update_logits(
    context: *mut tk_context,
    args: *const tk_update_logits_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
