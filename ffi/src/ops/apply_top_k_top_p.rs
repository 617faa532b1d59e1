//! Top-k and top-p on logits.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::target::{Npu, Processor, Target};
use crate::tensor::{Dtype, Tensors, per_float, present, tk_tensor};
use core::ffi::c_void;
use tilekern::{Element, Error, Run, ops};

/// Makes every logit -inf that top-k or top-p drops, and copies the others. T is f32, f16 or bf16; tensors `[B]` may also be `[B,1]`; p
/// and k are not both NULL.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_apply_top_k_top_p_args<'a> {
    /// sizeof(tk_apply_top_k_top_p_args)
    struct_size: usize,
    /// T[B,V]
    logits: Option<&'a tk_tensor>,
    /// ? T[B]: the mass that top-p keeps; > 1 keeps all, 1 drops what has probability 0. Of equals at the cut the later ones stay.
    p: Option<&'a tk_tensor>,
    /// ? i32[B]: how many top-k keeps, with all equals of the last; <= 0 or >= V for all.
    k: Option<&'a tk_tensor>,
    /// T[B,V]
    out: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_apply_top_k_top_p_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), logits: None, p: None, k: None, out: None };
}

fn apply<'a, B, T: Element + Dtype>(a: &tk_apply_top_k_top_p_args<'a>, job: Job<'_, B>) -> Result<(), Error>
where
    B: Target + Run<ops::ApplyTopKTopP<'a, B, T>>,
{
    job.answer(&mut ops::ApplyTopKTopP {
        logits: B::read("logits", a.logits)?,
        p: B::read_optional("p", a.p)?,
        k: B::read_optional("k", a.k)?,
        out: B::write("out", a.out)?,
    })
}

impl Operation for tk_apply_top_k_top_p_args<'_> {
    fn check_presence(&self) -> Result<(), Error> {
        present(&[("logits", self.logits), ("p", self.p.or(self.k)), ("out", self.out)])
    }

    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("logits", self.logits, apply::<Processor>(self, job))
    }

    fn call_npu(&self, job: Job<'_, Npu>) -> Result<(), Error> {
        per_float!("logits", self.logits, apply::<Npu>(self, job))
    }
}

/// The workspace of tk_apply_top_k_top_p, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_apply_top_k_top_p_workspace_size(
    context: *mut tk_context,
    args: *const tk_apply_top_k_top_p_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Filters of logits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_apply_top_k_top_p(
    context: *mut tk_context,
    args: *const tk_apply_top_k_top_p_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
