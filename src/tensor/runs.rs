//! The tokens of a tensor `[B,S,H]` as rows of matrices: one matrix where all rows are one pitch apart, else one a batch row.

use super::{Dims, Tensor, TensorMut};

/// The matrices of a tensor `[B,S,H]`.
struct Runs {
    count: usize,
    /// Of each.
    dims: Dims,
    /// Elements from one to the next.
    pitch: usize,
}

impl Runs {
    fn of(dims: &Dims) -> Runs {
        let ([batch, tokens, columns, ..], [outer, inner, last, ..]) = (dims.shape, dims.strides);
        let (count, rows, pitch) = match (batch, tokens) {
            (1, _) => (1, tokens, inner),
            (_, 1) => (1, batch, outer),
            _ if outer == tokens * inner => (1, batch * tokens, inner),
            _ => (batch, tokens, inner),
        };
        Runs { count, dims: Dims::new([rows, columns], [pitch, last]), pitch: outer }
    }
}

impl<'a, T> Tensor<'a, T> {
    /// Of a tensor `[B,S,H]`: the number of the first token of each matrix, and the matrix.
    pub(crate) fn row_runs(&self) -> impl Iterator<Item = (usize, Tensor<'a, T>)> + use<'a, T> {
        let (Runs { count, dims, pitch }, data) = (Runs::of(&self.dims), self.data);
        (0..count).map(move |i| {
            // Wrapping: a tensor that only has a shape has no address.
            (i * dims.shape[0], Tensor { data: data.wrapping_add(i * pitch), dims, memory: super::PhantomData })
        })
    }
}

impl<'a, T> TensorMut<'a, T> {
    /// Of a tensor `[B,S,H]`: the number of the first token of each matrix, and the matrix.
    pub(crate) fn into_row_runs(self) -> impl Iterator<Item = (usize, TensorMut<'a, T>)> {
        let (Runs { count, dims, pitch }, data) = (Runs::of(&self.dims), self.data);
        (0..count)
            .map(move |i| (i * dims.shape[0], TensorMut { data: data.wrapping_add(i * pitch), dims, memory: super::PhantomData }))
    }
}
