//! Keys and values into the cache.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// Token s of batch b goes to position start_pos[b] + s of the caches, whose dtype K is f32, f16 or bf16. A position outside [0,T):
/// 161002, and nothing is written.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_store_kv_cache_args<'a> {
    /// sizeof(tk_store_kv_cache_args)
    struct_size: usize,
    /// f32[B,KV,S,D]
    key: Option<&'a tk_tensor>,
    /// f32[B,KV,S,D]
    value: Option<&'a tk_tensor>,
    /// i64[B] or i64[B,1]
    start_pos: Option<&'a tk_tensor>,
    /// K[B,KV,T,D]
    key_cache: Option<&'a tk_tensor>,
    /// K[B,KV,T,D]
    value_cache: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_store_kv_cache_args<'_> {
    const INIT: Self =
        Self { struct_size: size_of::<Self>(), key: None, value: None, start_pos: None, key_cache: None, value_cache: None };
}

fn store_kv_cache<K: Element + Dtype>(a: &tk_store_kv_cache_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::StoreKvCache {
        key: read("key", a.key)?,
        value: read("value", a.value)?,
        start_pos: read("start_pos", a.start_pos)?,
        key_cache: write::<K>("key_cache", a.key_cache)?,
        value_cache: write("value_cache", a.value_cache)?,
    })
}

impl Operation for tk_store_kv_cache_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("key_cache", self.key_cache, store_kv_cache(self, job))
    }
}

/// The workspace of tk_store_kv_cache, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_store_kv_cache_workspace_size(
    context: *mut tk_context,
    args: *const tk_store_kv_cache_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// New keys and values into the caches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_store_kv_cache(
    context: *mut tk_context,
    args: *const tk_store_kv_cache_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
