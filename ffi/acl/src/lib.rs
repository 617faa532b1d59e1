//! ACL and aclnn types, the table of function pointers and its loader.
//!
//! * [`types`] and [`codes`]: what the headers of CANN call handles, enumerations and error codes.
//! * [`runtime`], [`meta`] and [`operators`]: the prototype of every symbol that is used, as a function type of the symbol's own
//!   name. A program that loads CANN and a library that stands in for it share them.
//! * [`Table`]: the functions themselves; `load` (feature `std`) fills it with dlopen.
//! * [`Device`], [`Stream`], [`Buffer`], [`Event`]: the runtime, so that nothing outlives what it hangs on.
//!
//! Nothing of CANN is needed to build, and nothing is linked to it. `no_std` without the feature `std`.
#![no_std]
#![allow(non_camel_case_types)]
// An error carries the library's own message, and is made where nothing is fast any more.
#![allow(clippy::result_large_err)]

#[cfg(feature = "std")]
extern crate std;

pub mod codes;
#[cfg(feature = "std")]
pub mod load;
#[doc(hidden)]
pub mod lock;
pub mod meta;
pub mod operators;
pub mod runtime;
pub mod table;
pub mod types;

mod buffer;
mod device;
mod error;
mod event;
mod late;
mod stream;

pub use buffer::{Buffer, Usage};
pub use device::{Device, Place};
pub use error::{Error, Message};
pub use event::Event;
pub use stream::Stream;
pub use table::{Functions, Table};
pub use types::*;
