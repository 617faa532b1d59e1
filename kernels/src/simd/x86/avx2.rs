//! AVX2 with FMA and F16C: the logical vector is two registers.

// `hw!` may stand inside `hw!`.
#![allow(unused_unsafe)]

use super::folds;
use crate::dispatch::Isa;
use crate::simd::Simd;
use core::arch::x86_64::*;

/// AVX2, FMA, F16C, BMI1, BMI2.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// The token, where this processor has the instruction set.
    #[inline]
    pub fn new() -> Option<Self> {
        Self::ISA.is_available().then_some(Avx2(()))
    }
}

macro_rules! hw {
    ($e:expr) => {
        // SAFETY: the token proves the features, and the array behind a pointer has the size of the access.
        unsafe { $e }
    };
}

/// The same intrinsic on both registers.
macro_rules! both {
    ($f:expr, $a:expr) => {
        [hw!($f($a[0])), hw!($f($a[1]))]
    };
    ($f:expr, $a:expr, $b:expr) => {
        [hw!($f($a[0], $b[0])), hw!($f($a[1], $b[1]))]
    };
    ($f:expr, $a:expr, $b:expr, $c:expr) => {
        [hw!($f($a[0], $b[0], $c[0])), hw!($f($a[1], $b[1], $c[1]))]
    };
}

mod dot;

compiled_with!(plain, apart, cold, "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt");

/// The numbers of the bits that a byte has set, three bits a number, the lowest first. A table, as the instructions that gather bits
/// are microcode on the first two Zen.
static SET: [i32; 256] = {
    let mut numbers = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut n) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                numbers[byte] |= bit << (3 * n);
                n += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    numbers
};

type F = [__m256; 2];
type I = [__m256i; 2];

impl Avx2 {
    /// Lanes below `n <= 16`.
    #[inline(always)]
    fn first(self, n: usize) -> I {
        debug_assert!(n <= 16);
        let lane = hw!([_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)]);
        self.gt_i32(self.splat_i32(n as i32), lane)
    }
}

impl Simd for Avx2 {
    type F32 = F;
    type I32 = I;
    type Mask = I;

