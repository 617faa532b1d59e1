//! The portable token: the `wide` crate, whose instruction set is the build's.
//!
//! Only operations whose result does not depend on that build are used: no `mul_add`, no `reduce_add`, no estimates.

use super::{Dot, Simd, even_odd, widen};
use crate::dispatch::Isa;
use bytemuck::cast;
use wide::{f32x16, f64x8, i16x16, i32x8, i32x16};

/// Runs everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Portable(());

impl Portable {
    /// The token; needs no check.
    #[inline(always)]
    pub const fn new() -> Self {
        Portable(())
    }
}

impl Default for Portable {
    fn default() -> Self {
        Self::new()
    }
}

/// Round-to-odd sum of eight products and addends, rounded once to `f32`: a product of two `f32` is exact in `f64`, and an odd
/// last bit marks what the 53-bit sum lost, so that the second rounding sees the right side of every tie.
#[inline(always)]
fn fma8(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
    let exact = |of: [f32; 8]| f64x8::new(each(|i| f64::from(of[i])));
    let (a, b, c) = (exact(a), exact(b), exact(c));
    let p = a * b;
    let sum = p + c;
    let back = sum - p;
    let lost = (p - (sum - back)) + (c - back);
    let (sum, lost): ([f64; 8], [f64; 8]) = (cast(sum), cast(lost));
    each(|i| crate::reference::to_odd(sum[i], lost[i]) as f32)
}

/// The mask, its origin hidden on aarch64: there LLVM makes `fmaxnm` of a comparison and a selection, and that one answers a signalling
/// NaN with a NaN. Elsewhere it keeps the rule.
#[inline(always)]
fn opaque(m: i32x16) -> i32x16 {
    if cfg!(target_arch = "aarch64") { core::hint::black_box(m) } else { m }
}

/// Lanes one by one: those of the array's own way lie in another unit of compilation.
#[inline(always)]
fn each<T: Copy + Default, const N: usize>(lane: impl Fn(usize) -> T) -> [T; N] {
    let mut lanes = [T::default(); N];
    for i in 0..N {
        lanes[i] = lane(i);
    }
    lanes
}

impl Simd for Portable {
    type F32 = f32x16;
    type I32 = i32x16;
    type Mask = i32x16;

