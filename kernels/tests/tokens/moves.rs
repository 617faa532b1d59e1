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

struct Bytes<'a>(&'a [i8; 16], &'a [u16; 16], &'a [i32; 16]);

impl Kernel for Bytes<'_> {
    type Output = ([i32; 16], [i32; 16], [i8; 16], [u16; 16]);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let wide = s.load_i32(self.2);
        let (mut bytes, mut halves) = ([0; 16], [0; 16]);
        s.store_i8(wide, &mut bytes);
        s.store_u16(wide, &mut halves);
        (get_i32(s, s.load_i8(self.0)), get_i32(s, s.load_u16(self.1)), bytes, halves)
    }
}

#[test]
fn narrow_loads_and_stores() {
    let mut random = Random(6);
    for _ in 0..ROUNDS {
        let (a, b, c) = (lanes(|_| random.int8()), lanes(|_| random.bits() as u16), lanes(|_| int(&mut random)));
        for level in levels() {
            let (signed, unsigned, bytes, halves) = level.run(Bytes(&a, &b, &c));
            assert_eq!(signed, a.map(i32::from), "load_i8 on {level:?}");
            assert_eq!(unsigned, b.map(i32::from), "load_u16 on {level:?}");
            assert_eq!(bytes, c.map(|x| x as i8), "store_i8 on {level:?}");
            assert_eq!(halves, c.map(|x| x as u16), "store_u16 on {level:?}");
        }
    }
}
