//! Arithmetic, comparisons and selection, lane by lane.

use crate::common::{Random, bits, levels};
use crate::lanes::{ROUNDS, compare, float, get, get_i32, int, lanes};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::simd::{Dot, Simd};

struct Arithmetic<'a>(&'a [[f32; 16]; 2]);

type OfFloats = fn(f32, f32) -> f32;

/// Behind a barrier: on aarch64 LLVM turns `if a < 0.0 { a } else { 0.0 }` into `fminnm`, which prefers -0. It may do so wherever it
/// knows the second operand to be no NaN, so some of the tokens' methods are tried with such operands too.
fn hidden(x: f32) -> f32 {
    std::hint::black_box(x)
}

fn max(a: f32, b: f32) -> f32 {
    if a > hidden(b) { a } else { hidden(b) }
}

fn min(a: f32, b: f32) -> f32 {
    if a < hidden(b) { a } else { hidden(b) }
}

const ARITHMETIC: [(&str, OfFloats); 18] = [
    ("add", |a, b| a + b),
    ("sub", |a, b| a - b),
    ("mul", |a, b| a * b),
    ("div", |a, b| a / b),
    ("max", max),
    ("min", min),
    ("max of itself", |a, _| a),
    ("max with +0", |a, _| max(a, 0.0)),
    ("max with -0", |a, _| max(a, -0.0)),
    ("min with +0", |a, _| min(a, 0.0)),
    ("min with -0", |a, _| min(a, -0.0)),
    ("max with a number", |a, b| max(a, min(b, -0.0))),
    ("min with a number", |a, b| min(a, max(b, 0.0))),
    ("select lt +0", |a, _| min(a, 0.0)),
    ("select le +0", |a, _| if a <= hidden(0.0) { a } else { hidden(0.0) }),
    ("select gt -0", |a, _| max(a, -0.0)),
    ("select ge -0", |a, _| if a >= hidden(-0.0) { a } else { hidden(-0.0) }),
    ("bits and back", |a, _| a),
];

impl Kernel for Arithmetic<'_> {
    type Output = [[f32; 16]; 18];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let [a, b] = self.0.map(|v| s.load(&v));
        let [plus, minus] = [s.splat(0.0), s.splat(-0.0)];
        [
            s.add(a, b),
            s.sub(a, b),
            s.mul(a, b),
            s.div(a, b),
            s.max(a, b),
            s.min(a, b),
            s.max(a, a),
            s.max(a, plus),
            s.max(a, minus),
            s.min(a, plus),
            s.min(a, minus),
            s.max(a, s.min(b, minus)),
            s.min(a, s.max(b, plus)),
            s.select(s.lt(a, plus), a, plus),
            s.select(s.le(a, plus), a, plus),
            s.select(s.lt(minus, a), a, minus),
            s.from_bits(s.select_i32(s.le(minus, a), s.bits(a), s.bits(minus))),
            s.from_bits(s.bits(a)),
        ]
        .map(
            #[inline(always)]
            |v| get(s, v),
        )
    }
}

#[test]
fn arithmetic() {
    let mut random = Random(1);
    for _ in 0..ROUNDS {
        let input = [lanes(|_| float(&mut random)), lanes(|_| float(&mut random))];
        for level in levels() {
            let found = level.run(Arithmetic(&input)).map(|v| v.map(bits));
            compare(level, found, &ARITHMETIC, |f, i| bits(f(input[0][i], input[1][i])));
        }
    }
}

/// A mask through both of its readers.
fn get_mask<S: Simd>(s: S, m: S::Mask) -> [bool; 16] {
    let bits = s.mask_bits(m);
    let selected = get_i32(s, s.select_i32(m, s.splat_i32(-1), s.splat_i32(7)));
    let floats = get(s, s.select(m, s.splat(2.0), s.splat(-3.0)));
    lanes(|i| {
        let holds = bits >> i & 1 == 1;
        assert_eq!(selected[i], if holds { -1 } else { 7 });
        assert_eq!(floats[i], if holds { 2.0 } else { -3.0 });
        holds
    })
}

struct Comparisons<'a>(&'a [[f32; 16]; 2], &'a [[i32; 16]; 2]);

type Compares = fn(f32, f32, i32, i32) -> bool;

const COMPARISONS: [(&str, Compares); 7] = [
    ("lt", |a, b, _, _| a < b),
    ("le", |a, b, _, _| a <= b),
    ("eq", |a, b, _, _| a == b),
    ("eq of itself", |a, _, _, _| !a.is_nan()),
    ("gt_i32", |_, _, a, b| a > b),
    ("eq_i32", |_, _, a, b| a == b),
    ("both", |a, b, i, j| a < b && i > j),
];

impl Kernel for Comparisons<'_> {
    type Output = [[bool; 16]; 7];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Self::Output {
        let [a, b] = self.0.map(|v| s.load(&v));
        let [i, j] = self.1.map(|v| s.load_i32(&v));
        let both = s.both(s.lt(a, b), s.gt_i32(i, j));
        [s.lt(a, b), s.le(a, b), s.eq(a, b), s.eq(a, a), s.gt_i32(i, j), s.eq_i32(i, j), both].map(
            #[inline(always)]
            |m| get_mask(s, m),
        )
    }
}

#[test]
fn comparisons_and_selection() {
    let mut random = Random(2);
    for round in 0..ROUNDS {
        let mut floats = [lanes(|_| float(&mut random)), lanes(|_| float(&mut random))];
        let mut ints = [lanes(|_| int(&mut random)), lanes(|_| int(&mut random))];
        // Equal lanes are rare by chance.
        floats[1][round % 16] = floats[0][round % 16];
        ints[1][round % 16] = ints[0][round % 16];
        for level in levels() {
            compare(level, level.run(Comparisons(&floats, &ints)), &COMPARISONS, |f, i| {
                f(floats[0][i], floats[1][i], ints[0][i], ints[1][i])
            });
        }
    }
}

struct Four<'a>(&'a [[i32; 16]; 4]);

impl Kernel for Four<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> u64 {
        let mut masks = [s.eq_i32(s.splat_i32(0), s.splat_i32(1)); 4];
        for i in 0..4 {
            masks[i] = s.gt_i32(s.load_i32(&self.0[i]), s.splat_i32(5));
        }
        s.mask_bits_64(masks)
    }
}

#[test]
fn bits_of_four_masks() {
    let mut random = Random(11);
    for _ in 0..ROUNDS {
        let input = [(); 4].map(|()| lanes(|_| int(&mut random) % 11));
        let expected = (0..64).filter(|&i| input[i / 16][i % 16] > 5).fold(0, |bits, i| bits | 1u64 << i);
        for level in levels() {
            assert_eq!(level.run(Four(&input)), expected, "{level:?}");
        }
    }
}
