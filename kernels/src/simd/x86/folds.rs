//! Reductions of 16 vectors at once: each step folds the two halves of a pair of vectors and packs the pair into one.

use super::avx2::Avx2;
use super::avx512::Avx512;
use core::arch::x86_64::*;

macro_rules! hw {
    ($e:expr) => {
        // SAFETY: the token proves the instruction set.
        unsafe { $e }
    };
}

/// Four consecutive vectors fill one 128-bit block each, and the last two steps spread a block's four vectors over neighbouring
/// lanes: vector 4 j + i of this order ends in lane 4 i + j.
const ORDER: [usize; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// The trees of `reduce_add`.
#[inline(always)]
pub fn sums512(_: Avx512, v: [__m512; 16]) -> __m512 {
    hw!({
        let mut w = [_mm512_setzero_ps(); 8];
        for i in 0..8 {
            let (a, b) = (v[ORDER[2 * i]], v[ORDER[2 * i + 1]]);
            w[i] = _mm512_add_ps(_mm512_shuffle_f32x4::<0b01_00_01_00>(a, b), _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b));
        }
        for i in 0..4 {
            let (a, b) = (w[2 * i], w[2 * i + 1]);
            w[i] = _mm512_add_ps(_mm512_shuffle_f32x4::<0b10_00_10_00>(a, b), _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b));
        }
        for i in 0..2 {
            let (a, b) = (w[2 * i], w[2 * i + 1]);
            w[i] = _mm512_add_ps(_mm512_shuffle_ps::<0b01_00_01_00>(a, b), _mm512_shuffle_ps::<0b11_10_11_10>(a, b));
        }
        _mm512_add_ps(_mm512_shuffle_ps::<0b10_00_10_00>(w[0], w[1]), _mm512_shuffle_ps::<0b11_01_11_01>(w[0], w[1]))
    })
}

/// `Simd::pairs`.
#[inline(always)]
pub fn pairs512<const D: usize>(_: Avx512, a: __m512, b: __m512) -> (__m512, __m512) {
    hw!(match D {
        8 => (_mm512_shuffle_f32x4::<0b01_00_01_00>(a, b), _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b)),
        4 => {
            let other = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
            (_mm512_mask_blend_ps(0xF0F0, a, b), _mm512_permutex2var_ps(a, other, b))
        }
        2 => (_mm512_shuffle_ps::<0b01_00_01_00>(a, b), _mm512_shuffle_ps::<0b11_10_11_10>(a, b)),
        _ => {
            let other = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
            (_mm512_mask_blend_ps(0xAAAA, a, b), _mm512_permutex2var_ps(a, other, b))
        }
    })
}

/// Vector `HALF_ORDER[i]` of eight ends in lane i.
const HALF_ORDER: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// [`sums512`] on two registers a vector.
#[inline(always)]
pub fn sums256(_: Avx2, v: [[__m256; 2]; 16]) -> [__m256; 2] {
    hw!({
        let mut folded = [_mm256_setzero_ps(); 2];
        for half in 0..2 {
            let mut w = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                let a = v[8 * half + HALF_ORDER[i]];
                w[i] = _mm256_add_ps(a[0], a[1]);
            }
            for i in 0..4 {
                let (a, b) = (w[2 * i], w[2 * i + 1]);
                w[i] = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
            }
            for i in 0..2 {
                let (a, b) = (w[2 * i], w[2 * i + 1]);
                w[i] = _mm256_add_ps(_mm256_shuffle_ps::<0b01_00_01_00>(a, b), _mm256_shuffle_ps::<0b11_10_11_10>(a, b));
            }
            let (a, b) = (w[0], w[1]);
            folded[half] = _mm256_add_ps(_mm256_shuffle_ps::<0b10_00_10_00>(a, b), _mm256_shuffle_ps::<0b11_01_11_01>(a, b));
        }
        folded
    })
}

/// [`pairs512`] on two registers a vector.
#[inline(always)]
pub fn pairs256<const D: usize>(s: Avx2, a: [__m256; 2], b: [__m256; 2]) -> ([__m256; 2], [__m256; 2]) {
    if D == 8 {
        return ([a[0], b[0]], [a[1], b[1]]);
    }
    let ((low0, high0), (low1, high1)) = (halves256::<D>(s, a[0], b[0]), halves256::<D>(s, a[1], b[1]));
    ([low0, low1], [high0, high1])
}

#[inline(always)]
fn halves256<const D: usize>(_: Avx2, a: __m256, b: __m256) -> (__m256, __m256) {
    hw!(match D {
        4 => (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)),
        2 => (_mm256_shuffle_ps::<0b01_00_01_00>(a, b), _mm256_shuffle_ps::<0b11_10_11_10>(a, b)),
        _ => {
            let low = _mm256_blend_ps::<0xAA>(a, _mm256_moveldup_ps(b));
            (low, _mm256_blend_ps::<0xAA>(_mm256_movehdup_ps(a), b))
        }
    })
}
