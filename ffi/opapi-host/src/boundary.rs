//! The way in: catches panics, keeps what went wrong for the thread that asks, and turns C's pointers into values.

use crate::failure::Failure;
use core::cell::{Cell, RefCell};
use core::ffi::c_char;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilekern_acl::codes;

thread_local! {
    static LAST: Cell<i32> = const { Cell::new(0) };
    /// The sentence of the last failure, until it is read.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
    /// What was read last: C holds its address.
    static READ: RefCell<CString> = RefCell::new(CString::default());
}

/// A function of the runtime.
pub(crate) fn runtime(function: &str, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let status = enter(function, codes::ACL_ERROR_INTERNAL_ERROR, body);
    if status != 0 {
        LAST.set(status);
    }
    status
}

/// A function of aclnn, or of its descriptors.
pub(crate) fn aclnn(function: &str, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    enter(function, codes::ACLNN_ERR_INNER, body)
}

/// A function that answers with a handle: null where it fails.
pub(crate) fn create<T>(function: &str, body: impl FnOnce() -> Result<usize, Failure>) -> *mut T {
    let mut handle = 0;
    let made = enter(function, codes::ACLNN_ERR_INNER, || {
        handle = body()?;
        Ok(())
    });
    if made == 0 { handle as *mut T } else { core::ptr::null_mut() }
}

fn enter(function: &str, internal: i32, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(body));
    let failure = match result.unwrap_or_else(|_| Err(Failure::new(internal, "internal error"))) {
        Ok(()) => return 0,
        Err(failure) => failure,
    };
    let message = format!("{function}: {} ({} {})", failure.message, failure.code, codes::name(failure.code));
    // A thread that ends has no messages any more.
    let _ = MESSAGE.try_with(|last| last.replace(message));
    failure.code
}

/// The code of the last runtime call that failed on this thread.
pub(crate) fn last_error(clear: bool) -> i32 {
    if clear { LAST.replace(0) } else { LAST.get() }
}

/// What went wrong last on this thread, empty where nothing did, and in a thread that ends; valid until the thread asks again.
pub(crate) fn recent_message() -> *const c_char {
    let text = CString::new(MESSAGE.try_with(RefCell::take).unwrap_or_default()).unwrap_or_default();
    let read = READ.try_with(|read| {
        read.replace(text);
        read.borrow().as_ptr()
    });
    read.unwrap_or(c"".as_ptr())
}

/// Writes an answer; `null` is what a missing place for it is called.
///
/// # Safety
///
/// `place` is null, or can be written.
pub(crate) unsafe fn put<T>(place: *mut T, null: impl FnOnce() -> Failure, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null());
    }
    // SAFETY: as promised by the caller; `write_unaligned` asks nothing of the address.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// A copy of an array of C's.
///
/// # Safety
///
/// `data` is null, or `count` values that can be read.
pub(crate) unsafe fn array<T: Copy>(argument: &str, data: *const T, count: u64) -> Result<Vec<T>, Failure> {
    match usize::try_from(count) {
        Ok(0) => Ok(Vec::new()),
        _ if data.is_null() => Err(Failure::null(argument)),
        Ok(n) if n <= isize::MAX as usize / size_of::<T>().max(1) => {
            // SAFETY: as promised by the caller; the size fits in memory.
            Ok((0..n).map(|i| unsafe { data.add(i).read_unaligned() }).collect())
        }
        _ => Err(Failure::invalid(format!("{argument}: a count of {count}"))),
    }
}

/// A parameter of the runtime that is null.
pub(crate) fn null_parameter(argument: &'static str) -> impl FnOnce() -> Failure {
    move || Failure::new(codes::ACL_ERROR_INVALID_PARAM, format!("{argument} is null"))
}

/// A parameter of aclnn that is null.
pub(crate) fn null_argument(argument: &'static str) -> impl FnOnce() -> Failure {
    move || Failure::null(argument)
}
