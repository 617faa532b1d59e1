//! ACL and aclnn types, the table of function pointers and its loader.
//!
//! * [`types`] and [`codes`]: what the headers of CANN call handles, enumerations and error codes.
//! * [`runtime`], [`meta`] and [`operators`]: the prototype of every symbol that is used, as a function type of the symbol's own name.
//!   A program that loads CANN and a library that stands in for it share them.
//!
//! Nothing of CANN is needed to build, and nothing is linked to it.
#![no_std]
#![allow(non_camel_case_types)]

pub mod codes;
pub mod meta;
pub mod operators;
pub mod runtime;
pub mod types;

pub use types::*;
