//! LLaMA models: checkpoint files, their tokenizer, and the decoding loop.

mod check_finished;
mod checkpoint;
mod decoding;
mod model;
mod plan;
mod sampling;
mod tokenizer;

pub use crate::ops::DecoderLayer;
pub use check_finished::check_finished;
pub use checkpoint::Shape;
pub use decoding::Decoding;
pub use model::{HeadKind, Model, ModelOptions};
pub use plan::DecodingConfig;
pub use sampling::RowSampling;
