//! Sorting a list of entries that stand in index order: larger values first, of equal ones the lower index.
//!
//! What is sorted are 32-bit integers: the distance of a value from the largest, and below it the place of its entry. A bitonic
//! network of minima and maxima does it, in which no branch hangs on the data. Distances too large for that are counted in steps of
//! several units; entries within one step then stay in index order, which is wrong only where their values rise. Such a run is
//! sorted on its own, with smaller steps: mostly of one unit, and always after a few times.

use super::key::{order, value_to_ascending};
use super::{Span, first_lanes, lanes, threshold, vectors};
use crate::simd::Simd;
use core::ops::Range;

/// Integers that order as the distances of values from the largest do.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// The largest value, one step above it.
    top: i32,
    /// Steps of `2^shift` units in the last place.
    pub shift: u32,
    /// Bits of a place.
    places: u32,
}

impl Scale {
    /// Of values whose [`threshold::range`] this is.
    #[inline(always)]
    pub fn new((least, top): (i32, i32), places: u32) -> Scale {
        let bits = u32::BITS - (top.wrapping_sub(least) as u32).leading_zeros();
        Scale { top, shift: (bits + places).saturating_sub(u32::BITS), places }
    }

    #[inline(always)]
    fn steps(&self, value: f32) -> u32 {
        (self.top.wrapping_sub(value_to_ascending(value + 0.0)) as u32) >> self.shift
    }

    /// Signed, ascending as a value falls, then as the place rises, of 16 neighbours from place `at` on; the largest in the lanes from
    /// `len` on.
    #[inline(always)]
    pub fn keys<S: Simd>(&self, s: S, values: S::F32, Span { at, len }: Span) -> S::I32 {
        let value = order(s, s.bits(s.add(values, s.splat(0.0))));
        let steps = s.shr(s.sub_i32(s.splat_i32(self.top), value), self.shift);
        let place = s.add_i32(lanes(s), s.splat_i32(at as i32));
        let keys = s.xor(s.or(s.shl(steps, self.places), place), s.splat_i32(i32::MIN));
        s.select_i32(first_lanes(s, len), keys, s.splat_i32(i32::MAX))
    }

    #[inline(always)]
    fn place(&self, key: i32) -> usize {
        key as usize & ((1 << self.places) - 1)
    }

