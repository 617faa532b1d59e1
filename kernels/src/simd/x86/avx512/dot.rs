//! Dot products of int8 on the three tokens.

use super::super::amx::Amx;
use super::{Avx512, Avx512Amx, Avx512Vnni, Token};
use crate::simd::x86::pair;
use crate::simd::{Dot, Simd, even_odd, widen};
use bytemuck::cast;
use core::arch::x86_64::*;

/// `vpdpbusd` multiplies unsigned by signed bytes: activations are offset by 128, and the accumulator starts from what that adds.
impl Dot for Avx512Vnni {
    type X = __m512i;
    type W = __m512i;
    type Quad = [u8; 4];
    type Weights = [i8; 64];
    type Unit = core::convert::Infallible;
    const SMALL_FIRST_CACHE: Option<bool> = None;
    const OFFSET: bool = true;
    const WEAVES: bool = true;

    #[inline(always)]
    fn pack_quad(self, x: [i8; 4]) -> [u8; 4] {
        cast(cast::<_, u32>(x) ^ 0x8080_8080)
    }
    #[inline(always)]
    fn splat_quad(self, x: &[u8; 4]) -> __m512i {
        hw!(_mm512_set1_epi32(i32::from_le_bytes(*x)))
    }
    #[inline(always)]
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], _words: &'a mut [u64]) -> [&'a [[i8; 64]]; NV] {
        w
    }
    #[inline(always)]
    fn load_weights(self, w: &[i8; 64]) -> __m512i {
        self.weights(w)
    }
    #[inline(always)]
    fn weights(self, w: &[i8; 64]) -> __m512i {
        hw!(_mm512_loadu_epi8(w.as_ptr()))
    }
    #[inline(always)]
    fn start(self, column_sums: __m512i) -> __m512i {
        self.sub_i32(self.splat_i32(0), self.shl(column_sums, 7))
    }
    #[inline(always)]
    fn dot(self, acc: __m512i, x: __m512i, w: __m512i) -> __m512i {
        hw!(_mm512_dpbusd_epi32(acc, x, w))
    }
    /// Even columns, then odd ones: the first two rows are woven in half a register, the last two in the other. Shuffles of two
    /// registers would do as well, which the compiler takes apart.
    #[inline(always)]
    fn weave(self, [a, b, c, d]: &[[i8; 32]; 4], [even, odd]: [&mut [i8; 64]; 2]) {
        hw!({
            let words = _mm512_set_epi16(
                31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1,
                16, 0,
            );
            let load = |row: &[i8; 32]| _mm256_loadu_si256(row.as_ptr().cast());
            let ac = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(load(a)), load(c));
            let bd = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(load(b)), load(d));
            let low = _mm512_set1_epi16(0xFF);
            let first = _mm512_ternarylogic_epi32::<0xCA>(low, ac, _mm512_slli_epi16::<8>(bd));
            let second = _mm512_ternarylogic_epi32::<0xCA>(low, _mm512_srli_epi16::<8>(ac), bd);
            _mm512_storeu_epi8(even.as_mut_ptr(), _mm512_permutexvar_epi16(words, first));
            _mm512_storeu_epi8(odd.as_mut_ptr(), _mm512_permutexvar_epi16(words, second));
        })
    }
    #[inline(always)]
    fn in_order(self, [even, odd]: [__m512i; 2]) -> [__m512i; 2] {
        hw!([
            _mm512_permutex2var_epi32(even, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), odd),
            _mm512_permutex2var_epi32(even, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), odd),
        ])
    }
    /// Four neighbours of each 16 columns: the first four, then the second and so on. Bytes and then words are interleaved within
    /// blocks of 128 bits, by eight shuffles, of which processors do more at a time than of others.
    #[inline(always)]
    fn weave_four(self, rows: [[&[i8; 32]; 2]; 4]) -> [__m512i; 4] {
        hw!({
            let mut lines = [_mm512_setzero_si512(); 4];
            for i in 0..4 {
                let left = _mm512_castsi256_si512(_mm256_loadu_si256(rows[i][0].as_ptr().cast()));
                lines[i] = _mm512_inserti64x4::<1>(left, _mm256_loadu_si256(rows[i][1].as_ptr().cast()));
            }
            let [a, b, c, d] = lines;
            let (low, low2) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
            let (high, high2) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
            [
                _mm512_unpacklo_epi16(low, low2),
                _mm512_unpackhi_epi16(low, low2),
                _mm512_unpacklo_epi16(high, high2),
                _mm512_unpackhi_epi16(high, high2),
            ]
        })
    }
    #[inline(always)]
    fn in_order_four(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        hw!({
            // Of 16 columns each has a block of 128 bits.
            let (ab, ab2) = (_mm512_shuffle_i64x2::<0b01_00_01_00>(a, b), _mm512_shuffle_i64x2::<0b11_10_11_10>(a, b));
            let (cd, cd2) = (_mm512_shuffle_i64x2::<0b01_00_01_00>(c, d), _mm512_shuffle_i64x2::<0b11_10_11_10>(c, d));
            [
                _mm512_shuffle_i64x2::<0b10_00_10_00>(ab, cd),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(ab, cd),
                _mm512_shuffle_i64x2::<0b10_00_10_00>(ab2, cd2),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(ab2, cd2),
            ]
        })
    }
}

