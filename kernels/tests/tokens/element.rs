//! Storage types: every f16 and bf16 widened, every rounding boundary narrowed, and tails, against `half`.

use crate::common::{Random, bits, levels};
use half::{bf16, f16};
use std::fmt::Debug;
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::element::Element;
use tilekern_kernels::simd::Dot;

/// A step through all patterns that a slow interpreter can afford; it is odd, so it reaches every residue.
const STEP: usize = if cfg!(miri) { 1021 } else { 1 };

struct Widen<'a, T>(&'a [T; 16]);

impl<T: Element> Kernel for Widen<'_, T> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 16] {
        let mut out = [0.0; 16];
        s.store(T::load(s, self.0), &mut out);
        out
    }
}

struct Narrow<'a, T>(&'a [f32; 16], [T; 16]);

impl<T: Element> Kernel for Narrow<'_, T> {
    type Output = [T; 16];

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) -> [T; 16] {
        T::store(s, s.load(self.0), &mut self.1);
        self.1
    }
}

/// Narrows `input` on every instruction set and compares with [`Element::narrow`], which is `half`'s.
fn narrows_alike<T: Element + Debug>(input: &[f32; 16]) {
    let expected = input.map(T::narrow);
    for level in levels() {
        let found = level.run(Narrow(input, [T::default(); 16]));
        for i in 0..16 {
            let (found, expected): (f32, f32) = (found[i].as_(), expected[i].as_());
            assert_eq!(bits(found), bits(expected), "{:e} on {level:?}", input[i]);
        }
    }
}

fn all_patterns_widen<T: Element + Debug>(from_bits: fn(u16) -> T) {
    for start in (0..=u16::MAX).step_by(16 * STEP) {
        let input: [T; 16] = std::array::from_fn(|i| from_bits(start.wrapping_add(i as u16)));
        let expected = input.map(|x| bits(x.as_()));
        for level in levels() {
            assert_eq!(level.run(Widen(&input)).map(bits), expected, "{start:#x} on {level:?}");
        }
    }
}

/// Around each number, and around the middle between it and its neighbour: exact, just below, tie, just above.
fn all_boundaries_narrow<T: Element + Debug>(from_bits: fn(u16) -> T) {
    for pattern in (0..=u16::MAX).step_by(STEP) {
        let (low, high): (f32, f32) = (from_bits(pattern).as_(), from_bits(pattern.wrapping_add(1)).as_());
        let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
        let around = |x: f32| [-2i32, -1, 0, 1, 2].map(|d| f32::from_bits(x.to_bits().wrapping_add_signed(d)));
        let mut input = [low; 16];
        input[1..6].copy_from_slice(&around(low));
        input[6..11].copy_from_slice(&around(middle));
        input[11..16].copy_from_slice(&around(high));
        narrows_alike::<T>(&input);
    }
}

#[test]
fn f16_widens_exactly() {
    all_patterns_widen(f16::from_bits);
}

#[test]
fn bf16_widens_exactly() {
    all_patterns_widen(bf16::from_bits);
}

#[test]
fn f16_narrows_half_to_even() {
    all_boundaries_narrow(f16::from_bits);
}

#[test]
fn bf16_narrows_half_to_even() {
    all_boundaries_narrow(bf16::from_bits);
}

/// The ends of the ranges, by their known results.
#[test]
fn ends_of_the_ranges() {
    let tiny = f32::from_bits(1);
    // 2^-24, by its bits: an interpreter may compute a power otherwise.
    let smallest = f32::from_bits(103 << 23);
    let f16_cases: [(f32, u16); 9] = [
        (65504.0, 0x7BFF),
        (65519.0, 0x7BFF),
        (65520.0, 0x7C00),
        (f32::MAX, 0x7C00),
        (f32::NEG_INFINITY, 0xFC00),
        (smallest, 0x0001),
        (smallest * 0.5, 0x0000),
        (smallest * 0.500_001, 0x0001),
        (-tiny, 0x8000),
    ];
    let bf16_cases: [(f32, u16); 6] = [
        (f32::MAX, 0x7F80),
        (f32::from_bits(0x7F7F_7FFF), 0x7F7F),
        (f32::INFINITY, 0x7F80),
        (f32::from_bits(0x0000_8000), 0x0000),
        (f32::from_bits(0x0000_8001), 0x0001),
        (-tiny, 0x8000),
    ];
    for level in levels() {
        for (x, expected) in f16_cases {
            assert_eq!(level.run(Narrow(&[x; 16], [f16::ZERO; 16]))[0].to_bits(), expected, "{x:e} on {level:?}");
        }
        for (x, expected) in bf16_cases {
            assert_eq!(level.run(Narrow(&[x; 16], [bf16::ZERO; 16]))[0].to_bits(), expected, "{x:e} on {level:?}");
        }
        for payload in [1, 0x1FFF, 0x2000, 0x3F_FFFF, 0x40_0000, 0x7F_FFFF, 0x8000_0001] {
            let nan = [f32::from_bits(0x7F80_0000 | payload); 16];
            assert!(level.run(Narrow(&nan, [f16::ZERO; 16]))[0].is_nan(), "{payload:#x} on {level:?}");
            assert!(level.run(Narrow(&nan, [bf16::ZERO; 16]))[0].is_nan(), "{payload:#x} on {level:?}");
        }
    }
}

#[test]
fn any_number_narrows_alike() {
    let mut random = Random(1);
    for _ in 0..20_000 / STEP {
        let input = std::array::from_fn(|_| f32::from_bits(random.bits() as u32));
        narrows_alike::<f16>(&input);
        narrows_alike::<bf16>(&input);
        narrows_alike::<f32>(&input);
    }
}

struct Tail<'a, T> {
    input: &'a [T],
    fill: T,
    output: &'a mut [T],
}

impl<T: Element> Kernel for Tail<'_, T> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 16] {
        let v = T::load_partial(s, self.input, self.fill);
        T::store_partial(s, v, self.output);
        let mut lanes = [0.0; 16];
        s.store(v, &mut lanes);
        lanes
    }
}

/// The input ends where its allocation does, so that a sanitizer or valgrind sees a read behind it.
fn tails<T: Element + Debug>() {
    let mut random = Random(2);
    for n in 0..=16 {
        let input: Box<[T]> = (0..n).map(|_| T::narrow(random.unit())).collect();
        for level in levels() {
            let fill = T::narrow(-7.5);
            let mut output: Box<[T]> = vec![fill; n].into();
            let lanes = level.run(Tail { input: &input, fill, output: &mut output });
            assert_eq!(output, input, "{level:?} n={n}");
            for i in 0..16 {
                assert_eq!(lanes[i], input.get(i).copied().unwrap_or(fill).as_(), "{level:?} n={n} lane {i}");
            }
        }
    }
}

#[test]
fn tails_touch_what_they_have() {
    tails::<f32>();
    tails::<f16>();
    tails::<bf16>();
}

struct IntTail<'a>(&'a [i32]);

impl Kernel for IntTail<'_> {
    type Output = [i32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [i32; 16] {
        let mut lanes = [0; 16];
        s.store_i32(s.load_i32_partial(self.0), &mut lanes);
        lanes
    }
}

#[test]
fn tails_of_integers() {
    let mut random = Random(3);
    for n in 0..=16 {
        let input: Box<[i32]> = (0..n).map(|_| random.bits() as i32).collect();
        for level in levels() {
            let lanes = level.run(IntTail(&input));
            for i in 0..16 {
                assert_eq!(lanes[i], input.get(i).copied().unwrap_or(0), "{level:?} n={n} lane {i}");
            }
        }
    }
}
