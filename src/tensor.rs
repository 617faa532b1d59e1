//! Tensors of the host: a shape, strides in elements, and somebody else's memory.

use crate::error::Error;
use core::marker::PhantomData;
use core::ops::Range;

mod describe;
mod dims;
mod flat;
mod heads;
mod row;
mod runs;
pub(crate) use describe::describe;
pub use describe::{Describe, Location};
pub use dims::{Dims, MAX_RANK};
pub(crate) use heads::Tokens;
pub(crate) use row::{Row, RowMut, Staged};

/// A tensor to read.
///
/// ```
/// use tilekern::Tensor;
///
/// let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let rows = Tensor::new([2, 3], &x)?;
/// let columns = Tensor::strided([3, 2], [1, 3], &x)?;
/// assert!(Tensor::new([2, 4], &x).is_err());
/// # let _ = (rows, columns);
/// # Ok::<(), tilekern::Error>(())
/// ```
pub struct Tensor<'a, T> {
    data: *const T,
    dims: Dims,
    memory: PhantomData<&'a [T]>,
}

/// A tensor to write.
///
/// ```
/// use tilekern::TensorMut;
///
/// let mut y = [0i64; 4];
/// let y = TensorMut::new([4], &mut y)?;
/// # let _ = y;
/// # Ok::<(), tilekern::Error>(())
/// ```
pub struct TensorMut<'a, T> {
    data: *mut T,
    dims: Dims,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Tensor` is a shared slice with strides.
unsafe impl<T: Sync> Send for Tensor<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Tensor<'_, T> {}
// SAFETY: a `TensorMut` is an exclusive slice with strides.
unsafe impl<T: Send> Send for TensorMut<'_, T> {}
// SAFETY: through a shared `TensorMut` elements are read and written by unsafe functions alone, whose callers own them for that time.
unsafe impl<T: Send + Sync> Sync for TensorMut<'_, T> {}

impl<T> Clone for Tensor<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tensor<'_, T> {}

describe!(Tensor);
describe!(TensorMut);

#[inline]
fn fits(dims: &Dims, length: usize) -> Result<(), Error> {
    if dims.extent() <= length { Ok(()) } else { Err(Error::invalid("data", dims.extent(), length)) }
}

impl<'a, T> Tensor<'a, T> {
    /// Row-major over `data`, which may be longer.
    #[inline]
    pub fn new<const R: usize>(shape: [usize; R], data: &'a [T]) -> Result<Self, Error> {
        Self::with(Dims::contiguous(&shape)?, data)
    }

    /// Strided over `data`.
    #[inline]
    pub fn strided<const R: usize>(shape: [usize; R], strides: [usize; R], data: &'a [T]) -> Result<Self, Error> {
        Self::with(Dims::strided(&shape, &strides)?, data)
    }

    /// Any shape and strides over `data`.
    #[inline]
    pub fn with(dims: Dims, data: &'a [T]) -> Result<Self, Error> {
        fits(&dims, data.len())?;
        Ok(Tensor { data: data.as_ptr(), dims, memory: PhantomData })
    }

    /// A shape without data, for a workspace query before buffers exist. A run refuses it.
    pub fn shape_only(dims: Dims) -> Self {
        Tensor { data: core::ptr::null(), dims, memory: PhantomData }
    }

    /// A tensor at an address.
    ///
    /// # Safety
    ///
    /// * `data` is null, or `dims.extent()` elements of one allocation lie behind it. Those that `dims` addresses can be read during
    ///   `'a`, and nobody writes them while a call runs that has the tensor, or a slice of it lives; those in gaps between them are
    ///   written by outputs of the same call at most.
    /// * A misaligned `data` is allowed: validation refuses it before it is read.
    pub unsafe fn from_raw(dims: Dims, data: *const T) -> Self {
        Tensor { data, dims, memory: PhantomData }
    }

    /// The elements, row-major; `None` where they have gaps or another order, and without data.
    ///
    /// ```
    /// use tilekern::Tensor;
    ///
    /// let x = [1, 2, 3, 4, 5, 6];
    /// assert_eq!(Tensor::new([2, 2], &x)?.as_slice(), Some(&[1, 2, 3, 4][..]));
    /// assert_eq!(Tensor::strided([2, 2], [3, 1], &x)?.as_slice(), None);
    /// # Ok::<(), tilekern::Error>(())
    /// ```
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let (here, length) = (self.location(), self.dims.extent());
        let whole = here.has_data() && here.is_aligned() && (length == 0 || self.dims.is_contiguous());
        // SAFETY: `data` is neither null nor misaligned, and the elements of the extent can be read.
        whole.then(|| unsafe { core::slice::from_raw_parts(self.data, length) })
    }

    /// Row `r`: all dimensions but the last are counted through row-major.
    #[inline]
    pub(crate) fn row(&self, r: usize) -> Row<'a, T> {
        let (len, stride) = self.dims.last();
        debug_assert!(r * len < self.dims.elements().max(1));
        // SAFETY: `r` is below the number of rows, so the row lies inside the extent.
        Row { first: unsafe { self.data.add(self.dims.row_offset(r)) }, len, stride, memory: PhantomData }
    }
}

impl<'a, T> Tensor<'a, T> {
    /// The memory of a tensor from its first element to its last; none where an output of the call, of which these are the bytes, may lie
    /// in gaps of it.
    #[inline]
    pub(crate) fn memory_beside(&self, outputs: &[Range<usize>]) -> Option<&'a [T]> {
        let own = self.bytes();
        let apart = outputs.iter().all(|output| output.end <= own.start || own.end <= output.start);
        // SAFETY: the extent can be read, and nobody writes there: validation refuses an output that meets an element, and here none
        // meets a gap. It refuses a null pointer with elements too.
        (apart || self.dims.is_contiguous()).then(|| unsafe { core::slice::from_raw_parts(self.data, self.dims.extent()) })
    }
}

