//! What tasks own while they run: rows of tensors, slices of workers, and several of them together.

use crate::scratch::PerWorker;
use crate::tensor::{Describe, RowMut, TensorMut};
use bytemuck::Pod;
use tilekern_kernels::tiles::Bands;

/// Something of which every row, or every worker, has a part of its own.
///
/// # Safety
///
/// Parts of different rows with different workers do not overlap.
pub(crate) unsafe trait Split: Sync {
    /// What one task gets, for the time of the task.
    type Part<'t>;

    /// The part of a row and a worker.
    ///
    /// # Safety
    ///
    /// No other part of this row, and none of this worker, lives, and the part does not outlive the task.
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t>;
}

// SAFETY: rows of a tensor that does not overlap itself are disjoint; validation refuses others.
unsafe impl<T: Send + Sync + 'static> Split for TensorMut<'_, T> {
    type Part<'t> = RowMut<'t, T>;
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> RowMut<'t, T> {
        // SAFETY: no other part of the row lives.
        unsafe { self.row(row) }
    }
}

// SAFETY: workers' slices are disjoint.
unsafe impl<T: Pod + Send> Split for PerWorker<'_, T> {
    type Part<'t> = &'t mut [T];
    unsafe fn part<'t>(&self, _row: usize, worker: usize) -> &'t mut [T] {
        // SAFETY: no other part of the worker lives.
        unsafe { self.worker(worker) }
    }
}

/// Rows counted from a later one.
pub(crate) struct From<'a, S>(pub &'a S, pub usize);

// SAFETY: different rows are different rows of what is behind the reference.
unsafe impl<S: Split> Split for From<'_, S> {
    type Part<'t> = S::Part<'t>;
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> S::Part<'t> {
        // SAFETY: the caller's promise about `row` is one about `row + self.1`.
        unsafe { self.0.part(row + self.1, worker) }
    }
}

/// Slices of which every row, instead of every worker, has one.
pub(crate) struct ByRow<'a, T>(pub PerWorker<'a, T>);

// SAFETY: the slices are disjoint.
unsafe impl<T: Pod + Send> Split for ByRow<'_, T> {
    type Part<'t> = &'t mut [T];
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> &'t mut [T] {
        // SAFETY: no other part of the row lives.
        unsafe { self.0.worker(row) }
    }
}

/// Slices of which every band of rows has those of its rows, which are neighbours.
pub(crate) struct ByBand<'a, T>(pub PerWorker<'a, T>, pub Bands);

// SAFETY: bands are disjoint.
unsafe impl<T: Pod + Send> Split for ByBand<'_, T> {
    type Part<'t> = &'t mut [T];
    unsafe fn part<'t>(&self, band: usize, _worker: usize) -> &'t mut [T] {
        // SAFETY: no other part of the band lives.
        unsafe { self.0.neighbours(self.1.rows(band)) }
    }
}

// SAFETY: as what is behind the reference.
unsafe impl<S: Split> Split for &S {
    type Part<'t> = S::Part<'t>;
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t> {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).part(row, worker) }
    }
}

/// One row of a tensor, of which every task has some columns.
pub(crate) struct Columns<'a, T> {
    /// The tensor.
    pub matrix: &'a TensorMut<'a, T>,
    /// Which row.
    pub row: usize,
    /// Columns of a task.
    pub columns: usize,
}

// SAFETY: columns of a tensor that does not overlap itself are disjoint; validation refuses others.
unsafe impl<T: Send + Sync + Copy + 'static> Split for Columns<'_, T> {
    type Part<'t> = RowMut<'t, T>;
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> RowMut<'t, T> {
        let (all, _) = self.matrix.dims().last();
        let first = row * self.columns;
        // SAFETY: no other part of these columns lives.
        unsafe { self.matrix.row(self.row) }.columns(first..all.min(first + self.columns))
    }
}

/// A tensor `[n]` or `[n,1]` of which every row has one element.
pub(crate) struct Column<'t, 'a, T>(pub &'t TensorMut<'a, T>);

// SAFETY: elements of a tensor that does not overlap itself are disjoint; validation refuses others.
unsafe impl<T: Send + Sync + 'static> Split for Column<'_, '_, T> {
    type Part<'t> = &'t mut T;
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> &'t mut T {
        // SAFETY: no other part of the row lives.
        unsafe { self.0.first_of(row) }
    }
}

// SAFETY: as the tensor or slice, where there is one.
unsafe impl<S: Split> Split for Option<S> {
    type Part<'t> = Option<S::Part<'t>>;
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t> {
        // SAFETY: the caller's promise about parts of `self` is one about parts of what is in it.
        self.as_ref().map(|split| unsafe { split.part(row, worker) })
    }
}

macro_rules! tuple {
    ($($part:ident)*) => {
        // SAFETY: as each of the parts.
        unsafe impl<$($part: Split),*> Split for ($($part,)*) {
            type Part<'t> = ($($part::Part<'t>,)*);
            #[inline(always)]
            unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t> {
                #[allow(non_snake_case)]
                let ($($part,)*) = self;
                // SAFETY: as each of the parts.
                unsafe { ($($part.part(row, worker),)*) }
            }
        }
    };
}
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
