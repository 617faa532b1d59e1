//! The heads of one token in a tensor `[B,heads,S,D]`: rows of D elements, one stride apart.

use super::{Dims, Row, RowMut, Tensor, TensorMut};
use crate::parallel::Split;
use core::marker::PhantomData;
use core::ops::Range;

/// Where the heads of a token lie.
#[derive(Clone, Copy)]
struct Place {
    offset: usize,
    heads: usize,
    head_stride: usize,
    len: usize,
    stride: usize,
}

impl Place {
    #[inline]
    fn of(dims: &Dims, batch: usize, token: usize) -> Place {
        let ([_, heads, tokens, len, _], [b, head_stride, t, stride, _]) = (dims.shape, dims.strides);
        assert!(batch < dims.shape[0] && token < tokens);
        Place { offset: batch * b + token * t, heads, head_stride, len, stride }
    }

    /// Whether all heads together are one row without gaps.
    #[inline]
    fn is_flat(&self) -> bool {
        (self.stride == 1 || self.len == 1) && (self.head_stride == self.len || self.heads == 1)
    }
}

/// The heads of one token.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a, T> {
    data: *const T,
    place: Place,
    memory: PhantomData<&'a [T]>,
}

/// The heads of one token, to write.
pub(crate) struct HeadsMut<'a, T> {
    data: *mut T,
    place: Place,
    memory: PhantomData<&'a mut [T]>,
}

impl<'a, T> Tensor<'a, T> {
    /// The heads of token `token` of batch row `batch` in a tensor `[B,heads,S,D]`.
    #[inline]
    pub(crate) fn heads(&self, batch: usize, token: usize) -> Heads<'a, T> {
        Heads { data: self.data, place: Place::of(&self.dims, batch, token), memory: PhantomData }
    }
}

impl<'a, T: Copy> Heads<'a, T> {
    /// One head.
    #[inline]
    pub fn head(&self, head: usize) -> Row<'a, T> {
        let Place { offset, heads, head_stride, len, stride } = self.place;
        debug_assert!(head < heads);
        // SAFETY: batch row, token and head are inside the shape, so the row lies inside the extent.
        Row { first: unsafe { self.data.add(offset + head * head_stride) }, len, stride, memory: PhantomData }
    }

    /// All heads as one row: where it lies if it has no gaps, else gathered into `stage`.
    #[inline]
    pub fn gather<'b>(&self, stage: &'b mut [T]) -> &'b [T]
    where
        'a: 'b,
    {
        let Place { heads, len, .. } = self.place;
        if self.place.is_flat() {
            return Row { len: heads * len, stride: 1, ..self.head(0) }.gather(stage);
        }
        for head in 0..heads {
            let stage = &mut stage[head * len..(head + 1) * len];
            match self.head(head).as_slice() {
                Some(row) => stage.copy_from_slice(row),
                None => _ = self.head(head).gather(stage),
            }
        }
        &stage[..heads * len]
    }
}

impl<T: Copy> HeadsMut<'_, T> {
    /// One head.
    #[inline]
    pub fn head(&mut self, head: usize) -> RowMut<'_, T> {
        let Place { offset, heads, head_stride, len, stride } = self.place;
        debug_assert!(head < heads);
        // SAFETY: batch row, token and head are inside the shape, so the row lies inside the extent.
        RowMut { first: unsafe { self.data.add(offset + head * head_stride) }, len, stride, memory: PhantomData }
    }

    /// Lets `write` fill parts of the flat row `[heads * D]`, each named by its range: the whole where it has no gaps, else head by
    /// head, in `stage` where a head has gaps.
    #[inline]
    pub fn fill(&mut self, stage: &mut [T], mut write: impl FnMut(Range<usize>, &mut [T])) {
        let Place { heads, len, .. } = self.place;
        if self.place.is_flat() {
            let mut flat = RowMut { len: heads * len, stride: 1, ..self.head(0) };
            return flat.scatter(stage, |flat| write(0..heads * len, flat));
        }
        for head in 0..heads {
            self.head(head).scatter(stage, |row| write(head * len..(head + 1) * len, row));
        }
    }
}

/// A tensor `[B,heads,T,D]` to write by tokens: row `b * tokens + s` is token `start[b] + s` of batch row `b`.
pub(crate) struct Tokens<'t, 'a, T> {
    pub tensor: &'t TensorMut<'a, T>,
    /// Tokens of a batch row.
    pub tokens: usize,
    /// The first position of each batch row, 0 without it.
    pub start: Option<&'t Tensor<'t, i64>>,
}

// SAFETY: rows differ in the batch row or in the position, so their heads are disjoint elements of a tensor that does not overlap
// itself; validation refuses others.
unsafe impl<T: Send + Sync + 'static> Split for Tokens<'_, '_, T> {
    type Part<'t> = HeadsMut<'t, T>;
    #[inline]
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> HeadsMut<'t, T> {
        let (batch, token) = (row / self.tokens, row % self.tokens);
        let start = self.start.map_or(0, |start| start.get(batch) as usize);
        HeadsMut { data: self.tensor.data, place: Place::of(&self.tensor.dims, batch, start + token), memory: PhantomData }
    }
}
