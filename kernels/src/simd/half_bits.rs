//! IEEE half precision by integer arithmetic, for instruction sets without a conversion.

use super::Simd;

/// Exact: the exponent is moved by one multiplication with a power of two, which also normalises subnormals.
#[inline(always)]
pub fn widen<S: Simd>(s: S, h: S::I32) -> S::F32 {
    let sign = s.shl(s.and(h, s.splat_i32(0x8000)), 16);
    let magnitude = s.and(h, s.splat_i32(0x7FFF));
    let scaled = s.mul(s.from_bits(s.shl(magnitude, 13)), s.splat(f32::from_bits(0x7780_0000)));
    let special = s.or(s.shl(magnitude, 13), s.splat_i32(0x7F80_0000));
    let is_special = s.gt_i32(magnitude, s.splat_i32(0x7BFF));
    s.from_bits(s.or(sign, s.select_i32(is_special, special, s.bits(scaled))))
}

/// Round half to even. Normal results round by integer carry; subnormal results by the addition of 0.5, whose last place is
/// 2^-24, the smallest half; from 65520 on the result is infinite.
#[inline(always)]
pub fn narrow<S: Simd>(s: S, v: S::F32) -> S::I32 {
    let bits = s.bits(v);
    let sign = s.shr(s.and(bits, s.splat_i32(i32::MIN)), 16);
    let magnitude = s.and(bits, s.splat_i32(0x7FFF_FFFF));
    let odd = s.and(s.shr(magnitude, 13), s.splat_i32(1));
    let rounded = s.add_i32(s.add_i32(magnitude, s.splat_i32(0xFFF)), odd);
    let normal = s.shr(s.sub_i32(rounded, s.splat_i32(112 << 23)), 13);
    let half = s.splat(0.5);
    let small = s.sub_i32(s.bits(s.add(s.from_bits(magnitude), half)), s.bits(half));
    let is_small = s.gt_i32(s.splat_i32(113 << 23), magnitude);
    let is_big = s.gt_i32(magnitude, s.splat_i32(0x477F_EFFF));
    let is_nan = s.gt_i32(magnitude, s.splat_i32(0x7F80_0000));
    let finite = s.select_i32(is_small, small, normal);
    let big = s.select_i32(is_nan, s.splat_i32(0x7E00), s.splat_i32(0x7C00));
    s.or(sign, s.select_i32(is_big, big, finite))
}
