//! The first version of the choice of the next token.

use crate::args::{Args, CBool};
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::target::{Npu, Processor, Target};
use crate::tensor::{Dtype, Tensors, per_float, present, tk_tensor};
use core::ffi::c_void;
use tilekern::{Element, Error, Run, ops};

/// The first version of tk_top_k_top_p_sample: top-p keeps one token more where a sum is exactly p, and what it keeps is normalised
/// again. T is f32, f16 or bf16; tensors `[B]` may also be `[B,1]`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_top_k_top_p_sample_v1_args<'a> {
    /// sizeof(tk_top_k_top_p_sample_v1_args)
    struct_size: usize,
    /// T[B,V]
    logits: Option<&'a tk_tensor>,
    /// i32[B]: how many tokens top-k keeps; outside 1 to min(V, 1024) the stage is skipped for that row.
    top_k: Option<&'a tk_tensor>,
    /// T[B]: the mass that top-p keeps; outside (0,1) the stage is skipped for that row.
    top_p: Option<&'a tk_tensor>,
    /// ? f32[B,V]: noise, by place in the row's list.
    q: Option<&'a tk_tensor>,
    /// 1e-8: added to the noise of q. Negative or no finite f32: 161002, also where there is no q.
    eps: f64,
    /// false: whether to write logits_top_kp_select.
    is_need_logits: CBool,
    /// 32; without effect.
    top_k_guess: i64,
    /// i64[B]: the chosen tokens.
    logits_select_idx: Option<&'a tk_tensor>,
    /// ? f32[B,V]: the logits of the kept tokens, -inf elsewhere.
    logits_top_kp_select: Option<&'a tk_tensor>,
    /// ? u8[B], bits: 1 a NaN was seen, 2 a +inf was seen, 4 nothing to choose from.
    row_status: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_top_k_top_p_sample_v1_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        logits: None,
        top_k: None,
        top_p: None,
        q: None,
        eps: 1e-8,
        is_need_logits: CBool::FALSE,
        top_k_guess: 32,
        logits_select_idx: None,
        logits_top_kp_select: None,
        row_status: None,
    };
}

fn sample<'a, B, T: Element + Dtype>(a: &tk_top_k_top_p_sample_v1_args<'a>, job: Job<'_, B>) -> Result<(), Error>
where
    B: Target + Run<ops::TopKTopPSampleV1<'a, B, T>>,
{
    let mut call = ops::TopKTopPSampleV1 {
        logits: B::unread(),
        top_k: B::unread(),
        top_p: B::unread(),
        q: None,
        eps: a.eps,
        is_need_logits: a.is_need_logits.get(),
        top_k_guess: a.top_k_guess,
        logits_select_idx: B::unwritten(),
        logits_top_kp_select: None,
        row_status: None,
    };
    B::read_to(&mut call.logits, "logits", a.logits)?;
    B::read_to(&mut call.top_k, "top_k", a.top_k)?;
    B::read_to(&mut call.top_p, "top_p", a.top_p)?;
    B::read_into(&mut call.q, "q", a.q)?;
    B::write_to(&mut call.logits_select_idx, "logits_select_idx", a.logits_select_idx)?;
    if call.is_need_logits {
        B::write_into(&mut call.logits_top_kp_select, "logits_top_kp_select", a.logits_top_kp_select)?;
    }
    B::write_into(&mut call.row_status, "row_status", a.row_status)?;
    job.answer(&mut call)
}

impl Operation for tk_top_k_top_p_sample_v1_args<'_> {
    fn check_presence(&self) -> Result<(), Error> {
        present(&[("logits", self.logits), ("top_k", self.top_k), ("top_p", self.top_p)])?;
        present(&[("logits_select_idx", self.logits_select_idx)])?;
        if self.is_need_logits.get() { present(&[("logits_top_kp_select", self.logits_top_kp_select)]) } else { Ok(()) }
    }

    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("logits", self.logits, sample::<Processor>(self, job))
    }

    fn call_npu(&self, job: Job<'_, Npu>) -> Result<(), Error> {
        per_float!("logits", self.logits, sample::<Npu>(self, job))
    }
}

/// The workspace of tk_top_k_top_p_sample_v1, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_top_k_top_p_sample_v1_workspace_size(
    context: *mut tk_context,
    args: *const tk_top_k_top_p_sample_v1_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The choice of the next token, first version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_top_k_top_p_sample_v1(
    context: *mut tk_context,
    args: *const tk_top_k_top_p_sample_v1_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
