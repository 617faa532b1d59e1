//! Status codes and the version.

use core::ffi::c_char;
use tilekern::Status;

/// Done.
pub const TK_STATUS_SUCCESS: i32 = 0;
/// A required pointer is NULL.
pub const TK_STATUS_NULL: i32 = 161001;
/// A dtype, rank, shape, stride or range is wrong.
pub const TK_STATUS_INVALID: i32 = 161002;
/// A size is outside what the operator supports.
pub const TK_STATUS_TILING: i32 = 561002;
/// The workspace is too small or misaligned.
pub const TK_STATUS_WORKSPACE: i32 = -1;
/// Not supported on this processor or backend.
pub const TK_STATUS_UNSUPPORTED: i32 = -2;
/// The backend is missing or failed.
pub const TK_STATUS_BACKEND: i32 = -3;
/// A bug of this library, or of the caller's parallel_for.
pub const TK_STATUS_INTERNAL: i32 = -4;

/// `text` with a NUL behind it.
pub(crate) const fn terminated<const N: usize>(text: &str) -> [u8; N] {
    assert!(text.len() + 1 == N);
    let mut bytes = [0; N];
    let mut i = 0;
    while i < text.len() {
        bytes[i] = text.as_bytes()[i];
        i += 1;
    }
    bytes
}

/// A constant string, for C.
macro_rules! text {
    ($text:expr) => {{
        const TEXT: &str = $text;
        static TERMINATED: [u8; TEXT.len() + 1] = $crate::status::terminated(TEXT);
        TERMINATED.as_ptr().cast::<core::ffi::c_char>()
    }};
}
pub(crate) use text;

/// major << 16 | minor << 8 | patch
#[unsafe(no_mangle)]
pub extern "C" fn tk_version() -> u32 {
    const fn number(text: &str) -> u32 {
        match u32::from_str_radix(text, 10) {
            Ok(n) if n < 256 => n,
            _ => panic!("a version number beyond a byte"),
        }
    }
    const VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"));
    VERSION
}

/// One short sentence, never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tk_status_string(status: i32) -> *const c_char {
    match status {
        TK_STATUS_SUCCESS => text!("success"),
        TK_STATUS_NULL => text!(Status::Null.text()),
        TK_STATUS_INVALID => text!(Status::Invalid.text()),
        TK_STATUS_TILING => text!(Status::Tiling.text()),
        TK_STATUS_WORKSPACE => text!(Status::Workspace.text()),
        TK_STATUS_UNSUPPORTED => text!(Status::Unsupported.text()),
        TK_STATUS_BACKEND => text!(Status::Backend.text()),
        TK_STATUS_INTERNAL => text!(Status::Internal.text()),
        _ => text!("unknown status"),
    }
}
