//! The logical vector: 16 lanes of 32 bits, 64 lanes of 8 bits, on every instruction set.
//!
//! A *token* is a value whose existence proves that the processor has an instruction set: it can only be made by a checked
//! constructor, so every method that takes a token is safe. AVX-512 holds the vector in one register, AVX2 in two, NEON and
//! SSE2 in four. Lane count, reduction tree, rounding and NaN rule are fixed here, once; identical bits on every instruction set
//! follow from that.
//!
//! # Rules for an implementation
//!
//! * `add`, `sub`, `mul`, `div` and `fma` are the IEEE operations, round to nearest even, subnormals kept.
//! * [`Simd::max`] is `if a > b { a } else { b }`, [`Simd::min`] is `if a < b { a } else { b }`: with a NaN, or with zeros of both
//!   signs, the answer is `b`.
//! * Comparisons with a NaN are false.
//! * Everything between [`Simd::vectorize`] and an intrinsic is `#[inline(always)]`: a function that is not inlined is compiled
//!   without the features of its caller and passes vectors through memory.

mod ahead;
pub use ahead::Ahead;
mod dot;
pub use dot::{Dot, TileBlock, TileUnit, Tiles};
use dot::{even_odd, widen};

mod half_bits;

mod portable;
pub use portable::Portable;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub(crate) use x86::permitted;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use x86::{Avx2, Avx512, Avx512Amx, Avx512Vnni};

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod aarch64;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", not(miri)))]
pub(crate) use aarch64::has_dot_product;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
pub use aarch64::{Neon, NeonDot};

use crate::dispatch::Isa;

