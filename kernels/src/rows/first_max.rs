//! The first maximum of a row: one load and one maximum a vector, and the question whether it holds a NaN.
//!
//! Chunks are compared by their maxima; the index is then looked for inside the first chunk with the greatest.

use super::runs::{Length, runs};
use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::per_element::per_element;
use crate::simd::{Dot, Simd};

/// What a pass over a row found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The maximum: NaN not counted, +inf as the largest finite number; -inf if nothing else is there.
    pub max: f32,
    /// Whether a NaN was seen.
    pub nan: bool,
    /// Whether a +inf was seen.
    pub infinite: bool,
}

impl Summary {
    /// From the maximum as it was seen.
    #[inline(always)]
    pub fn new(max: f32, nan: bool) -> Summary {
        Summary { max: max.min(f32::MAX), nan, infinite: max == f32::INFINITY }
    }
}

/// Elements of a chunk: short, since one is looked through again, and long enough for what is done at its end not to count.
const CHUNK: usize = 2048;

/// Whether the row holds a NaN: one pass.
#[inline(always)]
pub fn holds_nan<S: Simd, T: Element>(s: S, row: &[T]) -> bool {
    s.apart(
        #[inline(always)]
        move || {
            let mut numbers = s.eq(s.splat(0.0), s.splat(0.0));
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    let v = span.load(s, row, T::NEG_INFINITY);
                    numbers = s.both(numbers, s.eq(v, v));
                },
            );
            s.mask_bits(numbers) != u16::MAX
        },
    )
}

/// The first maximum of a row, as logits count, and where it is: 0 if the row holds nothing but NaN and -inf. A second pass looks for
/// a NaN if `nan` asks for it.
#[inline(always)]
pub fn first_max<S: Simd, T: Element>(s: S, row: &[T], nan: bool) -> (usize, Summary) {
    if let Some((chunk, max)) = half_max(s, row) {
        return (position(s, row, chunk * CHUNK, max), Summary::new(max, nan && holds_nan(s, row)));
    }
    let (chunks, rest) = row.as_chunks::<CHUNK>();
    let (best, number) = best_chunks::<S, T, _>(
        s,
        chunks,
        top(s, rest),
        #[inline(always)]
        |chunk| top(s, chunk),
        #[inline(always)]
        |a, b| (s.lt(a, b), s.eq(a, b), s.max(b, a)),
    );
    let max = s.reduce_max(best);
    let summary = Summary::new(max, nan && holds_nan(s, row));
    // +inf counts as the largest finite number, which may come before it.
    let chunk = if max < f32::MAX { first_chunk(s, s.eq(best, s.splat(max)), number) } else { 0 };
    (position(s, row, chunk * CHUNK, summary.max), summary)
}

/// Of each lane the greatest of what `top` finds of chunks, and of `end`, which comes behind them; and the number of the first chunk that
/// has it. `compare` says of two whether the second is larger, whether they are equal, and the larger.
#[inline(always)]
fn best_chunks<S: Simd, T, V: Copy>(
    s: S,
    chunks: &[[T; CHUNK]],
    end: V,
    top: impl Fn(&[T; CHUNK]) -> V,
    compare: impl Fn(V, V) -> (S::Mask, S::Mask, V),
) -> (V, S::I32) {
    let (mut best, mut number) = (end, s.splat_i32(chunks.len() as i32));
    for run in runs::<T>(chunks.len(), CHUNK, Length::Even.or_step()) {
        for i in run {
            let this = s.splat_i32(i as i32);
            let (larger, equal, both) = compare(best, top(&chunks[i]));
            let earlier = s.both(equal, s.gt_i32(number, this));
            number = s.select_i32(s.differ(larger, earlier), this, number);
            best = both;
        }
    }
    (best, number)
}

/// The first chunk with the maximum of a row of 16-bit numbers, and that, as integers: of those that are not negative the larger has the
/// larger bits, and 32 are compared at once. `None` for other rows, for less than a chunk, and where the maximum is not finite and above
/// 0 or a NaN was in the way.
#[inline(always)]
fn half_max<S: Simd, T: Element>(s: S, row: &[T]) -> Option<(usize, f32)> {
    let (chunks, rest) = row.as_chunks::<CHUNK>();
    if const { size_of::<T>() != 2 } || chunks.is_empty() {
        return None;
    }
    s.apart(
        #[inline(always)]
        move || {
            let mut end = [T::NEG_INFINITY; CHUNK];
            end[..rest.len()].copy_from_slice(rest);
            let (best, number) = best_chunks::<S, T, _>(
                s,
                chunks,
                half_top(s, &end),
                #[inline(always)]
                |chunk| half_top(s, chunk),
                #[inline(always)]
                |a, b| (s.gt_i32(b, a), s.eq_i32(a, b), s.max_i32(b, a)),
            );
            let bits = s.reduce_max_i32(best);
            let max: f32 = bytemuck::cast::<u16, T>((bits >> 16) as u16).as_();
            (0.0 < max && max < f32::INFINITY).then(
                #[inline(always)]
                || (first_chunk(s, s.eq_i32(best, s.splat_i32(bits)), number), max),
            )
        },
    )
}

