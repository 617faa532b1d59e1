//! The library as its callers see it: by its symbols.

mod answers;
mod common;
mod device;
mod experts;
mod header;
mod layout;
mod programs;
mod protocol;
mod validation;
