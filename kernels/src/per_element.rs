//! Kernels over a storage type, compiled once for each, in this crate: what calls them is generic over the type, and would compile them
//! in every program and every test again.

use crate::dispatch::Level;
use crate::rows::{
    ApplyTopKTopP, Choice, DequantResidual, DequantResidualRmsNormQuant, Exponentials, FirstMax, GroupSwigluQuant, InPlace,
    KeepPrefix, Narrow, Project, Quantize, RmsNorm, RmsNormQuant, SampleV1, Scale, Summary, Widen, Winner,
};
use crate::tiles::{Attention, PackFloatColumns, PackFloats};

macro_rules! compiled {
    ($($name:ident: $kernel:ident => $output:ty;)*) => {
        /// What every storage type has compiled. The module is private: no other crate can add a type.
        pub trait Compiled: Sized {
            $(#[doc = concat!("Runs [`", stringify!($kernel), "`].")]
            fn $name(level: Level, kernel: $kernel<'_, Self>) -> $output;)*
        }
        compiled! { of f32: $($name: $kernel => $output;)* }
        compiled! { of half::f16: $($name: $kernel => $output;)* }
        compiled! { of half::bf16: $($name: $kernel => $output;)* }
    };
    (of $element:ty: $($name:ident: $kernel:ident => $output:ty;)*) => {
        impl Compiled for $element {
            $(fn $name(level: Level, kernel: $kernel<'_, Self>) -> $output {
                level.run_here(kernel)
            })*
        }
    };
}

compiled! {
    run_rms_norm: RmsNorm => ();
    run_rms_norm_quant: RmsNormQuant => f32;
    run_dequant_residual: DequantResidual => ();
    run_dequant_residual_rms_norm_quant: DequantResidualRmsNormQuant => f32;
    run_quantize: Quantize => f32;
    run_narrow: Narrow => ();
    run_widen: Widen => ();
    run_scale: Scale => ();
    run_project: Project => ();
    run_keep_prefix: KeepPrefix => bool;
    run_exponentials: Exponentials => ();
    run_first_max: FirstMax => (usize, Summary);
    run_group_swiglu_quant: GroupSwigluQuant => [f32; 2];
    run_attention: Attention => ();
    run_pack_floats: PackFloats => ();
    run_pack_float_columns: PackFloatColumns => ();
    run_sample: InPlace => Choice;
    run_sample_v1: SampleV1 => Choice;
    run_apply_top_k_top_p: ApplyTopKTopP => ();
    run_winner: Winner => Option<usize>;
}

/// In the `impl` of a [`Kernel`](crate::dispatch::Kernel) over a storage type `T`: the method that has it compiled.
macro_rules! per_element {
    ($name:ident) => {
        fn on(self, level: $crate::dispatch::Level) -> Self::Output {
            T::$name(level, self)
        }
    };
}
pub(crate) use per_element;
