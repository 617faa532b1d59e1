//! Tensors as vectors.

use super::{Dims, PhantomData, Row, RowMut, TensorMut};
use core::ops::Range;

fn vector(len: usize, stride: usize) -> Dims {
    Dims::new([len], [stride])
}

impl<'a, T> TensorMut<'a, T> {
    /// A slice.
    pub(crate) fn vector(data: &'a mut [T]) -> TensorMut<'a, T> {
        TensorMut { data: data.as_mut_ptr(), dims: vector(data.len(), 1), memory: PhantomData }
    }

    /// One row of all elements, if they lie without gaps; else as it is.
    pub(crate) fn flattened(self) -> TensorMut<'a, T> {
        if self.dims.is_contiguous() { TensorMut { dims: vector(self.dims.elements(), 1), ..self } } else { self }
    }
}

impl<T> Row<'_, T> {
    /// Some of its elements.
    pub(crate) fn part(&self, columns: Range<usize>) -> Self {
        debug_assert!(columns.end <= self.len);
        // Wrapping: behind the last element of a row there may be nothing.
        Row { first: self.first.wrapping_add(columns.start * self.stride), len: columns.len(), ..*self }
    }
}

impl<T> RowMut<'_, T> {
    /// Its elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Some of its elements, for a while.
    pub(crate) fn part(&mut self, columns: Range<usize>) -> RowMut<'_, T> {
        debug_assert!(columns.end <= self.len);
        RowMut { first: self.first.wrapping_add(columns.start * self.stride), len: columns.len(), ..*self }
    }
}

impl<'a, T> RowMut<'a, T> {
    /// The row as a tensor of its own.
    pub(crate) fn into_tensor(self) -> TensorMut<'a, T> {
        TensorMut { data: self.first, dims: vector(self.len, self.stride), memory: PhantomData }
    }
}
