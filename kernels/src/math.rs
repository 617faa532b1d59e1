//! `exp`, `log` and `sigmoid`: the only place with polynomials.
//!
//! Every step is an IEEE operation or a fused multiply-add in a fixed place, so the bits are the same on every instruction set.
//!
//! * `exp`: with n = rne(x / ln 2) and r = x - n ln 2 in two fused steps, |r| <= 0.3466, it is 1 + (r + r^2 q(r)) with q of degree
//!   4, and 2^n is added into the exponent. It never falls where x rises, so sorted logits have sorted probabilities: r, added last
//!   but one, is all that the rounding of the quadratic part could not undo. At most 1.05 ulp; Horner's rule to the end has 0.90
//!   but is not monotone, and one degree less has 2.2.
//! * `log`: x = m 2^e with m in [sqrt(1/2), sqrt(2)), then log1p(m - 1) by a polynomial of degree 9 and e ln 2 in two parts. At most
//!   0.84 ulp.
//! * `sigmoid`: 1 / (1 + exp(-x)). At most 2.49 ulp where the result is normal.
//!
//! The maxima are those over all 2^32 arguments, measured against `f64`; the tests assert rounder bounds at every exponent and at the
//! seams of the reductions.

use crate::simd::Simd;

/// The constants of [`exp`] and [`log`], shared with the scalar definition.
pub mod constants {
    /// 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits.
    pub const ROUND: f32 = 12_582_912.0;
    /// 1 / ln 2
    pub const LOG2_E: f32 = core::f32::consts::LOG2_E;
    /// ln 2, the high part: 15 bits, so n * LN2_HI is exact for |n| < 2^9.
    pub const LN2_HI: f32 = 0.693_145_75;
    /// ln 2 - LN2_HI
    pub const LN2_LO: f32 = 1.428_606_8e-6;
    /// The smallest argument whose exponential is normal; below it the result is 0.
    pub const EXP_MIN: f32 = f32::from_bits(0xC2AE_AC4F);
    /// The largest argument whose exponential is finite.
    pub const EXP_MAX: f32 = f32::from_bits(0x42B1_7217);
    /// (exp(r) - 1 - r) / r^2 on [-0.3466, 0.3466], highest degree first.
    pub const EXP: [f32; 5] = [1.395_072_6e-3, 8.369_025e-3, 4.166_620_2e-2, 0.166_665_18, 0.5];
    /// (log1p(f) - f + f^2 / 2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1], highest degree first.
    pub const LOG: [f32; 9] = [
        6.746_644e-2,
        -0.116_756_566,
        0.118_881_635,
        -0.124_055_885,
        0.142_195_52,
        -0.166_679_96,
        0.200_021_19,
        -0.250_000_1,
        0.333_333_13,
    ];
    /// sqrt(1/2)
    pub const SQRT_HALF: f32 = core::f32::consts::FRAC_1_SQRT_2;
}

use constants::*;

/// Polynomial by Horner's rule, highest degree first.
#[inline(always)]
fn horner<S: Simd, const N: usize>(s: S, r: S::F32, c: [f32; N]) -> S::F32 {
    let mut p = s.splat(c[0]);
    for i in 1..N {
        p = s.fma(p, r, s.splat(c[i]));
    }
    p
}

/// e^x: 0 where the result would not be normal, +inf on overflow, NaN for NaN.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let y = exp_below_overflow(s, x);
    s.select(s.lt(s.splat(EXP_MAX), x), s.splat(f32::INFINITY), y)
}

/// [`exp`] for x <= [`constants::EXP_MAX`] or NaN: a softmax has no others.
#[inline(always)]
pub fn exp_below_overflow<S: Simd>(s: S, x: S::F32) -> S::F32 {
    s.select(s.eq(x, x), exp_or_zero(s, x), x)
}

/// [`exp`] for x <= [`constants::EXP_MAX`]; 0 for NaN.
#[inline(always)]
pub fn exp_or_zero<S: Simd>(s: S, x: S::F32) -> S::F32 {
    s.common(
        #[inline(always)]
        move || reduced_exp(s, x),
    )
}

#[inline(always)]
fn reduced_exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let shifted = s.fma(x, s.splat(LOG2_E), s.splat(ROUND));
    let n = s.sub(shifted, s.splat(ROUND));
    let r = s.fma(n, s.splat(-LN2_HI), x);
    let r = s.fma(n, s.splat(-LN2_LO), r);
    // Added last and in this form, r keeps the result monotone: what rounding leaves in the quadratic part is smaller than a step of r.
    let p = s.add(s.fma(s.mul(r, r), horner(s, r, EXP), r), s.splat(1.0));
    // The low bits of `shifted` are n; the rest leaves at the top.
    let scaled = s.add_i32(s.bits(p), s.shl(s.bits(shifted), 23));
    s.from_bits(s.select_i32(s.le(s.splat(EXP_MIN), x), scaled, s.splat_i32(0)))
}

/// ln x: -inf for 0, NaN below, +inf for +inf; subnormal arguments are exact like the rest.
#[inline(always)]
pub fn log<S: Simd>(s: S, x: S::F32) -> S::F32 {
    s.common(
        #[inline(always)]
        move || reduced_log(s, x),
    )
}

#[inline(always)]
fn reduced_log<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let tiny = s.lt(x, s.splat(f32::MIN_POSITIVE));
    let y = s.select(tiny, s.mul(x, s.splat(8_388_608.0)), x);
    let bits = s.bits(y);
    // Moves m into [sqrt(1/2), sqrt(2)): the exponent counts from sqrt(1/2).
    let offset = s.sub_i32(bits, s.splat_i32(SQRT_HALF.to_bits() as i32));
    let mantissa = s.and(offset, s.splat_i32(0x007F_FFFF));
    let m = s.from_bits(s.add_i32(mantissa, s.splat_i32(SQRT_HALF.to_bits() as i32)));
    let e = s.sub(s.to_f32(s.shr(s.add_i32(offset, s.splat_i32(128 << 23)), 23)), s.splat(128.0));
    let e = s.select(tiny, s.sub(e, s.splat(23.0)), e);
    let f = s.sub(m, s.splat(1.0));
    let f2 = s.mul(f, f);
    let p = s.mul(s.mul(horner(s, f, LOG), f), f2);
    let p = s.fma(e, s.splat(LN2_LO), p);
    let p = s.fma(s.splat(-0.5), f2, p);
    let y = s.fma(e, s.splat(LN2_HI), s.add(f, p));
    let y = s.select(s.eq(x, s.splat(f32::INFINITY)), x, y);
    let y = s.select(s.eq(x, s.splat(0.0)), s.splat(f32::NEG_INFINITY), y);
    s.select(s.le(s.splat(0.0), x), y, s.splat(f32::NAN))
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub fn sigmoid<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let e = exp(s, s.sub(s.splat(0.0), x));
    s.div(s.splat(1.0), s.add(s.splat(1.0), e))
}
