//! Sorting a list of entries by a bitonic network: larger values first, of equal ones the lower index.
//!
//! No branch hangs on the data. Entries are unique by their index, so the order is total and the network's lack of stability shows nowhere.

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

/// Where `a` stands before `b` in the order.
#[inline(always)]
fn before<S: Simd>(s: S, a: Entries<S>, b: Entries<S>) -> S::Mask {
    s.differ(s.lt(b.0, a.0), s.both(s.eq(a.0, b.0), s.gt_i32(b.1, a.1)))
}

#[inline(always)]
fn choose<S: Simd>(s: S, m: S::Mask, a: Entries<S>, b: Entries<S>) -> Entries<S> {
    (s.select(m, a.0, b.0), s.select_i32(m, a.1, b.1))
}

/// Lanes whose number has none of the bits of `D`.
#[inline(always)]
fn lower<S: Simd, const D: usize>(s: S) -> S::Mask {
    let lane = s.load_i32(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    s.eq_i32(s.and(lane, s.splat_i32(D as i32)), s.splat_i32(0))
}

/// Each lane and the one `D` away, of which `first` gets what stands before.
#[inline(always)]
fn step<S: Simd, const D: usize>(s: S, a: Entries<S>, first: S::Mask) -> Entries<S> {
    let b = (s.from_bits(s.exchange::<D>(s.bits(a.0))), s.exchange::<D>(a.1));
    choose(s, s.differ(before(s, a, b), first), b, a)
}

/// The last four steps of a merge: a vector on its own.
#[inline(always)]
fn merge<S: Simd>(s: S, a: Entries<S>, falls: bool) -> Entries<S> {
    let all = s.eq_i32(s.splat_i32(0), s.splat_i32(i32::from(falls)));
    let a = step::<S, 8>(s, a, s.differ(lower::<S, 8>(s), all));
    let a = step::<S, 4>(s, a, s.differ(lower::<S, 4>(s), all));
    let a = step::<S, 2>(s, a, s.differ(lower::<S, 2>(s), all));
    step::<S, 1>(s, a, s.differ(lower::<S, 1>(s), all))
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

/// Sorts 16, 32, 64, ... entries.
#[inline(never)]
pub fn sort<S: Simd>(s: S, values: &mut [f32], indices: &mut [i32]) {
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
                            let m = before(s, a, b);
                            let (first, last) = (choose(s, m, a, b), choose(s, m, b, a));
                            let (a, b) = if falls { (first, last) } else { (last, first) };
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
