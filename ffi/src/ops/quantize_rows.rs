//! Rows to int8.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// Each row to int8: output_scale = max |input| / 127, output = round(input / output_scale). The rows of [B,heads,S,D] are tokens:
/// heads*D numbers. T is f32, f16 or bf16.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_quantize_rows_args<'a> {
    /// sizeof(tk_quantize_rows_args)
    struct_size: usize,
    /// T[M,N] or T[B,heads,S,D]
    input: Option<&'a tk_tensor>,
    /// i8[M,N] or i8[B,S,heads*D]
    output: Option<&'a tk_tensor>,
    /// f32[M] or f32[B*S]
    output_scale: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_quantize_rows_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), input: None, output: None, output_scale: None };
}

fn quantize_rows<T: Element + Dtype>(a: &tk_quantize_rows_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::QuantizeRows {
        input: read::<T>("input", a.input)?,
        output: write("output", a.output)?,
        output_scale: write("output_scale", a.output_scale)?,
    })
}

impl Operation for tk_quantize_rows_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("input", self.input, quantize_rows(self, job))
    }
}

/// The workspace of tk_quantize_rows, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_quantize_rows_workspace_size(
    context: *mut tk_context,
    args: *const tk_quantize_rows_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Quantisation to int8, row by row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_quantize_rows(
    context: *mut tk_context,
    args: *const tk_quantize_rows_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
