//! `exp`, `log` and `sigmoid` on one number.

use super::fma;
use crate::math::constants::*;

fn horner(r: f32, c: &[f32]) -> f32 {
    c[1..].iter().fold(c[0], |p, &c| fma(p, r, c))
}

/// e^x: 0 where the result would not be normal, +inf on overflow, NaN for NaN.
pub fn exp(x: f32) -> f32 {
    if x.is_nan() || x > EXP_MAX {
        return x + f32::INFINITY;
    }
    if x < EXP_MIN {
        return 0.0;
    }
    let shifted = fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma(n, -LN2_LO, fma(n, -LN2_HI, x));
    let p = fma(r * r, horner(r, &EXP), r) + 1.0;
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// ln x: -inf for 0, NaN below, +inf for +inf.
pub fn log(x: f32) -> f32 {
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x == f32::INFINITY {
        return x;
    }
    let (y, down) = if x < f32::MIN_POSITIVE { (x * 8_388_608.0, 23) } else { (x, 0) };
    let offset = y.to_bits() as i32 - SQRT_HALF.to_bits() as i32;
    let m = f32::from_bits(((offset & 0x007F_FFFF) + SQRT_HALF.to_bits() as i32) as u32);
    let e = ((offset >> 23) - down) as f32;
    let f = m - 1.0;
    let f2 = f * f;
    let p = horner(f, &LOG) * f * f2;
    let p = fma(-0.5, f2, fma(e, LN2_LO, p));
    fma(e, LN2_HI, f + p)
}

/// 1 / (1 + e^-x)
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(0.0 - x))
}
