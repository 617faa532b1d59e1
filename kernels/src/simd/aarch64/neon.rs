//! NEON, without and with the dot-product extension: the logical vector is four registers.

// `hw!` may stand inside `hw!`.
#![allow(unused_unsafe)]

use crate::dispatch::Isa;
use crate::simd::Simd;
use core::arch::aarch64::*;

/// NEON, and the dot-product extension where `DOT` holds.
#[derive(Clone, Copy, Debug)]
pub struct Token<const DOT: bool>(());

/// ARMv8 NEON.
pub type Neon = Token<false>;
/// NEON with `sdot`.
pub type NeonDot = Token<true>;

impl<const DOT: bool> Token<DOT> {
    /// The token, where this processor has the instruction set.
    #[inline]
    pub fn new() -> Option<Self> {
        Self::ISA.is_available().then_some(Token(()))
    }

    /// The token that promises less.
    #[inline(always)]
    pub(crate) fn without_dot(self) -> Token<false> {
        Token(())
    }
}

macro_rules! hw {
    ($e:expr) => {
        // SAFETY: the token proves the features, and the array behind a pointer has the size of the access.
        unsafe { $e }
    };
}

/// An array of what stands for each of the four registers; `from_fn` and `map` would be functions of their own for each closure.
macro_rules! each {
    (|$i:ident| $e:expr) => {
        [
            {
                let $i = 0;
                $e
            },
            {
                let $i = 1;
                $e
            },
            {
                let $i = 2;
                $e
            },
            {
                let $i = 3;
                $e
            },
        ]
    };
}

/// The same intrinsic on the four registers.
macro_rules! four {
    ($f:expr, $a:expr) => {{
        let a = $a;
        each!(|i| hw!($f(a[i])))
    }};
    ($f:expr, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        each!(|i| hw!($f(a[i], b[i])))
    }};
    ($f:expr, $a:expr, $b:expr, $c:expr) => {{
        let (a, b, c) = ($a, $b, $c);
        each!(|i| hw!($f(a[i], b[i], c[i])))
    }};
}

mod dot;

/// The mask, with its origin hidden. LLVM turns `select(a < b, a, b)` into `fminnm` where it knows `b` to be no NaN, and that answers
/// -0 for -0 and +0.
#[inline(always)]
fn opaque(mut m: M) -> M {
    for m in &mut m {
        hw!(core::arch::asm!("/* {0:v} */", inout(vreg) * m, options(pure, nomem, nostack, preserves_flags)));
    }
    m
}

type F = [float32x4_t; 4];
type I = [int32x4_t; 4];
type M = [uint32x4_t; 4];

impl<const DOT: bool> Simd for Token<DOT> {
    type F32 = F;
    type I32 = I;
    type Mask = M;

    const ISA: Isa = if DOT { Isa::NeonDot } else { Isa::Neon };

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
    #[inline(never)]
    fn apart<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    fn load(self, a: &[f32; 16]) -> F {
        each!(|i| hw!(vld1q_f32(a.as_ptr().add(4 * i))))
    }
    #[inline(always)]
    fn store(self, v: F, a: &mut [f32; 16]) {
        for i in 0..4 {
            hw!(vst1q_f32(a.as_mut_ptr().add(4 * i), v[i]));
        }
    }
    #[inline(always)]
    fn load_i32(self, a: &[i32; 16]) -> I {
        each!(|i| hw!(vld1q_s32(a.as_ptr().add(4 * i))))
    }
    #[inline(always)]
    fn store_i32(self, v: I, a: &mut [i32; 16]) {
        for i in 0..4 {
            hw!(vst1q_s32(a.as_mut_ptr().add(4 * i), v[i]));
        }
    }
    #[inline(always)]
    fn store_i8(self, v: I, a: &mut [i8; 16]) {
        hw!({
            let lo = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
            let hi = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
            vst1q_s8(a.as_mut_ptr(), vcombine_s8(vmovn_s16(lo), vmovn_s16(hi)));
        })
    }
    #[inline(always)]
    fn interleave(self, rows: [[&[i8; 32]; 2]; 4], to: [&mut [i8; 64]; 4]) {
        for (part, to) in to.into_iter().enumerate() {
            hw!({
                let mut all = [vdupq_n_s8(0); 4];
                for i in 0..4 {
                    all[i] = vld1q_s8(rows[i][part / 2].as_ptr().add(16 * (part % 2)));
                }
                vst4q_s8(to.as_mut_ptr(), int8x16x4_t(all[0], all[1], all[2], all[3]));
            })
        }
    }
    #[inline(always)]
    fn load_u16(self, a: &[u16; 16]) -> I {
        each!(|i| hw!(vreinterpretq_s32_u32(vmovl_u16(vld1_u16(a.as_ptr().add(4 * i))))))
    }
    #[inline(always)]
    fn store_u16(self, v: I, a: &mut [u16; 16]) {
        for i in 0..4 {
            hw!(vst1_u16(a.as_mut_ptr().add(4 * i), vmovn_u32(vreinterpretq_u32_s32(v[i]))));
        }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        [hw!(vdupq_n_f32(x)); 4]
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        four!(vaddq_f32, a, b)
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        four!(vsubq_f32, a, b)
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        four!(vmulq_f32, a, b)
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        four!(vdivq_f32, a, b)
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        four!(vfmaq_f32, c, a, b)
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        self.select(four!(vcgtq_f32, a, b), a, b)
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        self.select(four!(vcltq_f32, a, b), a, b)
    }