/// The 16-lane vector of one instruction set. See the module documentation for what every implementation must keep.
#[allow(clippy::wrong_self_convention)] // The token comes first, in `from_bits` too.
pub trait Simd: Copy + Send + Sync + core::fmt::Debug + 'static {
    /// 16 lanes of `f32`.
    type F32: Copy;
    /// 16 lanes of `i32`; also the bits of an [`Simd::F32`].
    type I32: Copy;
    /// 16 lanes of true or false.
    type Mask: Copy;

    /// The instruction set that this token proves.
    const ISA: Isa;
    /// Whether a vector is one register.
    const IS_WIDE: bool = false;

    /// Runs `f` compiled with the features of this instruction set. `f` must be `#[inline(always)]`.
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R;
    /// [`Simd::vectorize`] in a function of its own: for what is long and has several callers, or is rarely reached. `f` captures by
    /// `move`: what it captures lies side by side then, else each value is fetched by way of its place.
    fn apart<R>(self, f: impl FnOnce() -> R) -> R;
    /// `f`, which is long and stands in many kernels, between vectors: in its place, or a function of its own where 16 lanes are memory
    /// anyway. `f` must be `#[inline(always)]`.
    #[inline(always)]
    fn common<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// `f`, a part of what short calls need, between vectors: in its place where a vector is one register, so that they find their code in
    /// few pages, elsewhere [apart](Simd::apart), for it takes a multiple there. `f` must be `#[inline(always)]`.
    #[inline(always)]
    fn beside<R>(self, f: impl FnOnce() -> R) -> R {
        if const { Self::IS_WIDE } { f() } else { self.apart(f) }
    }

    /// Reads 16 `f32`.
    fn load(self, a: &[f32; 16]) -> Self::F32;
    /// Writes 16 `f32`.
    fn store(self, v: Self::F32, a: &mut [f32; 16]);
    /// Writes vectors one behind the other, the cache lines that they fill past the caches where there is such a way.
    ///
    /// # Safety
    ///
    /// [`Simd::fence`] comes before anything else reads or writes them.
    #[inline(always)]
    unsafe fn store_past<const N: usize>(self, v: [Self::F32; N], a: &mut [[f32; 16]; N]) {
        for i in 0..N {
            self.store(v[i], &mut a[i]);
        }
    }
    /// Ends writing past the caches.
    #[inline(always)]
    fn fence(self) {}
    /// Reads 16 `i32`.
    fn load_i32(self, a: &[i32; 16]) -> Self::I32;
    /// Writes 16 `i32`.
    fn store_i32(self, v: Self::I32, a: &mut [i32; 16]);
    /// Writes the low byte of each lane.
    fn store_i8(self, v: Self::I32, a: &mut [i8; 16]);
    /// Four rows of twice 32 bytes as 64 columns of four bytes.
    fn interleave(self, rows: [[&[i8; 32]; 2]; 4], to: [&mut [i8; 64]; 4]);
    /// Reads the elements of `a`, which is not empty, at these places; for a place outside it, the last.
    #[inline(always)]
    fn gather(self, a: &[f32], places: &[i32; 16]) -> Self::F32 {
        let mut found = [0.0; 16];
        for (found, &place) in found.iter_mut().zip(places) {
            *found = a[(place as u32 as usize).min(a.len() - 1)];
        }
        self.load(&found)
    }
    /// Reads 16 `u16`, zero-extended.
    fn load_u16(self, a: &[u16; 16]) -> Self::I32;
    /// Writes the low half of each lane.
    fn store_u16(self, v: Self::I32, a: &mut [u16; 16]);

    /// Reads 16 IEEE half-precision numbers, widened exactly.
    #[inline(always)]
    fn load_f16(self, a: &[u16; 16]) -> Self::F32 {
        self.common(
            #[inline(always)]
            move || half_bits::widen(self, self.load_u16(a)),
        )
    }
    /// Writes 16 IEEE half-precision numbers, rounded half to even.
    #[inline(always)]
    fn store_f16(self, v: Self::F32, a: &mut [u16; 16]) {
        self.common(
            #[inline(always)]
            move || self.store_u16(half_bits::narrow(self, v), a),
        );
    }

    /// Reads `a.len() <= 16` numbers; the lanes behind hold `fill`.
    #[inline(always)]
    fn load_partial(self, a: &[f32], fill: f32) -> Self::F32 {
        self.load(&crate::element::padded(a, fill))
    }
    /// Reads `a.len() <= 16` integers; the lanes behind hold 0.
    #[inline(always)]
    fn load_i32_partial(self, a: &[i32]) -> Self::I32 {
        self.load_i32(&crate::element::padded(a, 0))
    }
    /// Writes the first `a.len() <= 16` lanes.
    #[inline(always)]
    fn store_partial(self, v: Self::F32, a: &mut [f32]) {
        let mut all = [0.0; 16];
        self.store(v, &mut all);
        a.copy_from_slice(&all[..a.len()]);
    }

    /// Every lane `x`.
    fn splat(self, x: f32) -> Self::F32;
    /// `a + b`
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b`
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// `if a > b { a } else { b }`
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `if a < b { a } else { b }`
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a < b`, false with a NaN.
    fn lt(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a <= b`, false with a NaN.
    fn le(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a == b`, false with a NaN.
    fn eq(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a` where the mask holds, else `b`.
    fn select(self, m: Self::Mask, a: Self::F32, b: Self::F32) -> Self::F32;
    /// Where both masks hold.
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Where exactly one of the masks holds.
    fn differ(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Bit `i` is lane `i`.
    fn mask_bits(self, m: Self::Mask) -> u16;
    /// The bits of four masks, those of the first lowest.
    #[inline(always)]
    fn mask_bits_64(self, m: [Self::Mask; 4]) -> u64 {
        let mut bits = 0;
        for (i, m) in m.into_iter().enumerate() {
            bits |= u64::from(self.mask_bits(m)) << (16 * i);
        }
        bits
    }

    /// The bits of each lane.
    fn bits(self, v: Self::F32) -> Self::I32;
    /// The number whose bits each lane holds.
    fn from_bits(self, v: Self::I32) -> Self::F32;
    /// Nearest `f32` of each lane.
    fn to_f32(self, v: Self::I32) -> Self::F32;

    /// Every lane `x`.
    fn splat_i32(self, x: i32) -> Self::I32;
    /// `a + b`, wrapping.
    fn add_i32(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// `a - b`, wrapping.
    fn sub_i32(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise and.
    fn and(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise or.
    fn or(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise exclusive or.
    fn xor(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// `a << n`; n < 32.
    fn shl(self, a: Self::I32, n: u32) -> Self::I32;
    /// `a >> n`, zeros shifted in; n < 32.
    fn shr(self, a: Self::I32, n: u32) -> Self::I32;
    /// `a * b` of the even lanes, as unsigned numbers: the low half in the even lane, the high half in the odd one behind it.
    fn mul_even(self, a: Self::I32, b: u32) -> Self::I32;
    /// The smaller, as signed numbers.
    fn min_i32(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// The larger, as signed numbers.
    fn max_i32(self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// The larger of both halves of each lane, as signed numbers of 16 bits.
    #[inline(always)]
    fn max_i16(self, a: Self::I32, b: Self::I32) -> Self::I32 {
        let upper = self.splat_i32(!0xFFFF);
        let high = self.max_i32(self.and(a, upper), self.and(b, upper));
        let low = self.max_i32(self.shl(a, 16), self.shl(b, 16));
        self.or(high, self.shr(low, 16))
    }
    /// Bit i: whether the i-th number of 16 bits, the lower half of a lane first, is one of `low..=high`, as signed numbers.
    #[inline(always)]
    fn halves_within(self, v: Self::I32, [low, high]: [i16; 2]) -> u32 {
        let (low, high) = (self.splat_i32(i32::from(low) << 16), self.splat_i32(i32::from(high) << 16));
        let mut bits = 0;
        for (i, half) in [self.shl(v, 16), self.and(v, self.splat_i32(!0xFFFF))].into_iter().enumerate() {
            let outside = self.mask_bits(self.gt_i32(low, half)) | self.mask_bits(self.gt_i32(half, high));
            // Every other bit.
            let mut inside = u32::from(!outside);
            inside = (inside | inside << 8) & 0x00FF_00FF;
            inside = (inside | inside << 4) & 0x0F0F_0F0F;
            inside = (inside | inside << 2) & 0x3333_3333;
            inside = (inside | inside << 1) & 0x5555_5555;
            bits |= inside << i;
        }
        bits
    }
    /// `a > b`, as signed numbers.
    fn gt_i32(self, a: Self::I32, b: Self::I32) -> Self::Mask;
    /// `a == b`
    fn eq_i32(self, a: Self::I32, b: Self::I32) -> Self::Mask;
    /// `a` where the mask holds, else `b`.
    fn select_i32(self, m: Self::Mask, a: Self::I32, b: Self::I32) -> Self::I32;

    /// Lanes 2i and 2i + 1 change places.
    fn swap_pairs(self, v: Self::F32) -> Self::F32;
    /// Lane 2i in both lanes of its pair.
    fn dup_even(self, v: Self::F32) -> Self::F32;
    /// Lane 2i + 1 in both lanes of its pair.
    fn dup_odd(self, v: Self::F32) -> Self::F32;
    /// The even lanes of both in turn: lane 2i of `a`, and behind it lane 2i of `b`.
    fn zip_even(self, a: Self::I32, b: Self::I32) -> Self::I32;

    /// Lanes i and i ^ D change places; D is 1, 2, 4 or 8.
    fn exchange<const D: usize>(self, v: Self::I32) -> Self::I32;

    /// Moves the lanes where the mask holds to the front, in order; the lanes behind hold anything. Returns how many.
    #[inline(always)]
    fn compress(self, m: Self::Mask, v: Self::I32, a: &mut [i32; 16]) -> usize {
        self.common(
            #[inline(always)]
            move || {
                let (mut lanes, mut n) = ([0; 16], 0);
                self.store_i32(v, &mut lanes);
                let mut hits = self.mask_bits(m);
                while hits != 0 {
                    a[n] = lanes[hits.trailing_zeros() as usize];
                    hits &= hits - 1;
                    n += 1;
                }
                n
            },
        )
    }

    /// The sum of the lanes by the one fixed tree: lane `i` and `i + 8`, then `i + 4`, `i + 2`, `i + 1`.
    #[inline(always)]
    fn reduce_add(self, v: Self::F32) -> f32 {
        let mut a = [0.0; 16];
        self.store(v, &mut a);
        crate::reference::tree_add(a)
    }

    /// Lane `i` of the result is [`Simd::reduce_add`] of `v[i]`.
    #[inline(always)]
    fn reduce_add_each(self, v: [Self::F32; 16]) -> Self::F32 {
        let mut sums = [0.0; 16];
        for i in 0..16 {
            sums[i] = self.reduce_add(v[i]);
        }
        self.load(&sums)
    }

    /// The maximum of the lanes, none of them a NaN; of zeros of both signs either.
    #[inline(always)]
    fn reduce_max(self, v: Self::F32) -> f32 {
        let mut a = [0.0; 16];
        self.store(v, &mut a);
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                a[i] = if a[i] > a[i + half] { a[i] } else { a[i + half] };
            }
        }
        a[0]
    }

    /// What is folded to have half of each of two vectors in one: of every 2 D lanes the first D hold the lane of `a` and the one
    /// D further on, in either order, the others the same of `b`. D is 1, 2, 4 or 8.
    fn pairs<const D: usize>(self, a: Self::F32, b: Self::F32) -> (Self::F32, Self::F32);

    /// The maximum of the lanes, as signed numbers.
    #[inline(always)]
    fn reduce_max_i32(self, v: Self::I32) -> i32 {
        let mut a = [0; 16];
        self.store_i32(v, &mut a);
        a.into_iter().fold(i32::MIN, i32::max)
    }
    /// Asks for a line that will be read soon.
    #[inline(always)]
    fn prefetch(self, _line: &[i8; 64]) {}
    /// Asks for a line that will be read later: it waits in the second cache, where there is a choice.
    #[inline(always)]
    fn prefetch_far(self, line: &[i8; 64]) {
        self.prefetch(line);
    }
    /// Asks for what lies so many bytes behind, if anything does: on AVX-512 as [`Simd::prefetch`], on AVX2 as [`Simd::prefetch_far`];
    /// nothing where no algorithm gains from it, or where there are no such requests.
    #[inline(always)]
    fn prefetch_behind(self, _at: &i8, _bytes: usize) {}
}
