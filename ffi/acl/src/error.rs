//! What a function of ACL answered, and what it said about it.

use crate::codes;
use crate::table::Table;
use core::ffi::CStr;
use core::fmt;

/// A function of ACL failed.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    function: &'static str,
    code: i32,
    message: Message,
}

impl Error {
    /// Success, or the error with the message that this thread's last failure left.
    pub(crate) fn check(table: &Table, function: &'static str, code: i32) -> Result<(), Error> {
        if code == codes::ACL_SUCCESS { Ok(()) } else { Err(Error { function, code, message: table.recent_message() }) }
    }

    /// A function that this CANN lacks.
    pub(crate) fn missing(function: &'static str) -> Error {
        Error { function, code: codes::ACL_ERROR_RT_FEATURE_NOT_SUPPORT, message: Message::EMPTY }
    }

    /// What another device made.
    pub(crate) fn of_another_device(function: &'static str) -> Error {
        Error { function, code: codes::ACL_ERROR_RT_STREAM_CONTEXT, message: Message::EMPTY }
    }

    /// What failed.
    pub fn function(&self) -> &'static str {
        self.function
    }

    /// What it answered.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// What it said about it; empty where it said nothing.
    pub fn message(&self) -> &str {
        self.message.as_str()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.function, self.code, codes::name(self.code))?;
        if self.message().is_empty() { Ok(()) } else { write!(f, ": {}", self.message()) }
    }
}

impl core::error::Error for Error {}

/// Whether a synchronise waited to the end: work that failed (5xxxxx, or an overflow) has ended all the same. An error of the caller's, a
/// lack of resources or a wait that took too long says nothing of the work.
pub(crate) fn was_waited(result: &Result<(), Error>) -> bool {
    let failed = |code: i32| code >= 500_000 && code != codes::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    let ended = |code: i32| failed(code) || code == codes::ACL_ERROR_RT_AICORE_OVER_FLOW;
    result.as_ref().map_or_else(|error| error.function.starts_with("aclrtSynchronize") && ended(error.code), |()| true)
}

/// What `aclGetRecentErrMsg` said, as much as fits.
#[derive(Clone, Copy)]
pub struct Message {
    bytes: [u8; Message::CAPACITY],
    length: u8,
}

impl Message {
    const CAPACITY: usize = 240;
    const EMPTY: Message = Message { bytes: [0; Message::CAPACITY], length: 0 };

    fn copy(text: &CStr) -> Message {
        let mut message = Message::EMPTY;
        let valid = text.to_bytes().utf8_chunks().next().map_or("", |chunk| chunk.valid()).trim_end();
        let n = valid.floor_char_boundary(Message::CAPACITY);
        message.bytes[..n].copy_from_slice(&valid.as_bytes()[..n]);
        message.length = n as u8;
        message
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or("")
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Table {
    /// What went wrong last on this thread. Reading clears it, so it is read once, right behind the failure.
    pub fn recent_message(&self) -> Message {
        // SAFETY: any thread may ask at any time.
        let text = unsafe { (self.runtime.aclGetRecentErrMsg)() };
        if text.is_null() {
            return Message::EMPTY;
        }
        // SAFETY: a string that stays until this thread's next call.
        Message::copy(unsafe { CStr::from_ptr(text) })
    }
}
