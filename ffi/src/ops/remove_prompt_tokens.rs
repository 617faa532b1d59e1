//! Generated tokens without the prompts before them.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Error, ops};

/// output[b][t] = word_ids[prompt_lengths[b] - min_prompt + t][b] for t < sequence_length[b]; columns behind are not written. A length
/// that is beyond T or the steps: 161002, and nothing is written.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_remove_prompt_tokens_args<'a> {
    /// sizeof(tk_remove_prompt_tokens_args)
    struct_size: usize,
    /// i32[steps,B]
    word_ids: Option<&'a tk_tensor>,
    /// i32[B]
    sequence_length: Option<&'a tk_tensor>,
    /// i32[B]
    prompt_lengths: Option<&'a tk_tensor>,
    /// 0: the shortest prompt, whose next position is step 0
    min_prompt: i64,
    /// i32[B,T]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns numbers, NULL or tensors.
unsafe impl Args for tk_remove_prompt_tokens_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        word_ids: None,
        sequence_length: None,
        prompt_lengths: None,
        min_prompt: 0,
        output: None,
    };
}

impl Operation for tk_remove_prompt_tokens_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::RemovePromptTokens {
            word_ids: read("word_ids", self.word_ids)?,
            sequence_length: read("sequence_length", self.sequence_length)?,
            prompt_lengths: read("prompt_lengths", self.prompt_lengths)?,
            min_prompt: self.min_prompt,
            output: write("output", self.output)?,
        })
    }
}

/// The workspace of tk_remove_prompt_tokens, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_remove_prompt_tokens_workspace_size(
    context: *mut tk_context,
    args: *const tk_remove_prompt_tokens_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Generated tokens without their prompts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_remove_prompt_tokens(
    context: *mut tk_context,
    args: *const tk_remove_prompt_tokens_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
