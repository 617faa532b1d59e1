//! The aarch64 tokens.

#[cfg(not(miri))]
mod detect;
mod neon;

#[cfg(not(miri))]
pub(crate) use detect::has_dot_product;
pub use neon::{Neon, NeonDot};
