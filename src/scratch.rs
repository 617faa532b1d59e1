//! Workspaces: planned as a list of typed slots, carved out of the caller's bytes. They need not be initialised.

use crate::error::{Error, Status};
use bytemuck::Pod;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ops::Range;

/// Alignment of a workspace, and of every slot in it: a cache line, and a vector of AVX-512.
pub const ALIGN: usize = 64;

/// Where a slice of `T` will lie.
pub(crate) struct Slot<T> {
    offset: usize,
    len: usize,
    kind: PhantomData<T>,
}

/// Where each worker's own slice of `T` will lie.
pub(crate) struct WorkerSlot<T> {
    first: Slot<T>,
    pitch: usize,
    workers: usize,
}

/// Adds up slots.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    bytes: usize,
}

impl Plan {
    pub fn new() -> Plan {
        Plan { bytes: 0 }
    }

    #[inline]
    fn reserve(&mut self, bytes: Option<usize>) -> Result<usize, Error> {
        #[cold]
        fn too_large() -> Error {
            Error::invalid("workspace", "a size that fits in memory", "an overflow")
        }
        let offset = self.bytes;
        let end = bytes.and_then(|n| n.checked_next_multiple_of(ALIGN)).and_then(|n| offset.checked_add(n));
        self.bytes = end.filter(|&n| n <= isize::MAX as usize - ALIGN).ok_or_else(too_large)?;
        Ok(offset)
    }

    /// `len` elements.
    pub fn slot<T: Pod>(&mut self, len: usize) -> Result<Slot<T>, Error> {
        let offset = self.reserve(len.checked_mul(size_of::<T>()))?;
        Ok(Slot { offset, len, kind: PhantomData })
    }

    /// `len` elements for each worker.
    #[inline]
    pub fn each<T: Pod>(&mut self, workers: usize, len: usize) -> Result<WorkerSlot<T>, Error> {
        if len == 0 {
            return Ok(WorkerSlot { first: Slot { offset: self.bytes, len, kind: PhantomData }, pitch: 0, workers });
        }
        let pitch = Pieces::bytes::<T>(len);
        let offset = self.reserve(pitch.checked_mul(workers))?;
        Ok(WorkerSlot { first: Slot { offset, len, kind: PhantomData }, pitch, workers })
    }

    /// The slots so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the caller must provide.
    pub fn layout(&self) -> Layout {
        // `bytes` is below isize::MAX - ALIGN, and ALIGN a power of two.
        Layout::from_size_align(self.bytes, ALIGN).unwrap_or(Layout::new::<()>())
    }

    /// Checks size and alignment; nothing is written.
    #[inline]
    pub fn carve<'a>(&self, scratch: &'a mut [u8]) -> Result<Space<'a>, Error> {
        let misaligned = self.bytes > 0 && scratch.as_ptr() as usize % ALIGN != 0;
        if scratch.len() < self.bytes || misaligned {
            return Err(self.unfit(scratch.len()));
        }
        Ok(Space { base: scratch.as_mut_ptr(), bytes: self.bytes, memory: PhantomData })
    }

    /// What is wrong with so many bytes of the caller's.
    #[cold]
    fn unfit(&self, found: usize) -> Error {
        match found < self.bytes {
            true => Error::new(Status::Workspace, "workspace", self.bytes, found),
            false => Error::new(Status::Workspace, "workspace", "an alignment of 64", "a misaligned address"),
        }
    }
}

