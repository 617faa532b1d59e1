//! Work over the threads of whoever calls: a fixed number of tasks, each task its own rows.
//!
//! The cut into tasks depends on shapes and, where more tasks would cost, on the number of workers. No result depends on the cut.

mod loops;
mod pool;
mod split;
#[cfg(all(test, feature = "std"))]
mod tests;

pub(crate) use loops::{Block, Cut, blocks, grain, rows, strips, tiles};
#[cfg(feature = "rayon")]
pub use pool::Rayon;
pub use pool::{ParallelFor, Serial};
pub(crate) use split::{ByBand, ByRow, Column, Columns, From, Split};
