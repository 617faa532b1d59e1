//! Int32 sums to heads, with and without rotation.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Error, ops};

/// output = input * input_scale * weight_scale, by heads.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_dequant_transpose_args<'a> {
    /// sizeof(tk_dequant_transpose_args)
    struct_size: usize,
    /// i32[B,S,heads*D]
    input: Option<&'a tk_tensor>,
    /// f32[B,S]
    input_scale: Option<&'a tk_tensor>,
    /// f32[heads*D]
    weight_scale: Option<&'a tk_tensor>,
    /// f32[B,heads,S,D]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_dequant_transpose_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), input: None, input_scale: None, weight_scale: None, output: None };
}

impl Operation for tk_dequant_transpose_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::DequantTranspose {
            input: read("input", self.input)?,
            input_scale: read("input_scale", self.input_scale)?,
            weight_scale: read("weight_scale", self.weight_scale)?,
            output: write("output", self.output)?,
        })
    }
}

/// The workspace of tk_dequant_transpose, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_transpose_workspace_size(
    context: *mut tk_context,
    args: *const tk_dequant_transpose_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Dequantisation and transposition to heads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_transpose(
    context: *mut tk_context,
    args: *const tk_dequant_transpose_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}

/// output = input * input_scale * weight_scale, by heads, rotated by position: token s of batch b is at start_pos[b] + s.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_dequant_rope_transpose_args<'a> {
    /// sizeof(tk_dequant_rope_transpose_args)
    struct_size: usize,
    /// i32[B,S,heads*D]
    input: Option<&'a tk_tensor>,
    /// f32[B,S]
    input_scale: Option<&'a tk_tensor>,
    /// f32[heads*D]
    weight_scale: Option<&'a tk_tensor>,
    /// f32[T,D], of tk_rope_table
    freqs: Option<&'a tk_tensor>,
    /// i64[B] or i64[B,1]
    start_pos: Option<&'a tk_tensor>,
    /// f32[B,heads,S,D]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_dequant_rope_transpose_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        input: None,
        input_scale: None,
        weight_scale: None,
        freqs: None,
        start_pos: None,
        output: None,
    };
}

impl Operation for tk_dequant_rope_transpose_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::DequantRopeTranspose {
            input: read("input", self.input)?,
            input_scale: read("input_scale", self.input_scale)?,
            weight_scale: read("weight_scale", self.weight_scale)?,
            freqs: read("freqs", self.freqs)?,
            start_pos: read("start_pos", self.start_pos)?,
            output: write("output", self.output)?,
        })
    }
}

/// The workspace of tk_dequant_rope_transpose, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_rope_transpose_workspace_size(
    context: *mut tk_context,
    args: *const tk_dequant_rope_transpose_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Dequantisation, RoPE and transposition to heads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_rope_transpose(
    context: *mut tk_context,
    args: *const tk_dequant_rope_transpose_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
