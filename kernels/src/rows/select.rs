//! The k largest of a row, sorted, ties cut by index; and all that are at least a bound.
//!
//! Three steps, of which only the first reads the whole row: the maximum of each block of `BLOCK` elements; a bound that at least k
//! block maxima reach, hence at least k elements, so that nothing of the answer lies below it; and the elements that reach the bound,
//! from the few blocks that do. These candidates are selected and sorted by their keys. The bound comes from bisection over the
//! order-preserving bits of the block maxima: any bound that k of them reach will do, so it stops early.
//!
//! Candidates go into a buffer of a fixed size. When ties fill it, it is cut to the k best, and from then on only larger elements
//! count: an equal one further on loses by its index.

use super::first_max::Summary;
use super::key::{ascending_to_value, clean, clean_one, index_of, key, value_of, value_to_ascending};
use super::{Span, vectors};
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::simd::{Dot, Simd};

/// Elements of a block, by default: one in 64 is a block maximum, and a block is one or two prefetched pairs of cache lines.
pub const BLOCK: usize = 64;

/// Room for block maxima of a row of `n` elements, whichever block of at least 16 is chosen.
pub const fn maxima_len(n: usize) -> usize {
    n.div_ceil(16).next_multiple_of(16)
}

/// Writes the maximum of each block (NaN not counted), and -inf up to a multiple of 16 blocks. One pass.
#[inline(never)]
pub fn block_maxima<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], maxima: &mut [f32]) -> Summary {
    s.vectorize(
        #[inline(always)]
        || {
            const { assert!(BLOCK >= 16 && BLOCK % 16 == 0) };
            let lowest = s.splat(f32::NEG_INFINITY);
            let mut numbers = s.eq(lowest, lowest);
            let mut max = lowest;
            for (group, row) in row.chunks(16 * BLOCK).enumerate() {
                let mut tops = [lowest; 16];
                if row.len() == 16 * BLOCK {
                    for (top, block) in tops.iter_mut().zip(row.as_chunks::<BLOCK>().0) {
                        for sixteen in block.as_chunks::<16>().0 {
                            let v = T::load(s, sixteen);
                            numbers = s.both(numbers, s.eq(v, v));
                            *top = s.max(v, *top);
                        }
                    }
                } else {
                    vectors(
                        row.len(),
                        #[inline(always)]
                        |span| {
                            let v = span.load(s, row, T::NEG_INFINITY);
                            numbers = s.both(numbers, s.eq(v, v));
                            tops[span.at / BLOCK] = s.max(v, tops[span.at / BLOCK]);
                        },
                    );
                }
                let tops = s.reduce_max_each(tops);
                max = s.max(tops, max);
                Span { at: 16 * group, len: 16 }.store(s, tops, maxima);
            }
            Summary::new(s.reduce_max(max), s.mask_bits(numbers) != u16::MAX)
        },
    )
}

/// A bound that at least k of the maxima reach, and not many more; -inf where there are fewer than k. The maxima end with -inf up to
/// a multiple of 16.
#[inline(never)]
fn bound<S: Simd>(s: S, maxima: &[f32], blocks: usize, k: usize) -> f32 {
    s.vectorize(
        #[inline(always)]
        || {
            if blocks < k {
                return f32::NEG_INFINITY;
            }
            let (mut least, mut most) = (s.splat(f32::INFINITY), s.splat(f32::NEG_INFINITY));
            vectors(
                blocks,
                #[inline(always)]
                |span| {
                    let v = span.load(s, maxima, maxima[0]);
                    least = s.min(v, least);
                    most = s.max(v, most);
                },
            );
            let least = -s.reduce_max(s.sub(s.splat(0.0), least));
            // `low` is reached by `reached` >= k, `high` by fewer than k.
            let mut low = value_to_ascending(least);
            let mut high = value_to_ascending(s.reduce_max(most)).saturating_add(1);
            let mut reached = blocks;
            while reached > k + k / 8 + 4 && i64::from(high) - i64::from(low) > 1 {
                let middle = ((i64::from(low) + i64::from(high)) >> 1) as i32;
                let value = s.splat(ascending_to_value(middle));
                let mut counts = s.splat_i32(0);
                for group in 0..blocks.div_ceil(16) {
                    let v = Span { at: 16 * group, len: 16 }.load(s, maxima, 0.0);
                    counts = s.add_i32(counts, s.select_i32(s.le(value, v), s.splat_i32(1), s.splat_i32(0)));
                }
                let mut lanes = [0; 16];
                s.store_i32(counts, &mut lanes);
                let count = lanes.iter().sum::<i32>() as usize;
                if count >= k {
                    (low, reached) = (middle, count);
                } else {
                    high = middle;
                }
            }
            ascending_to_value(low).min(f32::MAX)
        },
    )
}

