//! The order in which a row is read.
//!
//! Whoever writes or reads a row mostly ends with its end. So that is in the nearest cache still, and what is before it in the next one,
//! until what is read meanwhile takes their places: a row is read in runs, the last first, each in its own order.

use crate::dispatch::Isa;
use core::ops::Range;

/// Bytes of the last run, where runs are longer than a step: what a first cache of 32 KiB holds beside other things.
const LAST: usize = 24 << 10;

/// 16-bit numbers of more bytes than this are a long row.
const LONG: usize = 128 << 10;

/// Whether a row of `len` elements is a long one of 16-bit numbers.
#[inline(always)]
pub fn is_long_of_halves<T>(len: usize) -> bool {
    size_of::<T>() == 2 && len > LONG / 2
}

/// Whether runs are as short as can be. Measured on processors that have AMX.
#[inline(always)]
pub fn runs_are_short() -> bool {
    Isa::Avx512Amx.is_available()
}

/// How long runs are.
#[derive(Clone, Copy, PartialEq)]
pub enum Length {
    /// One step.
    Step,
    /// As long as the last one.
    Even,
    /// As long as all that is behind them: for loops that a processor serves the better the longer they go on.
    Growing,
}

impl Length {
    /// This, unless runs are short.
    #[inline(always)]
    pub fn or_step(self) -> Length {
        if runs_are_short() { Length::Step } else { self }
    }
}

/// The runs of a row that is read `step` elements at a time, `steps` times: some steps each.
#[inline(always)]
pub fn runs<T>(steps: usize, step: usize, length: Length) -> impl Iterator<Item = Range<usize>> {
    let mut most = if length == Length::Step { 1 } else { (LAST / (step * size_of::<T>())).max(1) };
    let mut end = steps;
    core::iter::from_fn(
        #[inline(always)]
        move || {
            let run = end.saturating_sub(most)..end;
            end = run.start;
            if length == Length::Growing {
                most = most.max(steps - end);
            }
            (!run.is_empty()).then_some(run)
        },
    )
}

#[cfg(test)]
mod tests;
