//! AVX-512 (F, BW, DQ, VL), without and with VNNI, and with AMX beside it: the logical vector is one register.

// `hw!` may stand inside `hw!`.
#![allow(unused_unsafe)]

use super::folds;
use crate::dispatch::Isa;
use crate::simd::Simd;
use core::arch::x86_64::*;

/// AVX-512 F, BW, DQ and VL, and what `UNIT` names: nothing, VNNI, or VNNI and AMX.
#[derive(Clone, Copy, Debug)]
pub struct Token<const UNIT: u8>(());

const PLAIN: u8 = 0;
const VNNI: u8 = 1;
const AMX: u8 = 2;

/// AVX-512 F, BW, DQ and VL.
pub type Avx512 = Token<PLAIN>;
/// AVX-512 F, BW, DQ, VL and VNNI.
pub type Avx512Vnni = Token<VNNI>;
/// AVX-512 F, BW, DQ, VL and VNNI, and AMX-INT8 for tiles.
pub type Avx512Amx = Token<AMX>;

impl<const UNIT: u8> Token<UNIT> {
    /// The token, where this processor has the instruction set.
    #[inline]
    pub fn new() -> Option<Self> {
        Self::ISA.is_available().then_some(Token(()))
    }

    /// The token that promises less.
    #[inline(always)]
    pub(crate) fn without_dot(self) -> Avx512 {
        Token(())
    }
}

macro_rules! hw {
    ($e:expr) => {
        // SAFETY: the token proves the features, and the array behind a pointer has the size of the access.
        unsafe { $e }
    };
}

mod dot;

compiled_with!(plain, plain_apart, cold, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt");
// The long loops of int8 gain nothing by being cold; 16 rows took 8 of 100 longer.
compiled_with!(
    vnni,
    vnni_apart,
    inline(never),
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
);

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as u16
}

impl<const UNIT: u8> Simd for Token<UNIT> {
    type F32 = __m512;
    type I32 = __m512i;
    type Mask = __mmask16;

