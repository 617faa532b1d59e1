//! Attention over the cache.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, read, read_optional, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// Query i of batch b sees the keys of positions 0 ..= start_pos[b] + i. Query heads are a multiple of the KV heads of the cache, whose
/// dtype K is f32, f16 or bf16.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_attention_args<'a> {
    /// sizeof(tk_attention_args)
    struct_size: usize,
    /// f32[B,heads,S,D]
    query: Option<&'a tk_tensor>,
    /// K[B,KV,T,D]
    key_cache: Option<&'a tk_tensor>,
    /// K[B,KV,T,D]
    value_cache: Option<&'a tk_tensor>,
    /// i64[B] or i64[B,1]
    start_pos: Option<&'a tk_tensor>,
    /// ? f32[S,T]: entry [i,j] is added to the score of query i with position j
    mask: Option<&'a tk_tensor>,
    /// 0: 1 / sqrt(D)
    scale: f64,
    /// f32[B,heads,S,D]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_attention_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        query: None,
        key_cache: None,
        value_cache: None,
        start_pos: None,
        mask: None,
        scale: 0.0,
        output: None,
    };
}

fn attention<K: Element + Dtype>(a: &tk_attention_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::Attention {
        query: read("query", a.query)?,
        key_cache: read::<K>("key_cache", a.key_cache)?,
        value_cache: read("value_cache", a.value_cache)?,
        start_pos: read("start_pos", a.start_pos)?,
        mask: read_optional("mask", a.mask)?,
        scale: a.scale,
        output: write("output", a.output)?,
    })
}

impl Operation for tk_attention_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("key_cache", self.key_cache, attention(self, job))
    }
}

/// The workspace of tk_attention, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_attention_workspace_size(
    context: *mut tk_context,
    args: *const tk_attention_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Attention of new queries over the caches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_attention(
    context: *mut tk_context,
    args: *const tk_attention_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