/// The larger half of each lane of a chunk of 16-bit numbers, in the upper one.
#[inline(always)]
fn half_top<S: Simd, T: Element>(s: S, chunk: &[T; CHUNK]) -> S::I32 {
    let mut tops = [s.splat_i32(i32::MIN); 4];
    for four in bytemuck::cast_slice::<T, [[u16; 32]; 4]>(chunk) {
        for (top, pairs) in tops.iter_mut().zip(four) {
            *top = s.max_i16(s.load_i32(&bytemuck::cast(*pairs)), *top);
        }
    }
    let top = s.max_i16(s.max_i16(tops[0], tops[1]), s.max_i16(tops[2], tops[3]));
    s.and(s.max_i16(top, s.shl(top, 16)), s.splat_i32(!0xFFFF))
}

/// The maximum of each lane of a row, in eight accumulators, or four where registers are few.
#[inline(always)]
fn top<S: Simd, T: Element>(s: S, row: &[T]) -> S::F32 {
    let count = const { if S::IS_WIDE { 8 } else { 4 } };
    let mut tops = [s.splat(f32::NEG_INFINITY); 8];
    let (eights, rest) = row.as_chunks::<128>();
    for eight in eights {
        for (i, sixteen) in eight.as_chunks::<16>().0.iter().enumerate() {
            tops[i % count] = s.max(T::load(s, sixteen), tops[i % count]);
        }
    }
    vectors(
        rest.len(),
        #[inline(always)]
        |span| tops[0] = s.max(span.load(s, rest, T::NEG_INFINITY), tops[0]),
    );
    for half in [4, 2, 1] {
        for i in 0..half {
            tops[i] = s.max(tops[i], tops[i + half]);
        }
    }
    tops[0]
}

/// The least number of the lanes that hold the maximum: as a rule there is one.
#[inline(always)]
fn first_chunk<S: Simd>(s: S, holds: S::Mask, number: S::I32) -> usize {
    let mut numbers = [0; 16];
    s.store_i32(number, &mut numbers);
    let lanes = s.mask_bits(holds);
    if lanes.is_power_of_two() {
        return numbers[lanes.trailing_zeros() as usize] as usize;
    }
    let numbers = s.select_i32(holds, s.sub_i32(s.splat_i32(0), number), s.splat_i32(i32::MIN));
    -s.reduce_max_i32(numbers) as usize
}

/// The first element from `start` on that is at least `bound`; `start` if none is.
#[inline(always)]
pub fn position<S: Simd, T: Element>(s: S, row: &[T], start: usize, bound: f32) -> usize {
    if bound == f32::NEG_INFINITY {
        return start;
    }
    let (bound, (fours, rest)) = (s.splat(bound), row[start..].as_chunks::<64>());
    for (i, four) in fours.iter().enumerate() {
        let mut hits = [s.le(bound, bound); 4];
        for (hits, sixteen) in hits.iter_mut().zip(four.as_chunks::<16>().0) {
            *hits = s.le(bound, T::load(s, sixteen));
        }
        let hits = s.mask_bits_64(hits);
        if hits != 0 {
            return start + 64 * i + hits.trailing_zeros() as usize;
        }
    }
    let mut hits = 0;
    vectors(
        rest.len(),
        #[inline(always)]
        |span| hits |= u64::from(s.mask_bits(s.le(bound, span.load(s, rest, T::NEG_INFINITY)))) << span.at,
    );
    if hits == 0 { start } else { row.len() - rest.len() + hits.trailing_zeros() as usize }
}

/// The first maximum of a row: its index.
pub struct FirstMax<'a, T> {
    /// The row.
    pub row: &'a [T],
}

impl<T: Element> Kernel for FirstMax<'_, T> {
    type Output = (usize, Summary);
    const DOT: bool = false;
    per_element!(run_first_max);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> (usize, Summary) {
        first_max(s, self.row, true)
    }
}
