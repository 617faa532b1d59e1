//! The dot product of int8, by an instruction or by products of 16 bits.

use super::{I, Token};
use crate::simd::Dot;
use core::arch::aarch64::*;

impl<const DOT: bool> Dot for Token<DOT> {
    type X = int8x16_t;
    type W = [int8x16_t; 4];
    type Quad = [i8; 4];
    type Weights = [i8; 64];
    type Unit = core::convert::Infallible;

    #[inline(always)]
    fn pack_quad(self, x: [i8; 4]) -> [i8; 4] {
        x
    }
    #[inline(always)]
    fn splat_quad(self, x: &[i8; 4]) -> int8x16_t {
        hw!(vreinterpretq_s8_s32(vdupq_n_s32(bytemuck::cast(*x))))
    }
    #[inline(always)]
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], _words: &'a mut [u64]) -> [&'a [[i8; 64]]; NV] {
        w
    }
    #[inline(always)]
    fn load_weights(self, w: &[i8; 64]) -> [int8x16_t; 4] {
        self.weights(w)
    }
    #[inline(always)]
    fn weights(self, w: &[i8; 64]) -> [int8x16_t; 4] {
        each!(|i| hw!(vld1q_s8(w.as_ptr().add(16 * i))))
    }
    /// Without `sdot`, products fit 16 bits (-128 * -128 = 2^14), and pairs are added into 32.
    #[inline(always)]
    fn dot(self, mut acc: I, x: int8x16_t, w: [int8x16_t; 4]) -> I {
        for i in 0..4 {
            if DOT {
                // The intrinsic is unstable. The directive makes the instruction assemble wherever this is inlined.
                hw!(core::arch::asm!(
                    ".arch_extension dotprod",
                    "sdot {acc:v}.4s, {w:v}.16b, {x:v}.16b",
                    acc = inout(vreg) acc[i], w = in(vreg) w[i], x = in(vreg) x,
                    options(pure, nomem, nostack, preserves_flags)
                ));
            } else {
                hw!({
                    let lo = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w[i])));
                    let hi = vpaddlq_s16(vmull_high_s8(x, w[i]));
                    acc[i] = vaddq_s32(acc[i], vpaddq_s32(lo, hi));
                });
            }
        }
        acc
    }
}
