//! Weights into the packed format.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::memory::answer;
use crate::ops::quant_matmul::TK_FORMAT_ND;
use crate::target::Processor;
use crate::tensor::{TK_BF16, TK_F16, TK_F32, TK_I4, TK_I8, Tensors, dtype, read, read_i4, tk_tensor, unexpected, write};
use core::ffi::c_void;
use tilekern::kernels::pack::packed_bytes;
use tilekern::ops::{self, UnpackedWeight};
use tilekern::{Error, Status};

/// Packs weights once, for every call and every machine. Floats are quantised by column: weight_scale = max |weight| / 127,
/// q = round(weight / weight_scale).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_pack_weight_args<'a> {
    /// sizeof(tk_pack_weight_args)
    struct_size: usize,
    /// [E,K,N] or [K,N]: i8, i4 (N even, neighbouring columns in a byte), or f32, f16 or bf16. K is at most 65536
    weight: Option<&'a tk_tensor>,
    /// How the weight lies: TK_FORMAT_ND, or TK_FORMAT_NZ (i8 and i4)
    weight_format: i32,
    /// i8[bytes], exactly what tk_pack_weight_bytes says
    packed: Option<&'a tk_tensor>,
    /// ? f32[E,N], of one matrix also f32[N]; required for floats
    weight_scale: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_pack_weight_args<'_> {
    const INIT: Self =
        Self { struct_size: size_of::<Self>(), weight: None, weight_format: TK_FORMAT_ND, packed: None, weight_scale: None };
}

impl Operation for tk_pack_weight_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        let name = "weight";
        let weight: UnpackedWeight<'_, Processor> = match dtype(name, self.weight)? {
            TK_I8 => UnpackedWeight::I8(read(name, self.weight)?),
            TK_I4 => UnpackedWeight::I4(read_i4::<Processor>(name, self.weight)?),
            TK_F32 => UnpackedWeight::F32(read(name, self.weight)?),
            TK_F16 => UnpackedWeight::F16(read(name, self.weight)?),
            TK_BF16 => UnpackedWeight::BF16(read(name, self.weight)?),
            code => return Err(unexpected(name, "i8, i4, f32, f16 or bf16", code)),
        };
        let mut call = ops::PackWeight::new(weight, write("packed", self.packed)?);
        call.weight_format = self.weight_format;
        Processor::write_into(&mut call.weight_scale, "weight_scale", self.weight_scale)?;
        job.answer(&mut call)
    }
}

/// The length of a packed [e,k,n], in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_pack_weight_bytes(e: i64, k: i64, n: i64, bytes: *mut usize) -> i32 {
    let body = |_| {
        // SAFETY: as promised by the caller.
        let bytes = unsafe { answer("bytes", bytes)? };
        let size = |name, size: i64| {
            let found = usize::try_from(size).ok().filter(|&size| size > 0);
            found.ok_or_else(|| Error::new(Status::Invalid, name, "at least 1", size))
        };
        let too_large = || Error::new(Status::Invalid, "n", "a size that fits in memory", "an overflow");
        *bytes = packed_bytes(size("e", e)?, size("k", k)?, size("n", n)?).ok_or_else(too_large)?;
        Ok(())
    };
    // SAFETY: no context.
    unsafe { enter::enter(core::ptr::null_mut(), body) }
}

/// The workspace of tk_pack_weight, in bytes: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_pack_weight_workspace_size(
    context: *mut tk_context,
    args: *const tk_pack_weight_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Packs a weight.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_pack_weight(
    context: *mut tk_context,
    args: *const tk_pack_weight_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