    const ISA: Isa = Isa::Portable;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
    #[inline(never)]
    fn apart<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
    #[inline(never)]
    fn common<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    fn load(self, a: &[f32; 16]) -> f32x16 {
        f32x16::new(*a)
    }
    #[inline(always)]
    fn store(self, v: f32x16, a: &mut [f32; 16]) {
        *a = cast(v);
    }
    #[inline(always)]
    fn load_i32(self, a: &[i32; 16]) -> i32x16 {
        i32x16::new(*a)
    }
    #[inline(always)]
    fn store_i32(self, v: i32x16, a: &mut [i32; 16]) {
        *a = cast(v);
    }
    #[inline(always)]
    fn store_i8(self, v: i32x16, a: &mut [i8; 16]) {
        let lanes: [i32; 16] = cast(v);
        *a = each(|i| lanes[i] as i8);
    }
    #[inline(never)]
    fn interleave(self, rows: [[&[i8; 32]; 2]; 4], to: [&mut [i8; 64]; 4]) {
        for (part, to) in to.into_iter().enumerate() {
            for (i, column) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                *column = each(|j| rows[j][part / 2][16 * (part % 2) + i]);
            }
        }
    }
    #[inline(always)]
    fn load_u16(self, a: &[u16; 16]) -> i32x16 {
        i32x16::new(each(|i| i32::from(a[i])))
    }
    #[inline(always)]
    fn store_u16(self, v: i32x16, a: &mut [u16; 16]) {
        let lanes: [i32; 16] = cast(v);
        *a = each(|i| lanes[i] as u16);
    }

    #[inline(always)]
    fn splat(self, x: f32) -> f32x16 {
        f32x16::splat(x)
    }
    #[inline(always)]
    fn add(self, a: f32x16, b: f32x16) -> f32x16 {
        a + b
    }
    #[inline(always)]
    fn sub(self, a: f32x16, b: f32x16) -> f32x16 {
        a - b
    }
    #[inline(always)]
    fn mul(self, a: f32x16, b: f32x16) -> f32x16 {
        a * b
    }
    #[inline(always)]
    fn div(self, a: f32x16, b: f32x16) -> f32x16 {
        a / b
    }
    /// Like everything long here a function of its own: this token needs no features of its caller, and the code stays small.
    #[inline(never)]
    fn fma(self, a: f32x16, b: f32x16, c: f32x16) -> f32x16 {
        let [a, b, c]: [[[f32; 8]; 2]; 3] = [cast(a), cast(b), cast(c)];
        cast([fma8(a[0], b[0], c[0]), fma8(a[1], b[1], c[1])])
    }
    #[inline(always)]
    fn max(self, a: f32x16, b: f32x16) -> f32x16 {
        self.select(self.lt(b, a), a, b)
    }
    #[inline(always)]
    fn min(self, a: f32x16, b: f32x16) -> f32x16 {
        self.select(self.lt(a, b), a, b)
    }

    #[inline(always)]
    fn lt(self, a: f32x16, b: f32x16) -> i32x16 {
        cast(a.simd_lt(b))
    }
    #[inline(always)]
    fn le(self, a: f32x16, b: f32x16) -> i32x16 {
        cast(a.simd_le(b))
    }
    #[inline(always)]
    fn eq(self, a: f32x16, b: f32x16) -> i32x16 {
        cast(a.simd_eq(b))
    }
    #[inline(always)]
    fn select(self, m: i32x16, a: f32x16, b: f32x16) -> f32x16 {
        cast(opaque(m).select(cast::<_, i32x16>(a), cast(b)))
    }
    #[inline(always)]
    fn both(self, a: i32x16, b: i32x16) -> i32x16 {
        a & b
    }
    #[inline(always)]
    fn differ(self, a: i32x16, b: i32x16) -> i32x16 {
        a ^ b
    }
    #[inline(always)]
    fn mask_bits(self, m: i32x16) -> u16 {
        m.to_bitmask() as u16
    }

    #[inline(always)]
    fn bits(self, v: f32x16) -> i32x16 {
        cast(v)
    }
    #[inline(always)]
    fn from_bits(self, v: i32x16) -> f32x16 {
        cast(v)
    }
    #[inline(always)]
    fn to_f32(self, v: i32x16) -> f32x16 {
        f32x16::from_i32x16(v)
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> i32x16 {
        i32x16::splat(x)
    }
    #[inline(always)]
    fn add_i32(self, a: i32x16, b: i32x16) -> i32x16 {
        a + b
    }
    #[inline(always)]
    fn sub_i32(self, a: i32x16, b: i32x16) -> i32x16 {
        a - b
    }
    #[inline(always)]
    fn and(self, a: i32x16, b: i32x16) -> i32x16 {
        a & b
    }
    #[inline(always)]
    fn or(self, a: i32x16, b: i32x16) -> i32x16 {
        a | b
    }
    #[inline(always)]
    fn xor(self, a: i32x16, b: i32x16) -> i32x16 {
        a ^ b
    }
    #[inline(always)]
    fn shl(self, a: i32x16, n: u32) -> i32x16 {
        a << n
    }
    #[inline(always)]
    fn shr(self, a: i32x16, n: u32) -> i32x16 {
        cast(cast::<_, wide::u32x16>(a) >> n)
    }
    #[inline(always)]
    fn min_i32(self, a: i32x16, b: i32x16) -> i32x16 {
        a.min(b)
    }
    #[inline(always)]
    fn max_i32(self, a: i32x16, b: i32x16) -> i32x16 {
        a.max(b)
    }
    #[inline(always)]
    fn gt_i32(self, a: i32x16, b: i32x16) -> i32x16 {
        a.simd_gt(b)
    }
    #[inline(always)]
    fn eq_i32(self, a: i32x16, b: i32x16) -> i32x16 {
        a.simd_eq(b)
    }
    #[inline(always)]
    fn select_i32(self, m: i32x16, a: i32x16, b: i32x16) -> i32x16 {
        m.select(a, b)
    }

    #[inline(always)]
    fn swap_pairs(self, v: f32x16) -> f32x16 {
        let a: [f32; 16] = cast(v);
        f32x16::new(each(|i| a[i ^ 1]))
    }
    #[inline(always)]
    fn dup_even(self, v: f32x16) -> f32x16 {
        let a: [f32; 16] = cast(v);
        f32x16::new(each(|i| a[i & !1]))
    }
    #[inline(always)]
    fn dup_odd(self, v: f32x16) -> f32x16 {
        let a: [f32; 16] = cast(v);
        f32x16::new(each(|i| a[i | 1]))
    }
    #[inline(always)]
    fn zip_even(self, a: i32x16, b: i32x16) -> i32x16 {
        let (a, b): ([i32; 16], [i32; 16]) = (cast(a), cast(b));
        i32x16::new(each(|i| if i % 2 == 0 { a[i] } else { b[i - 1] }))
    }
    #[inline(never)]
    fn mul_even(self, a: i32x16, b: u32) -> i32x16 {
        let mut a: [i32; 16] = cast(a);
        for pair in a.as_chunks_mut::<2>().0 {
            let product = u64::from(pair[0] as u32) * u64::from(b);
            *pair = [product as i32, (product >> 32) as i32];
        }
        cast(a)
    }
    #[inline(never)]
    fn pairs<const D: usize>(self, a: f32x16, b: f32x16) -> (f32x16, f32x16) {
        let (a, b): ([f32; 16], [f32; 16]) = (cast(a), cast(b));
        let (mut low, mut high) = ([0.0; 16], [0.0; 16]);
        for i in 0..16 {
            let from = if i & D == 0 { &a } else { &b };
            (low[i], high[i]) = (from[i & !D], from[i | D]);
        }
        (cast(low), cast(high))
    }
    #[inline(always)]
    fn exchange<const D: usize>(self, v: i32x16) -> i32x16 {
        let a: [i32; 16] = cast(v);
        i32x16::new(each(|i| a[i ^ D]))
    }
}

