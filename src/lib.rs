//! Choosing the next token from a row of logits, and the int8 (W8A8) LLaMA decoder that produced it.
//!
//! * [`ops`]: what each operation is. [`Host`] runs it on the processor; a call is validated once, before anything is written.
//! * Memory is the caller's: [`Run::workspace`] says how much, [`Run::run`] works in it. No call allocates.
//! * The same inputs give the same bits on every instruction set, tile size, thread count, batch and build.
//!
//! `no_std` without the default features.
#![no_std]

#[cfg(feature = "std")]
extern crate std;

pub mod llama;
pub mod ops;

#[cfg(feature = "ascend")]
mod ascend;
mod backend;
mod error;
mod host;
mod parallel;
mod scratch;
mod tensor;

#[cfg(all(feature = "ascend", feature = "alloc"))]
pub use ascend::OrHost;
#[cfg(feature = "ascend")]
pub use ascend::{Ascend, DeviceScratch, DeviceTensor, DeviceTensorMut, DeviceType};
pub use backend::{Backend, Run};
pub use error::{Error, Status, Value};
pub use half::{bf16, f16};
pub use host::Host;
#[cfg(feature = "rayon")]
pub use parallel::Rayon;
pub use parallel::{ParallelFor, Serial};
#[cfg(feature = "alloc")]
pub use scratch::Scratch;
pub use tensor::{Describe, Dims, Location, MAX_RANK, Tensor, TensorMut};
#[cfg(feature = "ascend")]
pub use tilekern_acl as acl;
pub use tilekern_kernels as kernels;
pub use tilekern_kernels::dispatch::Isa;
pub use tilekern_kernels::element::Element;

/// The Rust in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
