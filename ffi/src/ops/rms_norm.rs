//! RMSNorm, plain and quantised.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// output = gamma * (input / sqrt(mean(input^2) + eps)), row by row. T is f32, f16 or bf16. Numbers from 1.15e18 on may make NaN of
/// their row: squares are added in f32, 256 at a time.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_rms_norm_args<'a> {
    /// sizeof(tk_rms_norm_args)
    struct_size: usize,
    /// T[M,H]
    input: Option<&'a tk_tensor>,
    /// T[H]
    gamma: Option<&'a tk_tensor>,
    /// 1e-5
    eps: f64,
    /// T[M,H]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_rms_norm_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), input: None, gamma: None, eps: 1e-5, output: None };
}

fn rms_norm<T: Element + Dtype>(a: &tk_rms_norm_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::RmsNorm {
        input: read::<T>("input", a.input)?,
        gamma: read("gamma", a.gamma)?,
        eps: a.eps,
        output: write("output", a.output)?,
    })
}

impl Operation for tk_rms_norm_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("input", self.input, rms_norm(self, job))
    }
}

/// The workspace of tk_rms_norm, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_rms_norm_workspace_size(
    context: *mut tk_context,
    args: *const tk_rms_norm_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// RMSNorm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_rms_norm(
    context: *mut tk_context,
    args: *const tk_rms_norm_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}

/// RMSNorm, then each row quantised to int8: output_scale = max |y| / 127, output = round(y / output_scale). T is f32, f16 or bf16.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_rms_norm_quant_args<'a> {
    /// sizeof(tk_rms_norm_quant_args)
    struct_size: usize,
    /// T[M,H]
    input: Option<&'a tk_tensor>,
    /// T[H]
    gamma: Option<&'a tk_tensor>,
    /// 1e-5
    eps: f64,
    /// i8[M,H]
    output: Option<&'a tk_tensor>,
    /// f32[M]
    output_scale: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_rms_norm_quant_args<'_> {
    const INIT: Self =
        Self { struct_size: size_of::<Self>(), input: None, gamma: None, eps: 1e-5, output: None, output_scale: None };
}

fn rms_norm_quant<T: Element + Dtype>(a: &tk_rms_norm_quant_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::RmsNormQuant {
        input: read::<T>("input", a.input)?,
        gamma: read("gamma", a.gamma)?,
        eps: a.eps,
        output: write("output", a.output)?,
        output_scale: write("output_scale", a.output_scale)?,
    })
}

impl Operation for tk_rms_norm_quant_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("input", self.input, rms_norm_quant(self, job))
    }
}

/// The workspace of tk_rms_norm_quant, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_rms_norm_quant_workspace_size(
    context: *mut tk_context,
    args: *const tk_rms_norm_quant_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// RMSNorm to int8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_rms_norm_quant(
    context: *mut tk_context,
    args: *const tk_rms_norm_quant_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
