//! Loads, stores and permutations.

use crate::common::{Random, levels};
use crate::lanes::{ROUNDS, get, get_i32, int, lanes};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::simd::Dot;

struct Permutes<'a>(&'a [f32; 16]);

impl Kernel for Permutes<'_> {
    type Output = [[f32; 16]; 4];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let v = s.load(self.0);
        [v, s.swap_pairs(v), s.dup_even(v), s.dup_odd(v)].map(
            #[inline(always)]
            |v| get(s, v),
        )
    }
}

#[test]
fn permutes() {
    let a = lanes(|i| i as f32 + 0.5);
    for level in levels() {
        let [same, swapped, even, odd] = level.run(Permutes(&a));
        assert_eq!(same, a);
        assert_eq!(swapped, lanes(|i| a[i ^ 1]), "{level:?}");
        assert_eq!(even, lanes(|i| a[i & !1]), "{level:?}");
        assert_eq!(odd, lanes(|i| a[i | 1]), "{level:?}");
    }
}

struct ZipsEven<'a>(&'a [i32; 16], &'a [i32; 16]);

impl Kernel for ZipsEven<'_> {
    type Output = [i32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [i32; 16] {
        let mut out = [0; 16];
        s.store_i32(s.zip_even(s.load_i32(self.0), s.load_i32(self.1)), &mut out);
        out
    }
}

#[test]
fn zips_even_lanes() {
    let (a, b) = (lanes(|i| 100 + i as i32), lanes(|i| 200 + i as i32));
    for level in levels() {
        assert_eq!(level.run(ZipsEven(&a, &b)), lanes(|i| if i % 2 == 0 { a[i] } else { b[i - 1] }), "{level:?}");
    }
}

struct Exchanges<'a>(&'a [i32; 16]);

impl Kernel for Exchanges<'_> {
    type Output = [[i32; 16]; 4];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let v = s.load_i32(self.0);
        [s.exchange::<1>(v), s.exchange::<2>(v), s.exchange::<4>(v), s.exchange::<8>(v)].map(
            #[inline(always)]
            |v| get_i32(s, v),
        )
    }
}

#[test]
fn exchanges() {
    let a = lanes(|i| 100 + i as i32);
    for level in levels() {
        for (found, distance) in level.run(Exchanges(&a)).into_iter().zip([1, 2, 4, 8]) {
            assert_eq!(found, lanes(|i| a[i ^ distance]), "{distance} on {level:?}");
        }
    }
}

/// The lanes of the second that the first, and exactly one of first and third, say.
struct Compress<'a>([&'a [i32; 16]; 3]);

impl Kernel for Compress<'_> {
    type Output = [(usize, [i32; 16]); 2];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let [m, v, other] = [s.load_i32(self.0[0]), s.load_i32(self.0[1]), s.load_i32(self.0[2])];
        let [m, other] = [s.gt_i32(m, s.splat_i32(0)), s.gt_i32(other, s.splat_i32(0))];
        let mut out = [[0; 16]; 2];
        let n = [s.compress(m, v, &mut out[0]), s.compress(s.differ(m, other), v, &mut out[1])];
        [(n[0], out[0]), (n[1], out[1])]
    }
}

#[test]
fn compresses() {
    let mut random = Random(7);
    for round in 0..ROUNDS {
        let mut flags = || match round {
            0 => [1; 16],
            1 => [0; 16],
            _ => lanes(|_| random.below(2) as i32),
        };
        let (m, other) = (flags(), flags());
        let v = lanes(|i| 100 + i as i32);
        let one: Vec<i32> = (0..16).filter(|&i| m[i] > 0).map(|i| v[i]).collect();
        let two: Vec<i32> = (0..16).filter(|&i| m[i] != other[i]).map(|i| v[i]).collect();
        for level in levels() {
            let [(n, a), (l, b)] = level.run(Compress([&m, &v, &other]));
            assert_eq!((&a[..n], &b[..l]), (&one[..], &two[..]), "{level:?}");
        }
    }
}

struct Gather<'a>(&'a [f32], &'a [i32; 16]);

impl Kernel for Gather<'_> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        get(s, s.gather(self.0, self.1))
    }
}

#[test]
fn gathers() {
    let (mut random, a) = (Random(9), lanes(|i| i as f32 - 0.5));
    for round in 0..ROUNDS {
        let a = &a[..1 + random.below(16)];
        let places = match round {
            0 => lanes(|i| [-1, i32::MIN, i32::MAX, a.len() as i32][i % 4]),
            _ => lanes(|_| random.below(20) as i32 - 2),
        };
        let expected =
            places.map(|place| usize::try_from(place).ok().and_then(|place| a.get(place)).copied().unwrap_or(a[a.len() - 1]));
        for level in levels() {
            assert_eq!(level.run(Gather(a, &places)), expected, "{places:?} of {} on {level:?}", a.len());
        }
    }
}

struct Narrow<'a>(&'a [u16; 16], &'a [i32; 16]);

impl Kernel for Narrow<'_> {
    type Output = ([i32; 16], [i8; 16], [u16; 16]);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let wide = s.load_i32(self.1);
        let (mut bytes, mut halves) = ([0; 16], [0; 16]);
        s.store_i8(wide, &mut bytes);
        s.store_u16(wide, &mut halves);
        (get_i32(s, s.load_u16(self.0)), bytes, halves)
    }
}

#[test]
fn narrow_loads_and_stores() {
    let mut random = Random(6);
    for _ in 0..ROUNDS {
        let (a, b) = (lanes(|_| random.bits() as u16), lanes(|_| int(&mut random)));
        for level in levels() {
            let (unsigned, bytes, halves) = level.run(Narrow(&a, &b));
            assert_eq!(unsigned, a.map(i32::from), "load_u16 on {level:?}");
            assert_eq!(bytes, b.map(|x| x as i8), "store_i8 on {level:?}");
            assert_eq!(halves, b.map(|x| x as u16), "store_u16 on {level:?}");
        }
    }
}

/// Whole lines.
#[repr(align(64))]
struct Lines([f32; 80]);

/// `N` vectors go to the numbers from a place on.
struct Past<'a, const N: usize>(&'a [[f32; 16]; N], &'a mut Lines, usize);

impl<const N: usize> Kernel for Past<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let (to, _) = self.1.0[self.2..].as_chunks_mut();
        // SAFETY: the fence follows.
        unsafe { s.store_past(self.0.each_ref().map(|v| s.load(v)), to.first_chunk_mut().unwrap()) };
        s.fence();
    }
}

/// Nothing but the vectors is written, wherever they begin in a line.
fn writes_past<const N: usize>() {
    let a: [[f32; 16]; N] = core::array::from_fn(|v| lanes(|i| (16 * v + i) as f32 - 7.5));
    for level in levels() {
        for at in 0..=16 {
            let mut lines = Lines([99.0; 80]);
            level.run(Past(&a, &mut lines, at));
            for (i, &found) in lines.0.iter().enumerate() {
                let expected = if (at..at + 16 * N).contains(&i) { (i - at) as f32 - 7.5 } else { 99.0 };
                assert_eq!(found, expected, "{level:?}: {N} vectors at {at}, number {i}");
            }
        }
    }
}

#[test]
fn writes_past_the_caches() {
    writes_past::<1>();
    writes_past::<2>();
    writes_past::<4>();
}
