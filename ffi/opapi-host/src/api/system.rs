//! The process: beginning and end, versions, messages, and what is alive.

use crate::boundary::{last_error, null_parameter, put, recent_message, runtime};
use crate::failure::Failure;
use crate::system::{alive, finalize, init};
use core::ffi::{CStr, c_char};
use std::path::Path;
use tilekern_acl::{aclError, aclrtLastErrLevel, codes};

/// Begins ACL. The file's contents have nothing to configure here; NULL for none. 100002 if it was begun before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclInit(configPath: *const c_char) -> aclError {
    runtime("aclInit", || {
        if !configPath.is_null() {
            // SAFETY: the caller promises a string.
            let path = unsafe { CStr::from_ptr(configPath) }.to_string_lossy();
            if !path.is_empty() && !Path::new(&*path).is_file() {
                return Err(Failure::new(codes::ACL_ERROR_INVALID_FILE, format!("configPath: no file {path}")));
            }
        }
        init()
    })
}

/// Ends ACL, however often it was begun. With TILEKERN_OPAPI_LEAKS=1 in the environment it says on standard error what is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclFinalize() -> aclError {
    runtime("aclFinalize", || finalize(true).map(|_| ()))
}

/// One owner fewer; ends ACL with the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclFinalizeReference(refCount: *mut u64) -> aclError {
    runtime("aclFinalizeReference", || {
        let left = finalize(false)?;
        // SAFETY: as promised by the caller.
        if refCount.is_null() { Ok(()) } else { unsafe { put(refCount, null_parameter("refCount"), left) } }
    })
}

/// What went wrong last on this thread; "" where nothing did. Reading clears it. Valid until the thread asks again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    recent_message()
}

/// The code of the last runtime call that failed on this thread; reading clears it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetLastError(level: aclrtLastErrLevel) -> aclError {
    let _ = level;
    last_error(true)
}

/// The same, without clearing it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtPeekAtLastError(level: aclrtLastErrLevel) -> aclError {
    let _ = level;
    last_error(false)
}

/// The version of this library, whatever the package: at least 128 bytes of room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclsysGetVersionStr(pkgName: *mut c_char, versionStr: *mut c_char) -> aclError {
    let _ = pkgName;
    runtime("aclsysGetVersionStr", || {
        if versionStr.is_null() {
            return Err(null_parameter("versionStr")());
        }
        let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
        // SAFETY: the caller promises 128 bytes, and the version is shorter.
        unsafe { versionStr.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
        Ok(())
    })
}

/// The same as a number: major * 10^7 + minor * 10^5 + patch * 10^3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclsysGetVersionNum(pkgName: *mut c_char, versionNum: *mut i32) -> aclError {
    let _ = pkgName;
    runtime("aclsysGetVersionNum", || {
        let parts = env!("CARGO_PKG_VERSION").split('.').zip([10_000_000, 100_000, 1000]);
        let number = parts.map(|(part, factor)| part.parse::<i32>().unwrap_or(0) * factor).sum();
        // SAFETY: as promised by the caller.
        unsafe { put(versionNum, null_parameter("versionNum"), number) }
    })
}

/// How many of a kind are alive: TK_OPAPI_DESCRIPTORS and so on; -1 for another kind. Not a function of CANN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_opapi_live(kind: i32) -> i64 {
    alive(kind).map_or(-1, |count| count as i64)
}
