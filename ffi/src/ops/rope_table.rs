//! The angles of RoPE.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Error, ops};

/// Row t: cos and sin, interleaved, of (start + t) * theta^(-2i/D).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_rope_table_args<'a> {
    /// sizeof(tk_rope_table_args)
    struct_size: usize,
    /// 0, the position of the first row
    start: i64,
    /// 10000
    theta: f64,
    /// f32[T,D]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_rope_table_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), start: 0, theta: 10000.0, output: None };
}

impl Operation for tk_rope_table_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::RopeTable { start: self.start, theta: self.theta, output: write("output", self.output)? })
    }
}

/// The workspace of tk_rope_table, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_rope_table_workspace_size(
    context: *mut tk_context,
    args: *const tk_rope_table_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The table that tk_dequant_rope_transpose rotates by.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_rope_table(
    context: *mut tk_context,
    args: *const tk_rope_table_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
