//! The aarch64 tokens.

mod neon;

pub use neon::{Neon, NeonDot};
