//! Sorting a list of entries that stand in index order: larger values first, of equal ones the lower index.
//!
//! What is sorted are 32-bit integers: the distance of a value from the largest, and below it the place of its entry. A bitonic
//! network of minima and maxima does it, in which no branch hangs on the data. Distances too large for that are counted in steps of
//! several units; entries within one step then stay in index order, which is wrong only where their values rise. Such a run is
//! sorted on its own, with smaller steps: mostly of one unit, and always after a few times.

use super::blocks::range;
use super::key::value_to_ascending;
use super::vectors;
use crate::simd::Simd;
use core::ops::Range;

/// Integers that order as the distances of values from the largest do.
#[derive(Clone, Copy)]
struct Scale {
    /// The largest value, one step above it.
    top: i32,
    /// Steps of `2^shift` units in the last place.
    shift: u32,
    /// Bits of a place.
    places: u32,
}

impl Scale {
    #[inline(always)]
    fn new<S: Simd>(s: S, values: &[f32], places: u32) -> Scale {
        let (least, top) = range(s, values);
        let bits = u32::BITS - (top.wrapping_sub(least) as u32).leading_zeros();
        Scale { top, shift: (bits + places).saturating_sub(u32::BITS), places }
    }

    #[inline(always)]
    fn steps(&self, value: f32) -> u32 {
        (self.top.wrapping_sub(value_to_ascending(value + 0.0)) as u32) >> self.shift
    }

    /// Signed, ascending as the value falls, then as the place rises.
    #[inline(always)]
    fn key(&self, value: f32, place: usize) -> i32 {
        ((self.steps(value) << self.places) | place as u32) as i32 ^ i32::MIN
    }

    #[inline(always)]
    fn place(&self, key: i32) -> usize {
        key as usize & ((1 << self.places) - 1)
    }
}

/// How many keys `n` entries take: a power of two.
#[inline(always)]
const fn keys_len(n: usize) -> usize {
    let n = n.next_power_of_two();
    if n < 16 { 16 } else { n }
}

/// Sorts the first `n` entries, in index order before. Both slices are as long, and have room for twice `n` as a power of two of at
/// least 16; what lies behind the first half of that is lost.
#[inline(always)]
pub fn sort<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], n: usize) {
    if n >= 2 {
        sort_runs(s, values, indices, 0..n);
    }
}

/// Sorts some entries.
#[inline(always)]
fn sort_runs<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], range: Range<usize>) {
    let scale = sort_range(s, values, indices, range.clone());
    if scale.shift > 0 {
        sort_steps(s, values, indices, range, scale);
    }
}

/// Sorts again those that shared a step. Distances within a step have fewer bits, so this comes to an end.
#[inline(never)]
fn sort_steps<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], range: Range<usize>, scale: Scale) {
    s.vectorize(
        #[inline(always)]
        || {
            let mut from = range.start;
            while let Some(rise) = first_rise(s, &values[from..range.end]) {
                let rise = from + rise;
                let shares = |v: &&f32| scale.steps(**v) == scale.steps(values[rise]);
                let start = rise - values[from..rise].iter().rev().take_while(shares).count();
                from = rise + values[rise..range.end].iter().take_while(shares).count();
                sort_runs(s, values, indices, start..from);
            }
        },
    )
}

/// Sorts some entries by their keys.
#[inline(never)]
fn sort_range<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], range: Range<usize>) -> Scale {
    s.vectorize(
        #[inline(always)]
        || {
            let n = range.len();
            let m = keys_len(n);
            let (values, sorted) = values.split_at_mut(values.len() - m);
            let (indices, keys) = indices.split_at_mut(indices.len() - m);
            let (values, indices) = (&mut values[range.clone()], &mut indices[range]);
            let scale = Scale::new(s, values, m.trailing_zeros());
            let (real, behind) = keys.split_at_mut(n);
            for (place, (key, &value)) in real.iter_mut().zip(&*values).enumerate() {
                *key = scale.key(value, place);
            }
            behind.fill(i32::MAX);
            network(s, keys);
            for (key, value) in keys[..n].iter_mut().zip(&mut *sorted) {
                let place = scale.place(*key);
                (*key, *value) = (indices[place], values[place]);
            }
            values.copy_from_slice(&sorted[..n]);
            indices.copy_from_slice(&keys[..n]);
            scale
        },
    )
}

