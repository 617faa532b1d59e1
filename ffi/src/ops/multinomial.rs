//! Drawing from rows of weights.

use crate::args::{Args, CBool};
use crate::context::tk_context;
use crate::enter::{self, Job, Operation};
use crate::target::{Npu, Processor, Target};
use crate::tensor::{Dtype, TK_BF16, TK_F16, TK_F32, TK_F64, Tensors, dtype, present, tk_tensor, unexpected};
use core::ffi::c_void;
use tilekern::ops::{self, Weight};
use tilekern::{Error, Run, bf16, f16};

/// Indices drawn from rows of weights, which are taken as f32 and need not sum to 1; negative ones and NaN count as 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_multinomial_args<'a> {
    /// sizeof(tk_multinomial_args)
    struct_size: usize,
    /// f32, f16, bf16 or f64, [N,C] or [C]; C at most 2^24
    probs: Option<&'a tk_tensor>,
    /// 1; at most C without replacement
    num_samples: i64,
    /// true: whether an index may come again.
    replacement: CBool,
    /// 0
    seed: i64,
    /// 0: four words make a counter, 4n + 1 to 4n + 4 the same. Calls share no number where offsets are 4 apart for each 638 976
    /// elements of probs, 4 * ceil(elements / 638976); where several are drawn with replacement, 4 apart.
    offset: i64,
    /// i64[N,num_samples], or [num_samples] for [C]
    out: Option<&'a tk_tensor>,
}

// SAFETY: `struct_size` comes first, this is the first size, and a C program assigns NULL or tensors.
unsafe impl Args for tk_multinomial_args<'_> {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        probs: None,
        num_samples: 1,
        replacement: CBool::TRUE,
        seed: 0,
        offset: 0,
        out: None,
    };
}

fn multinomial<'a, B, T: Weight + Dtype>(a: &tk_multinomial_args<'a>, job: Job<'_, B>) -> Result<(), Error>
where
    B: Target + Run<ops::Multinomial<'a, B, T>>,
{
    job.answer(&mut ops::Multinomial {
        probs: B::read("probs", a.probs)?,
        num_samples: a.num_samples,
        replacement: a.replacement.get(),
        seed: a.seed,
        offset: a.offset,
        out: B::write("out", a.out)?,
    })
}

impl Operation for tk_multinomial_args<'_> {
    fn check_presence(&self) -> Result<(), Error> {
        present(&[("probs", self.probs), ("out", self.out)])
    }

    fn call(&self, job: Job<'_>) -> Result<(), Error> {
        self.call_on::<Processor>(job)
    }

    fn call_npu(&self, job: Job<'_, Npu>) -> Result<(), Error> {
        self.call_on::<Npu>(job)
    }
}

impl<'a> tk_multinomial_args<'a> {
    fn call_on<B>(&self, job: Job<'_, B>) -> Result<(), Error>
    where
        B: Target
            + Run<ops::Multinomial<'a, B, f32>>
            + Run<ops::Multinomial<'a, B, f16>>
            + Run<ops::Multinomial<'a, B, bf16>>
            + Run<ops::Multinomial<'a, B, f64>>,
    {
        match dtype("probs", self.probs)? {
            TK_F32 => multinomial::<B, f32>(self, job),
            TK_F16 => multinomial::<B, f16>(self, job),
            TK_BF16 => multinomial::<B, bf16>(self, job),
            TK_F64 => multinomial::<B, f64>(self, job),
            code => Err(unexpected("probs", "f32, f16, bf16 or f64", code)),
        }
    }
}

/// The workspace of tk_multinomial, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_multinomial_workspace_size(
    context: *mut tk_context,
    args: *const tk_multinomial_args<'_>,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::query(context, args, bytes) }
}

/// Indices drawn from rows of weights.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_multinomial(
    context: *mut tk_context,
    args: *const tk_multinomial_args<'_>,
    workspace: *mut c_void,
    workspace_bytes: usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { enter::run(context, args, workspace, workspace_bytes) }
}
