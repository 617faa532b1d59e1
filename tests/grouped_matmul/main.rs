//! GroupedMatmulSwigluQuant: the vectors of its specification, a scalar definition over random calls of every mode, one result for every
//! layout, instruction set and thread count, and refusals.
#![allow(clippy::too_many_arguments)]

#[path = "../common/mod.rs"]
mod common;

mod case;
mod forms;
mod four_bits;
mod layouts;
mod longest;
mod modes;
mod reference;
mod refusals;
mod shapes;
mod vectors;
