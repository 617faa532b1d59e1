//! A layer of the decoder.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::ops::quant_matmul::TK_FORMAT_PACKED;
use crate::tensor::{Dtype, per_float, read, read_optional, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// Attention and feed-forward network of one layer; the new keys and values go into the caches at start_pos[b] + s. T is f32, f16
/// or bf16, as is the dtype K of the caches. Weights as in tk_quant_matmul; heads is a multiple of kv_heads.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_decoder_layer_args<'a> {
    /// sizeof(tk_decoder_layer_args)
    struct_size: usize,
    /// T[B,S,H]
    input: Option<&'a tk_tensor>,
    /// i64[B] or i64[B,1]
    start_pos: Option<&'a tk_tensor>,
    /// f32[T,D], of tk_rope_table
    freqs: Option<&'a tk_tensor>,
    /// T[H]
    attention_norm: Option<&'a tk_tensor>,
    /// i8, K = H, N = heads*D
    wq: Option<&'a tk_tensor>,
    /// f32[heads*D]
    wq_scale: Option<&'a tk_tensor>,
    /// i8, K = H, N = kv_heads*D
    wk: Option<&'a tk_tensor>,
    /// f32[kv_heads*D]
    wk_scale: Option<&'a tk_tensor>,
    /// i8, K = H, N = kv_heads*D
    wv: Option<&'a tk_tensor>,
    /// f32[kv_heads*D]
    wv_scale: Option<&'a tk_tensor>,
    /// i8, K = heads*D, N = H
    wo: Option<&'a tk_tensor>,
    /// f32[H]
    wo_scale: Option<&'a tk_tensor>,
    /// T[H]
    ffn_norm: Option<&'a tk_tensor>,
    /// i8, K = H, N = F
    w1: Option<&'a tk_tensor>,
    /// f32[F]
    w1_scale: Option<&'a tk_tensor>,
    /// i8, K = H, N = F
    w3: Option<&'a tk_tensor>,
    /// f32[F]
    w3_scale: Option<&'a tk_tensor>,
    /// i8, K = F, N = H
    w2: Option<&'a tk_tensor>,
    /// f32[H]
    w2_scale: Option<&'a tk_tensor>,
    /// TK_FORMAT_PACKED, or TK_FORMAT_ND or TK_FORMAT_NZ, packed again in every call
    weight_format: i32,
    /// Query heads
    heads: i64,
    /// Heads of the caches
    kv_heads: i64,
    /// 1e-5
    eps: f64,
    /// ? f32[S,T]: added to the scores, on top of causality
    mask: Option<&'a tk_tensor>,
    /// K[B,kv_heads,T,D], read and written
    key_cache: Option<&'a tk_tensor>,
    /// K[B,kv_heads,T,D], read and written
    value_cache: Option<&'a tk_tensor>,
    /// T[B,S,H]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_decoder_layer_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        input: None,
        start_pos: None,
        freqs: None,
        attention_norm: None,
        wq: None,
        wq_scale: None,
        wk: None,
        wk_scale: None,
        wv: None,
        wv_scale: None,
        wo: None,
        wo_scale: None,
        ffn_norm: None,
        w1: None,
        w1_scale: None,
        w3: None,
        w3_scale: None,
        w2: None,
        w2_scale: None,
        weight_format: TK_FORMAT_PACKED,
        heads: 0,
        kv_heads: 0,
        eps: 1e-5,
        mask: None,
        key_cache: None,
        value_cache: None,
        output: None,
    };
}

fn activations<T: Element + Dtype>(a: &tk_decoder_layer_args<'_>, job: Job<'_>) -> Result<(), Error> {
    per_float!("key_cache", a.key_cache, caches::<T>(a, job))
}

fn caches<T: Element + Dtype, K: Element + Dtype>(a: &tk_decoder_layer_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::DecoderLayer {
        input: read::<T>("input", a.input)?,
        start_pos: read("start_pos", a.start_pos)?,
        freqs: read("freqs", a.freqs)?,
        attention_norm: read("attention_norm", a.attention_norm)?,
        wq: read("wq", a.wq)?,
        wq_scale: read("wq_scale", a.wq_scale)?,
        wk: read("wk", a.wk)?,
        wk_scale: read("wk_scale", a.wk_scale)?,
        wv: read("wv", a.wv)?,
        wv_scale: read("wv_scale", a.wv_scale)?,
        wo: read("wo", a.wo)?,
        wo_scale: read("wo_scale", a.wo_scale)?,
        ffn_norm: read("ffn_norm", a.ffn_norm)?,
        w1: read("w1", a.w1)?,
        w1_scale: read("w1_scale", a.w1_scale)?,
        w3: read("w3", a.w3)?,
        w3_scale: read("w3_scale", a.w3_scale)?,
        w2: read("w2", a.w2)?,
        w2_scale: read("w2_scale", a.w2_scale)?,
        weight_format: a.weight_format,
        heads: a.heads,
        kv_heads: a.kv_heads,
        eps: a.eps,
        mask: read_optional("mask", a.mask)?,
        key_cache: write::<K>("key_cache", a.key_cache)?,
        value_cache: write("value_cache", a.value_cache)?,
        output: write("output", a.output)?,
    })
}

impl Operation for tk_decoder_layer_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("input", self.input, activations(self, job))
    }
}

/// The workspace of tk_decoder_layer, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoder_layer_workspace_size(
    context: *mut tk_context,
    args: *const tk_decoder_layer_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// A layer of the decoder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoder_layer(
    context: *mut tk_context,
    args: *const tk_decoder_layer_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
