//! Int32 sums back to activations, onto the residual.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// output = residual + input * input_scale * weight_scale. T is f32, f16 or bf16.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_dequant_residual_args<'a> {
    /// sizeof(tk_dequant_residual_args)
    struct_size: usize,
    /// i32[M,H]
    input: Option<&'a tk_tensor>,
    /// f32[M]
    input_scale: Option<&'a tk_tensor>,
    /// f32[H]
    weight_scale: Option<&'a tk_tensor>,
    /// T[M,H]
    residual: Option<&'a tk_tensor>,
    /// T[M,H]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_dequant_residual_args<'_> {
    const INIT: Self =
        Self { struct_size: size_of::<Self>(), input: None, input_scale: None, weight_scale: None, residual: None, output: None };
}

fn dequant_residual<T: Element + Dtype>(a: &tk_dequant_residual_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::DequantResidual {
        input: read("input", a.input)?,
        input_scale: read("input_scale", a.input_scale)?,
        weight_scale: read("weight_scale", a.weight_scale)?,
        residual: read::<T>("residual", a.residual)?,
        output: write("output", a.output)?,
    })
}

impl Operation for tk_dequant_residual_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("residual", self.residual, dequant_residual(self, job))
    }
}

/// The workspace of tk_dequant_residual, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_residual_workspace_size(
    context: *mut tk_context,
    args: *const tk_dequant_residual_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Dequantisation onto a residual.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_residual(
    context: *mut tk_context,
    args: *const tk_dequant_residual_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}

/// hidden = residual + input * input_scale * weight_scale; then tk_rms_norm_quant of hidden. T is f32, f16 or bf16.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_dequant_residual_rms_norm_quant_args<'a> {
    /// sizeof(tk_dequant_residual_rms_norm_quant_args)
    struct_size: usize,
    /// i32[M,H]
    input: Option<&'a tk_tensor>,
    /// f32[M]
    input_scale: Option<&'a tk_tensor>,
    /// f32[H]
    weight_scale: Option<&'a tk_tensor>,
    /// T[M,H]
    residual: Option<&'a tk_tensor>,
    /// T[H]
    gamma: Option<&'a tk_tensor>,
    /// 1e-5
    eps: f64,
    /// i8[M,H]
    output: Option<&'a tk_tensor>,
    /// f32[M]
    output_scale: Option<&'a tk_tensor>,
    /// T[M,H]
    hidden: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_dequant_residual_rms_norm_quant_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        input: None,
        input_scale: None,
        weight_scale: None,
        residual: None,
        gamma: None,
        eps: 1e-5,
        output: None,
        output_scale: None,
        hidden: None,
    };
}

fn dequant_residual_rms_norm_quant<T: Element + Dtype>(
    a: &tk_dequant_residual_rms_norm_quant_args<'_>,
    job: Job<'_>,
) -> Result<(), Error> {
    job.answer(&mut ops::DequantResidualRmsNormQuant {
        input: read("input", a.input)?,
        input_scale: read("input_scale", a.input_scale)?,
        weight_scale: read("weight_scale", a.weight_scale)?,
        residual: read::<T>("residual", a.residual)?,
        gamma: read("gamma", a.gamma)?,
        eps: a.eps,
        output: write("output", a.output)?,
        output_scale: write("output_scale", a.output_scale)?,
        hidden: write("hidden", a.hidden)?,
    })
}

impl Operation for tk_dequant_residual_rms_norm_quant_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("residual", self.residual, dequant_residual_rms_norm_quant(self, job))
    }
}

/// The workspace of tk_dequant_residual_rms_norm_quant, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_residual_rms_norm_quant_workspace_size(
    context: *mut tk_context,
    args: *const tk_dequant_residual_rms_norm_quant_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Dequantisation onto a residual, and RMSNorm of the sum to int8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_dequant_residual_rms_norm_quant(
    context: *mut tk_context,
    args: *const tk_dequant_residual_rms_norm_quant_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
