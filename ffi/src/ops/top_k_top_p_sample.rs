//! The choice of the next token.

use crate::args::{Args, CBool};
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::target::{Npu, Processor, Target};
use crate::tensor::{Dtype, Tensors, per_float, present, tk_tensor};
use core::ffi::c_void;
use tilekern::ops::{self, Noise, PostSample};
use tilekern::{Element, Error, Run, Status};

/// `post_sample`: the largest logit; q is not looked at.
pub const TK_POST_SAMPLE_NONE: i32 = 0;
/// `post_sample`: the largest probability divided by the noise in q; the largest logit without q.
pub const TK_POST_SAMPLE_Q: i32 = 1;
/// `post_sample`: the same with noise drawn from (seed, offset) pairs, of q or else of generator; the largest logit without both. A token
/// more than 16 below the best logit is drawn too rarely, one more than 19.77 below never.
pub const TK_POST_SAMPLE_MULTINOMIAL: i32 = 2;

// Written as numbers above: cbindgen evaluates nothing.
const _: () = assert!(
    TK_POST_SAMPLE_NONE == PostSample::None as i32
        && TK_POST_SAMPLE_Q == PostSample::QSample as i32
        && TK_POST_SAMPLE_MULTINOMIAL == PostSample::MultiNomial as i32
);

/// Keeps of every row of logits what top-k, top-p and min-p leave, and chooses one token of it. T is f32, f16 or bf16; tensors `[B]` may
/// also be `[B,1]`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_top_k_top_p_sample_args<'a> {
    /// sizeof(tk_top_k_top_p_sample_args)
    struct_size: usize,
    /// T[B,V]: logits, or probabilities
    logits: Option<&'a tk_tensor>,
    /// i32[B]: how many tokens top-k keeps; outside 1 to min(V, K) the stage is skipped for that row, K being what ks_max comes to.
    top_k: Option<&'a tk_tensor>,
    /// T[B]: the mass that top-p keeps; <= 0 keeps the best token, >= 1 all.
    top_p: Option<&'a tk_tensor>,
    /// ? f32[B,V] noise for TK_POST_SAMPLE_Q, by place in the row's list; i64[r,2] (seed, offset) of each row for
    /// TK_POST_SAMPLE_MULTINOMIAL, where the last line serves the rows beyond. Rows of one line share their noise, and so do offsets
    /// from 4n + 1 to 4n + 4: the next token of a row takes one 4 higher, or 8 where V is above 638976.
    q: Option<&'a tk_tensor>,
    /// ? T[B]: the least probability, relative to the largest; <= 0 keeps all, >= 1 the best token.
    min_ps: Option<&'a tk_tensor>,
    /// 1e-8: added to the noise of q. Negative or no finite f32: 161002, also where there is no q.
    eps: f64,
    /// false: whether to write logits_top_kp_select.
    is_need_logits: CBool,
    /// 32; without effect.
    top_k_guess: i64,
    /// 1024: the largest top_k, as its low 32 bits, rounded up to a multiple of 8 and cut at 1024; 0 switches top-k off.
    ks_max: i64,
    /// true: whether `logits` are logits, and not probabilities.
    input_is_logits: CBool,
    /// TK_POST_SAMPLE_Q
    post_sample: i32,
    /// ? i64[B]: the chosen tokens; NULL only with logits_idx and logits_sort_masked.
    logits_select_idx: Option<&'a tk_tensor>,
    /// ? f32[B,V]: the logits of the kept tokens; -inf, or 0 for probabilities, elsewhere.
    logits_top_kp_select: Option<&'a tk_tensor>,
    /// ? u8[B], bits: 1 a NaN was seen, 2 a +inf was seen, 4 nothing to choose from.
    row_status: Option<&'a tk_tensor>,
    /// ? i64[B,V]: the kept tokens in order, then 0; with logits_sort_masked or not at all.
    logits_idx: Option<&'a tk_tensor>,
    /// ? f32[B,V]: their probabilities, then 0.
    logits_sort_masked: Option<&'a tk_tensor>,
    /// ? i64[2]: the (seed, offset) of the batch. It is not advanced: the next call takes an offset 12 higher, or 4 * ceil(B V / 638976)
    /// where that is more.
    generator: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_top_k_top_p_sample_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        logits: None,
        top_k: None,
        top_p: None,
        q: None,
        min_ps: None,
        eps: 1e-8,
        is_need_logits: CBool::FALSE,
        top_k_guess: 32,
        ks_max: 1024,
        input_is_logits: CBool::TRUE,
        post_sample: TK_POST_SAMPLE_Q,
        logits_select_idx: None,
        logits_top_kp_select: None,
        row_status: None,
        logits_idx: None,
        logits_sort_masked: None,
        generator: None,
    };
}

