//! Rows of tensors: the last dimension at one place.

use crate::scratch::Pieces;
use bytemuck::Pod;
use core::marker::PhantomData;

// SAFETY: a `Row` is part of a `Tensor`.
unsafe impl<T: Sync> Sync for Row<'_, T> {}

/// The last dimension of a tensor at one place.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, T> {
    pub(super) first: *const T,
    pub(super) len: usize,
    pub(super) stride: usize,
    pub(super) memory: PhantomData<&'a [T]>,
}

impl<'a, T: Copy> Row<'a, T> {
    /// Element `i`.
    #[inline]
    pub fn get(&self, i: usize) -> T {
        debug_assert!(i < self.len);
        // SAFETY: element `i` of the row lies inside the tensor.
        unsafe { *self.first.add(i * self.stride) }
    }

    /// Some of its elements.
    #[inline]
    pub fn columns(self, columns: core::ops::Range<usize>) -> Row<'a, T> {
        debug_assert!(columns.end <= self.len);
        // SAFETY: the columns are elements of the row.
        let first = unsafe { self.first.add(columns.start * self.stride) };
        Row { first, len: columns.len(), ..self }
    }

    /// The row, if it is contiguous.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        // SAFETY: the `len` elements of the row are contiguous.
        (self.stride == 1 || self.len <= 1).then(|| unsafe { core::slice::from_raw_parts(self.first, self.len) })
    }

    /// The row where it lies if it is contiguous, else gathered into `stage`.
    #[inline]
    pub fn gather<'b>(&self, stage: &'b mut [T]) -> &'b [T]
    where
        'a: 'b,
    {
        if let Some(row) = self.as_slice() {
            return row;
        }
        for i in 0..self.len {
            stage[i] = self.get(i);
        }
        &stage[..self.len]
    }
}

impl<'a, T: Pod> Row<'a, T> {
    /// The row where it lies if it is contiguous, else gathered into a piece of memory.
    #[inline(always)]
    pub fn staged(&self, memory: &mut Pieces<'a>) -> &'a [T] {
        match self.as_slice() {
            Some(row) => row,
            None => self.gathered(memory),
        }
    }

    #[cold]
    fn gathered(&self, memory: &mut Pieces<'a>) -> &'a [T] {
        self.gather(memory.take(self.len))
    }
}

/// The last dimension of a tensor at one place, to write.
pub(crate) struct RowMut<'a, T> {
    pub(super) first: *mut T,
    pub(super) len: usize,
    pub(super) stride: usize,
    pub(super) memory: PhantomData<&'a mut [T]>,
}

impl<'a, T> RowMut<'a, T> {
    /// Some of its elements.
    #[inline]
    pub fn columns(self, columns: core::ops::Range<usize>) -> RowMut<'a, T> {
        debug_assert!(columns.end <= self.len);
        // SAFETY: the columns are elements of the row.
        let first = unsafe { self.first.add(columns.start * self.stride) };
        RowMut { first, len: columns.len(), ..self }
    }
}

impl<T: Copy> RowMut<'_, T> {
    /// Writes element `i`.
    #[inline]
    pub fn set(&mut self, i: usize, value: T) {
        debug_assert!(i < self.len);
        // SAFETY: element `i` of the row lies inside the tensor, and the row is ours.
        unsafe { *self.first.add(i * self.stride) = value }
    }

    /// The row, if it is contiguous.
    #[inline]
    pub fn as_slice(&mut self) -> Option<&mut [T]> {
        // SAFETY: the `len` elements of the row are contiguous, and the row is ours.
        (self.stride == 1 || self.len <= 1).then(|| unsafe { core::slice::from_raw_parts_mut(self.first, self.len) })
    }

    /// Lets `write` fill the row: where it lies if it is contiguous, else in `stage`, from where it is scattered.
    #[inline]
    pub fn scatter<R>(&mut self, stage: &mut [T], write: impl FnOnce(&mut [T]) -> R) -> R {
        if let Some(row) = self.as_slice() {
            return write(row);
        }
        let stage = &mut stage[..self.len];
        let result = write(stage);
        self.spread(stage);
        result
    }

    #[inline]
    fn spread(&mut self, stage: &[T]) {
        stage.iter().enumerate().for_each(|(i, &value)| self.set(i, value));
    }
}

/// A row to write for a while: where it lies if it is contiguous, else a stage of it.
pub(crate) struct Staged<'a, T> {
    row: RowMut<'a, T>,
    stage: &'a mut [T],
}

impl<'a, T: Pod> RowMut<'a, T> {
    /// The row, with a piece of memory unless it is contiguous; to be followed by [`Staged::give_back`].
    #[inline]
    pub fn staged(mut self, memory: &mut Pieces<'a>) -> Staged<'a, T> {
        let len = if self.as_slice().is_some() { 0 } else { self.len };
        Staged { row: self, stage: memory.take(len) }
    }
}

impl<T: Copy> Staged<'_, T> {
    /// Where to write.
    #[inline]
    pub fn as_slice(&mut self) -> &mut [T] {
        self.row.as_slice().unwrap_or(self.stage)
    }

    /// Scatters the stage of a row that is not contiguous.
    #[inline]
    pub fn give_back(mut self) {
        self.row.spread(self.stage);
    }
}
