//! The dot product of int8, by products of 16 bits.

use super::{Avx2, I};
use crate::simd::x86::pair;
use crate::simd::{Dot, Simd, even_odd, widen};
use core::arch::x86_64::*;

/// `vpmaddwd` on the even and the odd bytes, widened in their lanes; `vpmaddubsw` would saturate.
impl Dot for Avx2 {
    type X = [__m256i; 2];
    type W = [I; 2];
    type Quad = [i16; 4];
    type Weights = [i16; 64];
    const MANY_REGISTERS: bool = false;
    const SMALL_FIRST_CACHE: Option<bool> = None;
    type Unit = core::convert::Infallible;

    #[inline(always)]
    fn pack_quad(self, x: [i8; 4]) -> [i16; 4] {
        even_odd(x)
    }
    #[inline(always)]
    fn splat_quad(self, x: &[i16; 4]) -> [__m256i; 2] {
        hw!([_mm256_set1_epi32(pair(x, 0)), _mm256_set1_epi32(pair(x, 1))])
    }
    #[inline(always)]
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], words: &'a mut [u64]) -> [&'a [[i16; 64]]; NV] {
        widen(
            w,
            words,
            #[inline(always)]
            |w, to| {
                let [even, odd] = self.weights(w);
                hw!(for (i, quarter) in [even[0], even[1], odd[0], odd[1]].into_iter().enumerate() {
                    _mm256_storeu_si256(to.as_mut_ptr().add(16 * i).cast(), quarter);
                })
            },
        )
    }
    #[inline(always)]
    fn load_weights(self, w: &[i16; 64]) -> [I; 2] {
        let at = w.as_ptr();
        hw!({
            let even = [_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(16).cast())];
            [even, [_mm256_loadu_si256(at.add(32).cast()), _mm256_loadu_si256(at.add(48).cast())]]
        })
    }
    #[inline(always)]
    fn weights(self, w: &[i8; 64]) -> [I; 2] {
        hw!({
            let w = [_mm256_loadu_si256(w.as_ptr().cast()), _mm256_loadu_si256(w.as_ptr().add(32).cast())];
            let up = both!(_mm256_slli_epi16::<8>, w);
            [both!(_mm256_srai_epi16::<8>, up), both!(_mm256_srai_epi16::<8>, w)]
        })
    }
    #[inline(always)]
    fn dot(self, acc: I, x: [__m256i; 2], w: [I; 2]) -> I {
        let even = both!(_mm256_madd_epi16, [x[0], x[0]], w[0]);
        let odd = both!(_mm256_madd_epi16, [x[1], x[1]], w[1]);
        self.add_i32(self.add_i32(acc, even), odd)
    }
    #[inline(always)]
    fn dots<const MR: usize, const NV: usize>(self, x: [&[i16; 4]; MR], w: [[I; 2]; NV], acc: &mut [[I; NV]; MR]) {
        // The odd bytes are widened a shift sooner. Added last, they would be added together with the even ones first, whose products
        // would all wait meanwhile.
        for part in [1, 0] {
            for m in 0..MR {
                let x = hw!(_mm256_set1_epi32(pair(x[m], part)));
                for v in 0..NV {
                    acc[m][v] = self.add_i32(acc[m][v], both!(_mm256_madd_epi16, [x, x], w[v][part]));
                }
            }
        }
    }
}