/// The caller's bytes, large enough for a plan. Slots are not copied, so each is taken once.
pub(crate) struct Space<'a> {
    base: *mut u8,
    bytes: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Space<'a> {
    /// The slice of a slot of this space's plan.
    pub fn take<T: Pod>(&self, slot: Slot<T>) -> &'a mut [T] {
        assert!(slot.offset + slot.len * size_of::<T>() <= self.bytes);
        // SAFETY: the slots of a plan are disjoint and aligned, `slot` is consumed, and any bytes are a `T`.
        unsafe { core::slice::from_raw_parts_mut(self.base.add(slot.offset).cast(), slot.len) }
    }

    /// The workers' slices.
    pub fn take_each<T: Pod>(&self, slot: WorkerSlot<T>) -> PerWorker<'a, T> {
        assert!(slot.first.offset + slot.pitch * slot.workers <= self.bytes);
        // SAFETY: the slots of a plan are disjoint, and the assertion keeps this one inside the bytes.
        let base = unsafe { self.base.add(slot.first.offset) };
        PerWorker {
            base,
            pitch: slot.pitch,
            len: slot.first.len,
            last: slot.first.len,
            workers: slot.workers,
            memory: PhantomData,
        }
    }
}

/// A slice for each worker.
pub(crate) struct PerWorker<'a, T> {
    base: *mut u8,
    pitch: usize,
    len: usize,
    /// The length of the last slice.
    last: usize,
    workers: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: a worker's slice is reached by that worker alone (`worker`'s contract).
unsafe impl<T: Send> Sync for PerWorker<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for PerWorker<'_, T> {}

impl<'a, T: Pod> PerWorker<'a, T> {
    /// The slice of a worker, for work that this worker does alone.
    pub fn alone(slice: &'a mut [T]) -> PerWorker<'a, T> {
        PerWorker {
            base: slice.as_mut_ptr().cast(),
            pitch: 0,
            len: slice.len(),
            last: slice.len(),
            workers: 1,
            memory: PhantomData,
        }
    }

    /// Neighbouring slices of `len` elements; the last one may be shorter.
    pub fn over(all: &'a mut [T], len: usize) -> PerWorker<'a, T> {
        let workers = all.len().div_ceil(len.max(1));
        let last = all.len() - len * workers.saturating_sub(1);
        PerWorker { base: all.as_mut_ptr().cast(), pitch: len * size_of::<T>(), len, last, workers, memory: PhantomData }
    }

    /// The slice of one worker.
    ///
    /// # Safety
    ///
    /// No other slice of that worker lives, and this one ends before the memory does.
    pub unsafe fn worker<'t>(&self, worker: usize) -> &'t mut [T] {
        assert!(worker < self.workers);
        let len = if worker + 1 == self.workers { self.last } else { self.len };
        // SAFETY: the workers' slices are `pitch` bytes apart, aligned, and any bytes are a `T`.
        unsafe { core::slice::from_raw_parts_mut(self.base.add(worker * self.pitch).cast(), len) }
    }

    /// The slices of some workers, as one; of [`PerWorker::over`].
    ///
    /// # Safety
    ///
    /// No other slice of those workers lives, and this one ends before the memory does.
    pub unsafe fn neighbours<'t>(&self, workers: Range<usize>) -> &'t mut [T] {
        assert!(workers.end <= self.workers && self.pitch == self.len * size_of::<T>() && self.last == self.len);
        // SAFETY: without gaps, and all of one length, the slices are one.
        unsafe { core::slice::from_raw_parts_mut(self.base.add(workers.start * self.pitch).cast(), workers.len() * self.len) }
    }
}

/// The memory of one worker, given out piece by piece, each from a cache line of its own on: for what a task may need or not.
pub(crate) struct Pieces<'a>(&'a mut [u8]);

impl<'a> Pieces<'a> {
    /// All of a worker's slice of a plan.
    pub fn of(slice: &'a mut [u8]) -> Pieces<'a> {
        Pieces(slice)
    }

    /// The bytes of a piece of `len` elements; more than any plan has if there is no such piece.
    #[inline]
    pub const fn bytes<T>(len: usize) -> usize {
        len.saturating_mul(size_of::<T>()).saturating_add(ALIGN - 1) & !(ALIGN - 1)
    }

    /// The next piece.
    #[inline]
    pub fn take<T: Pod>(&mut self, len: usize) -> &'a mut [T] {
        // As [`Pieces::bytes`], but for a piece that no plan has: that would be too short for the slice below.
        let bytes = len.wrapping_mul(size_of::<T>()).wrapping_add(ALIGN - 1) & !(ALIGN - 1);
        let (piece, rest) = core::mem::take(&mut self.0).split_at_mut(bytes);
        self.0 = rest;
        &mut bytemuck::cast_slice_mut(piece)[..len]
    }
}

/// An owned workspace, that of one call after another where it grows ([`Scratch::reserve`]).
///
/// ```
/// use core::alloc::Layout;
/// use tilekern::Scratch;
///
/// let mut scratch = Scratch::new(Layout::from_size_align(100, 64).unwrap());
/// assert_eq!(scratch.len(), 100);
/// assert_eq!(scratch.as_mut_ptr() as usize % 64, 0);
/// assert_eq!(format!("{scratch:?}"), "Scratch { len: 100, .. }");
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone)]
pub struct Scratch(aligned_vec::AVec<u8, aligned_vec::ConstAlign<ALIGN>>);

