//! The library as its callers see it: by its symbols.

mod common;
mod header;
mod programs;
