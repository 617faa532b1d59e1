//! A bound that at least k elements of a row reach, and not many more, from its block maxima: k of them reach it.
//!
//! The maxima of any disjoint parts will do. Where there are many more blocks than k, parts are several blocks, far apart, so that a
//! slope or a cluster does not end in few parts.

use super::lane_best::{FEW, reached_by};
use super::threshold::threshold;
use super::vectors;
use crate::simd::Simd;

/// A bound for at least k elements; -inf where there are too few blocks to tell. `folded` has room for half of the maxima, which are
/// a multiple of 16; with less there are fewer and larger parts, and with less than k none.
#[inline(always)]
pub fn bound<S: Simd>(s: S, maxima: &[f32], k: usize, folded: &mut [f32]) -> f32 {
    s.apart(
        #[inline(always)]
        move || {
            if maxima.len() < k {
                return f32::NEG_INFINITY;
            }
            let fold = (2 * maxima.len() / (7 * k).max(512)).max(1);
            let bound = if k <= FEW {
                reached_by(s, k, maxima.as_chunks().0, fold)
            } else {
                threshold(s, fold_parts(s, maxima, if folded.len() < k { 1 } else { fold }, folded), k, k / 8 + 4).0
            };
            bound.min(f32::MAX)
        },
    )
}

/// The maxima of parts of `fold` blocks, or more.
#[inline(always)]
fn fold_parts<'a, S: Simd>(s: S, maxima: &'a [f32], fold: usize, folded: &'a mut [f32]) -> &'a [f32] {
    if fold < 2 {
        return maxima;
    }
    let parts = (maxima.len() / fold).next_multiple_of(16).min(folded.len());
    folded[..parts].copy_from_slice(&maxima[..parts]);
    for group in maxima[parts..].chunks(parts) {
        vectors(
            group.len(),
            #[inline(always)]
            |span| span.store(s, s.max(span.load(s, group, 0.0), span.load(s, folded, 0.0)), folded),
        );
    }
    &folded[..parts]
}