impl<T: Copy> Tensor<'_, T> {
    /// Element `i` of the first dimension, index 0 in the others.
    #[inline]
    pub(crate) fn first_of(&self, i: usize) -> T {
        debug_assert!(i < self.dims.shape[0]);
        // SAFETY: `i` is inside the first dimension, so the element lies inside the extent; a run refuses misaligned data.
        unsafe { *self.data.add(i * self.dims.strides[0]) }
    }

    /// Element `i` in row-major order.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> T {
        let (len, _) = self.dims.last();
        self.row(i / len).get(i % len)
    }
}

impl<'a, T> TensorMut<'a, T> {
    /// Row-major over `data`, which may be longer.
    #[inline]
    pub fn new<const R: usize>(shape: [usize; R], data: &'a mut [T]) -> Result<Self, Error> {
        Self::with(Dims::contiguous(&shape)?, data)
    }

    /// Strided over `data`. Elements must not overlap; an operation refuses a tensor whose do, or of which that is not seen by sorting
    /// strides: each must exceed what the smaller ones span.
    #[inline]
    pub fn strided<const R: usize>(shape: [usize; R], strides: [usize; R], data: &'a mut [T]) -> Result<Self, Error> {
        Self::with(Dims::strided(&shape, &strides)?, data)
    }

    /// Any shape and strides over `data`.
    #[inline]
    pub fn with(dims: Dims, data: &'a mut [T]) -> Result<Self, Error> {
        fits(&dims, data.len())?;
        Ok(TensorMut { data: data.as_mut_ptr(), dims, memory: PhantomData })
    }

    /// A shape without data, for a workspace query before buffers exist. A run refuses it.
    pub fn shape_only(dims: Dims) -> Self {
        TensorMut { data: core::ptr::null_mut(), dims, memory: PhantomData }
    }

    /// A tensor at an address.
    ///
    /// # Safety
    ///
    /// * `data` is null, or `dims.extent()` elements of one allocation lie behind it. Those that `dims` addresses can be read and written
    ///   during `'a`, by nobody else while a call runs that has the tensor, or a slice of it lives; those in gaps between them are left
    ///   alone.
    /// * A misaligned `data`, or one that overlaps another tensor of the same call, is allowed: validation refuses it before it is
    ///   used.
    pub unsafe fn from_raw(dims: Dims, data: *mut T) -> Self {
        TensorMut { data, dims, memory: PhantomData }
    }

    /// The same memory, to write for a while.
    ///
    /// ```
    /// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::Multinomial};
    ///
    /// let (weights, mut chosen) = ([0.0f32, 1.0], [-1]);
    /// let mut chosen = TensorMut::new([1], &mut chosen)?;
    /// let (host, call) = (Host::new(), Multinomial::new(Tensor::new([2], &weights)?, chosen.reborrow()));
    /// let mut scratch = Scratch::new(host.workspace(&call)?);
    /// host.run(call, &mut scratch)?;
    /// assert_eq!(chosen.as_slice(), Some(&[1][..]));
    /// # Ok::<(), tilekern::Error>(())
    /// ```
    pub fn reborrow(&mut self) -> TensorMut<'_, T> {
        TensorMut { data: self.data, dims: self.dims, memory: PhantomData }
    }

    /// The same memory, to read for a while: what one call has written, for the next.
    ///
    /// ```
    /// use tilekern::{Describe, TensorMut};
    ///
    /// let mut y = [0i64; 4];
    /// let y = TensorMut::new([4], &mut y)?;
    /// assert_eq!(y.as_view().dims().shape(), [4]);
    /// # Ok::<(), tilekern::Error>(())
    /// ```
    pub fn as_view(&self) -> Tensor<'_, T> {
        Tensor { data: self.data, dims: self.dims, memory: PhantomData }
    }

    /// The elements, as [`Tensor::as_slice`] has them.
    pub fn as_slice(&self) -> Option<&[T]> {
        self.as_view().as_slice()
    }

    /// Row `r`, to write.
    ///
    /// # Safety
    ///
    /// No other [`RowMut`] of row `r` lives or is made while this one does, which ends before the memory does, and the tensor does
    /// not overlap itself.
    #[inline]
    pub(crate) unsafe fn row<'t>(&self, r: usize) -> RowMut<'t, T> {
        let (len, stride) = self.dims.last();
        debug_assert!(r * len < self.dims.elements().max(1));
        // SAFETY: `r` is below the number of rows, so the row lies inside the extent.
        RowMut { first: unsafe { self.data.add(self.dims.row_offset(r)) }, len, stride, memory: PhantomData }
    }

    /// Element `i` of the first dimension, index 0 in the others, to write.
    ///
    /// # Safety
    ///
    /// No other reference to it lives or is made while this one does, which ends before the memory does, and the tensor does not overlap
    /// itself.
    #[inline]
    pub(crate) unsafe fn first_of<'t>(&self, i: usize) -> &'t mut T {
        debug_assert!(i < self.dims.shape[0]);
        // SAFETY: `i` is inside the first dimension, so the element lies inside the extent; a run refuses misaligned data.
        unsafe { &mut *self.data.add(i * self.dims.strides[0]) }
    }

    /// Row `r`, to whoever has the tensor alone.
    pub(crate) fn row_mut(&mut self, r: usize) -> RowMut<'_, T> {
        // SAFETY: `self` is borrowed exclusively for as long as the row lives.
        unsafe { self.row(r) }
    }
}
