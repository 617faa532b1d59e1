//! Rows of logits, and what reading one costs.

use tilekern::kernels::dispatch::Kernel;
use tilekern::kernels::element::Element;
use tilekern::kernels::simd::Dot;

/// The largest of a row, by eight accumulators: what reading the row costs.
pub struct Floor<'a, T>(pub &'a [T]);

impl<T: Element> Kernel for Floor<'_, T> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        let mut tops = [s.splat(f32::NEG_INFINITY); 8];
        for chunk in self.0.as_chunks::<128>().0 {
            for (top, v) in tops.iter_mut().zip(chunk.as_chunks::<16>().0) {
                *top = s.max(T::load(s, v), *top);
            }
        }
        tops.into_iter().map(|top| s.reduce_max(top)).fold(f32::NEG_INFINITY, f32::max)
    }
}

/// SplitMix64, by Box and Muller's transformation.
pub fn normal(state: &mut u64) -> f32 {
    let mut unit = || {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / 16_777_216.0 + 3e-8
    };
    (-2.0 * unit().ln()).sqrt() * (std::f32::consts::TAU * unit()).cos()
}
