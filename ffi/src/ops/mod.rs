//! One file for each family of operations: the struct that C fills, its defaults, and the two functions.

mod apply_top_k_top_p;
mod apply_top_k_top_p_min_p;
mod attention;
mod decoder_layer;
mod dequant_residual;
mod dequant_swiglu_quant;
mod dequant_transpose;
mod embedding_lookup;
mod exponential;
mod grouped_matmul_swiglu_quant;
mod multinomial;
mod pack_weight;
mod quant_matmul;
mod quantize_rows;
mod remove_prompt_tokens;
mod rms_norm;
mod rope_table;
mod store_kv_cache;
mod top_k_sampling;
mod top_k_top_p_sample;
mod top_k_top_p_sample_v1;
mod top_p_sampling;
mod update_logits;
