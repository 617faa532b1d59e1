//! Every kernel, for every storage type.

use tilekern_kernels::dispatch::{Kernel, Level};
use tilekern_kernels::simd::Dot;
use tilekern_kernels::{pack, philox, rows, tiles};

/// One function for each kernel.
macro_rules! instantiate {
    ($($name:ident: $kernel:ty;)*) => {$(
        #[doc = concat!("`", stringify!($kernel), "`")]
        pub fn $name(level: Level, kernel: $kernel) -> <$kernel as Kernel>::Output {
            level.run(kernel)
        }
    )*};
}

instantiate! {
    dequant: rows::Dequant<'static>;
    dequant_rope: rows::DequantRope<'static>;
    dequant_swiglu_quant: rows::DequantSwigluQuant<'static>;
    divide: rows::Divide<'static>;
    probabilities: rows::Probabilities<'static>;
    top_k_choice: rows::TopKChoice<'static>;
    top_p_choice: rows::TopPChoice<'static>;
    best_key: rows::BestKey<'static>;
    block_masses: rows::BlockMasses<'static>;
    exponential: Exponential;
    keys_below: rows::KeysBelow<'static>;
    leader_keys: rows::LeaderKeys<'static>;
    reaches: rows::Reaches<'static>;
    weight_sum: rows::WeightSum<'static>;
    keep_largest: rows::KeepLargest<'static>;
    winner: rows::Winner<'static, f32>;
    matmul: tiles::Matmul<'static>;
    matmul_1x16x64: tiles::Tiled<'static, 1, 1, 64>;
    column_sums: pack::ColumnSums<'static>;
    swiglu_quant: rows::SwigluQuant<'static>;
    pack_rows: tiles::PackRows<'static>;
    pack_band: tiles::PackBand<'static>;
    pack_strip: tiles::PackStrip<'static>;
    pack_nibbles: tiles::PackNibbles<'static>;
    pack_columns: tiles::PackColumns<'static>;
    matmul_rows: tiles::MatmulRows<'static>;
    matmul_4x32x1024: tiles::Tiled<'static, 4, 2, 1024>;
    matmul_8x128x256: tiles::Tiled<'static, 8, 8, 256>;
    matmul_panel_by_panel: tiles::PanelByPanel<'static>;
}

/// 16 exponential numbers of a tensor.
pub struct Exponential {
    /// Whose numbers.
    pub numbers: philox::Exponential,
    /// Index of the first.
    pub first: u64,
}

impl Kernel for Exponential {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 16] {
        let mut out = [0.0; 16];
        s.store(self.numbers.at(s, self.first), &mut out);
        out
    }
}

/// The kernels that are generic over the storage type.
macro_rules! per_dtype {
    ($($module:ident: $t:ty;)*) => {$(
        #[doc = concat!("Rows of `", stringify!($t), "`.")]
        pub mod $module {
            use super::*;

            instantiate! {
                first_max: rows::FirstMax<'static, $t>;
                top_k_16: rows::TopK<'static, $t, 16>;
                top_k_64: rows::TopK<'static, $t, 64>;
                sample_v1: rows::SampleV1<'static, $t>;
                sample: rows::InPlace<'static, $t>;
                sample_32: rows::Blocked<'static, $t, 32>;
                rms_norm: rows::RmsNorm<'static, $t>;
                rms_norm_quant: rows::RmsNormQuant<'static, $t>;
                quantize: rows::Quantize<'static, $t>;
                group_swiglu_quant: rows::GroupSwigluQuant<'static, $t>;
                dequant_residual: rows::DequantResidual<'static, $t>;
                dequant_residual_rms_norm_quant: rows::DequantResidualRmsNormQuant<'static, $t>;
                exponentials: rows::Exponentials<'static, $t>;
                apply_top_k_top_p: rows::ApplyTopKTopP<'static, $t>;
                keep_prefix: rows::KeepPrefix<'static, $t>;
                narrow: rows::Narrow<'static, $t>;
                project: rows::Project<'static, $t>;
                widen: rows::Widen<'static, $t>;
                scale: rows::Scale<'static, $t>;
                attention: tiles::Attention<'static, $t>;
                pack_floats: tiles::PackFloats<'static, $t>;
                pack_float_columns: tiles::PackFloatColumns<'static, $t>;
                attention_4: tiles::KvTiled<'static, $t, 4>;
            }
        }
    )*};
}
per_dtype! {
    of_f32: f32;
    of_f16: half::f16;
    of_bf16: half::bf16;
}
