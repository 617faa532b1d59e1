//! The exponential never falls where its argument rises: sorted logits have sorted probabilities.

mod common;
use common::levels;
use tilekern_kernels::dispatch::Kernel;
use tilekern_kernels::math;
use tilekern_kernels::simd::Dot;

/// Counts the falls over 16 x `vectors` neighbouring arguments x <= 0, from the one with these bits on, away from zero.
struct Falls {
    first: u32,
    vectors: u32,
}

impl Kernel for Falls {
    type Output = u32;
    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> u32 {
        let (mut previous, mut falls) = (f32::INFINITY, 0);
        for vector in 0..self.vectors {
            let x: [f32; 16] = core::array::from_fn(|i| f32::from_bits(self.first + 16 * vector + i as u32));
            let mut y = [0.0; 16];
            s.store(math::exp_below_overflow(s, s.load(&x)), &mut y);
            for y in y {
                falls += u32::from(y > previous);
                previous = y;
            }
        }
        falls
    }
}

#[test]
fn monotone_around_every_reduction_step_and_between() {
    for level in levels() {
        // x / ln 2 = n + 1/2 is where r changes its sign.
        for n in 0..126 {
            let x = -(f64::from(n) + 0.5) * core::f64::consts::LN_2;
            assert_eq!(level.run(Falls { first: (x as f32).to_bits() - 800, vectors: 100 }), 0, "{level:?} n={n}");
        }
        for window in 0..4000 {
            let first = 0x8000_0000 + (0xC2B0_0000u64 - 0x8000_0000) * window / 4000;
            assert_eq!(level.run(Falls { first: first as u32, vectors: 64 }), 0, "{level:?} {first:x}");
        }
    }
}