    /// The values of keys whose steps are single units.
    #[inline(always)]
    pub fn values<S: Simd>(&self, s: S, keys: S::I32) -> S::F32 {
        let steps = s.shr(s.xor(keys, s.splat_i32(i32::MIN)), self.places);
        s.from_bits(order(s, s.sub_i32(s.splat_i32(self.top), steps)))
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
#[inline(always)]
fn sort_steps<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], range: Range<usize>, scale: Scale) {
    s.apart(
        #[inline(always)]
        move || {
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
#[inline(always)]
fn sort_range<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], range: Range<usize>) -> Scale {
    s.apart(
        #[inline(always)]
        move || {
            let n = range.len();
            let m = keys_len(n);
            let scale = Scale::new(threshold::range(s, &values[range.clone()]), m.trailing_zeros());
            let (values, sorted) = values.split_at_mut(values.len() - m);
            let (indices, keys) = indices.split_at_mut(indices.len() - m);
            let (values, indices) = (&mut values[range.clone()], &mut indices[range]);
            keys[n.next_multiple_of(16)..].fill(i32::MAX);
            vectors(
                n,
                #[inline(always)]
                |span| {
                    let to = keys[span.at..].first_chunk_mut::<16>().expect("room");
                    s.store_i32(scale.keys(s, span.load(s, values, 0.0), span), to);
                },
            );
            network(s, keys.as_chunks_mut::<16>().0);
            if scale.shift > 0 {
                for (value, &key) in sorted.iter_mut().zip(&keys[..n]) {
                    *value = values[scale.place(key)];
                }
                values.copy_from_slice(&sorted[..n]);
            } else {
                vectors(
                    n,
                    #[inline(always)]
                    |span| span.store(s, scale.values(s, span.load_i32(s, keys)), values),
                );
            }
            for key in &mut keys[..n] {
                *key = indices[scale.place(*key)];
            }
            // By vectors: a copy of a slice is a call.
            vectors(
                n,
                #[inline(always)]
                |span| span.store_i32(s, span.load_i32(s, keys), indices),
            );
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
    s.eq_i32(s.and(lanes(s), s.splat_i32(D as i32)), s.splat_i32(0))
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
    s.common(
        #[inline(always)]
        move || {
            let falls = s.eq_i32(s.splat_i32(0), s.splat_i32(i32::from(rises)));
            let a = step::<S, 8>(s, a, s.differ(lower::<S, 8>(s), falls));
            let a = step::<S, 4>(s, a, s.differ(lower::<S, 4>(s), falls));
            let a = step::<S, 2>(s, a, s.differ(lower::<S, 2>(s), falls));
            step::<S, 1>(s, a, s.differ(lower::<S, 1>(s), falls))
        },
    )
}

/// Sorts a vector on its own, up to runs of eight that rise and fall in turn.
#[inline(always)]
fn runs<S: Simd>(s: S, a: S::I32) -> S::I32 {
    s.common(
        #[inline(always)]
        move || {
            let all = s.eq_i32(s.splat_i32(0), s.splat_i32(0));
            let (one, two, four, eight) = (lower::<S, 1>(s), lower::<S, 2>(s), lower::<S, 4>(s), lower::<S, 8>(s));
            let falls = [s.differ(two, all), s.differ(four, all), s.differ(eight, all)];
            let a = step::<S, 1>(s, a, s.differ(one, falls[0]));
            let a = step::<S, 2>(s, a, s.differ(two, falls[1]));
            let a = step::<S, 1>(s, a, s.differ(one, falls[1]));
            let a = step::<S, 4>(s, a, s.differ(four, falls[2]));
            let a = step::<S, 2>(s, a, s.differ(two, falls[2]));
            step::<S, 1>(s, a, s.differ(one, falls[2]))
        },
    )
}

/// A smaller key and a larger one, the former first if they shall rise.
#[inline(always)]
fn min_max<S: Simd>(s: S, a: S::I32, b: S::I32, rises: bool) -> (S::I32, S::I32) {
    if rises { (s.min_i32(a, b), s.max_i32(a, b)) } else { (s.max_i32(a, b), s.min_i32(a, b)) }
}

/// Sorts the vectors, the first half of which rises and the second falls, or the other way round.
#[inline(always)]
pub(super) fn merge_all<S: Simd, const N: usize>(s: S, mut keys: [S::I32; N], rises: bool) -> [S::I32; N] {
    let mut distance = N / 2;
    while distance > 0 {
        for i in 0..N {
            if i & distance == 0 {
                (keys[i], keys[i + distance]) = min_max(s, keys[i], keys[i + distance], rises);
            }
        }
        distance /= 2;
    }
    for i in 0..N {
        keys[i] = merge(s, keys[i], rises);
    }
    keys
}

/// Sorts up to four vectors.
#[inline(always)]
pub(super) fn sort_all<S: Simd, const N: usize>(s: S, mut keys: [S::I32; N], rises: bool) -> [S::I32; N] {
    for i in 0..N {
        keys[i] = merge(s, runs(s, keys[i]), if N == 1 { rises } else { i % 2 == 0 });
    }
    if N == 4 {
        for i in [0, 2] {
            [keys[i], keys[i + 1]] = merge_all(s, [keys[i], keys[i + 1]], i == 0);
        }
    }
    if N > 1 { merge_all(s, keys, rises) } else { keys }
}

/// Vectors that are sorted at once, in registers.
pub(super) const AT_ONCE: usize = 4;

/// Changes vectors where they stand.
#[inline(always)]
fn change<S: Simd, const N: usize>(s: S, keys: &mut [[i32; 16]; N], f: impl Fn([S::I32; N]) -> [S::I32; N]) {
    let mut vectors = [s.splat_i32(0); N];
    for i in 0..N {
        vectors[i] = s.load_i32(&keys[i]);
    }
    let vectors = f(vectors);
    for i in 0..N {
        s.store_i32(vectors[i], &mut keys[i]);
    }
}

/// Sorts 1, 2, 4, 8, ... vectors of keys, the smallest first.
#[inline(always)]
fn network<S: Simd>(s: S, keys: &mut [[i32; 16]]) {
    let n = keys.len();
    debug_assert!(n.is_power_of_two());
    if let Ok(one) = <&mut [_; 1]>::try_from(&mut *keys) {
        return change(
            s,
            one,
            #[inline(always)]
            |keys| sort_all(s, keys, true),
        );
    }
    if let Ok(two) = <&mut [_; 2]>::try_from(&mut *keys) {
        return change(
            s,
            two,
            #[inline(always)]
            |keys| sort_all(s, keys, true),
        );
    }
    for (i, keys) in keys.as_chunks_mut::<AT_ONCE>().0.iter_mut().enumerate() {
        change(
            s,
            keys,
            #[inline(always)]
            |keys| sort_all(s, keys, i % 2 == 0),
        );
    }
    let mut run = 2 * AT_ONCE;
    while run <= n {
        let mut distance = run / 2;
        while distance >= AT_ONCE {
            for (i, pair) in keys.chunks_exact_mut(2 * distance).enumerate() {
                let rises = (2 * distance * i) & run == 0;
                let (low, high) = pair.split_at_mut(distance);
                for (low, high) in low.iter_mut().zip(high) {
                    let (first, last) = min_max(s, s.load_i32(low), s.load_i32(high), rises);
                    s.store_i32(first, low);
                    s.store_i32(last, high);
                }
            }
            distance /= 2;
        }
        for (i, keys) in keys.as_chunks_mut::<AT_ONCE>().0.iter_mut().enumerate() {
            change(
                s,
                keys,
                #[inline(always)]
                |keys| merge_all(s, keys, (AT_ONCE * i) & run == 0),
            );
        }
        run *= 2;
    }
}
