//! The next token, drawn among the k best.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{read, read_bools, read_optional, tk_tensor, write, write_bools, write_optional};
use core::ffi::c_void;
use tilekern::{Error, ops};

/// The next token of each row, drawn by one number among its k largest logits. A row whose prompt_mask is true in column cur_pos
/// takes its token from prompt_tokens; there is none from P on. Else a finished row yields end_id. Any other is sampled: its length
/// grows by 1, and it is finished if the token is end_id. Tensors `[B]` may also be `[B,1]`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_top_k_sampling_args<'a> {
    /// sizeof(tk_top_k_sampling_args)
    struct_size: usize,
    /// f32[B,V]
    logits: Option<&'a tk_tensor>,
    /// f32[B] in [0,1): what lies outside counts as the nearer end, a NaN as 0.
    random: Option<&'a tk_tensor>,
    /// ? i32[B,P]; both or neither
    prompt_tokens: Option<&'a tk_tensor>,
    /// ? bool[B,P]
    prompt_mask: Option<&'a tk_tensor>,
    /// 0
    cur_pos: i64,
    /// 0: to be set, 1 to V
    k: i64,
    /// 0: what each rank, from the best down, adds to its logit
    diversity_rate: f64,
    /// 0: inside [0,V) where finished is given
    end_id: i32,
    /// i32[B]
    ids: Option<&'a tk_tensor>,
    /// ? i32[B], read and written
    sequence_length: Option<&'a tk_tensor>,
    /// ? bool[B], read and written
    finished: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns numbers, NULL or tensors.
unsafe impl Args for tk_top_k_sampling_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        logits: None,
        random: None,
        prompt_tokens: None,
        prompt_mask: None,
        cur_pos: 0,
        k: 0,
        diversity_rate: 0.0,
        end_id: 0,
        ids: None,
        sequence_length: None,
        finished: None,
    };
}

impl Operation for tk_top_k_sampling_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::TopKSampling {
            logits: read("logits", self.logits)?,
            random: read("random", self.random)?,
            prompt_tokens: read_optional("prompt_tokens", self.prompt_tokens)?,
            prompt_mask: read_bools("prompt_mask", self.prompt_mask)?,
            cur_pos: self.cur_pos,
            k: self.k,
            diversity_rate: self.diversity_rate,
            end_id: self.end_id,
            ids: write("ids", self.ids)?,
            sequence_length: write_optional("sequence_length", self.sequence_length)?,
            finished: write_bools("finished", self.finished)?,
        })
    }
}

/// The workspace of tk_top_k_sampling, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_top_k_sampling_workspace_size(
    context: *mut tk_context,
    args: *const tk_top_k_sampling_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Tokens drawn among the k best of each row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_top_k_sampling(
    context: *mut tk_context,
    args: *const tk_top_k_sampling_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
