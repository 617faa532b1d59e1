//! The maxima of fixed blocks of a row, in one pass.

use super::estimate::{Estimate, Whole, total};
use super::first_max::{Summary, holds_nan};
use super::key::bits_of_half;
use super::vectors;
use crate::element::Element;
use crate::simd::Simd;
use core::hint::black_box;

/// Elements of a block, by default: one in 64 is a block maximum, and a block is one or two prefetched pairs of cache lines.
pub const BLOCK: usize = 64;

/// Elements of a block where a vector of 16 is two registers: the fold and its loop then weigh twice as much.
pub(super) const WIDER_BLOCK: usize = 128;

/// Room for block maxima of a row of `n` elements in blocks of `block`.
pub const fn maxima_len(n: usize, block: usize) -> usize {
    n.div_ceil(block).next_multiple_of(16)
}

/// Writes the maximum of each block (NaN not counted), and -inf up to a multiple of 16 blocks. One pass; a second one looks for a NaN
/// if `nan` asks for it.
#[inline(never)]
pub fn block_maxima<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], maxima: &mut [f32], nan: bool) -> Summary {
    let max = s.vectorize(
        #[inline(always)]
        || {
            pass::<S, T, BLOCK>(
                s,
                row,
                maxima,
                #[inline(always)]
                |_, _| (),
            )
        },
    );
    Summary::new(max, nan && holds_nan(s, row))
}

/// [`block_maxima`], and the sum of the row by estimates around `center`; `None` where elements are too far above that. For rows
/// that take longer to read than to add up.
#[inline(never)]
pub fn block_maxima_and_whole<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    center: f32,
    nan: bool,
) -> Option<(Summary, Whole)> {
    let estimate = Estimate::new(center)?;
    s.vectorize(
        #[inline(always)]
        || {
            let mut sums = [s.splat(0.0); 4];
            let max = pass::<S, T, BLOCK>(
                s,
                row,
                maxima,
                #[inline(always)]
                |i, v| sums[i % 4] = s.add(sums[i % 4], estimate.of(s, v)),
            );
            let end = &row[row.len() / (16 * BLOCK) * (16 * BLOCK)..];
            let sum = total(s, sums) + estimate.sum(s, end);
            let summary = Summary::new(max, nan && holds_nan(s, row));
            Some((summary, Whole::around(estimate, sum, summary.max)?))
        },
    )
}

/// The maxima of the blocks, and of all. `also` gets each vector of the groups of 16 blocks, and its number in its block.
#[inline(always)]
fn pass<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    mut also: impl FnMut(usize, S::F32),
) -> f32 {
    const { assert!(BLOCK >= 16 && BLOCK % 16 == 0) };
    let (mut max, mut each) = (s.splat(f32::NEG_INFINITY), Each([[0.0; 16]; 16]));
    let (groups, (rest, end)) = groups::<T, BLOCK>(row, maxima);
    for (blocks, tops) in groups {
        for (each, block) in each.0.iter_mut().zip(blocks.as_chunks::<BLOCK>().0) {
            let mut top = s.splat(f32::NEG_INFINITY);
            for (i, sixteen) in block.as_chunks::<16>().0.iter().enumerate() {
                let v = T::load(s, sixteen);
                // NaN not counted: it is the first argument of a maximum.
                top = s.max(v, top);
                also(i, v);
            }
            s.store(top, each);
        }
        let top = fold(
            s,
            &each,
            #[inline(always)]
            |a, b| s.max(a, b),
        );
        max = s.max(top, max);
        s.store(top, tops);
    }
    let last = last::<S, T, BLOCK>(s, rest, end);
    s.reduce_max(s.max(last, max))
}

