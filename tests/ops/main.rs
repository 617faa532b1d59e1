//! The operations of the decoder, one file each; one binary, so that what they share is compiled once.

#[path = "../common/mod.rs"]
mod common;

mod attention;
mod decoder_layer;
mod dequant_residual;
mod dequant_swiglu_quant;
mod dequant_transpose;
mod embedding_lookup;
mod layer_steps;
mod pack_weight;
mod pools;
mod quant_matmul;
mod quantize_rows;
mod remove_prompt_tokens;
mod rms_norm;
mod rope_table;
mod store_kv_cache;
mod update_logits;
