//! The symbols that C sees: each reads its pointers, and leaves the rest to safe code.

mod descriptors;
mod device;
mod events;
mod executors;
mod gather;
mod grouped;
mod lists;
mod memory;
mod prototypes;
mod random;
mod sampling;
mod streams;
mod system;