/// `vpmaddwd` on the even and the odd bytes, widened in their lanes.
impl Dot for Avx512 {
    type X = [__m512i; 2];
    type W = [__m512i; 2];
    type Quad = [i16; 4];
    type Weights = [i16; 64];
    type Unit = core::convert::Infallible;
    const SMALL_FIRST_CACHE: Option<bool> = Some(true);

    #[inline(always)]
    fn pack_quad(self, x: [i8; 4]) -> [i16; 4] {
        even_odd(x)
    }
    #[inline(always)]
    fn splat_quad(self, x: &[i16; 4]) -> [__m512i; 2] {
        [self.splat_i32(pair(x, 0)), self.splat_i32(pair(x, 1))]
    }
    #[inline(always)]
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], words: &'a mut [u64]) -> [&'a [[i16; 64]]; NV] {
        widen(
            w,
            words,
            #[inline(always)]
            |w, to| {
                let [even, odd] = self.weights(w);
                hw!({
                    _mm512_storeu_epi16(to.as_mut_ptr(), even);
                    _mm512_storeu_epi16(to.as_mut_ptr().add(32), odd);
                })
            },
        )
    }
    #[inline(always)]
    fn load_weights(self, w: &[i16; 64]) -> [__m512i; 2] {
        hw!([_mm512_loadu_epi16(w.as_ptr()), _mm512_loadu_epi16(w.as_ptr().add(32))])
    }
    #[inline(always)]
    fn weights(self, w: &[i8; 64]) -> [__m512i; 2] {
        hw!({
            let w = _mm512_loadu_epi8(w.as_ptr());
            [_mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(w)), _mm512_srai_epi16::<8>(w)]
        })
    }
    #[inline(always)]
    fn dot(self, acc: __m512i, x: [__m512i; 2], w: [__m512i; 2]) -> __m512i {
        hw!({
            let acc = _mm512_add_epi32(acc, _mm512_madd_epi16(x[0], w[0]));
            _mm512_add_epi32(acc, _mm512_madd_epi16(x[1], w[1]))
        })
    }
    #[inline(always)]
    fn dots<const MR: usize, const NV: usize>(self, x: [&[i16; 4]; MR], w: [[__m512i; 2]; NV], acc: &mut [[__m512i; NV]; MR]) {
        for part in 0..2 {
            for m in 0..MR {
                let x = self.splat_i32(pair(x[m], part));
                for v in 0..NV {
                    acc[m][v] = hw!(_mm512_add_epi32(acc[m][v], _mm512_madd_epi16(x, w[v][part])));
                }
            }
        }
    }
}

/// Tiles take signed bytes, so the offset of `vpdpbusd` is added when a quad is read: products that the tiles do not do are bound by the
/// reading of the weights.
impl Dot for Avx512Amx {
    type X = __m512i;
    type W = __m512i;
    type Quad = [i8; 4];
    type Weights = [i8; 64];
    type Unit = Amx;
    const OFFSET: bool = true;
    const WEAVES: bool = true;

    #[inline(always)]
    fn pack_quad(self, x: [i8; 4]) -> [i8; 4] {
        x
    }
    #[inline(always)]
    fn splat_quad(self, x: &[i8; 4]) -> __m512i {
        self.splat_i32(cast(cast::<_, u32>(*x) ^ 0x8080_8080))
    }
    #[inline(always)]
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], _words: &'a mut [u64]) -> [&'a [[i8; 64]]; NV] {
        w
    }
    #[inline(always)]
    fn load_weights(self, w: &[i8; 64]) -> __m512i {
        self.vnni().weights(w)
    }
    #[inline(always)]
    fn weights(self, w: &[i8; 64]) -> __m512i {
        self.vnni().weights(w)
    }
    #[inline(always)]
    fn start(self, column_sums: __m512i) -> __m512i {
        self.vnni().start(column_sums)
    }
    #[inline(always)]
    fn dot(self, acc: __m512i, x: __m512i, w: __m512i) -> __m512i {
        self.vnni().dot(acc, x, w)
    }
    #[inline(always)]
    fn weave_four(self, rows: [[&[i8; 32]; 2]; 4]) -> [__m512i; 4] {
        self.vnni().weave_four(rows)
    }
    #[inline(always)]
    fn in_order_four(self, columns: [__m512i; 4]) -> [__m512i; 4] {
        self.vnni().in_order_four(columns)
    }
    #[inline(always)]
    fn tile_unit(self) -> Option<Amx> {
        Some(Amx::of(self))
    }
}

impl Avx512Amx {
    #[inline(always)]
    fn vnni(self) -> Avx512Vnni {
        Token(())
    }
}
