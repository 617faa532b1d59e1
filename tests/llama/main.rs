//! Models: their files, the decoding loop, and what they write; one binary, so that what they share is compiled once.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/forward.rs"]
mod forward;
#[path = "../common/models.rs"]
mod models;

mod accuracy;
mod decoding;
mod encoding;
mod endings;
mod model_files;
mod runs;
mod stages;
mod steps;
