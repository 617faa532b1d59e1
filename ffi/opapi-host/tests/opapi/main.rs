//! The library as its callers see it: by its symbols.

mod alive;
mod answers;
mod common;
mod device;
mod experts;
mod header;
mod layout;
mod loader;
mod memory;
mod programs;
mod protocol;
mod threads;
mod validation;
