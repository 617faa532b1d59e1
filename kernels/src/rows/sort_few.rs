//! Sorting the values of a short list in registers. Bounds that the caller knows stand for the range of the values, and weights are made
//! of them before they are written.

use super::select::List;
use super::softmax::weight;
use super::sort::{AT_ONCE, Scale, sort_all};
use super::threshold::range_between;
use super::{Span, lanes};
use crate::simd::Simd;

/// Entries of a short list, at most.
pub const FEW: usize = 16 * AT_ONCE;

/// Makes the first `n` values of a list, at most [`FEW`], weights, as [`sort`](super::sort::sort) orders them, and behind them the weight
/// of `least`, up to [`FEW`] in all; the places of the values come behind as many indices. No value is below `least` or above `max`.
/// False, and nothing is written, where they have too many bits.
#[inline(always)]
pub fn weigh_few<S: Simd>(s: S, list: &mut List<'_>, n: usize, least: f32, max: f32) -> bool {
    s.beside(
        #[inline(always)]
        move || {
            let scale = Scale::new(range_between(least, max), FEW.trailing_zeros());
            if scale.shift > 0 {
                return false;
            }
            let values = list.values.as_chunks_mut::<16>().0.first_chunk_mut().expect("room");
            let places = list.indices[FEW..].as_chunks_mut::<16>().0.first_chunk_mut::<AT_ONCE>().expect("room");
            let mut keys = [scale.keys(s, s.splat(least), Span { at: 0, len: 16 }); AT_ONCE];
            if n <= FEW / 2 {
                keys[..AT_ONCE / 2].copy_from_slice(&sorted_keys::<S, { AT_ONCE / 2 }>(s, values, n, scale, least));
            } else {
                keys = sorted_keys(s, values, n, scale, least);
            }
            for ((&keys, values), places) in keys.iter().zip(values).zip(places) {
                s.store(weight(s, scale.values(s, keys), max), values);
                s.store_i32(s.and(keys, s.splat_i32(FEW as i32 - 1)), places);
            }
            true
        },
    )
}

/// The keys of the first `n` values, and of `least` as often as fills N vectors.
#[inline(always)]
fn sorted_keys<S: Simd, const N: usize>(s: S, values: &[[f32; 16]; AT_ONCE], n: usize, scale: Scale, least: f32) -> [S::I32; N] {
    let mut keys = [s.splat_i32(0); N];
    for (i, values) in values[..N].iter().enumerate() {
        let listed = s.gt_i32(s.splat_i32(n as i32 - 16 * i as i32), lanes(s));
        let values = s.select(listed, s.load(values), s.splat(least));
        keys[i] = scale.keys(s, values, Span { at: 16 * i, len: 16 });
    }
    sort_all(s, keys, true)
}
