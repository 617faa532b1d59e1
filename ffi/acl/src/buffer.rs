//! Memory of a device.

use crate::device::{Device, Place};
use crate::error::Error;
use crate::stream::Stream;
use crate::types::*;
use bytemuck::Pod;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

/// What a device may read behind a buffer.
const SLACK: usize = 32;

/// Memory of a device for `len` elements, of a stream's.
///
/// Work that was enqueued may still use it: reading, writing and dropping it wait for its stream, and for the whole device where
/// another stream used it, too. Where waiting is impossible the memory is not freed. A failure of work that a drop meets is reported by
/// the next [`Stream::synchronize`], read or write.
///
/// ```no_run
/// use tilekern_acl::{Buffer, Error, Stream};
///
/// fn there_and_back(stream: &Stream<'_>) -> Result<[f32; 3], Error> {
///     let buffer = Buffer::from_slice(stream, &[1.0f32, 2.0, 3.0])?;
///     let mut values = [0.0; 3];
///     buffer.read(&mut values)?;
///     Ok(values)
/// }
/// ```
#[derive(Debug)]
pub struct Buffer<'s, T> {
    stream: &'s Stream<'s>,
    data: *mut c_void,
    len: usize,
    usage: Usage,
    kind: PhantomData<T>,
}

/// Where a buffer belongs, and whether it was used elsewhere.
#[derive(Debug)]
pub struct Usage {
    place: Place,
    home: aclrtStream,
    abroad: AtomicBool,
}

// SAFETY: the memory belongs to the device; the host reaches it through copies alone.
unsafe impl<T> Send for Buffer<'_, T> {}
// SAFETY: as above; a shared buffer is only read.
unsafe impl<T> Sync for Buffer<'_, T> {}
// SAFETY: the stream is compared, not used.
unsafe impl Sync for Usage {}
// SAFETY: as above.
unsafe impl Send for Usage {}

impl Usage {
    /// Notes that work in `stream` uses the memory: to be called before it is enqueued.
    pub fn note(&self, stream: aclrtStream) {
        if stream != self.home {
            self.abroad.store(true, Ordering::Release);
        }
    }

    /// Where the memory is.
    pub fn place(&self) -> Place {
        self.place
    }
}

impl<'s, T: Pod> Buffer<'s, T> {
    /// Memory for `len` elements; what it holds is undefined.
    pub fn new(stream: &'s Stream<'s>, len: usize) -> Result<Buffer<'s, T>, Error> {
        let device: &Device<'_> = stream.device();
        device.enter()?;
        let (table, mut data) = (device.table(), core::ptr::null_mut());
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(SLACK)).unwrap_or(usize::MAX);
        // SAFETY: `data` is a place for the address.
        let code = unsafe { (table.runtime.aclrtMalloc)(&mut data, bytes, ACL_MEM_MALLOC_HUGE_FIRST) };
        Error::check(table, "aclrtMalloc", code)?;
        let usage = Usage { place: device.place(), home: stream.raw(), abroad: AtomicBool::new(false) };
        Ok(Buffer { stream, data, len, usage, kind: PhantomData })
    }

    /// Memory that holds `values`.
    pub fn from_slice(stream: &'s Stream<'s>, values: &[T]) -> Result<Buffer<'s, T>, Error> {
        let mut buffer = Buffer::new(stream, values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Copies `values` to its beginning, once what uses it is done.
    ///
    /// # Panics
    ///
    /// Where there are more values than it has elements.
    pub fn write(&mut self, values: &[T]) -> Result<(), Error> {
        assert!(values.len() <= self.len, "{} values for a buffer of {}", values.len(), self.len);
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.wait()?;
        // No call holds the buffer, so none is about to use it elsewhere.
        *self.usage.abroad.get_mut() = false;
        // SAFETY: the buffer has room for as many bytes, and nothing uses it.
        unsafe { self.copy(self.data, bytes.as_ptr().cast(), bytes.len(), ACL_MEMCPY_HOST_TO_DEVICE) }
    }

    /// Copies its beginning to `values`, once what uses it is done.
    ///
    /// # Panics
    ///
    /// Where there are more values than it has elements.
    pub fn read(&self, values: &mut [T]) -> Result<(), Error> {
        assert!(values.len() <= self.len, "{} values of a buffer of {}", values.len(), self.len);
        self.wait()?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        // SAFETY: the buffer has as many bytes, and any bytes are a `T`.
        unsafe { self.copy(bytes.as_mut_ptr().cast(), self.data, bytes.len(), ACL_MEMCPY_DEVICE_TO_HOST) }
    }

    /// # Safety
    ///
    /// `bytes` bytes can be copied that way.
    unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize, kind: aclrtMemcpyKind) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let table = self.stream.device().table();
        // SAFETY: as promised by the caller.
        Error::check(table, "aclrtMemcpy", unsafe { (table.runtime.aclrtMemcpy)(to, bytes, from, bytes, kind) })
    }
}

impl<T> Buffer<'_, T> {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn as_ptr(&self) -> *mut T {
        self.data.cast()
    }

    /// What remembers who uses it.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Waits for what uses it.
    fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize()?;
        if self.usage.abroad.load(Ordering::Acquire) { self.stream.device().synchronize() } else { Ok(()) }
    }
}

impl<T> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        let (stream, device) = (self.stream, self.stream.device());
        let home = stream.late.keep(stream.wait_for_all());
        let abroad = !*self.usage.abroad.get_mut() || device.late.keep(device.synchronize());
        if home && abroad {
            // SAFETY: made by `new`, and nothing uses it any more.
            _ = unsafe { (device.table().runtime.aclrtFree)(self.data) };
        }
    }
}
