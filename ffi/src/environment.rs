//! The floating-point environment of whoever calls. A program built with `-ffast-math` runs with flush-to-zero on, and others with
//! another rounding mode: either would change results.

/// The default environment, until dropped; then the caller's again, with what it told of exceptions. What need not be written, as
/// mostly, is not: that would take longer than the reading.
pub(crate) struct Environment {
    callers: Word,
}

impl Environment {
    #[inline]
    pub fn enter() -> Environment {
        let callers = read();
        if callers & CONTROL != DEFAULT {
            write(DEFAULT);
        }
        Environment { callers }
    }
}

impl Drop for Environment {
    #[inline]
    fn drop(&mut self) {
        if read() != self.callers {
            write(self.callers);
        }
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
mod register {
    pub(super) type Word = u32;

    /// All exceptions masked, round to nearest even, neither FTZ nor DAZ.
    pub(super) const DEFAULT: Word = 0x1F80;

    /// All but what tells of exceptions in the past.
    pub(super) const CONTROL: Word = !0x3F;

    #[inline]
    pub(super) fn read() -> Word {
        let mut word = 0;
        // SAFETY: stores MXCSR into `word` and does nothing else.
        unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub(super) fn write(word: Word) {
        // SAFETY: `word` is the default or was read from MXCSR, so no reserved bit is set. Without `nomem`: arithmetic on memory does
        // not move across.
        unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    pub(super) type Word = u64;

    /// No traps, round to nearest even, no flush to zero, NaNs propagate.
    pub(super) const DEFAULT: Word = 0;

    /// All of it: FPSR tells of exceptions.
    pub(super) const CONTROL: Word = !0;

    #[inline]
    pub(super) fn read() -> Word {
        let word;
        // SAFETY: reads FPCR and does nothing else.
        unsafe { core::arch::asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub(super) fn write(word: Word) {
        // SAFETY: `word` is the default or was read from FPCR. Without `nomem`: arithmetic on memory does not move across.
        unsafe { core::arch::asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

/// Elsewhere the default environment is the caller's to have.
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
mod register {
    pub(super) type Word = u32;

    pub(super) const DEFAULT: Word = 0;

    pub(super) const CONTROL: Word = 0;

    pub(super) fn read() -> Word {
        DEFAULT
    }

    pub(super) fn write(_: Word) {}
}

use register::{CONTROL, DEFAULT, Word, read, write};