#[cfg(feature = "alloc")]
impl Scratch {
    /// Memory of that size, aligned to 64 bytes. Where there is none the program is aborted, as by a `Vec`.
    pub fn new(layout: Layout) -> Scratch {
        Scratch(aligned_vec::avec![[ALIGN] | 0u8; layout.size()])
    }

    /// The same, or an error (-1) where there is no such memory.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// use tilekern::{Scratch, Status};
    ///
    /// # // Miri ends where memory does.
    /// # if cfg!(miri) { return; }
    /// let most = Layout::from_size_align(isize::MAX as usize - 63, 64).unwrap();
    /// assert_eq!(Scratch::try_new(most).unwrap_err().status(), Status::Workspace);
    /// ```
    pub fn try_new(layout: Layout) -> Result<Scratch, Error> {
        let mut bytes = aligned_vec::AVec::new(ALIGN);
        let none = |_| Error::new(Status::Workspace, "workspace", layout.size(), "no memory of that size");
        bytes.try_reserve_exact(layout.size()).map_err(none)?;
        bytes.resize(layout.size(), 0);
        Ok(Scratch(bytes))
    }

    /// So much of it; where it is shorter it becomes longer first. What it held is lost then, and all of it where that is an
    /// error (-1): the old memory goes before the new comes, so that there is never need for both.
    ///
    /// ```
    /// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::Multinomial};
    ///
    /// let (host, mut scratch) = (Host::new(), Scratch::default());
    /// for categories in [3, 1000] {
    ///     let (weights, mut chosen) = (vec![1.0f32; categories], [-1]);
    ///     let call = Multinomial::new(Tensor::new([categories], &weights)?, TensorMut::new([1], &mut chosen)?);
    ///     let workspace = host.workspace(&call)?;
    ///     host.run(call, scratch.reserve(workspace)?)?;
    ///     assert!((0..categories as i64).contains(&chosen[0]) && scratch.len() >= workspace.size());
    /// }
    /// # Ok::<(), tilekern::Error>(())
    /// ```
    pub fn reserve(&mut self, layout: Layout) -> Result<&mut [u8], Error> {
        if self.len() < layout.size() {
            *self = Scratch::default();
            *self = Scratch::try_new(layout)?;
        }
        Ok(&mut self[..layout.size()])
    }
}

/// No memory yet.
#[cfg(feature = "alloc")]
impl Default for Scratch {
    fn default() -> Scratch {
        Scratch(aligned_vec::AVec::new(ALIGN))
    }
}

/// The length alone: what a workspace contains means nothing.
#[cfg(feature = "alloc")]
impl core::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Scratch").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(feature = "alloc")]
impl core::ops::Deref for Scratch {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(feature = "alloc")]
impl core::ops::DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
