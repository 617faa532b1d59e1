//! Slices side by side, cut alike. Without closures, which would be functions of their own in each of a thousand bodies.

use core::ops::{Index, Range};

/// A part of each.
#[inline(always)]
pub(super) fn slices<T, const N: usize>(all: [&[T]; N], part: Range<usize>) -> [&[T]; N] {
    let mut parts = all;
    for n in 0..N {
        parts[n] = &all[n][part.start..][..part.end - part.start];
    }
    parts
}

/// The first `count` whole chunks of each.
#[inline(always)]
pub(super) fn chunks<T, const LEN: usize, const N: usize>(all: [&[T]; N], count: usize) -> [&[[T; LEN]]; N] {
    let mut chunks: [&[[T; LEN]]; N] = [&[]; N];
    for n in 0..N {
        chunks[n] = &all[n].as_chunks().0[..count];
    }
    chunks
}

/// One element of each, of at least one.
#[inline(always)]
pub(super) fn at<A: Index<usize> + ?Sized, const N: usize>(all: [&A; N], i: usize) -> [&A::Output; N] {
    let mut elements = [&all[0][i]; N];
    for n in 1..N {
        elements[n] = &all[n][i];
    }
    elements
}