    const ISA: Isa = match UNIT {
        PLAIN => Isa::Avx512,
        VNNI => Isa::Avx512Vnni,
        _ => Isa::Avx512Amx,
    };
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        // A constant: of two functions only one is compiled.
        if const { UNIT == PLAIN } { hw!(plain(f)) } else { hw!(vnni(f)) }
    }
    #[inline(always)]
    fn apart<R>(self, f: impl FnOnce() -> R) -> R {
        if const { UNIT == PLAIN } { hw!(plain_apart(f)) } else { hw!(vnni_apart(f)) }
    }

    #[inline(always)]
    fn load(self, a: &[f32; 16]) -> __m512 {
        hw!(_mm512_loadu_ps(a.as_ptr()))
    }
    #[inline(always)]
    fn store(self, v: __m512, a: &mut [f32; 16]) {
        hw!(_mm512_storeu_ps(a.as_mut_ptr(), v))
    }
    #[inline(always)]
    unsafe fn store_past<const N: usize>(self, v: [__m512; N], a: &mut [[f32; 16]; N]) {
        // Numbers before the first line that is filled.
        let before = (a.as_ptr() as usize).wrapping_neg() % 64 / 4;
        if before == 0 {
            for i in 0..N {
                // SAFETY: the token proves the features; `a[i]` is a whole line, and the caller fences.
                unsafe { _mm512_stream_ps(a[i].as_mut_ptr(), v[i]) };
            }
            return;
        }
        let line = a.as_flattened_mut().as_mut_ptr().wrapping_add(before).wrapping_sub(16);
        let (begin, end) = (!first(16 - before), first(16 - before));
        // SAFETY: the token proves the features; the lines that are filled are lines of `a`, and the caller fences; of the line before the
        // first of them, and of the one behind the last, only those numbers are accessed that are part of `a`.
        unsafe {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let lanes = _mm512_add_epi32(lanes, _mm512_set1_epi32(before as i32));
            _mm512_mask_store_ps(line, begin, _mm512_permutexvar_ps(lanes, v[0]));
            for i in 1..N {
                _mm512_stream_ps(line.wrapping_add(16 * i), _mm512_permutex2var_ps(v[i - 1], lanes, v[i]));
            }
            _mm512_mask_store_ps(line.wrapping_add(16 * N), end, _mm512_permutexvar_ps(lanes, v[N - 1]));
        }
    }
    #[inline(always)]
    fn fence(self) {
        hw!(_mm_sfence())
    }
    #[inline(always)]
    fn load_i32(self, a: &[i32; 16]) -> __m512i {
        hw!(_mm512_loadu_epi32(a.as_ptr()))
    }
    #[inline(always)]
    fn store_i32(self, v: __m512i, a: &mut [i32; 16]) {
        hw!(_mm512_storeu_epi32(a.as_mut_ptr(), v))
    }
    #[inline(always)]
    fn store_i8(self, v: __m512i, a: &mut [i8; 16]) {
        hw!(_mm_storeu_si128(a.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(v)))
    }
    #[inline(always)]
    fn interleave(self, rows: [[&[i8; 32]; 2]; 4], to: [&mut [i8; 64]; 4]) {
        hw!({
            // Four columns of each 16 into a block of 128 bits, so that unpacking leaves 16 neighbours in a register.
            let fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let mut all = [fours; 4];
            for i in 0..4 {
                let left = _mm512_castsi256_si512(_mm256_loadu_si256(rows[i][0].as_ptr().cast()));
                let row = _mm512_inserti64x4::<1>(left, _mm256_loadu_si256(rows[i][1].as_ptr().cast()));
                all[i] = _mm512_permutexvar_epi32(fours, row);
            }
            let [a, b, c, d] = all;
            let (low, low2) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
            let (high, high2) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
            let [first, second, third, fourth] = to;
            _mm512_storeu_epi8(first.as_mut_ptr(), _mm512_unpacklo_epi16(low, low2));
            _mm512_storeu_epi8(second.as_mut_ptr(), _mm512_unpackhi_epi16(low, low2));
            _mm512_storeu_epi8(third.as_mut_ptr(), _mm512_unpacklo_epi16(high, high2));
            _mm512_storeu_epi8(fourth.as_mut_ptr(), _mm512_unpackhi_epi16(high, high2));
        })
    }
    #[inline(always)]
    fn gather(self, a: &[f32], places: &[i32; 16]) -> __m512 {
        assert!(!a.is_empty());
        let last = (a.len() - 1).min(i32::MAX as usize) as i32;
        // SAFETY: the token proves the features; a place that is read is at most the last of `a`, which has one.
        unsafe {
            let places = _mm512_min_epu32(_mm512_loadu_epi32(places.as_ptr()), _mm512_set1_epi32(last));
            _mm512_i32gather_ps::<4>(places, a.as_ptr())
        }
    }
    #[inline(always)]
    fn load_u16(self, a: &[u16; 16]) -> __m512i {
        hw!(_mm512_cvtepu16_epi32(_mm256_loadu_si256(a.as_ptr().cast())))
    }
    #[inline(always)]
    fn store_u16(self, v: __m512i, a: &mut [u16; 16]) {
        hw!(_mm256_storeu_si256(a.as_mut_ptr().cast(), _mm512_cvtepi32_epi16(v)))
    }
    #[inline(always)]
    fn load_f16(self, a: &[u16; 16]) -> __m512 {
        hw!(_mm512_cvtph_ps(_mm256_loadu_si256(a.as_ptr().cast())))
    }
    #[inline(always)]
    fn store_f16(self, v: __m512, a: &mut [u16; 16]) {
        hw!(_mm256_storeu_si256(a.as_mut_ptr().cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)))
    }
    #[inline(always)]
    fn load_partial(self, a: &[f32], fill: f32) -> __m512 {
        debug_assert!(a.len() <= 16);
        // The masked-out lanes are not accessed.
        hw!(_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first(a.len()), a.as_ptr()))
    }
    #[inline(always)]
    fn load_i32_partial(self, a: &[i32]) -> __m512i {
        debug_assert!(a.len() <= 16);
        hw!(_mm512_maskz_loadu_epi32(first(a.len()), a.as_ptr()))
    }
    #[inline(always)]
    fn store_partial(self, v: __m512, a: &mut [f32]) {
        debug_assert!(a.len() <= 16);
        hw!(_mm512_mask_storeu_ps(a.as_mut_ptr(), first(a.len()), v))
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        hw!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        hw!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_min_ps(a, b))
    }

    #[inline(always)]
    fn lt(self, a: __m512, b: __m512) -> __mmask16 {
        hw!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn le(self, a: __m512, b: __m512) -> __mmask16 {
        hw!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m512, b: __m512) -> __mmask16 {
        hw!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b))
    }
    #[inline(always)]
    fn select(self, m: __mmask16, a: __m512, b: __m512) -> __m512 {
        hw!(_mm512_mask_blend_ps(m, b, a))
    }
    #[inline(always)]
    fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }
    #[inline(always)]
    fn differ(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a ^ b
    }
    #[inline(always)]
    fn mask_bits(self, m: __mmask16) -> u16 {
        m
    }
    #[inline(always)]
    fn mask_bits_64(self, m: [__mmask16; 4]) -> u64 {
        hw!({
            let low = _mm512_kunpackw(m[1].into(), m[0].into());
            let high = _mm512_kunpackw(m[3].into(), m[2].into());
            _mm512_kunpackd(high.into(), low.into())
        })
    }

    #[inline(always)]
    fn bits(self, v: __m512) -> __m512i {
        hw!(_mm512_castps_si512(v))
    }
    #[inline(always)]
    fn from_bits(self, v: __m512i) -> __m512 {
        hw!(_mm512_castsi512_ps(v))
    }
    #[inline(always)]
    fn to_f32(self, v: __m512i) -> __m512 {
        hw!(_mm512_cvtepi32_ps(v))
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> __m512i {
        hw!(_mm512_set1_epi32(x))
    }
    #[inline(always)]
    fn add_i32(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i32(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_sub_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_and_epi32(a, b))
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_or_epi32(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_xor_epi32(a, b))
    }
    #[inline(always)]
    fn shl(self, a: __m512i, n: u32) -> __m512i {
        hw!(_mm512_sll_epi32(a, _mm_cvtsi32_si128(n as i32)))
    }
    #[inline(always)]
    fn shr(self, a: __m512i, n: u32) -> __m512i {
        hw!(_mm512_srl_epi32(a, _mm_cvtsi32_si128(n as i32)))
    }
    #[inline(always)]
    fn mul_even(self, a: __m512i, b: u32) -> __m512i {
        hw!(_mm512_mul_epu32(a, _mm512_set1_epi64(b.into())))
    }
    #[inline(always)]
    fn min_i32(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_min_epi32(a, b))
    }
    #[inline(always)]
    fn max_i32(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_max_epi32(a, b))
    }
    #[inline(always)]
    fn max_i16(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_max_epi16(a, b))
    }
    #[inline(always)]
    fn halves_within(self, v: __m512i, [low, high]: [i16; 2]) -> u32 {
        hw!(_mm512_mask_cmple_epi16_mask(_mm512_cmpge_epi16_mask(v, _mm512_set1_epi16(low)), v, _mm512_set1_epi16(high)))
    }
    #[inline(always)]
    fn gt_i32(self, a: __m512i, b: __m512i) -> __mmask16 {
        hw!(_mm512_cmpgt_epi32_mask(a, b))
    }
    #[inline(always)]
    fn eq_i32(self, a: __m512i, b: __m512i) -> __mmask16 {
        hw!(_mm512_cmpeq_epi32_mask(a, b))
    }
    #[inline(always)]
    fn select_i32(self, m: __mmask16, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_mask_blend_epi32(m, b, a))
    }

    #[inline(always)]
    fn swap_pairs(self, v: __m512) -> __m512 {
        hw!(_mm512_permute_ps::<0b10_11_00_01>(v))
    }
    #[inline(always)]
    fn dup_even(self, v: __m512) -> __m512 {
        hw!(_mm512_moveldup_ps(v))
    }
    #[inline(always)]
    fn dup_odd(self, v: __m512) -> __m512 {
        hw!(_mm512_movehdup_ps(v))
    }
    #[inline(always)]
    fn zip_even(self, a: __m512i, b: __m512i) -> __m512i {
        hw!(_mm512_mask_shuffle_epi32::<0b10_10_00_00>(a, 0xAAAA, b))
    }
    #[inline(always)]
    fn exchange<const D: usize>(self, v: __m512i) -> __m512i {
        hw!(match D {
            1 => _mm512_shuffle_epi32::<0b10_11_00_01>(v),
            2 => _mm512_shuffle_epi32::<0b01_00_11_10>(v),
            4 => _mm512_shuffle_i32x4::<0b10_11_00_01>(v, v),
            _ => _mm512_shuffle_i32x4::<0b01_00_11_10>(v, v),
        })
    }
    #[inline(always)]
    fn compress(self, m: __mmask16, v: __m512i, a: &mut [i32; 16]) -> usize {
        // In a register, then a whole store: compressing to memory is microcoded on some processors. Over a copy of the lanes, not over
        // zeros: on others it waits for the register that it writes, zeros or not, and in a loop that is the one of the time before.
        hw!(_mm512_storeu_si512(a.as_mut_ptr().cast(), _mm512_mask_compress_epi32(v, m, v)));
        m.count_ones() as usize
    }

    #[inline(always)]
    fn reduce_add(self, v: __m512) -> f32 {
        hw!({
            let a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v));
            let a = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let a = _mm_add_ps(a, _mm_movehl_ps(a, a));
            _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)))
        })
    }

    #[inline(always)]
    fn reduce_add_each(self, v: [__m512; 16]) -> __m512 {
        folds::sums512(self.without_dot(), v)
    }

    #[inline(always)]
    fn reduce_max(self, v: __m512) -> f32 {
        hw!(_mm512_reduce_max_ps(v))
    }

    #[inline(always)]
    fn pairs<const D: usize>(self, a: __m512, b: __m512) -> (__m512, __m512) {
        folds::pairs512::<D>(self.without_dot(), a, b)
    }

    #[inline(always)]
    fn reduce_max_i32(self, v: __m512i) -> i32 {
        hw!(_mm512_reduce_max_epi32(v))
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
        hw!(_mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(at).wrapping_add(bytes)))
    }
}
