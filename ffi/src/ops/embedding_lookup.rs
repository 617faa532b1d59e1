//! Rows of the embedding table.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::tensor::{Dtype, per_float, read, tk_tensor, write};
use core::ffi::c_void;
use tilekern::{Element, Error, ops};

/// output[b,s] = table[ids[b,s]] * scale. T is f32, f16 or bf16. An id outside [0,V): 161002, and nothing is written.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_embedding_lookup_args<'a> {
    /// sizeof(tk_embedding_lookup_args)
    struct_size: usize,
    /// i32[B,S]
    ids: Option<&'a tk_tensor>,
    /// T[V,H]
    table: Option<&'a tk_tensor>,
    /// 1
    scale: f64,
    /// T[B,S,H]
    output: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_embedding_lookup_args<'_> {
    const INIT: Self = Self { struct_size: size_of::<Self>(), ids: None, table: None, scale: 1.0, output: None };
}

fn embedding_lookup<T: Element + Dtype>(a: &tk_embedding_lookup_args<'_>, job: Job<'_>) -> Result<(), Error> {
    job.answer(&mut ops::EmbeddingLookup {
        ids: read("ids", a.ids)?,
        table: read::<T>("table", a.table)?,
        scale: a.scale,
        output: write("output", a.output)?,
    })
}

impl Operation for tk_embedding_lookup_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        per_float!("table", self.table, embedding_lookup(self, job))
    }
}

/// The workspace of tk_embedding_lookup, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_embedding_lookup_workspace_size(
    context: *mut tk_context,
    args: *const tk_embedding_lookup_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The rows of a table that ids name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_embedding_lookup(
    context: *mut tk_context,
    args: *const tk_embedding_lookup_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
