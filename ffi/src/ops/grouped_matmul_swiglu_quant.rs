//! The int8 products of the experts of a layer.

use crate::args::{Args, CBool};
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::ops::quant_matmul::{TK_FORMAT_ND, bias, channel_scale};
use crate::target::{Npu, Processor, Target};
use crate::tensor::{TK_I4, TK_I8, TK_I64, TK_U64, Tensors, dtype, present, read_i4, tk_tensor, unexpected};
use core::ffi::c_void;
use tilekern::ops::{self, GroupedScale, GroupedWeight};
use tilekern::{Error, Run};

/// `group_list_type`: the end of each group.
pub const TK_GROUP_LIST_ENDS: i32 = 0;
/// `group_list_type`: the number of rows of each group.
pub const TK_GROUP_LIST_COUNTS: i32 = 1;

// The numbers of `GroupedMatmulSwigluQuant::group_list_type`.
const _: () = assert!(TK_GROUP_LIST_ENDS == 0 && TK_GROUP_LIST_COUNTS == 1);

/// Rows sorted by expert, each times its expert's weights, then SwiGLU of the two halves and quantisation:
/// c = (sum over k of x[m,k] * weight[e,k,n] + bias[e,n]) * x_scale[m] * weight_scale[e,n] + offset[e,n],
/// S[j] = c[j] / (1 + exp(-c[j])) * c[j + N/2], output_scale = max |S| / 127, output = round(S / output_scale).
/// An f32 bias is added after the scales. With output_offset: output_scale = (max S - min S) / 255,
/// output_offset = -128 - round(min S / output_scale), output = round(S / output_scale + output_offset).
/// Rows behind the last group are not written. int4 weights: weight_scale is the bits of an f32, of channels or of G groups of K / G
/// rows, bias the assist matrix, required; arithmetic 2, offset and output_offset are refused. N is even, K at most 65536; fp16_rounding
/// with output_offset is refused.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_grouped_matmul_swiglu_quant_args<'a> {
    /// sizeof(tk_grouped_matmul_swiglu_quant_args)
    struct_size: usize,
    /// i8[M,K]
    x: Option<&'a tk_tensor>,
    /// i8 or i4, see weight_format; of i4 the columns are neighbours, and an even number apart in every other dimension
    weight: Option<&'a tk_tensor>,
    /// ? i32 or f32 [E,N]
    bias: Option<&'a tk_tensor>,
    /// ? f32[E,N]
    offset: Option<&'a tk_tensor>,
    /// f32, f16 or bf16 [E,N]; int4 weights: u64 or i64, [E,N] or [E,G,N]
    weight_scale: Option<&'a tk_tensor>,
    /// f32[M]
    x_scale: Option<&'a tk_tensor>,
    /// i64[L], L <= E
    group_list: Option<&'a tk_tensor>,
    /// TK_FORMAT_ND [E,K,N], or TK_FORMAT_NZ or TK_FORMAT_PACKED
    weight_format: i32,
    /// TK_GROUP_LIST_ENDS, or TK_GROUP_LIST_COUNTS
    group_list_type: i32,
    /// 1: x_scale first, S * (1 / output_scale); 2: weight_scale first, S / output_scale
    arithmetic: i32,
    /// Whether S * (1 / output_scale) is rounded to half precision before it is rounded to an integer; false
    fp16_rounding: CBool,
    /// i8[M,N/2]
    output: Option<&'a tk_tensor>,
    /// f32[M]
    output_scale: Option<&'a tk_tensor>,
    /// ? f32[M]
    output_offset: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors; any byte is a `CBool`.
unsafe impl Args for tk_grouped_matmul_swiglu_quant_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        x: None,
        weight: None,
        bias: None,
        offset: None,
        weight_scale: None,
        x_scale: None,
        group_list: None,
        weight_format: TK_FORMAT_ND,
        group_list_type: TK_GROUP_LIST_ENDS,
        arithmetic: 1,
        fp16_rounding: CBool::FALSE,
        output: None,
        output_scale: None,
        output_offset: None,
    };
}

fn weight<'a, B: Target>(tensor: Option<&'a tk_tensor>) -> Result<GroupedWeight<'a, B>, Error> {
    let name = "weight";
    Ok(match dtype(name, tensor)? {
        TK_I4 => GroupedWeight::I4(read_i4::<B>(name, tensor)?),
        TK_I8 => GroupedWeight::I8(B::read(name, tensor)?),
        code => return Err(unexpected(name, "i8 or i4", code)),
    })
}

fn weight_scale<'a, B: Target>(tensor: Option<&'a tk_tensor>) -> Result<GroupedScale<'a, B>, Error> {
    let name = "weight_scale";
    Ok(match (dtype(name, tensor)?, tensor) {
        (TK_U64, _) => GroupedScale::Bits(B::read(name, tensor)?),
        (TK_I64, _) => GroupedScale::SignedBits(B::read(name, tensor)?),
        (_, Some(tensor)) => GroupedScale::Channel(channel_scale(tensor)?),
        (_, None) => return Err(Error::new(tilekern::Status::Null, name, "a tensor", "null")),
    })
}

impl Operation for tk_grouped_matmul_swiglu_quant_args<'_> {
    fn check_presence(&self) -> Result<(), Error> {
        present(&[("x", self.x), ("weight", self.weight), ("weight_scale", self.weight_scale), ("x_scale", self.x_scale)])?;
        present(&[("group_list", self.group_list), ("output", self.output), ("output_scale", self.output_scale)])
    }

    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        self.call_on::<Processor>(job)
    }

    fn call_npu(&self, job: Job<'_, Npu>) -> Result<(), Error> {
        self.call_on::<Npu>(job)
    }
}

impl<'a> tk_grouped_matmul_swiglu_quant_args<'a> {
    fn call_on<B>(&self, job: Job<'_, B>) -> Result<(), Error>
    where
        B: Target + Run<ops::GroupedMatmulSwigluQuant<'a, B>>,
    {
        let mut call = ops::GroupedMatmulSwigluQuant::new(
            B::read("x", self.x)?,
            weight(self.weight)?,
            weight_scale(self.weight_scale)?,
            B::read("x_scale", self.x_scale)?,
            B::read("group_list", self.group_list)?,
            B::write("output", self.output)?,
            B::write("output_scale", self.output_scale)?,
        );
        call.bias = self.bias.map(bias).transpose()?;
        call.offset = B::read_optional("offset", self.offset)?;
        call.weight_format = self.weight_format;
        call.group_list_type = self.group_list_type;
        call.arithmetic = self.arithmetic;
        call.fp16_rounding = self.fp16_rounding.get();
        B::write_into(&mut call.output_offset, "output_offset", self.output_offset)?;
        job.answer(&mut call)
    }
}

/// The workspace of tk_grouped_matmul_swiglu_quant, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_grouped_matmul_swiglu_quant_workspace_size(
    context: *mut tk_context,
    args: *const tk_grouped_matmul_swiglu_quant_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// The grouped product. `group_list` is looked at here: entries that decrease, are negative or exceed M are 161002.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_grouped_matmul_swiglu_quant(
    context: *mut tk_context,
    args: *const tk_grouped_matmul_swiglu_quant_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