/// `[even, odd]` bytes of each quad as 16-bit numbers: products of pairs then add without loss.
impl Dot for Portable {
    type X = [i16x16; 2];
    type W = [[i16x16; 2]; 2];
    type Quad = [i16; 4];
    type Weights = [i16; 64];
    type Unit = core::convert::Infallible;

    #[inline(always)]
    fn pack_quad(self, x: [i8; 4]) -> [i16; 4] {
        even_odd(x)
    }
    #[inline(always)]
    fn splat_quad(self, x: &[i16; 4]) -> [i16x16; 2] {
        let [even, odd]: [i32; 2] = cast(*x);
        [cast(i32x8::splat(even)), cast(i32x8::splat(odd))]
    }
    #[inline(always)]
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], words: &'a mut [u64]) -> [&'a [[i16; 64]]; NV] {
        widen(
            w,
            words,
            #[inline(always)]
            |w, to| *to = cast(self.weights(w)),
        )
    }
    #[inline(always)]
    fn load_weights(self, w: &[i16; 64]) -> [[i16x16; 2]; 2] {
        cast(*w)
    }
    #[inline(always)]
    fn weights(self, w: &[i8; 64]) -> [[i16x16; 2]; 2] {
        let halves: [i16x16; 2] = cast(*w);
        each(|i| [(halves[i] << 8u32) >> 8u32, halves[i] >> 8u32])
    }
    #[inline(always)]
    fn dot(self, acc: i32x16, x: [i16x16; 2], w: [[i16x16; 2]; 2]) -> i32x16 {
        let sum: [i32x8; 2] = each(|i| w[i][0].dot(x[0]) + w[i][1].dot(x[1]));
        acc + cast::<_, i32x16>(sum)
    }
}
