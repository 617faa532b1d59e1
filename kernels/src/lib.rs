//! Raw rows and tiles for the last mile of LLM inference, one body for every instruction set.
//!
//! This crate knows no shapes and no backends: a kernel takes slices of one row, or one tile, and is generic over the storage type
//! ([`element::Element`]) and the instruction set ([`simd::Simd`], [`simd::Dot`]). [`dispatch::Level::run`] runs it on an
//! instruction set that the processor was found to have. The scalar definition of each kernel is in [`mod@reference`]; every
//! instruction set gives the same bits.
//!
//! `no_std`, no allocation. Little-endian only, and on 32-bit ARM without NEON, whose arithmetic flushes subnormals.
#![no_std]

#[cfg(target_endian = "big")]
compile_error!("packed weights and bit casts assume a little-endian target");

#[cfg(all(target_arch = "x86", not(target_feature = "sse2")))]
compile_error!("without SSE2 arithmetic is that of the x87, which rounds twice");

#[cfg(test)]
extern crate std;

pub mod dispatch;
pub mod element;
pub mod math;
pub mod pack;
mod per_element;
pub mod philox;
pub mod reference;
pub mod rows;
pub mod simd;
pub mod tiles;
