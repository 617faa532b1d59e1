//! The maxima of fixed blocks of a row, in one pass, and what they prove: a bound that at least k maxima reach is reached by at least k
//! elements.

use super::first_max::Summary;
use super::key::{ascending_to_value, value_to_ascending};
use super::{Span, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// Elements of a block, by default: one in 64 is a block maximum, and a block is one or two prefetched pairs of cache lines.
pub const BLOCK: usize = 64;

/// Room for block maxima of a row of `n` elements in blocks of `block`.
pub const fn maxima_len(n: usize, block: usize) -> usize {
    n.div_ceil(block).next_multiple_of(16)
}

/// Writes the maximum of each block (NaN not counted), and -inf up to a multiple of 16 blocks. One pass; whether the row holds a NaN
/// is found out where `nan` asks for it.
#[inline(never)]
pub fn block_maxima<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], maxima: &mut [f32], nan: bool) -> Summary {
    s.vectorize(
        #[inline(always)]
        || {
            if nan { pass::<S, T, BLOCK, true>(s, row, maxima) } else { pass::<S, T, BLOCK, false>(s, row, maxima) }
        },
    )
}

#[inline(always)]
fn pass<S: Simd, T: Element, const BLOCK: usize, const NAN: bool>(s: S, row: &[T], maxima: &mut [f32]) -> Summary {
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
                    if NAN {
                        numbers = s.both(numbers, s.eq(v, v));
                    }
                    *top = s.max(v, *top);
                }
            }
        } else {
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    let v = span.load(s, row, T::NEG_INFINITY);
                    if NAN {
                        numbers = s.both(numbers, s.eq(v, v));
                    }
                    tops[span.at / BLOCK] = s.max(v, tops[span.at / BLOCK]);
                },
            );
        }
        let tops = s.reduce_max_each(tops);
        max = s.max(tops, max);
        Span { at: 16 * group, len: 16 }.store(s, tops, maxima);
    }
    Summary::new(s.reduce_max(max), s.mask_bits(numbers) != u16::MAX)
}

/// How many of `values` reach `bound`.
#[inline(always)]
pub fn count<S: Simd>(s: S, values: &[f32], bound: f32) -> usize {
    let (bound, one, mut counts) = (s.splat(bound), s.splat_i32(1), s.splat_i32(0));
    vectors(
        values.len(),
        #[inline(always)]
        |span| {
            let v = span.load(s, values, f32::NAN);
            counts = s.add_i32(counts, s.select_i32(s.le(bound, v), one, s.splat_i32(0)));
        },
    );
    let mut lanes = [0; 16];
    s.store_i32(counts, &mut lanes);
    lanes.iter().sum::<i32>() as usize
}

/// The smallest of `values`, and one step above the largest, as integers that order as the values do.
#[inline(always)]
pub fn range<S: Simd>(s: S, values: &[f32]) -> (i32, i32) {
    let (mut least, mut most) = (s.splat(f32::INFINITY), s.splat(f32::NEG_INFINITY));
    vectors(
        values.len(),
        #[inline(always)]
        |span| {
            let v = span.load(s, values, values[0]);
            least = s.min(v, least);
            most = s.max(v, most);
        },
    );
    let least = -s.reduce_max(s.sub(s.splat(0.0), least));
    (value_to_ascending(least), value_to_ascending(s.reduce_max(most)).saturating_add(1))
}

/// A value that at least `k` of `values` reach, none of them a NaN, and at most `slack` more; where ties forbid that, the k-th largest.
/// And how many reach it. 1 <= k <= `values.len()`.
#[inline(never)]
pub fn threshold<S: Simd>(s: S, values: &[f32], k: usize, slack: usize) -> (f32, usize) {
    s.vectorize(
        #[inline(always)]
        || {
            // `low` is reached by `reached` >= k, `high` by fewer than k.
            let (mut low, mut high) = range(s, values);
            let mut reached = values.len();
            while reached > k + slack && i64::from(high) - i64::from(low) > 1 {
                let middle = ((i64::from(low) + i64::from(high)) >> 1) as i32;
                let found = count(s, values, ascending_to_value(middle));
                if found >= k {
                    (low, reached) = (middle, found);
                } else {
                    high = middle;
                }
            }
            (ascending_to_value(low), reached)
        },
    )
}

/// A bound that at least k elements of the row reach, and not many more; -inf where there are too few blocks to tell.
///
/// The maxima of any disjoint parts will do: where there are many more blocks than k, vectors of maxima are folded first.
/// `folded` has room for half of the maxima.
#[inline(always)]
pub fn bound<S: Simd>(s: S, maxima: &[f32], k: usize, folded: &mut [f32]) -> f32 {
    let fold = maxima.len() / (6 * k).max(256);
    let parts = if fold < 2 {
        maxima
    } else {
        let mut parts = 0;
        for group in maxima.chunks(16 * fold) {
            let mut top = s.splat(f32::NEG_INFINITY);
            for sixteen in group.as_chunks::<16>().0 {
                top = s.max(s.load(sixteen), top);
            }
            Span { at: parts, len: 16 }.store(s, top, folded);
            parts += 16;
        }
        &folded[..parts]
    };
    if parts.len() < k { f32::NEG_INFINITY } else { threshold(s, parts, k, k / 8 + 4).0.min(f32::MAX) }
}
