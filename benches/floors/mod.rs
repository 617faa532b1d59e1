//! What a machine can do: a dot instruction on registers, and reading.

use std::hint::black_box;
use std::time::Instant;
use tilekern::kernels::dispatch::{Kernel, Level};
use tilekern::kernels::simd::Dot;

/// Dot instructions on registers, 24 chains.
struct Bare(usize);

impl Kernel for Bare {
    type Output = [i32; 16];

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> [i32; 16] {
        let (quad, w) = (s.splat_quad(&s.pack_quad(black_box([1; 4]))), s.weights(&black_box([1; 64])));
        let mut acc = [s.splat_i32(0); 24];
        for _ in 0..self.0 {
            for acc in &mut acc {
                *acc = s.dot(*acc, quad, w);
            }
        }
        let mut sums = [0; 16];
        s.store_i32(acc.into_iter().fold(s.splat_i32(0), |a, b| s.add_i32(a, b)), &mut sums);
        sums
    }
}

/// The maximum of `STREAMS` streams.
struct Stream<'a, const STREAMS: usize>(&'a [[i32; 16]]);

impl<const STREAMS: usize> Kernel for Stream<'_, STREAMS> {
    type Output = i32;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> i32 {
        let length = self.0.len() / STREAMS;
        let mut top = [[s.splat_i32(0); 4]; STREAMS];
        for i in 0..length / 4 {
            for stream in 0..STREAMS {
                for j in 0..4 {
                    top[stream][j] = s.max_i32(top[stream][j], s.load_i32(&self.0[stream * length + 4 * i + j]));
                }
            }
        }
        s.reduce_max_i32(top.into_iter().flatten().fold(s.splat_i32(0), |a, b| s.max_i32(a, b)))
    }
}

/// Seconds of a call.
pub fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

/// Seconds of one operation of the bare instruction, a multiplication or an addition.
pub fn operation(level: Level) -> f64 {
    const STEPS: usize = 20_000;
    seconds(|| assert_ne!(level.run(Bare(black_box(STEPS))), [0; 16])) / (2 * STEPS * 24 * 64) as f64
}

/// Seconds of reading one byte, one stream or four, whichever is faster.
pub fn byte(level: Level, bytes: &[i8]) -> f64 {
    let lines = bytemuck::cast_slice::<i8, [i32; 16]>(&bytes[..bytes.len() / 64 * 64]);
    let one = seconds(|| assert!(black_box(level.run(Stream::<1>(lines))) > 0));
    let four = seconds(|| assert!(black_box(level.run(Stream::<4>(lines))) > 0));
    one.min(four) / (64 * lines.len()) as f64
}