/// Which of up to 64 elements reach `bound`: bit i for element i.
#[inline(always)]
fn reaching<S: Simd, T: Element>(s: S, unit: &[T], bound: S::F32) -> u64 {
    let mut hits = 0;
    vectors(
        unit.len(),
        #[inline(always)]
        |span| {
            let v = clean(s, span.load(s, unit, T::NEG_INFINITY));
            let inside = ((1u32 << span.len) - 1) as u16;
            hits |= u64::from(s.mask_bits(s.le(bound, v)) & inside) << span.at;
        },
    );
    hits
}

/// Writes the keys of elements that reach `bound`, in index order; returns how many. If `keys` is too small for all of them, what is
/// kept includes the `keep` best, and is no longer in order.
#[inline(never)]
pub fn gather<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &[f32],
    bound: f32,
    keep: usize,
    keys: &mut [u64],
) -> usize {
    s.vectorize(
        #[inline(always)]
        || {
            let blocks = row.len().div_ceil(BLOCK);
            let mut n = 0;
            // The smallest value that counts, as bits that order: one step higher means "above" instead of "at least".
            let mut bound = s.splat(bound);
            for group in 0..blocks.div_ceil(16) {
                let tops = Span { at: 16 * group, len: 16 }.load(s, maxima, 0.0);
                let mut hits = s.mask_bits(s.le(bound, tops));
                while hits != 0 {
                    let b = 16 * group + hits.trailing_zeros() as usize;
                    hits &= hits - 1;
                    if b >= blocks {
                        break;
                    }
                    let mut at = b * BLOCK;
                    for unit in row[at..row.len().min(at + BLOCK)].chunks(64) {
                        let mut hits = reaching(s, unit, bound);
                        while hits != 0 {
                            let i = hits.trailing_zeros() as usize;
                            hits &= hits - 1;
                            if n == keys.len() {
                                keys.select_nth_unstable(keep - 1);
                                n = keep;
                                bound = s.splat(ascending_to_value(value_to_ascending(value_of(keys[keep - 1])) + 1));
                            }
                            keys[n] = key(clean_one(unit[i].as_()), at + i);
                            n += 1;
                        }
                        at += unit.len();
                    }
                }
            }
            n
        },
    )
}

/// Writes the sorted keys of the k largest elements, 1 <= k <= `row.len()`, to the front of `keys`, which is as long as the row or
/// longer than k.
/// The maxima are those of [`block_maxima`].
#[inline(always)]
pub fn top_k<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], k: usize, maxima: &[f32], keys: &mut [u64]) {
    let room = keys.len().min((4 * k).max(256));
    let bound = bound(s, maxima, row.len().div_ceil(BLOCK), k);
    let n = gather::<S, T, BLOCK>(s, row, maxima, bound, k, &mut keys[..room]);
    if n > k {
        keys[..n].select_nth_unstable(k - 1);
    }
    keys[..k].sort_unstable();
}

/// The k largest elements of a row, sorted: their indices.
pub struct TopK<'a, T, const BLOCK: usize = 64> {
    /// The row.
    pub row: &'a [T],
    /// 1 to the length of the row.
    pub k: usize,
    /// As long as [`maxima_len`] of the row.
    pub maxima: &'a mut [f32],
    /// As long as the row, or longer than k.
    pub keys: &'a mut [u64],
    /// At least k long; the first k are written.
    pub indices: &'a mut [u32],
}

impl<T: Element, const BLOCK: usize> Kernel for TopK<'_, T, BLOCK> {
    type Output = Summary;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Summary {
        let summary = block_maxima::<S, T, BLOCK>(s, self.row, self.maxima);
        top_k::<S, T, BLOCK>(s, self.row, self.k, self.maxima, self.keys);
        for j in 0..self.k {
            self.indices[j] = index_of(self.keys[j]) as u32;
        }
        summary
    }
}