    #[inline(always)]
    fn lt(self, a: F, b: F) -> M {
        four!(vcltq_f32, a, b)
    }
    #[inline(always)]
    fn le(self, a: F, b: F) -> M {
        four!(vcleq_f32, a, b)
    }
    #[inline(always)]
    fn eq(self, a: F, b: F) -> M {
        four!(vceqq_f32, a, b)
    }
    #[inline(always)]
    fn select(self, m: M, a: F, b: F) -> F {
        let m = opaque(m);
        four!(vbslq_f32, m, a, b)
    }
    #[inline(always)]
    fn both(self, a: M, b: M) -> M {
        four!(vandq_u32, a, b)
    }
    #[inline(always)]
    fn differ(self, a: M, b: M) -> M {
        four!(veorq_u32, a, b)
    }
    #[inline(always)]
    fn mask_bits(self, m: M) -> u16 {
        hw!({
            let weights = vld1q_u32([1, 2, 4, 8].as_ptr());
            (0..4).map(|i| (vaddvq_u32(vandq_u32(m[i], weights)) as u16) << (4 * i)).sum()
        })
    }

    #[inline(always)]
    fn bits(self, v: F) -> I {
        four!(vreinterpretq_s32_f32, v)
    }
    #[inline(always)]
    fn from_bits(self, v: I) -> F {
        four!(vreinterpretq_f32_s32, v)
    }
    #[inline(always)]
    fn to_f32(self, v: I) -> F {
        four!(vcvtq_f32_s32, v)
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> I {
        [hw!(vdupq_n_s32(x)); 4]
    }
    #[inline(always)]
    fn add_i32(self, a: I, b: I) -> I {
        four!(vaddq_s32, a, b)
    }
    #[inline(always)]
    fn sub_i32(self, a: I, b: I) -> I {
        four!(vsubq_s32, a, b)
    }
    #[inline(always)]
    fn and(self, a: I, b: I) -> I {
        four!(vandq_s32, a, b)
    }
    #[inline(always)]
    fn or(self, a: I, b: I) -> I {
        four!(vorrq_s32, a, b)
    }
    #[inline(always)]
    fn xor(self, a: I, b: I) -> I {
        four!(veorq_s32, a, b)
    }
    #[inline(always)]
    fn shl(self, a: I, n: u32) -> I {
        each!(|i| hw!(vshlq_s32(a[i], vdupq_n_s32(n as i32))))
    }
    #[inline(always)]
    fn shr(self, a: I, n: u32) -> I {
        each!(|i| hw!(vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a[i]), vdupq_n_s32(-(n as i32))))))
    }
    #[inline(always)]
    fn mul_even(self, a: I, b: u32) -> I {
        each!(|i| hw!(vreinterpretq_s32_u64(vmull_n_u32(vmovn_u64(vreinterpretq_u64_s32(a[i])), b))))
    }
    #[inline(always)]
    fn min_i32(self, a: I, b: I) -> I {
        four!(vminq_s32, a, b)
    }
    #[inline(always)]
    fn max_i32(self, a: I, b: I) -> I {
        four!(vmaxq_s32, a, b)
    }
    #[inline(always)]
    fn max_i16(self, a: I, b: I) -> I {
        let (a, b) = (four!(vreinterpretq_s16_s32, a), four!(vreinterpretq_s16_s32, b));
        four!(vreinterpretq_s32_s16, four!(vmaxq_s16, a, b))
    }
    #[inline(always)]
    fn halves_within(self, v: I, [low, high]: [i16; 2]) -> u32 {
        hw!({
            let (low, high) = (vdupq_n_s16(low), vdupq_n_s16(high));
            let weights = vld1_u8([1, 2, 4, 8, 16, 32, 64, 128].as_ptr());
            let mut bits = [0; 4];
            for i in 0..4 {
                let v = vreinterpretq_s16_s32(v[i]);
                let inside = vmovn_u16(vandq_u16(vcgeq_s16(v, low), vcleq_s16(v, high)));
                bits[i] = vaddv_u8(vand_u8(inside, weights));
            }
            u32::from_le_bytes(bits)
        })
    }
    #[inline(always)]
    fn gt_i32(self, a: I, b: I) -> M {
        four!(vcgtq_s32, a, b)
    }
    #[inline(always)]
    fn eq_i32(self, a: I, b: I) -> M {
        four!(vceqq_s32, a, b)
    }
    #[inline(always)]
    fn select_i32(self, m: M, a: I, b: I) -> I {
        let m = opaque(m);
        four!(vbslq_s32, m, a, b)
    }

    #[inline(always)]
    fn swap_pairs(self, v: F) -> F {
        four!(vrev64q_f32, v)
    }
    #[inline(always)]
    fn dup_even(self, v: F) -> F {
        four!(vtrn1q_f32, v, v)
    }
    #[inline(always)]
    fn dup_odd(self, v: F) -> F {
        four!(vtrn2q_f32, v, v)
    }
    #[inline(always)]
    fn zip_even(self, a: I, b: I) -> I {
        four!(vtrn1q_s32, a, b)
    }
    #[inline(always)]
    fn pairs<const D: usize>(self, a: F, b: F) -> (F, F) {
        hw!(match D {
            8 => ([a[0], a[1], b[0], b[1]], [a[2], a[3], b[2], b[3]]),
            4 => ([a[0], b[0], a[2], b[2]], [a[1], b[1], a[3], b[3]]),
            2 => {
                let (a, b) = (four!(vreinterpretq_f64_f32, a), four!(vreinterpretq_f64_f32, b));
                let (low, high) = (four!(vtrn1q_f64, a, b), four!(vtrn2q_f64, a, b));
                (four!(vreinterpretq_f32_f64, low), four!(vreinterpretq_f32_f64, high))
            }
            _ => (four!(vtrn1q_f32, a, b), four!(vtrn2q_f32, a, b)),
        })
    }
    #[inline(always)]
    fn exchange<const D: usize>(self, v: I) -> I {
        match D {
            1 => four!(vrev64q_s32, v),
            2 => four!(vextq_s32::<2>, v, v),
            4 => [v[1], v[0], v[3], v[2]],
            _ => [v[2], v[3], v[0], v[1]],
        }
    }

    #[inline(always)]
    fn reduce_add(self, v: F) -> f32 {
        hw!({
            let a = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
            let a = vadd_f32(vget_low_f32(a), vget_high_f32(a));
            vget_lane_f32::<0>(a) + vget_lane_f32::<1>(a)
        })
    }

    #[inline(always)]
    fn reduce_max(self, v: F) -> f32 {
        hw!(vmaxvq_f32(vmaxq_f32(vmaxq_f32(v[0], v[2]), vmaxq_f32(v[1], v[3]))))
    }

    /// The tree of `reduce_add` on 4 vectors at once, each step packing a pair into one.
    #[inline(always)]
    fn reduce_add_each(self, v: [F; 16]) -> F {
        each!(|i| {
            hw!({
                let q: [float32x4_t; 4] = each!(|j| {
                    let a = v[4 * i + j];
                    vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]))
                });
                // [a0 a1 b0 b1] + [a2 a3 b2 b3]
                let pair = |a, b| {
                    vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)), vcombine_f32(vget_high_f32(a), vget_high_f32(b)))
                };
                let (ab, cd) = (pair(q[0], q[1]), pair(q[2], q[3]));
                vaddq_f32(vuzp1q_f32(ab, cd), vuzp2q_f32(ab, cd))
            })
        })
    }
    #[inline(always)]
    fn prefetch(self, line: &[i8; 64]) {
        // The intrinsic is unstable.
        hw!(core::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly)));
    }
}
