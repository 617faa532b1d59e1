//! The x86-64 tokens.

mod amx;
mod avx2;
mod avx512;
mod folds;

#[cfg(not(miri))]
pub(crate) use amx::permitted;
pub use avx2::Avx2;
pub use avx512::{Avx512, Avx512Amx, Avx512Vnni};
