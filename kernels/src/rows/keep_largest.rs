//! The k largest of a row, for a k of any size: the others become -inf.

use super::apply::kth;
use super::blocks::{BLOCK, block_maxima};
use super::reach::{count, without_nan};
use super::sample::Workspace;
use super::{hits, vectors};
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
        let (mut equals, least) = (k - above, s.splat(least));
        vectors(
            row.len(),
            #[inline(always)]
            |span| {
                let found = span.load(s, row, f32::NEG_INFINITY);
                let v = without_nan(s, found);
                let mut stays = s.lt(least, v);
                let equal = hits(s, s.eq(least, v), span.len).count_ones() as usize;
                if equal > 0 {
                    let taken = equals.min(equal);
                    stays = s.differ(stays, first_hits(s, s.eq(least, v), taken));
                    equals -= taken;
                }
                span.store(s, s.select(stays, found, s.splat(f32::NEG_INFINITY)), row);
            },
        );
    }
}

/// The first `n` of the lanes where `m` holds.
#[inline(always)]
fn first_hits<S: Dot>(s: S, m: S::Mask, n: usize) -> S::Mask {
    let (mut bits, mut lanes) = (s.mask_bits(m), [0; 16]);
    for _ in 0..n {
        lanes[bits.trailing_zeros() as usize] = 1;
        bits &= bits - 1;
    }
    s.gt_i32(s.load_i32(&lanes), s.splat_i32(0))
}
