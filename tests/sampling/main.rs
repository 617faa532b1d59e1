//! The sampling operations beside TopKTopPSample, one file each.

#[path = "../common/mod.rs"]
mod common;

mod apply_top_k_top_p;
mod apply_top_k_top_p_min_p;
mod examples;
mod exponential;
mod multinomial;
mod next_token;
mod reference;
mod statistics;
mod top_k_sampling;
mod top_k_top_p_sample_v1;
mod top_p_sampling;
mod workspace;
