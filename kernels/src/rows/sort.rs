//! Sorting a list of entries: larger values first, of equal ones the lower index.
//!
//! A bitonic network, in which no branch hangs on the data, sorts the values; indices move with them. Equals, which it leaves in any
//! order, are put right afterwards, run by run.

use super::vectors;
use crate::simd::Simd;

type Entries<S> = (<S as Simd>::F32, <S as Simd>::I32);

#[inline(always)]
fn load<S: Simd>(s: S, values: &[[f32; 16]], indices: &[[i32; 16]], at: usize) -> Entries<S> {
    (s.load(&values[at]), s.load_i32(&indices[at]))
}

#[inline(always)]
fn store<S: Simd>(s: S, (v, i): Entries<S>, values: &mut [[f32; 16]], indices: &mut [[i32; 16]], at: usize) {
    s.store(v, &mut values[at]);
    s.store_i32(i, &mut indices[at]);
}

/// Lanes whose number has none of the bits of `D`.
#[inline(always)]
fn lower<S: Simd, const D: usize>(s: S) -> S::Mask {
    s.eq_i32(s.and(super::lanes(s), s.splat_i32(D as i32)), s.splat_i32(0))
}

/// Each lane and the one `D` away, of which `first` gets the larger value.
#[inline(always)]
fn step<S: Simd, const D: usize>(s: S, (v, i): Entries<S>, first: S::Mask) -> Entries<S> {
    let other = s.from_bits(s.exchange::<D>(s.bits(v)));
    let value = s.select(first, s.max(v, other), s.min(v, other));
    // Of equals neither moves.
    (value, s.select_i32(s.eq(value, v), i, s.exchange::<D>(i)))
}

/// The last four steps of a merge: a vector on its own.
#[inline(always)]
fn merge<S: Simd>(s: S, a: Entries<S>, falls: bool) -> Entries<S> {
    let rises = s.eq_i32(s.splat_i32(0), s.splat_i32(i32::from(falls)));
    let a = step::<S, 8>(s, a, s.differ(lower::<S, 8>(s), rises));
    let a = step::<S, 4>(s, a, s.differ(lower::<S, 4>(s), rises));
    let a = step::<S, 2>(s, a, s.differ(lower::<S, 2>(s), rises));
    step::<S, 1>(s, a, s.differ(lower::<S, 1>(s), rises))
}

/// Sorts a vector on its own, up to runs of eight that fall and rise in turn.
#[inline(always)]
fn runs<S: Simd>(s: S, a: Entries<S>) -> Entries<S> {
    let all = s.eq_i32(s.splat_i32(0), s.splat_i32(0));
    let (one, two, four, eight) = (lower::<S, 1>(s), lower::<S, 2>(s), lower::<S, 4>(s), lower::<S, 8>(s));
    let rises = [s.differ(two, all), s.differ(four, all), s.differ(eight, all)];
    let a = step::<S, 1>(s, a, s.differ(one, rises[0]));
    let a = step::<S, 2>(s, a, s.differ(two, rises[1]));
    let a = step::<S, 1>(s, a, s.differ(one, rises[1]));
    let a = step::<S, 4>(s, a, s.differ(four, rises[2]));
    let a = step::<S, 2>(s, a, s.differ(two, rises[2]));
    step::<S, 1>(s, a, s.differ(one, rises[2]))
}

/// Whether neighbours are equal.
#[inline(never)]
fn has_equals<S: Simd>(s: S, values: &[f32]) -> bool {
    s.vectorize(
        #[inline(always)]
        || {
            let mut found = 0;
            vectors(
                values.len() - 1,
                #[inline(always)]
                |span| {
                    let next = span.load(s, &values[1..], f32::NAN);
                    found |= s.mask_bits(s.eq(span.load(s, values, f32::NAN), next));
                },
            );
            found != 0
        },
    )
}

/// Sorts 16, 32, 64, ... entries, of which `n` are real and the others -inf.
#[inline(always)]
pub fn sort<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32], n: usize) {
    network(s, values, indices);
    if n > 0 && values[n - 1] > f32::NEG_INFINITY && !has_equals(s, &values[..n]) {
        return;
    }
    let mut start = 0;
    while start < values.len() {
        let value = values[start];
        let run = values[start..].iter().take_while(|&&v| v == value).count();
        indices[start..start + run].sort_unstable();
        start += run;
    }
}

#[inline(never)]
fn network<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32]) {
    s.vectorize(
        #[inline(always)]
        || {
            let (values, indices) = (values.as_chunks_mut::<16>().0, indices.as_chunks_mut::<16>().0);
            let n = values.len();
            debug_assert!(n.is_power_of_two() && indices.len() == n);
            for at in 0..n {
                let a = runs(s, load(s, values, indices, at));
                store(s, merge(s, a, at % 2 == 0), values, indices, at);
            }
            let mut run = 2;
            while run <= n {
                let mut distance = run / 2;
                while distance > 0 {
                    for start in (0..n).step_by(2 * distance) {
                        let falls = start & run == 0;
                        for at in start..start + distance {
                            let a = load(s, values, indices, at);
                            let b = load(s, values, indices, at + distance);
                            let (top, bottom) = (s.max(a.0, b.0), s.min(a.0, b.0));
                            let (first, last) = if falls { (top, bottom) } else { (bottom, top) };
                            let stays = s.eq(first, a.0);
                            let (a, b) = ((first, s.select_i32(stays, a.1, b.1)), (last, s.select_i32(stays, b.1, a.1)));
                            store(s, a, values, indices, at);
                            store(s, b, values, indices, at + distance);
                        }
                    }
                    distance /= 2;
                }
                for at in 0..n {
                    let a = load(s, values, indices, at);
                    store(s, merge(s, a, at & run == 0), values, indices, at);
                }
                run *= 2;
            }
        },
    )
}
