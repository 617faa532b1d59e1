//! Objects that live in the caller's memory: a head of ours, and what the library lays out behind it.

use core::ffi::c_void;
use core::ops::Range;
use tilekern::{Error, Status};

/// What a head occupies, so that the rest is aligned as well.
pub(crate) const fn head<H>() -> usize {
    assert!(align_of::<H>() <= 64);
    size_of::<H>().next_multiple_of(64)
}

/// Bytes of a head and the `rest`.
pub(crate) fn with_head<H>(rest: usize) -> Result<usize, Error> {
    let too_large = || Error::new(Status::Invalid, "memory", "a size that fits in memory", "an overflow");
    rest.checked_add(head::<H>()).filter(|&n| n <= isize::MAX as usize).ok_or_else(too_large)
}

/// Splits the caller's memory, which must have `needed` bytes and may have more, into the head's place and the rest. What is `read`
/// meanwhile, by its argument's name, lies elsewhere.
///
/// # Safety
///
/// `memory` is null, or `bytes` bytes that are the library's during `'m`; `needed` is at least `head::<H>()`.
pub(crate) unsafe fn split<'m, H>(
    memory: *mut c_void,
    bytes: usize,
    needed: usize,
    read: &[(&'static str, Range<usize>)],
) -> Result<(*mut H, &'m mut [u8]), Error> {
    if memory.is_null() {
        return Err(Error::new(Status::Null, "memory", "memory", "null"));
    }
    if bytes < needed {
        return Err(Error::new(Status::Workspace, "memory", needed, bytes));
    }
    if !(memory as usize).is_multiple_of(64) {
        return Err(Error::new(Status::Workspace, "memory", "an alignment of 64", "a misaligned address"));
    }
    let all = bytes.min(isize::MAX as usize);
    for (name, read) in read {
        if read.start.max(memory.addr()) < read.end.min(memory.addr().saturating_add(all)) {
            return Err(Error::new(Status::Invalid, name, "bytes outside of `memory`", "bytes in it"));
        }
    }
    // SAFETY: the bytes are the library's, as promised, and at least `needed`, so the rest begins inside them or at their end.
    let rest = unsafe { core::slice::from_raw_parts_mut(memory.cast::<u8>().add(head::<H>()), all - head::<H>()) };
    Ok((memory.cast(), rest))
}

/// The caller's bytes, to read.
///
/// # Safety
///
/// `data` is null, or `bytes` bytes that nobody writes during `'a`.
pub(crate) unsafe fn bytes<'a>(name: &'static str, data: *const c_void, bytes: usize) -> Result<&'a [u8], Error> {
    if data.is_null() {
        return if bytes == 0 { Ok(&[]) } else { Err(Error::new(Status::Null, name, "bytes", "null")) };
    }
    if bytes > isize::MAX as usize {
        return Err(Error::new(Status::Invalid, name, "bytes that fit in memory", bytes));
    }
    // SAFETY: as promised by the caller.
    Ok(unsafe { core::slice::from_raw_parts(data.cast(), bytes) })
}

/// Where they lie.
pub(crate) fn addresses(bytes: &[u8]) -> Range<usize> {
    let bytes = bytes.as_ptr_range();
    bytes.start.addr()..bytes.end.addr()
}

/// A place for an answer.
///
/// # Safety
///
/// `place` is null or valid, and nobody else's, during `'a`.
pub(crate) unsafe fn answer<'a, T>(name: &'static str, place: *mut T) -> Result<&'a mut T, Error> {
    // SAFETY: as promised by the caller.
    unsafe { place.as_mut() }.ok_or_else(|| Error::new(Status::Null, name, "a place for the answer", "null"))
}