    const ISA: Isa = Isa::Avx2;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        hw!(plain(f))
    }
    #[inline(always)]
    fn apart<R>(self, f: impl FnOnce() -> R) -> R {
        hw!(apart(f))
    }

    #[inline(always)]
    fn load(self, a: &[f32; 16]) -> F {
        hw!([_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(a.as_ptr().add(8))])
    }
    #[inline(always)]
    fn store(self, v: F, a: &mut [f32; 16]) {
        hw!({
            _mm256_storeu_ps(a.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(a.as_mut_ptr().add(8), v[1]);
        })
    }
    #[inline(always)]
    unsafe fn store_past<const N: usize>(self, v: [F; N], a: &mut [[f32; 16]; N]) {
        let whole = a.as_ptr() as usize % 64 == 0;
        for i in 0..N {
            if whole {
                // SAFETY: the token proves the features; `a[i]` is a whole line, and the caller fences.
                unsafe {
                    _mm256_stream_ps(a[i].as_mut_ptr(), v[i][0]);
                    _mm256_stream_ps(a[i].as_mut_ptr().add(8), v[i][1]);
                }
            } else {
                self.store(v[i], &mut a[i]);
            }
        }
    }
    #[inline(always)]
    fn fence(self) {
        hw!(_mm_sfence())
    }
    #[inline(always)]
    fn load_i32(self, a: &[i32; 16]) -> I {
        hw!([_mm256_loadu_si256(a.as_ptr().cast()), _mm256_loadu_si256(a.as_ptr().add(8).cast())])
    }
    #[inline(always)]
    fn store_i32(self, v: I, a: &mut [i32; 16]) {
        hw!({
            _mm256_storeu_si256(a.as_mut_ptr().cast(), v[0]);
            _mm256_storeu_si256(a.as_mut_ptr().add(8).cast(), v[1]);
        })
    }
    #[inline(always)]
    fn store_i8(self, v: I, a: &mut [i8; 16]) {
        hw!({
            let low = _mm256_setr_epi8(
                0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, //
                0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
            );
            let b = both!(_mm256_shuffle_epi8, v, [low, low]);
            let lo = _mm_unpacklo_epi32(_mm256_castsi256_si128(b[0]), _mm256_extracti128_si256::<1>(b[0]));
            let hi = _mm_unpacklo_epi32(_mm256_castsi256_si128(b[1]), _mm256_extracti128_si256::<1>(b[1]));
            _mm_storeu_si128(a.as_mut_ptr().cast(), _mm_unpacklo_epi64(lo, hi));
        })
    }
    #[inline(always)]
    fn interleave(self, rows: [[&[i8; 32]; 2]; 4], to: [&mut [i8; 64]; 4]) {
        let [to0, to1, to2, to3] = to;
        for (half, to) in [[to0, to1], [to2, to3]].into_iter().enumerate() {
            hw!({
                let mut all = [_mm256_setzero_si256(); 4];
                for i in 0..4 {
                    all[i] = _mm256_loadu_si256(rows[i][half].as_ptr().cast());
                }
                let [a, b, c, d] = all;
                let (low, low2) = (_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d));
                let (high, high2) = (_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d));
                // Columns 0 to 3 and 16 to 19, and so on.
                let low = [_mm256_unpacklo_epi16(low, low2), _mm256_unpackhi_epi16(low, low2)];
                let high = [_mm256_unpacklo_epi16(high, high2), _mm256_unpackhi_epi16(high, high2)];
                for (i, pair) in [low, high].into_iter().enumerate() {
                    let first = _mm256_permute2x128_si256::<0x20>(pair[0], pair[1]);
                    let second = _mm256_permute2x128_si256::<0x31>(pair[0], pair[1]);
                    _mm256_storeu_si256(to[0].as_mut_ptr().add(32 * i).cast(), first);
                    _mm256_storeu_si256(to[1].as_mut_ptr().add(32 * i).cast(), second);
                }
            })
        }
    }
    #[inline(always)]
    fn load_u16(self, a: &[u16; 16]) -> I {
        hw!([
            _mm256_cvtepu16_epi32(_mm_loadu_si128(a.as_ptr().cast())),
            _mm256_cvtepu16_epi32(_mm_loadu_si128(a.as_ptr().add(8).cast())),
        ])
    }
    #[inline(always)]
    fn store_u16(self, v: I, a: &mut [u16; 16]) {
        hw!({
            let low = _mm256_set1_epi32(0xFFFF);
            let v = both!(_mm256_and_si256, v, [low, low]);
            let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(v[0], v[1]));
            _mm256_storeu_si256(a.as_mut_ptr().cast(), packed);
        })
    }
    #[inline(always)]
    fn load_f16(self, a: &[u16; 16]) -> F {
        hw!([_mm256_cvtph_ps(_mm_loadu_si128(a.as_ptr().cast())), _mm256_cvtph_ps(_mm_loadu_si128(a.as_ptr().add(8).cast())),])
    }
    #[inline(always)]
    fn store_f16(self, v: F, a: &mut [u16; 16]) {
        hw!({
            let h = both!(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>, v);
            _mm_storeu_si128(a.as_mut_ptr().cast(), h[0]);
            _mm_storeu_si128(a.as_mut_ptr().add(8).cast(), h[1]);
        })
    }

    #[inline(always)]
    fn load_partial(self, a: &[f32], fill: f32) -> F {
        let m = self.first(a.len());
        // The masked-out lanes are not accessed.
        let v = hw!([_mm256_maskload_ps(a.as_ptr(), m[0]), _mm256_maskload_ps(a.as_ptr().wrapping_add(8), m[1])]);
        self.select(m, v, self.splat(fill))
    }
    #[inline(always)]
    fn load_i32_partial(self, a: &[i32]) -> I {
        let m = self.first(a.len());
        hw!([_mm256_maskload_epi32(a.as_ptr(), m[0]), _mm256_maskload_epi32(a.as_ptr().wrapping_add(8), m[1])])
    }

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        hw!([_mm256_set1_ps(x); 2])
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        both!(_mm256_add_ps, a, b)
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        both!(_mm256_sub_ps, a, b)
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        both!(_mm256_mul_ps, a, b)
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        both!(_mm256_div_ps, a, b)
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        both!(_mm256_fmadd_ps, a, b, c)
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        both!(_mm256_max_ps, a, b)
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        both!(_mm256_min_ps, a, b)
    }

    #[inline(always)]
    fn lt(self, a: F, b: F) -> I {
        let m = both!(_mm256_cmp_ps::<_CMP_LT_OQ>, a, b);
        both!(_mm256_castps_si256, m)
    }
    #[inline(always)]
    fn le(self, a: F, b: F) -> I {
        let m = both!(_mm256_cmp_ps::<_CMP_LE_OQ>, a, b);
        both!(_mm256_castps_si256, m)
    }
    #[inline(always)]
    fn eq(self, a: F, b: F) -> I {
        let m = both!(_mm256_cmp_ps::<_CMP_EQ_OQ>, a, b);
        both!(_mm256_castps_si256, m)
    }
    #[inline(always)]
    fn select(self, m: I, a: F, b: F) -> F {
        let m = self.from_bits(m);
        both!(_mm256_blendv_ps, b, a, m)
    }
    #[inline(always)]
    fn both(self, a: I, b: I) -> I {
        both!(_mm256_and_si256, a, b)
    }
    #[inline(always)]
    fn differ(self, a: I, b: I) -> I {
        both!(_mm256_xor_si256, a, b)
    }
    #[inline(always)]
    fn mask_bits(self, m: I) -> u16 {
        let m = self.from_bits(m);
        let b = both!(_mm256_movemask_ps, m);
        (b[0] | (b[1] << 8)) as u16
    }
    #[inline(always)]
    fn mask_bits_64(self, m: [I; 4]) -> u64 {
        hw!({
            // Packing takes halves of registers by turns, twice.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let mut bits = 0;
            for i in 0..2 {
                let [a, b] = [m[2 * i], m[2 * i + 1]];
                let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a[0], a[1]), _mm256_packs_epi32(b[0], b[1]));
                let bytes = _mm256_permutevar8x32_epi32(bytes, order);
                bits |= u64::from(_mm256_movemask_epi8(bytes) as u32) << (32 * i);
            }
            bits
        })
    }

    #[inline(always)]
    fn bits(self, v: F) -> I {
        both!(_mm256_castps_si256, v)
    }
    #[inline(always)]
    fn from_bits(self, v: I) -> F {
        both!(_mm256_castsi256_ps, v)
    }
    #[inline(always)]
    fn to_f32(self, v: I) -> F {
        both!(_mm256_cvtepi32_ps, v)
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> I {
        hw!([_mm256_set1_epi32(x); 2])
    }
    #[inline(always)]
    fn add_i32(self, a: I, b: I) -> I {
        both!(_mm256_add_epi32, a, b)
    }
    #[inline(always)]
    fn sub_i32(self, a: I, b: I) -> I {
        both!(_mm256_sub_epi32, a, b)
    }
    #[inline(always)]
    fn and(self, a: I, b: I) -> I {
        both!(_mm256_and_si256, a, b)
    }
    #[inline(always)]
    fn or(self, a: I, b: I) -> I {
        both!(_mm256_or_si256, a, b)
    }
    #[inline(always)]
    fn xor(self, a: I, b: I) -> I {
        both!(_mm256_xor_si256, a, b)
    }
    #[inline(always)]
    fn shl(self, a: I, n: u32) -> I {
        let n = [hw!(_mm_cvtsi32_si128(n as i32)); 2];
        both!(_mm256_sll_epi32, a, n)
    }
    #[inline(always)]
    fn shr(self, a: I, n: u32) -> I {
        let n = [hw!(_mm_cvtsi32_si128(n as i32)); 2];
        both!(_mm256_srl_epi32, a, n)
    }
    #[inline(always)]
    fn mul_even(self, a: I, b: u32) -> I {
        both!(_mm256_mul_epu32, a, [hw!(_mm256_set1_epi64x(b.into())); 2])
    }
    #[inline(always)]
    fn min_i32(self, a: I, b: I) -> I {
        both!(_mm256_min_epi32, a, b)
    }
    #[inline(always)]
    fn max_i32(self, a: I, b: I) -> I {
        both!(_mm256_max_epi32, a, b)
    }
    #[inline(always)]
    fn max_i16(self, a: I, b: I) -> I {
        both!(_mm256_max_epi16, a, b)
    }
    #[inline(always)]
    fn halves_within(self, v: I, [low, high]: [i16; 2]) -> u32 {
        hw!({
            let (low, high) = ([_mm256_set1_epi16(low); 2], [_mm256_set1_epi16(high); 2]);
            let outside = both!(_mm256_or_si256, both!(_mm256_cmpgt_epi16, low, v), both!(_mm256_cmpgt_epi16, v, high));
            // Packing takes halves of registers by turns.
            let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(outside[0], outside[1]));
            !_mm256_movemask_epi8(bytes) as u32
        })
    }
    #[inline(always)]
    fn gt_i32(self, a: I, b: I) -> I {
        both!(_mm256_cmpgt_epi32, a, b)
    }
    #[inline(always)]
    fn eq_i32(self, a: I, b: I) -> I {
        both!(_mm256_cmpeq_epi32, a, b)
    }
    #[inline(always)]
    fn select_i32(self, m: I, a: I, b: I) -> I {
        both!(_mm256_blendv_epi8, b, a, m)
    }

    #[inline(always)]
    fn swap_pairs(self, v: F) -> F {
        both!(_mm256_permute_ps::<0b10_11_00_01>, v)
    }
    #[inline(always)]
    fn dup_even(self, v: F) -> F {
        both!(_mm256_moveldup_ps, v)
    }
    #[inline(always)]
    fn dup_odd(self, v: F) -> F {
        both!(_mm256_movehdup_ps, v)
    }
    #[inline(always)]
    fn zip_even(self, a: I, b: I) -> I {
        let b = both!(_mm256_shuffle_epi32::<0b10_10_00_00>, b);
        both!(_mm256_blend_epi32::<0b1010_1010>, a, b)
    }
    #[inline(always)]
    fn exchange<const D: usize>(self, v: I) -> I {
        match D {
            1 => both!(_mm256_shuffle_epi32::<0b10_11_00_01>, v),
            2 => both!(_mm256_shuffle_epi32::<0b01_00_11_10>, v),
            4 => both!(_mm256_permute2x128_si256::<0x01>, v, v),
            _ => [v[1], v[0]],
        }
    }
    #[inline(always)]
    fn compress(self, m: I, v: I, a: &mut [i32; 16]) -> usize {
        let bits = self.mask_bits(m);
        let mut n = 0;
        for half in 0..2 {
            let byte = (bits >> (8 * half)) as u8;
            hw!({
                let lanes =
                    _mm256_srlv_epi32(_mm256_set1_epi32(SET[usize::from(byte)]), _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21));
                _mm256_storeu_si256(a[n..n + 8].as_mut_ptr().cast(), _mm256_permutevar8x32_epi32(v[half], lanes));
            });
            n += byte.count_ones() as usize;
        }
        n
    }

    #[inline(always)]
    fn reduce_add(self, v: F) -> f32 {
        hw!({
            let a = _mm256_add_ps(v[0], v[1]);
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        })
    }

    #[inline(always)]
    fn reduce_add_each(self, v: [F; 16]) -> F {
        folds::sums256(self, v)
    }

    #[inline(always)]
    fn reduce_max(self, v: F) -> f32 {
        hw!({
            let a = _mm256_max_ps(v[0], v[1]);
            let a = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_max_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)))
        })
    }

    #[inline(always)]
    fn pairs<const D: usize>(self, a: F, b: F) -> (F, F) {
        folds::pairs256::<D>(self, a, b)
    }
    #[inline(always)]
    fn prefetch(self, line: &[i8; 64]) {
        hw!(_mm_prefetch::<_MM_HINT_T0>(line.as_ptr()))
    }
    #[inline(always)]
    fn prefetch_far(self, line: &[i8; 64]) {
        hw!(_mm_prefetch::<_MM_HINT_T1>(line.as_ptr()))
    }
    #[inline(always)]
    fn prefetch_behind(self, at: &i8, bytes: usize) {
        hw!(_mm_prefetch::<_MM_HINT_T1>(core::ptr::from_ref(at).wrapping_add(bytes)))
    }
}
