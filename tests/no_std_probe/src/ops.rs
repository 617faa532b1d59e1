//! Every operation on the host, as it is without `std` and without an allocator.

use tilekern::{Error, Host, Run, Serial, ops};

type Serially = Host<Serial>;

/// One function for each operation: its workspace, then its run.
macro_rules! instantiate {
    ($($name:ident: $call:ty;)*) => {$(
        #[doc = concat!("`", stringify!($call), "`")]
        pub fn $name(host: &Serially, call: $call, scratch: &mut [u8]) -> Result<usize, Error> {
            let bytes = host.workspace(&call)?.size();
            host.run(call, scratch).map(|()| bytes)
        }
    )*};
}

instantiate! {
    dequant_transpose: ops::DequantTranspose<'static, Serially>;
    dequant_rope_transpose: ops::DequantRopeTranspose<'static, Serially>;
    dequant_swiglu_quant: ops::DequantSwigluQuant<'static, Serially>;
    grouped_matmul_swiglu_quant: ops::GroupedMatmulSwigluQuant<'static, Serially>;
    pack_weight: ops::PackWeight<'static, Serially>;
    quant_matmul: ops::QuantMatmul<'static, Serially>;
    multinomial: ops::Multinomial<'static, Serially, f64>;
    rope_table: ops::RopeTable<'static, Serially>;
    update_logits: ops::UpdateLogits<'static, Serially>;
    remove_prompt_tokens: ops::RemovePromptTokens<'static, Serially>;
    top_k_sampling: ops::TopKSampling<'static, Serially>;
    top_p_sampling: ops::TopPSampling<'static, Serially>;
}

/// The operations that are generic over the dtype.
macro_rules! per_dtype {
    ($($module:ident: $t:ty;)*) => {$(
        #[doc = concat!("Operations on `", stringify!($t), "`.")]
        pub mod $module {
            use super::*;

            instantiate! {
                top_k_top_p_sample_v1: ops::TopKTopPSampleV1<'static, Serially, $t>;
                top_k_top_p_sample: ops::TopKTopPSample<'static, Serially, $t>;
                rms_norm: ops::RmsNorm<'static, Serially, $t>;
                rms_norm_quant: ops::RmsNormQuant<'static, Serially, $t>;
                quantize_rows: ops::QuantizeRows<'static, Serially, $t>;
                dequant_residual: ops::DequantResidual<'static, Serially, $t>;
                dequant_residual_rms_norm_quant: ops::DequantResidualRmsNormQuant<'static, Serially, $t>;
                embedding_lookup: ops::EmbeddingLookup<'static, Serially, $t>;
                exponential: ops::Exponential<'static, Serially, $t>;
                multinomial: ops::Multinomial<'static, Serially, $t>;
                apply_top_k_top_p: ops::ApplyTopKTopP<'static, Serially, $t>;
                apply_top_k_top_p_min_p: ops::ApplyTopKTopPMinP<'static, Serially, $t>;
                attention: ops::Attention<'static, Serially, $t>;
                decoder_layer: ops::DecoderLayer<'static, Serially, $t, $t>;
                decoder_layer_f32_cache: ops::DecoderLayer<'static, Serially, $t, f32>;
                store_kv_cache: ops::StoreKvCache<'static, Serially, $t>;
            }
        }
    )*};
}
per_dtype! {
    of_f32: f32;
    of_f16: half::f16;
    of_bf16: half::bf16;
}
