//! The x86-64 tokens.

/// Two functions that run what they are given with these features: one that goes into a caller which has them, and one that is called.
///
/// What keeps the latter apart is `#[cold]`, if it can be, by which all but tiny ones stay apart: generic functions that are never inlined
/// are shared with other crates, and called through a table, of which a short call finds each entry far away. Cold ones are not.
macro_rules! compiled_with {
    ($here:ident, $apart:ident, $kept:meta, $features:literal) => {
        #[target_feature(enable = $features)]
        fn $here<R>(f: impl FnOnce() -> R) -> R {
            f()
        }

        #[$kept]
        #[target_feature(enable = $features)]
        fn $apart<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
    };
}
mod amx;
mod avx2;
mod avx512;
mod folds;

#[cfg(not(miri))]
pub(crate) use amx::permitted;
pub use avx2::Avx2;
pub use avx512::{Avx512, Avx512Amx, Avx512Vnni};

/// The first or the second pair of a quad of [`even_odd`](super::even_odd): read by itself, it is broadcast from memory without an
/// instruction more.
#[inline(always)]
fn pair(x: &[i16; 4], part: usize) -> i32 {
    bytemuck::cast([x[2 * part], x[2 * part + 1]])
}
