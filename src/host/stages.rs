//! Room for rows that are not contiguous.

use crate::scratch::Pieces;
use crate::tensor::Describe;

/// Bytes of a worker's memory within which there is room for every row: a query then answers the same for all strides.
const BOUND: usize = 256 << 10;

/// The rows that the tensors of a call have to be brought together for, one of each at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct Stages {
    /// Bytes for a row of every tensor.
    every: usize,
    /// Bytes for those that are not contiguous.
    needed: usize,
}

impl Stages {
    /// A tensor with elements of type `T`.
    pub fn of<T>(self, tensor: Option<&impl Describe>) -> Stages {
        let Some(dims) = tensor.map(Describe::dims) else { return self };
        let every = Pieces::bytes::<T>(dims.last().0);
        let needed = if dims.has_contiguous_rows() { 0 } else { every };
        Stages { every: self.every.saturating_add(every), needed: self.needed.saturating_add(needed) }
    }

    /// Bytes for them beside `others`: long rows take room only where they need it, so that a worker's memory does not grow with them.
    pub fn beside(self, others: usize) -> usize {
        others.saturating_add(if others.saturating_add(self.every) <= BOUND { self.every } else { self.needed })
    }
}
