//! TopKTopPSample.

#[path = "../common/mod.rs"]
mod common;

mod checks;
mod examples;
mod reference;
mod rows;
