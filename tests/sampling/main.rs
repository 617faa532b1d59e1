//! The sampling operations beside TopKTopPSample, one file each.

#[path = "../common/mod.rs"]
mod common;

mod exponential;
mod multinomial;
mod statistics;
