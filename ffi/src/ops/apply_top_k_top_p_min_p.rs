//! Top-k, top-p and min-p on sorted probabilities.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, present, read, read_optional, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// Keeps of every row of descending probabilities what top-k, top-p and min-p leave. T is f32, f16 or bf16; tensors `[B]` may also be
/// `[B,1]`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_apply_top_k_top_p_min_p_args<'a> {
    /// sizeof(tk_apply_top_k_top_p_min_p_args)
    struct_size: usize,
    /// T[B,V]: probabilities, each row descending.
    probs: Option<&'a tk_tensor>,
    /// i32[B]: how many columns count; all for k < 0 or k > V.
    k: Option<&'a tk_tensor>,
    /// T[B]: the probability that an entry may have before it.
    p: Option<&'a tk_tensor>,
    /// ? T[B]: the least probability, relative to the first of the row.
    min_p: Option<&'a tk_tensor>,
    /// T[B,V]: what is kept, and 0.
    sampled_res: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_apply_top_k_top_p_min_p_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), probs: None, k: None, p: None, min_p: None, sampled_res: None };
}

fn apply<T: Element + Dtype>(a: &tk_apply_top_k_top_p_min_p_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::ApplyTopKTopPMinP {
        probs: read::<T>("probs", a.probs)?,
        k: read("k", a.k)?,
        p: read("p", a.p)?,
        min_p: read_optional("min_p", a.min_p)?,
        sampled_res: write("sampled_res", a.sampled_res)?,
    })
}

impl Operation for tk_apply_top_k_top_p_min_p_args<'_> {
    fn check_presence(&self) -> Result<(), Error> {
        present(&[("probs", self.probs), ("k", self.k), ("p", self.p), ("sampled_res", self.sampled_res)])
    }

    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("probs", self.probs, apply(self, job))
    }
}

/// The workspace of tk_apply_top_k_top_p_min_p, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_apply_top_k_top_p_min_p_workspace_size(
    context: *mut tk_context,
    args: *const tk_apply_top_k_top_p_min_p_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Filters of sorted probabilities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_apply_top_k_top_p_min_p(
    context: *mut tk_context,
    args: *const tk_apply_top_k_top_p_min_p_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
