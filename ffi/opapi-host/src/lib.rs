//! The aclnn and ACL symbols implemented on the host: a program written for CANN runs without an NPU.
//!
//! * [`api`] has the symbols. Handles are numbers in a [`table`], looked up and never dereferenced; memory is what [`memory`] gave,
//!   with its bounds; so a handle that was destroyed and a buffer that was freed are errors with a status and a sentence.
//! * A [`stream`] runs work in order on a thread of its own. What tensors contain is first seen there, and reported by the next
//!   synchronise.
//! * [`operators`] are the host's own, called through the two phases of an [`executor`].
#![allow(non_camel_case_types, non_snake_case)]

mod api;
mod arguments;
mod boundary;
mod context;
mod copy;
mod descriptor;
#[path = "../../src/environment.rs"]
mod environment;
mod event;
mod executor;
mod failure;
mod memory;
mod operand;
mod operators;
mod stream;
mod system;
mod table;
