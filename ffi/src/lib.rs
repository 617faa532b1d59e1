//! The C ABI of tilekern: `include/tilekern.h` is made from this crate.
//!
//! Types and functions have the names that C sees. A function of an operation reads its struct ([`args`]), turns `tk_tensor` into
//! the library's tensors ([`tensor`]), and lets the [`target`] run inside [`enter`], which is the only way in: it sets the
//! floating-point environment, catches panics and reports. No call allocates or locks, but the first for an NPU, which looks for CANN, and
//! grouped products there; the processor is looked at once.
#![allow(non_camel_case_types)]

mod args;
mod context;
mod decoding;
mod enter;
mod environment;
mod memory;
mod model;
mod ops;
mod pool;
mod status;
mod target;
mod tensor;
