//! The int8 product.

use crate::args::Args;
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::target::{Processor, Target};
use crate::tensor::{TK_BF16, TK_F16, TK_F32, TK_I32, Tensors, dtype, read, read_optional, tk_tensor, unexpected, write};
use core::ffi::c_void;
use tilekern::Error;
use tilekern::ops::{self, Bias, ChannelScale, Product};

/// `weight_format`: plain, `[E,K,N]` or `[K,N]`.
pub const TK_FORMAT_ND: i32 = 2;
/// `weight_format`: the blocks of ACL, `[E,N/32,K/16,16,32]` or `[N/32,K/16,16,32]`; of i4 `[E,N/64,K/16,16,64]`.
pub const TK_FORMAT_NZ: i32 = 29;
/// `weight_format`: packed by this library, i8[bytes].
pub const TK_FORMAT_PACKED: i32 = 1000;

// Written as numbers above: cbindgen evaluates nothing.
const _: () = assert!(TK_FORMAT_ND == ops::FORMAT_ND && TK_FORMAT_NZ == ops::FORMAT_NZ && TK_FORMAT_PACKED == ops::FORMAT_PACKED);

/// out = (sum over k of x[m,k] * weight[k,n] + bias[n]) * x_scale[m] * weight_scale[n]. The sum is exact; an i32 bias is added to it, an
/// f32 bias after the scales. A NULL scale counts as 1. An i32 `out` is the sum itself, saturated: no scales, no f32 bias. K is at most
/// 65536.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_quant_matmul_args<'a> {
    /// sizeof(tk_quant_matmul_args)
    struct_size: usize,
    /// i8[M,K]
    x: Option<&'a tk_tensor>,
    /// i8, see weight_format
    weight: Option<&'a tk_tensor>,
    /// ? f32, f16 or bf16 [N]
    weight_scale: Option<&'a tk_tensor>,
    /// ? f32[M]
    x_scale: Option<&'a tk_tensor>,
    /// ? i32 or f32 [N]
    bias: Option<&'a tk_tensor>,
    /// TK_FORMAT_ND, or TK_FORMAT_NZ or TK_FORMAT_PACKED
    weight_format: i32,
    /// f32, f16, bf16 or i32 [M,N]
    out: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_quant_matmul_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        x: None,
        weight: None,
        weight_scale: None,
        x_scale: None,
        bias: None,
        weight_format: TK_FORMAT_ND,
        out: None,
    };
}

pub(crate) fn channel_scale<'a, B: Target>(tensor: &'a tk_tensor) -> Result<ChannelScale<'a, B>, Error> {
    let (name, tensor) = ("weight_scale", Some(tensor));
    Ok(match dtype(name, tensor)? {
        TK_F32 => ChannelScale::F32(B::read(name, tensor)?),
        TK_F16 => ChannelScale::F16(B::read(name, tensor)?),
        TK_BF16 => ChannelScale::BF16(B::read(name, tensor)?),
        code => return Err(unexpected(name, "f32, f16 or bf16", code)),
    })
}

pub(crate) fn bias<'a, B: Target>(tensor: &'a tk_tensor) -> Result<Bias<'a, B>, Error> {
    let (name, tensor) = ("bias", Some(tensor));
    Ok(match dtype(name, tensor)? {
        TK_I32 => Bias::I32(B::read(name, tensor)?),
        TK_F32 => Bias::F32(B::read(name, tensor)?),
        code => return Err(unexpected(name, "i32 or f32", code)),
    })
}

fn out<'a>(tensor: Option<&'a tk_tensor>) -> Result<Product<'a, Processor>, Error> {
    let name = "out";
    Ok(match dtype(name, tensor)? {
        TK_F32 => Product::F32(write(name, tensor)?),
        TK_F16 => Product::F16(write(name, tensor)?),
        TK_BF16 => Product::BF16(write(name, tensor)?),
        TK_I32 => Product::I32(write(name, tensor)?),
        code => return Err(unexpected(name, "f32, f16, bf16 or i32", code)),
    })
}

impl Operation for tk_quant_matmul_args<'_> {
    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        job.answer(&mut ops::QuantMatmul {
            x: read("x", self.x)?,
            weight: read("weight", self.weight)?,
            weight_scale: self.weight_scale.map(channel_scale).transpose()?,
            x_scale: read_optional("x_scale", self.x_scale)?,
            bias: self.bias.map(bias).transpose()?,
            weight_format: self.weight_format,
            out: out(self.out)?,
        })
    }
}

/// The workspace of tk_quant_matmul, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_quant_matmul_workspace_size(
    context: *mut tk_context,
    args: *const tk_quant_matmul_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The int8 product.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_quant_matmul(
    context: *mut tk_context,
    args: *const tk_quant_matmul_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
