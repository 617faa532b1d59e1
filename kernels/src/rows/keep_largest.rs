//! The k largest of a row, for a k of any size: the others become -inf.

use super::apply::kth;
use super::blocks::{BLOCK, block_maxima};
use super::reach::{count, without_nan};
use super::sample::Workspace;
use super::survivors::Above;
use super::vectors;
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::Dot;

/// Leaves the k largest of a row, of equal ones those of lower index, and makes the others -inf. A NaN counts as -inf.
pub struct KeepLargest<'a> {
    /// Read and written; at most 2^20 elements.
    pub row: &'a mut [f32],
    /// 1 to the length of the row.
    pub k: usize,
    /// Memory to work in, as for [`super::Sample`].
    pub work: Workspace<'a>,
}

impl Kernel for KeepLargest<'_> {
    type Output = ();
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let KeepLargest { row, k, mut work } = self;
        let summary = block_maxima::<S, f32, BLOCK>(s, row, work.maxima, false);
        let least = kth(s, row, k, summary.infinite, &mut work);
        let (_, above) = count(s, row, work.maxima, least);
        let mut kept = Above { value: least, ties: k - above };
        vectors(
            row.len(),
            #[inline(always)]
            |span| {
                let v = span.load(s, row, f32::NEG_INFINITY);
                let stays = kept.mask(s, without_nan(s, v), span.len);
                span.store(s, s.select(stays, v, s.splat(f32::NEG_INFINITY)), row);
            },
        );
    }
}
