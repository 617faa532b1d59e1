//! What each operation is: one struct for a call, with the tensors and attributes as its fields, and the check that every backend
//! shares. The fields carry the names of the C structs; `new` takes the required ones and gives the others their defaults.

pub(crate) mod check;
mod heads;

mod apply_top_k_top_p;
pub use apply_top_k_top_p::ApplyTopKTopP;

mod apply_top_k_top_p_min_p;
pub use apply_top_k_top_p_min_p::ApplyTopKTopPMinP;

mod attention;
pub use attention::Attention;
pub(crate) use attention::Heads;

mod decoder_layer;
pub(crate) use decoder_layer::LayerSizes;
pub use decoder_layer::{DecoderLayer, LayerWeights};

mod quant_matmul;
pub(crate) use quant_matmul::Product3;
pub use quant_matmul::{Bias, ChannelScale, Product, QuantMatmul};

mod grouped_matmul_swiglu_quant;
pub(crate) use grouped_matmul_swiglu_quant::GroupedSizes;
pub use grouped_matmul_swiglu_quant::{GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};

mod pack_weight;
pub use pack_weight::{PackWeight, UnpackedWeight};

mod weight;
pub use weight::{FORMAT_ND, FORMAT_NZ, FORMAT_PACKED, MAX_K};
pub(crate) use weight::{WeightSizes, packed_header, weight};

mod rms_norm;
pub use rms_norm::{RmsNorm, RmsNormQuant};

mod top_k_top_p_sample;
pub use top_k_top_p_sample::{Noise, PostSample, TopKTopPSample};

mod exponential;
pub use exponential::Exponential;

mod multinomial;
pub(crate) use multinomial::Draws;
pub use multinomial::{Multinomial, Weight};

mod top_k_sampling;
pub use top_k_sampling::TopKSampling;

mod top_p_sampling;
pub use top_p_sampling::TopPSampling;

mod update_logits;
pub(crate) use update_logits::LogitSizes;
pub use update_logits::UpdateLogits;

mod top_k_top_p_sample_v1;
pub use top_k_top_p_sample_v1::TopKTopPSampleV1;

mod dequant_transpose;
pub use dequant_transpose::{DequantRopeTranspose, DequantTranspose};

mod store_kv_cache;
pub use store_kv_cache::StoreKvCache;

mod embedding_lookup;
pub use embedding_lookup::EmbeddingLookup;

mod next_token;
pub(crate) use next_token::NextToken;

mod remove_prompt_tokens;
pub(crate) use remove_prompt_tokens::RemovalSizes;
pub use remove_prompt_tokens::RemovePromptTokens;

mod rope_table;
pub use rope_table::RopeTable;

mod quantize_rows;
pub use quantize_rows::QuantizeRows;

mod dequant_residual;
pub use dequant_residual::{DequantResidual, DequantResidualRmsNormQuant};

mod dequant_swiglu_quant;
pub use dequant_swiglu_quant::DequantSwigluQuant;

pub(crate) use embedding_lookup::LookupSizes;
pub(crate) use heads::HeadSizes;
pub(crate) use quantize_rows::QuantizeSizes;
pub(crate) use rms_norm::Rows;
pub(crate) use top_k_top_p_sample::{Batch, Draw};
