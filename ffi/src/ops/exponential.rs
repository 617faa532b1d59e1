//! Random numbers of an exponential distribution.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// Exponential numbers from Philox4x32-10, numbered row-major over a tensor of any rank. T is f32, f16 or bf16.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_exponential_args<'a> {
    /// sizeof(tk_exponential_args)
    struct_size: usize,
    /// 1, above 0
    rate: f64,
    /// 0
    seed: i64,
    /// 0: four words make a counter, 4n + 1 to 4n + 4 the same. Calls share no number where offsets are 4 * ceil(elements / 638976) apart.
    offset: i64,
    /// T
    out: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_exponential_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), rate: 1.0, seed: 0, offset: 0, out: None };
}

fn exponential<T: Element + Dtype>(a: &tk_exponential_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::Exponential { rate: a.rate, seed: a.seed, offset: a.offset, out: write::<T>("out", a.out)? })
}

impl Operation for tk_exponential_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("out", self.out, exponential(self, job))
    }
}

/// The workspace of tk_exponential, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_exponential_workspace_size(
    context: *mut tk_context,
    args: *const tk_exponential_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Exponential numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_exponential(
    context: *mut tk_context,
    args: *const tk_exponential_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
