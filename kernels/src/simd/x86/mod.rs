//! The x86-64 tokens.

mod avx2;
mod avx512;
mod folds;

pub use avx2::Avx2;
pub use avx512::{Avx512, Avx512Vnni};
