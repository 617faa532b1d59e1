//! What reading a row costs.

use tilekern::kernels::dispatch::Kernel;
use tilekern::kernels::element::Element;
use tilekern::kernels::simd::Dot;

/// The largest of a row, by eight accumulators: what reading the row costs.
pub struct Floor<'a, T>(pub &'a [T]);

impl<T: Element> Kernel for Floor<'_, T> {
    type Output = f32;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> f32 {
        let mut tops = [s.splat(f32::NEG_INFINITY); 8];
        let (chunks, rest) = self.0.as_chunks::<128>();
        for chunk in chunks {
            for (top, v) in tops.iter_mut().zip(chunk.as_chunks::<16>().0) {
                // The load second: as an operand in memory it takes no register of its own, and eight accumulators may be all there are.
                *top = s.max(*top, T::load(s, v));
            }
        }
        let max = tops.into_iter().map(|top| s.reduce_max(top)).fold(f32::NEG_INFINITY, f32::max);
        rest.iter().map(|x| x.as_()).fold(max, f32::max)
    }
}