fn sample<'a, B, T: Element + Dtype>(a: &tk_top_k_top_p_sample_args<'a>, job: Job<'_, B>) -> Result<(), Error>
where
    B: Target + Run<ops::TopKTopPSample<'a, B, T>>,
{
    let unknown = || Error::new(Status::Invalid, "post_sample", "0, 1 or 2", i64::from(a.post_sample));
    let post_sample = PostSample::from_code(a.post_sample).ok_or_else(unknown)?;
    let mut call = ops::TopKTopPSample {
        logits: B::unread(),
        top_k: B::unread(),
        top_p: B::unread(),
        q: None,
        min_ps: None,
        eps: a.eps,
        is_need_logits: a.is_need_logits.get(),
        top_k_guess: a.top_k_guess,
        ks_max: a.ks_max,
        input_is_logits: a.input_is_logits.get(),
        post_sample,
        logits_select_idx: None,
        logits_top_kp_select: None,
        row_status: None,
        logits_idx: None,
        logits_sort_masked: None,
        generator: None,
    };
    // In place: nothing is moved.
    B::read_to(&mut call.logits, "logits", a.logits)?;
    B::read_to(&mut call.top_k, "top_k", a.top_k)?;
    B::read_to(&mut call.top_p, "top_p", a.top_p)?;
    if a.q.is_some() && post_sample != PostSample::None {
        let seeds = post_sample == PostSample::MultiNomial;
        match call.q.insert(if seeds { Noise::Seeds(B::unread()) } else { Noise::Exponential(B::unread()) }) {
            Noise::Exponential(q) => B::read_to(q, "q", a.q)?,
            Noise::Seeds(q) => B::read_to(q, "q", a.q)?,
        }
    }
    B::read_into(&mut call.min_ps, "min_ps", a.min_ps)?;
    B::write_into(&mut call.logits_select_idx, "logits_select_idx", a.logits_select_idx)?;
    if call.is_need_logits {
        B::write_into(&mut call.logits_top_kp_select, "logits_top_kp_select", a.logits_top_kp_select)?;
    }
    B::write_into(&mut call.row_status, "row_status", a.row_status)?;
    B::write_into(&mut call.logits_idx, "logits_idx", a.logits_idx)?;
    B::write_into(&mut call.logits_sort_masked, "logits_sort_masked", a.logits_sort_masked)?;
    B::read_into(&mut call.generator, "generator", a.generator)?;
    job.answer(&mut call)
}

impl Operation for tk_top_k_top_p_sample_args<'_> {
    fn check_presence(&self) -> Result<(), Error> {
        present(&[("logits", self.logits), ("top_k", self.top_k), ("top_p", self.top_p)])?;
        match self.logits_idx.or(self.logits_sort_masked) {
            None => present(&[("logits_select_idx", self.logits_select_idx)])?,
            Some(_) => present(&[("logits_sort_masked", self.logits_sort_masked), ("logits_idx", self.logits_idx)])?,
        }
        if self.is_need_logits.get() { present(&[("logits_top_kp_select", self.logits_top_kp_select)]) } else { Ok(()) }
    }

    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("logits", self.logits, sample::<Processor>(self, job))
    }

    fn call_npu(&self, job: Job<'_, Npu>) -> Result<(), Error> {
        per_float!("logits", self.logits, sample::<Npu>(self, job))
    }
}

/// The workspace of tk_top_k_top_p_sample, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_top_k_top_p_sample_workspace_size(
    context: *mut tk_context,
    args: *const tk_top_k_top_p_sample_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The choice of the next token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_top_k_top_p_sample(
    context: *mut tk_context,
    args: *const tk_top_k_top_p_sample_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
