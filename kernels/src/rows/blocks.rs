//! The maxima of fixed blocks of a row, in one pass.

use super::estimate::{Estimate, Whole, total};
use super::first_max::{Summary, holds_nan};
use super::groups::each_group;
use super::key::bits_of_half;
use super::lane_best::Best;
use super::runs::runs_are_short;
use super::vectors;
use crate::element::Element;
use crate::simd::Simd;

/// Elements of a block, by default: one in 64 is a block maximum, and a block is one or two prefetched pairs of cache lines.
pub const BLOCK: usize = 64;

/// Elements of a block where a vector of 16 is two registers: the fold and its loop then weigh twice as much.
pub(super) const WIDER_BLOCK: usize = 128;

/// Elements of a block of a long row of which few are looked for: folding shorter ones takes longer than looking through these.
pub(super) const LONGER_BLOCK: usize = 256;

/// The pass of that name as this processor takes it: where runs are short, MORE is folded at once. Each way is a function of its
/// own; that with MORE is compiled only for tokens whose vector is one register.
macro_rules! folded {
    ($pass:ident($($argument:expr),*)) => {
        if const { S::IS_WIDE } && runs_are_short() {
            $pass::<S, T, BLOCK, true>($($argument),*)
        } else {
            $pass::<S, T, BLOCK, false>($($argument),*)
        }
    };
}

/// Room for block maxima of a row of `n` elements in blocks of `block`.
pub const fn maxima_len(n: usize, block: usize) -> usize {
    n.div_ceil(block).next_multiple_of(16)
}

/// Writes the maximum of each block (NaN not counted), and -inf up to a multiple of 16 blocks. One pass; a second one looks for a NaN
/// if `nan` asks for it.
#[inline(always)]
pub fn block_maxima<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], maxima: &mut [f32], nan: bool) -> Summary {
    block_maxima_and_guess::<S, T, BLOCK>(s, row, maxima, 0, nan).0
}

/// [`block_maxima`], and about the k-th largest of them; for k = 0 anything, k <= [`Best::MOST`].
#[inline(always)]
pub fn block_maxima_and_guess<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    k: usize,
    nan: bool,
) -> (Summary, f32) {
    let (max, guess) = folded!(only_maxima(s, row, maxima, k));
    (Summary::new(max, nan && holds_nan(s, row)), guess)
}

#[inline(always)]
fn only_maxima<S: Simd, T: Element, const BLOCK: usize, const MORE: bool>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    k: usize,
) -> (f32, f32) {
    s.apart(
        #[inline(always)]
        move || {
            let best = pass::<S, T, BLOCK, MORE>(
                s,
                row,
                maxima,
                #[inline(always)]
                |_, _| (),
            );
            best.max_and_guess(s, k)
        },
    )
}

/// [`block_maxima`], and the sum of the row by estimates around `center`; `None` where elements are too far above that. For rows
/// that take longer to read than to add up.
#[inline(always)]
pub fn block_maxima_and_whole<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    center: f32,
    nan: bool,
) -> Option<(Summary, Whole)> {
    folded!(maxima_and_whole(s, row, maxima, center, nan))
}

#[inline(always)]
fn maxima_and_whole<S: Simd, T: Element, const BLOCK: usize, const MORE: bool>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    center: f32,
    nan: bool,
) -> Option<(Summary, Whole)> {
    let estimate = Estimate::new(center)?;
    s.apart(
        #[inline(always)]
        move || {
            let mut sums = [s.splat(0.0); 4];
            let best = pass::<S, T, BLOCK, MORE>(
                s,
                row,
                maxima,
                #[inline(always)]
                |i, v| sums[i % 4] = s.add(sums[i % 4], estimate.of(s, v)),
            );
            let end = &row[row.len() / (16 * BLOCK) * (16 * BLOCK)..];
            let sum = total(s, sums) + estimate.sum(s, end);
            let summary = Summary::new(best.max_and_guess(s, 0).0, nan && holds_nan(s, row));
            Some((summary, Whole::around(estimate, sum, summary.max)?))
        },
    )
}

