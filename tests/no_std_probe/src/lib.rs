//! Instantiates every kernel and every operation, to be built for targets without an operating system.
//!
//! A function without type parameters is compiled where it stands, and with it all that it calls, for every instruction set of the
//! target; a library of generics builds without compiling any of that. Nothing here is ever called, and for a target with an operating
//! system nothing is here.
#![no_std]

#[cfg(target_os = "none")]
pub mod kernels;
#[cfg(target_os = "none")]
pub mod llama;
#[cfg(target_os = "none")]
pub mod ops;
