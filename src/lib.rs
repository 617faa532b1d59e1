//! Choosing the next token from a row of logits, and the int8 (W8A8) LLaMA decoder that produced it.
//!
//! * [`ops`]: what each operation is. [`Host`] runs it on the processor; a call is validated once, before anything is written.
//! * Memory is the caller's: [`Run::workspace`] says how much, [`Run::run`] works in it, aligned to 64 bytes. No call allocates;
//!   what a pool of threads does is its own ([`Rayon`]).
//! * The same inputs give the same bits on every instruction set, tile size, thread count, batch and build.
//! * A call that is refused has written nothing, and its [`Error`] has a [`Status`] and names the argument, what was expected and
//!   what was found.
//!
//! ```
//! use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::TopKTopPSample};
//!
//! let (logits, top_k, top_p, mut token) = ([0.5f32, 2.0, 1.0, 1.5], [2], [0.9f32], [0i64]);
//! let call = TopKTopPSample::new(
//!     Tensor::new([1, 4], &logits)?,
//!     Tensor::new([1], &top_k)?,
//!     Tensor::new([1], &top_p)?,
//!     TensorMut::new([1], &mut token)?,
//! );
//! let host = Host::new();
//! let mut scratch = Scratch::new(host.workspace(&call)?);
//! host.run(call, &mut scratch)?;
//! assert_eq!(token, [1]);
//! # Ok::<(), tilekern::Error>(())
//! ```
//!
//! Features: `std` and `rayon` by default, `alloc`, `ascend`; `no_std` without them.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
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
