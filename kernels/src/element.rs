//! Storage types: `f32`, `f16` and `bf16` in memory, `f32` in registers.

use crate::per_element::Compiled;
use crate::simd::Simd;
use bytemuck::Pod;
use half::{bf16, f16};
use num_traits::AsPrimitive;

/// A number as it is stored. Widening is exact; narrowing rounds half to even and keeps subnormals.
///
/// ```
/// use half::bf16;
/// use num_traits::AsPrimitive;
/// use tilekern_kernels::element::Element;
///
/// fn through<T: Element>(x: f32) -> f32 {
///     T::narrow(x).as_()
/// }
/// assert_eq!(through::<bf16>(1.001), 1.0);
/// assert_eq!(through::<f32>(1.001), 1.001);
/// ```
pub trait Element: Copy + PartialEq + Default + Pod + AsPrimitive<f32> + Send + Sync + Compiled + 'static {
    /// Negative infinity, in its bit pattern.
    const NEG_INFINITY: Self;

    /// Reads 16 numbers.
    fn load<S: Simd>(s: S, a: &[Self; 16]) -> S::F32;
    /// Writes 16 numbers.
    fn store<S: Simd>(s: S, v: S::F32, a: &mut [Self; 16]);
    /// Writes vectors one behind the other, by [`Simd::store_past`] where 16 numbers are a cache line.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn store_past<S: Simd, const N: usize>(s: S, v: [S::F32; N], a: &mut [[Self; 16]; N]) {
        for i in 0..N {
            Self::store(s, v[i], &mut a[i]);
        }
    }
    /// The nearest number of this type.
    fn narrow(x: f32) -> Self;

    /// Reads `a.len() <= 16` numbers; the lanes behind hold `fill`.
    #[inline(always)]
    fn load_partial<S: Simd>(s: S, a: &[Self], fill: Self) -> S::F32 {
        Self::load(s, &padded(a, fill))
    }
    /// Writes the first `a.len() <= 16` lanes.
    #[inline(always)]
    fn store_partial<S: Simd>(s: S, v: S::F32, a: &mut [Self]) {
        let mut all = [Self::default(); 16];
        Self::store(s, v, &mut all);
        a.copy_from_slice(&all[..a.len()]);
    }
}

/// `a`, then `fill`: what turns a tail into the vector code's own case.
#[inline(always)]
pub fn padded<T: Copy>(a: &[T], fill: T) -> [T; 16] {
    let mut all = [fill; 16];
    all[..a.len()].copy_from_slice(a);
    all
}

impl Element for f32 {
    const NEG_INFINITY: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn load<S: Simd>(s: S, a: &[f32; 16]) -> S::F32 {
        s.load(a)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F32, a: &mut [f32; 16]) {
        s.store(v, a);
    }
    #[inline(always)]
    unsafe fn store_past<S: Simd, const N: usize>(s: S, v: [S::F32; N], a: &mut [[f32; 16]; N]) {
        // SAFETY: the caller's promise.
        unsafe { s.store_past(v, a) }
    }
    #[inline(always)]
    fn narrow(x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn load_partial<S: Simd>(s: S, a: &[f32], fill: f32) -> S::F32 {
        s.load_partial(a, fill)
    }
    #[inline(always)]
    fn store_partial<S: Simd>(s: S, v: S::F32, a: &mut [f32]) {
        s.store_partial(v, a);
    }
}

impl Element for f16 {
    const NEG_INFINITY: f16 = f16::NEG_INFINITY;

    #[inline(always)]
    fn load<S: Simd>(s: S, a: &[f16; 16]) -> S::F32 {
        s.load_f16(bytemuck::cast_ref(a))
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F32, a: &mut [f16; 16]) {
        s.store_f16(v, bytemuck::cast_mut(a));
    }
    #[inline(always)]
    fn narrow(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Element for bf16 {
    const NEG_INFINITY: bf16 = bf16::NEG_INFINITY;

    #[inline(always)]
    fn load<S: Simd>(s: S, a: &[bf16; 16]) -> S::F32 {
        s.from_bits(s.shl(s.load_u16(bytemuck::cast_ref(a)), 16))
    }
    /// By integer carry: the processors' own conversion flushes subnormals.
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F32, a: &mut [bf16; 16]) {
        let bits = s.bits(v);
        let odd = s.and(s.shr(bits, 16), s.splat_i32(1));
        let rounded = s.shr(s.add_i32(bits, s.add_i32(odd, s.splat_i32(0x7FFF))), 16);
        let quiet = s.or(s.shr(bits, 16), s.splat_i32(0x40));
        let finite = s.eq(v, v);
        s.store_u16(s.select_i32(finite, rounded, quiet), bytemuck::cast_mut(a));
    }
    #[inline(always)]
    fn narrow(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}