/// The maxima of the blocks, and the best of them. `also` gets each vector of the groups of 16 blocks, and its number in its block.
#[inline(always)]
fn pass<S: Simd, T: Element, const BLOCK: usize, const MORE: bool>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    mut also: impl FnMut(usize, S::F32),
) -> Best<S::F32> {
    let (row, maxima, mut best) = end::<S, T, BLOCK>(s, row, maxima);
    each_group::<S, T, BLOCK, MORE>(
        s,
        row,
        maxima,
        #[inline(always)]
        |block| {
            let mut top = s.splat(f32::NEG_INFINITY);
            for (i, sixteen) in block.as_chunks::<16>().0.iter().enumerate() {
                let v = T::load(s, sixteen);
                // NaN not counted: it is the first argument of a maximum.
                top = s.max(v, top);
                also(i, v);
            }
            top
        },
        #[inline(always)]
        |a, b| s.max(a, b),
        #[inline(always)]
        |top| {
            best.meets(s, top);
            top
        },
    );
    best
}

/// [`block_maxima`] of a row of 16-bit numbers, as integers: of those that are not negative the larger has the larger bits, and
/// 32 are compared at once. A block without any of these gets 0; so what comes of these maxima holds for bounds above 0. `None`
/// for other rows, and where the largest is none of these or a NaN was in the way. And a guess, as of [`block_maxima_and_guess`].
#[inline(always)]
pub fn half_maxima<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    k: usize,
    nan: bool,
) -> Option<(Summary, f32)> {
    if const { size_of::<T>() != 2 || BLOCK % 32 != 0 } {
        return None;
    }
    let (max, guess) = folded!(only_half_maxima(s, row, maxima, k))?;
    (max > 0.0).then(|| (Summary::new(max, nan && holds_nan(s, row)), guess))
}

#[inline(always)]
fn only_half_maxima<S: Simd, T: Element, const BLOCK: usize, const MORE: bool>(
    s: S,
    row: &[T],
    maxima: &mut [f32],
    k: usize,
) -> Option<(f32, f32)> {
    s.apart(
        #[inline(always)]
        move || {
            let (row, maxima, mut best) = end::<S, T, BLOCK>(s, row, maxima);
            let mut bits = s.splat_i32(0);
            each_group::<S, T, BLOCK, MORE>(
                s,
                row,
                maxima,
                #[inline(always)]
                |block| {
                    let (pairs, _) = bytemuck::cast_slice::<T, u16>(block).as_chunks::<32>();
                    let mut top = s.load_i32(&bytemuck::cast(pairs[0]));
                    for pairs in &pairs[1..] {
                        top = s.max_i16(s.load_i32(&bytemuck::cast(*pairs)), top);
                    }
                    // The upper halves.
                    s.from_bits(s.max_i16(top, s.shl(top, 16)))
                },
                #[inline(always)]
                |a, b| s.from_bits(s.max_i32(s.bits(a), s.bits(b))),
                #[inline(always)]
                |top| {
                    let top = s.bits(top);
                    bits = s.max_i32(bits, top);
                    let mut halves = [0; 16];
                    s.store_u16(s.shr(top, 16), &mut halves);
                    let top = T::load(s, &bytemuck::cast(halves));
                    let top = s.max(top, s.splat(0.0));
                    best.meets(s, top);
                    top
                },
            );
            let infinity = bits_of_half(T::narrow(f32::INFINITY));
            (s.reduce_max_i32(bits) >> 16 <= i32::from(infinity)).then(
                #[inline(always)]
                || best.max_and_guess(s, k),
            )
        },
    )
}

/// The maxima of the blocks behind the last whole group, and before anything else: reducing and storing them is done while the
/// groups are read. Returns what is before them, of the row and of its room, and the best so far.
#[inline(always)]
fn end<'r, 'm, S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &'r [T],
    maxima: &'m mut [f32],
) -> (&'r [T], &'m mut [f32], Best<S::F32>) {
    let groups = row.len() / (16 * BLOCK);
    let (row, rest) = row.split_at(groups * 16 * BLOCK);
    let (maxima, end) = maxima.split_at_mut(16 * groups);
    let mut tops = [f32::NEG_INFINITY; 16];
    for (top, block) in tops.iter_mut().zip(rest.chunks(BLOCK)) {
        let mut best = s.splat(f32::NEG_INFINITY);
        vectors(
            block.len(),
            #[inline(always)]
            |span| best = s.max(span.load(s, block, T::NEG_INFINITY), best),
        );
        *top = s.reduce_max(best);
    }
    if !rest.is_empty() {
        end[..16].copy_from_slice(&tops);
    }
    (row, maxima, Best::of(s, s.load(&tops)))
}
