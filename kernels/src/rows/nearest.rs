//! The order in which a row is read.

use core::ops::Range;

/// Bytes that are read first, from the end of a row, and bytes that are read next: what a first cache of 32 KiB, and one of 48 KiB, holds
/// beside other things.
const NEAR: [usize; 2] = [24 << 10, 20 << 10];

/// Rows of 16-bit numbers longer than this, in bytes, are read in their order, since to begin at the end takes longer there.
const LONG: usize = 128 << 10;

/// Whether a row of `len` elements is a long one of 16-bit numbers.
#[inline(always)]
pub fn is_long_of_halves<T>(len: usize) -> bool {
    size_of::<T>() == 2 && len > LONG / 2
}

/// Parts of a row of `len` elements, what is behind first. Whoever writes or reads a row mostly ends with its end, so that is in the
/// nearest cache still, until what is read before it takes its place. All parts begin at a multiple of `step`.
#[inline(always)]
pub fn nearest_first<T>(len: usize, step: usize) -> [Range<usize>; 3] {
    let before = |end: usize, bytes: usize| end.saturating_sub(bytes / size_of::<T>()).next_multiple_of(step).min(end);
    let near = if is_long_of_halves::<T>(len) { [0; 2] } else { NEAR };
    let last = before(len, near[0]);
    let next = before(last, near[1]);
    [last..len, next..last, 0..next]
}
