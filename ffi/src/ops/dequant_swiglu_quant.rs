//! The gate of the feed-forward network.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Error, ops};

/// silu(w1 * input_scale * w1_scale) * (w3 * input_scale * w3_scale), each row quantised to int8 with a scale of its own.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_dequant_swiglu_quant_args<'a> {
    /// sizeof(tk_dequant_swiglu_quant_args)
    struct_size: usize,
    /// i32[M,F], the gate
    w1: Option<&'a tk_tensor>,
    /// i32[M,F]
    w3: Option<&'a tk_tensor>,
    /// f32[M]
    input_scale: Option<&'a tk_tensor>,
    /// f32[F]
    w1_scale: Option<&'a tk_tensor>,
    /// f32[F]
    w3_scale: Option<&'a tk_tensor>,
    /// i8[M,F]
    output: Option<&'a tk_tensor>,
    /// f32[M]
    output_scale: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_dequant_swiglu_quant_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        w1: None,
        w3: None,
        input_scale: None,
        w1_scale: None,
        w3_scale: None,
        output: None,
        output_scale: None,
    };
}

impl Operation for tk_dequant_swiglu_quant_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::DequantSwigluQuant {
            w1: read("w1", self.w1)?,
            w3: read("w3", self.w3)?,
            input_scale: read("input_scale", self.input_scale)?,
            w1_scale: read("w1_scale", self.w1_scale)?,
            w3_scale: read("w3_scale", self.w3_scale)?,
            output: write("output", self.output)?,
            output_scale: write("output_scale", self.output_scale)?,
        })
    }
}

/// The workspace of tk_dequant_swiglu_quant, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_swiglu_quant_workspace_size(
    context: *mut tk_context,
    args: *const tk_dequant_swiglu_quant_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// SwiGLU of int32 sums, to int8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_swiglu_quant(
    context: *mut tk_context,
    args: *const tk_dequant_swiglu_quant_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
