//! Sorting the values of a short list in registers. Bounds that the caller knows stand for the range of the values, and what they are
//! sorted for is made of them before they are written.

use super::sort::{AT_ONCE, Scale, sort_all};
use super::threshold::range_between;
use super::{Span, lanes};
use crate::simd::Simd;

/// Entries of a short list, at most.
pub const FEW: usize = 16 * AT_ONCE;

/// Writes what `f` makes of the first `n` values, as [`sort`](super::sort::sort) orders them, and behind them what it makes of
/// `least`, up to [`FEW`] in all; and the places of the values. No value is below `least` or above `most`. False, and nothing is
/// written, where they have too many bits.
#[inline(always)]
pub fn sorted_few<S: Simd>(
    s: S,
    values: &mut [f32; FEW],
    places: &mut [i32; FEW],
    n: usize,
    (least, most): (f32, f32),
    f: impl Fn(S::F32) -> S::F32 + Copy,
) -> bool {
    let scale = Scale::new(range_between(least, most), FEW.trailing_zeros());
    if scale.shift > 0 {
        return false;
    }
    let (vectors, to) = (values.as_chunks_mut::<16>().0, places.as_chunks_mut::<16>().0);
    if n <= FEW / 2 {
        sorted_vectors::<S, { AT_ONCE / 2 }>(s, vectors, to, n, scale, least, f);
        for vector in &mut vectors[AT_ONCE / 2..] {
            s.store(f(s.splat(least)), vector);
        }
    } else {
        sorted_vectors::<S, AT_ONCE>(s, vectors, to, n, scale, least, f);
    }
    true
}

/// [`sorted_few`] of N vectors.
#[inline(always)]
fn sorted_vectors<S: Simd, const N: usize>(
    s: S,
    values: &mut [[f32; 16]],
    places: &mut [[i32; 16]],
    n: usize,
    scale: Scale,
    least: f32,
    f: impl Fn(S::F32) -> S::F32 + Copy,
) {
    let mut keys = [s.splat_i32(0); N];
    for (i, values) in values[..N].iter().enumerate() {
        let listed = s.gt_i32(s.splat_i32(n as i32 - 16 * i as i32), lanes(s));
        let values = s.select(listed, s.load(values), s.splat(least));
        keys[i] = scale.keys(s, values, Span { at: 16 * i, len: 16 });
    }
    let keys = sort_all(s, keys, true);
    for ((&keys, values), places) in keys.iter().zip(values).zip(places) {
        s.store(f(scale.values(s, keys)), values);
        s.store_i32(s.and(keys, s.splat_i32(FEW as i32 - 1)), places);
    }
}
