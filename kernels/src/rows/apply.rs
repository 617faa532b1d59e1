//! What top-k and top-p leave of a row, each entry in its place: everything above a value, and of its equals all but the first few.
//!
//! Top-k keeps all from the k-th largest on, which is looked for among what reaches a bound that k elements reach; where these are many,
//! by counting, which is a sum that [`super::reach`] follows. Of what is left [`super::tail`] tells what top-p keeps.

use super::blocks::{BLOCK, block_maxima};
use super::reach::{Ones, Reach, count, without_nan};
use super::sample::Workspace;
use super::select::{gather_all, top_k_bound};
use super::survivors::Above;
use super::tail::{Kept, Tail};
use super::threshold::threshold;
use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// A row of ApplyTopKTopP.
pub struct ApplyTopKTopP<'a, T> {
    /// At least one element.
    pub row: &'a [T],
    /// How many top-k keeps, at least 1, with all equals of the last; the length of the row, or more, for all.
    pub k: usize,
    /// Top-p; NaN for none.
    pub p: f32,
    /// As long as the row.
    pub output: &'a mut [T],
    /// Memory to work in, as for [`super::Sample`].
    pub work: Workspace<'a>,
}

/// The k-th largest value, or one that the same elements reach.
#[inline(always)]
pub fn kth<S: Simd, T: Element>(s: S, row: &[T], k: usize, infinite: bool, work: &mut Workspace<'_>) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            let Workspace { list, maxima } = work;
            // At least k elements reach it.
            let floor = top_k_bound::<S, BLOCK>(s, row.len(), k, maxima, list);
            // Lists count +inf as the largest number, and have signed indices.
            let listed = !infinite && row.len() <= i32::MAX as usize;
            if listed
                && (floor > f32::NEG_INFINITY || row.len() <= list.values.len() / 2)
                && let Some(n) = gather_all::<S, T, BLOCK>(s, row, maxima, floor, list)
            {
                return threshold(s, &list.values[..n], k, 0).0;
            }
            // Where fewer are above, it is the k-th.
            let (equals, above) = count(s, row, maxima, floor);
            if above < k {
                return floor;
            }
            let target = (row.len() - k + 1) as u64;
            let reach = Reach { sums: Ones, least: floor, before: (row.len() - equals - above) as u64, target };
            reach.within(s, row, list).map_or(floor, |reached| reached.value)
        },
    )
}

impl<T: Element> Kernel for ApplyTopKTopP<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_apply_top_k_top_p);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let ApplyTopKTopP { row, k, p, output, mut work } = self;
        let summary = block_maxima::<S, T, BLOCK>(s, row, work.maxima, false);
        let least = if k < row.len() { kth(s, row, k, summary.infinite, &mut work) } else { f32::NEG_INFINITY };
        let (max, t) = (summary.max, 1.0 - p);
        let has_nucleus = !summary.infinite && max > f32::NEG_INFINITY;
        let (kept, filled) = if has_nucleus && p <= 0.0 {
            (Kept::last(s, row, work.maxima, Above { value: max, ties: 1 }), false)
        } else if has_nucleus && t >= 0.0 {
            match (Tail { row, least, max, p, t }).kept(s, &mut work, output) {
                Some(kept) => (kept, true),
                None => return,
            }
        } else {
            (Kept::from(least), false)
        };
        copy(s, row, work.maxima, kept, filled, output);
    }
}

/// Copies what stays, bit for bit; -inf elsewhere, with which the output may be filled.
#[inline(always)]
fn copy<S: Simd, T: Element>(s: S, row: &[T], maxima: &[f32], Kept { value, mut skip }: Kept, filled: bool, output: &mut [T]) {
    if value == f32::NEG_INFINITY {
        debug_assert_eq!(skip, 0);
        output.copy_from_slice(row);
        return;
    }
    for ((row, output), &max) in row.chunks(BLOCK).zip(output.chunks_mut(BLOCK)).zip(maxima) {
        if max >= value {
            skip -= copy_block(s, row, Kept { value, skip }, output);
        } else if !filled {
            output.fill(T::NEG_INFINITY);
        }
    }
}

/// [`copy`] of a block; returns how many it skipped.
#[inline(always)]
fn copy_block<S: Simd, T: Element>(s: S, row: &[T], kept: Kept, output: &mut [T]) -> usize {
    let (value, mut skip) = (s.splat(kept.value), kept.skip);
    vectors(
        row.len(),
        #[inline(always)]
        |span| {
            let found = span.load(s, row, T::NEG_INFINITY);
            let v = without_nan(s, found);
            let mut stays = s.le(value, v);
            if skip > 0 {
                let mut keeps = [0; 16];
                s.store_i32(s.select_i32(stays, s.splat_i32(1), s.splat_i32(0)), &mut keeps);
                let mut equals = s.mask_bits(s.eq(value, v));
                while equals != 0 && skip > 0 {
                    keeps[equals.trailing_zeros() as usize] = 0;
                    equals &= equals - 1;
                    skip -= 1;
                }
                stays = s.gt_i32(s.load_i32(&keeps), s.splat_i32(0));
            }
            // A NaN stays only where all does, and narrowing gives the bits of all else.
            span.store(s, s.select(stays, found, s.splat(f32::NEG_INFINITY)), output);
        },
    );
    kept.skip - skip
}
