//! A bound that lets less through where the largest elements stand close together, in few blocks: on a slope, in a cluster.

use super::bound::bound;
use super::find::locate_few;
use super::vectors;
use crate::element::Element;
use crate::simd::Simd;

/// A value that at least k elements reach, and no less than `least`, which does the same. The maxima of all disjoint parts of a row
/// give one: here the parts are every 16th element of a block that reaches `least`. `space` is room for that; where it is too small
/// for the blocks the answer is `least`.
#[inline(always)]
pub fn finer_bound<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &[f32],
    (k, least): (usize, f32),
    space: &mut [f32],
) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            // More than the bound of the block maxima lets through.
            let most = 2 * k + 32;
            if space.len() < 25 * most + 256 {
                return least;
            }
            let (parts, space) = space.split_at_mut(16 * most);
            let (folded, hits) = space.split_at_mut(8 * most);
            // No more than that, so that it is soon seen where they are too many.
            let hits = bytemuck::cast_slice_mut(&mut hits[..most + 256]);
            match locate_few(s, &maxima[..row.len().div_ceil(BLOCK)], least, hits, most) {
                Some(found) => {
                    maxima_of_lanes::<S, T, BLOCK>(s, row, &hits[..found], parts.as_chunks_mut().0);
                    bound(s, &parts[..16 * found], k, folded).max(least)
                }
                None => least,
            }
        },
    )
}

/// The largest of each lane of blocks of these numbers, -inf where there is none.
#[inline(always)]
fn maxima_of_lanes<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], blocks: &[i32], lanes: &mut [[f32; 16]]) {
    s.apart(
        #[inline(always)]
        move || {
            for (&number, lanes) in blocks.iter().zip(lanes) {
                let first = number as usize * BLOCK;
                let block = &row[first..row.len().min(first + BLOCK)];
                let mut best = s.splat(f32::NEG_INFINITY);
                vectors(
                    block.len(),
                    #[inline(always)]
                    |span| best = s.max(span.load(s, block, T::NEG_INFINITY), best),
                );
                s.store(best, lanes);
            }
        },
    );
}
