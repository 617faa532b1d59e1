//! Memory, copies and fills.

use crate::boundary::{null_parameter, put, runtime};
use crate::context::Context;
use crate::copy::{Fill, Transfer};
use crate::failure::Failure;
use crate::memory::{self, Place};
use crate::stream::Stream;
use crate::system;
use core::ffi::c_void;
use tilekern_acl::{aclError, aclrtMemAttr, aclrtMemMallocPolicy, aclrtMemcpyKind, aclrtStream, codes};

/// Memory of the device, aligned to 64 bytes. A size of 0 is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMalloc(devPtr: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtMalloc", || unsafe { device(devPtr, size, policy) })
}

/// The same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocAlign32(devPtr: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtMallocAlign32", || unsafe { device(devPtr, size, policy) })
}

/// # Safety
///
/// `place` is null, or can be written.
unsafe fn device(place: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> Result<(), Failure> {
    // The low bits are a kind of pages, the others are flags.
    if policy.0 & 0xFF > 7 || policy.0 & !0x10_11FF != 0 {
        return Err(Failure::new(codes::ACL_ERROR_INVALID_PARAM, format!("policy: {:#x} is none", policy.0)));
    }
    // SAFETY: as promised by the caller.
    unsafe { allocate(place, size, Place::Device) }
}

/// # Safety
///
/// `place` is null, or can be written.
unsafe fn allocate(place: *mut *mut c_void, size: usize, of: Place) -> Result<(), Failure> {
    Context::current()?;
    if place.is_null() {
        return Err(null_parameter("the place for the address")());
    }
    let address = memory::allocate(size, of)? as *mut c_void;
    // SAFETY: as promised by the caller.
    unsafe { put(place, null_parameter("the place for the address"), address) }
}

fn free(address: *mut c_void, of: Place) -> Result<(), Failure> {
    Context::current()?;
    if address.is_null() {
        return Err(null_parameter("the address")());
    }
    memory::free(address as usize, of)
}

/// Of what aclrtMalloc gave. 207002 while work on a stream uses it that no synchronise has waited for; it stays then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFree(devPtr: *mut c_void) -> aclError {
    runtime("aclrtFree", || free(devPtr, Place::Device))
}

/// Memory of the host that copies in a stream need not wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocHost(hostPtr: *mut *mut c_void, size: usize) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtMallocHost", || unsafe { allocate(hostPtr, size, Place::Host) })
}

/// Of what aclrtMallocHost gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFreeHost(hostPtr: *mut c_void) -> aclError {
    runtime("aclrtFreeHost", || free(hostPtr, Place::Host))
}

fn fill(address: *mut c_void, max: usize, value: i32, count: usize) -> Result<Fill, Failure> {
    Context::current()?;
    if address.is_null() {
        return Err(null_parameter("devPtr")());
    }
    within("maxCount", max, count)?;
    Ok(Fill { to: address as usize, value: value as u8, count })
}

/// The same byte everywhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemset(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize) -> aclError {
    runtime("aclrtMemset", || fill(devPtr, maxCount, value, count)?.now())
}

/// The same, in a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemsetAsync(
    devPtr: *mut c_void,
    maxCount: usize,
    value: i32,
    count: usize,
    stream: aclrtStream,
) -> aclError {
    runtime("aclrtMemsetAsync", || fill(devPtr, maxCount, value, count)?.in_stream(&Stream::of(stream)?))
}

fn copy(dst: *mut c_void, max: usize, src: *const c_void, count: usize) -> Result<Transfer, Failure> {
    Context::current()?;
    if dst.is_null() || src.is_null() {
        return Err(null_parameter(if dst.is_null() { "dst" } else { "src" })());
    }
    within("destMax", max, count)?;
    Ok(Transfer::row(dst as usize, src as usize, count))
}

fn within(name: &str, max: usize, count: usize) -> Result<(), Failure> {
    match count {
        0 => Err(Failure::parameter("a count of 0")),
        _ if count > max => Err(Failure::parameter(format!("{name}: expected at least {count}, found {max}"))),
        _ => Ok(()),
    }
}

/// A copy. It waits for itself, and not for what streams hold: bytes that they still use are refused, with 107000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy(
    dst: *mut c_void,
    destMax: usize,
    src: *const c_void,
    count: usize,
    kind: aclrtMemcpyKind,
) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtMemcpy", || unsafe { copy(dst, destMax, src, count)?.now(kind) })
}

/// The same, in a stream. Only memory of aclrtMallocHost and of the device is copied while the caller goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyAsync(
    dst: *mut c_void,
    destMax: usize,
    src: *const c_void,
    count: usize,
    kind: aclrtMemcpyKind,
    stream: aclrtStream,
) -> aclError {
    // SAFETY: as promised by the caller.
    runtime("aclrtMemcpyAsync", || unsafe { copy(dst, destMax, src, count)?.in_stream(kind, &Stream::of(stream)?) })
}

/// A copy of `height` rows of `width` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy2d(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: aclrtMemcpyKind,
) -> aclError {
    runtime("aclrtMemcpy2d", || {
        let row = copy(dst, dpitch, src, width)?;
        within("spitch", spitch, width)?;
        within("height", height, 1)?;
        let rows = Transfer { to_pitch: dpitch, from_pitch: spitch, rows: height, ..row };
        // SAFETY: as promised by the caller.
        unsafe { rows.now(kind) }
    })
}

/// Bytes that the machine has, and has free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetMemInfo(attr: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError {
    runtime("aclrtGetMemInfo", || {
        Context::current()?;
        // The header's six, and those of later ones.
        if !(0..=11).contains(&attr.0) {
            return Err(Failure::parameter(format!("attr: expected a kind of memory, found {}", attr.0)));
        }
        let [available, all] = system::memory()?;
        // SAFETY: as promised by the caller.
        unsafe { put(free, null_parameter("free"), available).and_then(|()| put(total, null_parameter("total"), all)) }
    })
}