/// [`block_maxima`] of a row of 16-bit numbers, as integers: of those that are not negative the larger has the larger bits, and
/// 32 are compared at once. A block of nothing but negative numbers gets -inf; so what comes of these maxima holds for bounds
/// above 0. `None` for other rows, and where the largest is none of these or a NaN was in the way.
#[inline(never)]
pub fn half_maxima<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], maxima: &mut [f32], nan: bool) -> Option<Summary> {
    if size_of::<T>() != 2 || BLOCK % 32 != 0 {
        return None;
    }
    let max = s.vectorize(
        #[inline(always)]
        || {
            let (mut max, mut bits, mut each) = (s.splat(0.0), s.splat_i32(0), Each([[0.0; 16]; 16]));
            let (groups, (rest, end)) = groups::<T, BLOCK>(row, maxima);
            for (blocks, tops) in groups {
                for (each, block) in each.0.iter_mut().zip(blocks.as_chunks::<BLOCK>().0) {
                    let (pairs, _) = bytemuck::cast_slice::<T, u16>(block).as_chunks::<32>();
                    let mut top = s.splat_i32(i32::MIN);
                    for pairs in pairs {
                        top = s.max_i16(s.load_i32(&bytemuck::cast(*pairs)), top);
                    }
                    // The upper halves.
                    s.store(s.from_bits(s.max_i16(top, s.shl(top, 16))), each);
                }
                let top = fold(
                    s,
                    &each,
                    #[inline(always)]
                    |a, b| s.from_bits(s.max_i32(s.bits(a), s.bits(b))),
                );
                let top = s.bits(top);
                bits = s.max_i32(bits, top);
                let mut halves = [0; 16];
                s.store_u16(s.shr(top, 16), &mut halves);
                let top = T::load(s, &bytemuck::cast(halves));
                let top = s.select(s.le(s.splat(0.0), top), top, s.splat(f32::NEG_INFINITY));
                max = s.max(top, max);
                s.store(top, tops);
            }
            let last = last::<S, T, BLOCK>(s, rest, end);
            let infinity = bits_of_half(T::narrow(f32::INFINITY));
            (s.reduce_max_i32(bits) >> 16 <= i32::from(infinity)).then(
                #[inline(always)]
                || s.reduce_max(s.max(last, max)),
            )
        },
    )?;
    (max > 0.0).then(|| Summary::new(max, nan && holds_nan(s, row)))
}

/// The groups of 16 whole blocks with room for their maxima, and what is behind: a rest of the row and its room.
///
/// The blocks of a group are for a loop that is not unrolled, hence its opaque length: one load instruction then meets every few
/// lines of the row, which prefetchers need that tell streams apart by instructions. Zen 5 takes twice as long where 32 or more
/// share a row.
#[inline(always)]
fn groups<'r, 'm, T, const BLOCK: usize>(
    row: &'r [T],
    maxima: &'m mut [f32],
) -> (impl Iterator<Item = (&'r [T], &'m mut [f32; 16])>, (&'r [T], &'m mut [f32])) {
    let count = row.len() / (16 * BLOCK);
    let (full, end) = maxima.split_at_mut(16 * count);
    let (whole, rest) = row.split_at(count * 16 * BLOCK);
    (whole.chunks(black_box(16 * BLOCK)).zip(full.as_chunks_mut::<16>().0), (rest, end))
}

/// The maxima of fewer than 16 whole blocks and a rest.
#[inline(always)]
fn last<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], maxima: &mut [f32]) -> S::F32 {
    let mut tops = [f32::NEG_INFINITY; 16];
    for (top, block) in tops.iter_mut().zip(row.chunks(BLOCK)) {
        let mut best = s.splat(f32::NEG_INFINITY);
        vectors(
            block.len(),
            #[inline(always)]
            |span| best = s.max(span.load(s, block, T::NEG_INFINITY), best),
        );
        *top = s.reduce_max(best);
    }
    if !row.is_empty() {
        maxima[..16].copy_from_slice(&tops);
    }
    s.load(&tops)
}

/// Lanes of 16 vectors, each a cache line: what is written here is read at once.
#[repr(align(64))]
struct Each([[f32; 16]; 16]);

/// The largest lane of each of 16 vectors, by a tree of folds. The vectors are made first, one after the other, since rows are
/// prefetched best in their order.
#[inline(always)]
fn fold<S: Simd>(s: S, Each(each): &Each, larger: impl Fn(S::F32, S::F32) -> S::F32) -> S::F32 {
    let mut tops = [s.splat(0.0); 8];
    for i in 0..8 {
        let (a, b) = s.pairs::<8>(s.load(&each[i]), s.load(&each[i + 8]));
        tops[i] = larger(a, b);
    }
    for i in 0..4 {
        let (a, b) = s.pairs::<4>(tops[i], tops[i + 4]);
        tops[i] = larger(a, b);
    }
    for i in 0..2 {
        let (a, b) = s.pairs::<2>(tops[i], tops[i + 2]);
        tops[i] = larger(a, b);
    }
    let (a, b) = s.pairs::<1>(tops[0], tops[1]);
    larger(a, b)
}
