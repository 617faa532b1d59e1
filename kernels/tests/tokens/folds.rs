//! Sums and maxima of lanes.

use crate::common::{Random, bits, levels};
use crate::lanes::{ROUNDS, float, get, lanes};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::reference::tree_add;
use tilekern_kernels::simd::Dot;

struct Sums<'a>(&'a [[f32; 16]; 16]);

impl Kernel for Sums<'_> {
    type Output = ([f32; 16], [f32; 16]);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let v = self.0.map(
            #[inline(always)]
            |v| s.load(&v),
        );
        let one_by_one = v.map(
            #[inline(always)]
            |v| s.reduce_add(v),
        );
        (get(s, s.reduce_add_each(v)), one_by_one)
    }
}

#[test]
fn sums_follow_the_tree() {
    let mut random = Random(5);
    for round in 0..ROUNDS {
        // Lanes of very different size: any other order of additions shows in the last bits.
        let v: [[f32; 16]; 16] = match round {
            0 => std::array::from_fn(|i| lanes(|j| (16 * i + j) as f32)),
            1 => std::array::from_fn(|i| lanes(|j| if i == j { f32::NAN } else { 1.0 })),
            _ => std::array::from_fn(|_| lanes(|_| random.unit() * (random.below(20) as f32).exp2())),
        };
        let expected = v.map(|v| bits(tree_add(v)));
        for level in levels() {
            let (each, one_by_one) = level.run(Sums(&v));
            assert_eq!(each.map(bits), expected, "reduce_add_each on {level:?}");
            assert_eq!(one_by_one.map(bits), expected, "reduce_add on {level:?}");
        }
    }
}

struct Maxima<'a>(&'a [[f32; 16]; 2]);

impl Kernel for Maxima<'_> {
    type Output = ([[f32; 16]; 4], f32);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let (a, b) = (s.load(&self.0[0]), s.load(&self.0[1]));
        let folds = [s.pairs::<1>(a, b), s.pairs::<2>(a, b), s.pairs::<4>(a, b), s.pairs::<8>(a, b)].map(
            #[inline(always)]
            |(v, w)| get(s, s.max(v, w)),
        );
        (folds, s.reduce_max(a))
    }
}

#[test]
fn maxima_of_numbers() {
    let mut random = Random(7);
    for _ in 0..ROUNDS {
        let mut number = || Some(float(&mut random)).filter(|x| !x.is_nan()).unwrap_or(f32::NEG_INFINITY);
        let v: [[f32; 16]; 2] = std::array::from_fn(|_| lanes(|_| number()));
        let expected = [1, 2, 4, 8].map(|d| {
            lanes(|i| {
                let group = &v[i / d % 2][i / (2 * d) * 2 * d..];
                group[i % d].max(group[i % d + d])
            })
        });
        for level in levels() {
            // As numbers: the sign of a zero is open.
            let (folds, top) = level.run(Maxima(&v));
            assert_eq!(folds, expected, "{level:?}");
            assert_eq!(top, v[0].into_iter().fold(f32::NEG_INFINITY, f32::max), "{level:?}");
        }
    }
}