/// The first place whose value is below the next one.
#[inline(always)]
fn first_rise<S: Simd>(s: S, values: &[f32]) -> Option<usize> {
    for at in (0..values.len().saturating_sub(1)).step_by(16) {
        let (mut low, mut high) = (s.splat(0.0), s.splat(0.0));
        vectors(
            16.min(values.len() - 1 - at),
            #[inline(always)]
            |span| (low, high) = (span.load(s, &values[at..], 0.0), span.load(s, &values[at + 1..], 0.0)),
        );
        let rises = s.mask_bits(s.lt(low, high));
        if rises != 0 {
            return Some(at + rises.trailing_zeros() as usize);
        }
    }
    None
}

/// Lanes whose number has none of the bits of `D`.
#[inline(always)]
fn lower<S: Simd, const D: usize>(s: S) -> S::Mask {
    s.eq_i32(s.and(super::lanes(s), s.splat_i32(D as i32)), s.splat_i32(0))
}

/// Each lane and the one `D` away, of which `first` gets the smaller key.
#[inline(always)]
fn step<S: Simd, const D: usize>(s: S, a: S::I32, first: S::Mask) -> S::I32 {
    let other = s.exchange::<D>(a);
    s.select_i32(first, s.min_i32(a, other), s.max_i32(a, other))
}

/// The last four steps of a merge: a vector on its own.
#[inline(always)]
fn merge<S: Simd>(s: S, a: S::I32, rises: bool) -> S::I32 {
    let falls = s.eq_i32(s.splat_i32(0), s.splat_i32(i32::from(rises)));
    let a = step::<S, 8>(s, a, s.differ(lower::<S, 8>(s), falls));
    let a = step::<S, 4>(s, a, s.differ(lower::<S, 4>(s), falls));
    let a = step::<S, 2>(s, a, s.differ(lower::<S, 2>(s), falls));
    step::<S, 1>(s, a, s.differ(lower::<S, 1>(s), falls))
}

/// Sorts a vector on its own, up to runs of eight that rise and fall in turn.
#[inline(always)]
fn runs<S: Simd>(s: S, a: S::I32) -> S::I32 {
    let all = s.eq_i32(s.splat_i32(0), s.splat_i32(0));
    let (one, two, four, eight) = (lower::<S, 1>(s), lower::<S, 2>(s), lower::<S, 4>(s), lower::<S, 8>(s));
    let falls = [s.differ(two, all), s.differ(four, all), s.differ(eight, all)];
    let a = step::<S, 1>(s, a, s.differ(one, falls[0]));
    let a = step::<S, 2>(s, a, s.differ(two, falls[1]));
    let a = step::<S, 1>(s, a, s.differ(one, falls[1]));
    let a = step::<S, 4>(s, a, s.differ(four, falls[2]));
    let a = step::<S, 2>(s, a, s.differ(two, falls[2]));
    step::<S, 1>(s, a, s.differ(one, falls[2]))
}

/// Sorts 16, 32, 64, ... keys, the smallest first.
#[inline(always)]
fn network<S: Simd>(s: S, keys: &mut [i32]) {
    let (keys, _) = keys.as_chunks_mut::<16>();
    let n = keys.len();
    debug_assert!(n.is_power_of_two());
    for (at, keys) in keys.iter_mut().enumerate() {
        s.store_i32(merge(s, runs(s, s.load_i32(keys)), at % 2 == 0), keys);
    }
    let mut run = 2;
    while run <= n {
        let mut distance = run / 2;
        while distance > 0 {
            for (i, pair) in keys.chunks_exact_mut(2 * distance).enumerate() {
                let rises = (2 * distance * i) & run == 0;
                let (low, high) = pair.split_at_mut(distance);
                for (low, high) in low.iter_mut().zip(high) {
                    let (a, b) = (s.load_i32(low), s.load_i32(high));
                    let (first, last) =
                        if rises { (s.min_i32(a, b), s.max_i32(a, b)) } else { (s.max_i32(a, b), s.min_i32(a, b)) };
                    s.store_i32(first, low);
                    s.store_i32(last, high);
                }
            }
            distance /= 2;
        }
        for (at, keys) in keys.iter_mut().enumerate() {
            s.store_i32(merge(s, s.load_i32(keys), at & run == 0), keys);
        }
        run *= 2;
    }
}
