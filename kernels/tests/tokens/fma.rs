//! The fused multiply-add of every token, and of the scalar definition, against exact integer arithmetic.

use crate::common::{Random, bits, levels};
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::reference;
use tilekern_kernels::simd::Dot;

/// `m * 2^e` for a finite number, `m` with its sign.
fn parts(x: f32) -> (i128, i32) {
    let (exponent, mantissa) = ((x.to_bits() >> 23 & 0xFF) as i32, i128::from(x.to_bits() & 0x007F_FFFF));
    let m = if exponent == 0 { mantissa } else { mantissa | 0x0080_0000 };
    (if x.is_sign_negative() { -m } else { m }, exponent.max(1) - 150)
}

/// `m * 2^(from - to)`, and the last bit set if anything nonzero fell off.
fn align(m: i128, from: i32, to: i32) -> i128 {
    match from - to {
        up @ 0.. => m << up,
        down => {
            let magnitude = m.unsigned_abs();
            let shift = down.unsigned_abs().min(127);
            let lost = magnitude & ((1 << shift) - 1) != 0;
            m.signum() * ((magnitude >> shift) as i128 | i128::from(lost))
        }
    }
}

/// `a * b + c`, rounded once. Both terms are brought to a scale 70 bits below the larger exponent: what is shifted out there is far
/// below the rounding bit, and the last bit remembers it.
fn exact(a: f32, b: f32, c: f32) -> f32 {
    if [a, b, c].iter().any(|x| !x.is_finite() || *x == 0.0) {
        // The product of two f32 is exact in f64, and so is its sum with a zero or an infinity.
        return (f64::from(a) * f64::from(b) + f64::from(c)) as f32;
    }
    let ((ma, ea), (mb, eb), (mc, ec)) = (parts(a), parts(b), parts(c));
    let scale = (ea + eb).max(ec) - 70;
    let sum = align(ma * mb, ea + eb, scale) + align(mc, ec, scale);
    if sum == 0 {
        return 0.0;
    }
    let magnitude = sum.unsigned_abs();
    // The exponent of the last place: 24 bits, or where the subnormals end.
    let last = (scale + 128 - magnitude.leading_zeros() as i32 - 24).max(-149);
    let rounded = match last - scale {
        drop @ 1.. => {
            let drop = drop.min(127);
            let (half, rest) = (1 << (drop - 1), magnitude & ((1 << drop) - 1));
            let quotient = magnitude >> drop;
            quotient + u128::from(rest > half || rest == half && quotient & 1 == 1)
        }
        keep => magnitude << -keep,
    };
    // The implicit bit of the mantissa counts the exponent up from the subnormals.
    let finite = ((last + 149) as u128) << 23;
    let result = f32::from_bits((finite + rounded).min(0x7F80_0000) as u32);
    if sum < 0 { -result } else { result }
}

struct Fma<'a>(&'a [[f32; 16]; 3]);

impl Kernel for Fma<'_> {
    type Output = [f32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [f32; 16] {
        let [a, b, c] = self.0.map(|v| s.load(&v));
        let mut out = [0.0; 16];
        s.store(s.fma(a, b, c), &mut out);
        out
    }
}

/// Checks `fma` on many draws of a, b and c.
fn check(seed: u64, mut draw: impl FnMut(&mut Random) -> [f32; 3]) {
    let mut random = Random(seed);
    for _ in 0..if cfg!(miri) { 8 } else { 4000 } {
        let mut input = [[0.0; 16]; 3];
        for lane in 0..16 {
            let [a, b, c] = draw(&mut random);
            (input[0][lane], input[1][lane], input[2][lane]) = (a, b, c);
        }
        let of = |f: fn(f32, f32, f32) -> f32| std::array::from_fn(|i| bits(f(input[0][i], input[1][i], input[2][i])));
        let expected: [u32; 16] = of(exact);
        assert_eq!(of(reference::fma), expected, "reference {input:?}");
        for level in levels() {
            assert_eq!(level.run(Fma(&input)).map(bits), expected, "{level:?} {input:?}");
        }
    }
}

/// `±2^e`
fn power(random: &mut Random, e: i32) -> f32 {
    let magnitude = if e >= -126 { f32::from_bits(((e + 127) as u32) << 23) } else { f32::from_bits(1 << (e + 149)) };
    if random.below(2) == 0 { magnitude } else { -magnitude }
}

fn exponent(random: &mut Random, low: i32, high: i32) -> i32 {
    low + random.below((high - low + 1) as usize) as i32
}

/// The oracle against `f64`, where that is exact, and where it is known.
#[test]
fn the_oracle_is_right() {
    let tiny = f32::from_bits(1);
    assert_eq!(exact(3.0, 5.0, -14.0), 1.0);
    assert_eq!(exact(1.0 + f32::EPSILON, 1.0 - f32::EPSILON, -1.0), -f32::EPSILON * f32::EPSILON);
    assert_eq!(exact(tiny, 0.5, tiny), 2.0 * tiny);
    assert_eq!(exact(f32::MAX, f32::MAX, f32::NEG_INFINITY), f32::NEG_INFINITY);
    assert_eq!(exact(f32::MAX, 2.0, -f32::MAX), f32::MAX);
    assert_eq!(exact(tiny, -tiny, 0.0).to_bits(), 0x8000_0000);
    let mut random = Random(1);
    for _ in 0..1000 {
        let [a, b, c] = [0; 3].map(|_| (random.below(4095) as f32 - 2047.0) / 64.0);
        assert_eq!(exact(a, b, c).to_bits(), (a * b + c).to_bits(), "{a} {b} {c}");
    }
}

#[test]
fn any_bits() {
    check(2, |random| [0; 3].map(|_| f32::from_bits(random.bits() as u32)));
}

#[test]
fn ordinary_numbers() {
    check(3, |random| [0; 3].map(|_| random.number()));
}

/// The product is a tie between two `f32`; the addend decides it from below the last bit of an `f64`.
#[test]
fn ties_of_the_product() {
    check(4, |random| {
        let (a, b) = loop {
            let (a, b) = (4097 + 2 * random.below(2048), 4097 + 2 * random.below(2048));
            // 25 bits, the last of them set.
            if (a * b) >> 24 == 1 {
                break (a as f32, b as f32);
            }
        };
        let e = exponent(random, -100, 100);
        let far = (exponent(random, -100, -30) + e).max(-149);
        [a * power(random, e), b, power(random, far)]
    });
}

/// The product is all but half a unit in the last place of the addend.
#[test]
fn ties_of_the_sum() {
    check(5, |random| {
        let e = exponent(random, -60, 100);
        let c = f32::from_bits(random.bits() as u32 & 0x007F_FFFF | ((e + 127) as u32) << 23);
        let near = [f32::EPSILON, -f32::EPSILON, 0.0][random.below(3)];
        [(1.0 + near) * power(random, e - 24), 1.0 - near, if random.below(2) == 0 { c } else { -c }]
    });
}

#[test]
fn cancellation() {
    check(6, |random| {
        let (a, b) = (random.number(), random.number());
        let near = f32::from_bits((a * b).to_bits().wrapping_add(random.below(3) as u32).wrapping_sub(1));
        [a, b, -near]
    });
}

#[test]
fn subnormal_results() {
    check(7, |random| {
        let (a, b, c) = (random.unit(), random.unit(), random.unit());
        let (ea, eb, ec) = (exponent(random, -80, -60), exponent(random, -80, -60), exponent(random, -149, -120));
        [a * power(random, ea), b * power(random, eb), c * power(random, ec)]
    });
}
