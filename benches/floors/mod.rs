//! What a machine can do: a dot instruction on registers, and reading.
// Each bench uses a part.
#![allow(dead_code)]

use std::hint::black_box;
use std::time::Instant;
use tilekern::Isa;
use tilekern::kernels::dispatch::{Kernel, Level};
use tilekern::kernels::simd::Dot;

/// A loop of `vpmaddwd` and `vpaddd`, twelve chains.
#[cfg(target_arch = "x86_64")]
macro_rules! bare_widened {
    ($r:literal, $steps:expr) => {
        // SAFETY: registers are all that is touched, and the token proves that there are such.
        unsafe {
            std::arch::asm!(
                "2: .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
                concat!("vpmaddwd ", $r, "mm12, ", $r, "mm14, ", $r, "mm15"),
                concat!("vpaddd ", $r, "mm\\i, ", $r, "mm\\i, ", $r, "mm12"),
                ".endr", "dec {n}", "jnz 2b", n = inout(reg) $steps => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _,
                out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, options(nomem, nostack)
            );
        }
    };
}

/// Dot instructions on registers: 24 chains, or four tiles; a multiplication and an addition where there is no such instruction. For
/// the portable token and NEON without it the compiler may multiply once for all chains: their rate is no floor.
struct Bare {
    steps: usize,
}

impl Kernel for Bare {
    /// Multiplications and additions done.
    type Output = usize;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> usize {
        let (quad, w) = (s.splat_quad(&s.pack_quad(black_box([1; 4]))), s.weights(&black_box([1; 64])));
        #[cfg(target_arch = "x86_64")]
        if s.tile_unit().is_some() {
            // Palette 1, eight tiles of 16 rows of 64 bytes.
            let mut config = [0_u8; 64];
            config[0] = 1;
            (config[16..32].iter_mut().step_by(2)).for_each(|bytes| *bytes = 64);
            config[48..56].fill(16);
            // SAFETY: the unit is proved; 64 bytes are read, and registers and tiles are all else that is touched.
            unsafe {
                std::arch::asm!(
                    "ldtilecfg [{config}]",
                    "tilezero tmm4; tilezero tmm5; tilezero tmm6; tilezero tmm7",
                    "2: tdpbssd tmm0, tmm4, tmm6; tdpbssd tmm1, tmm4, tmm7; tdpbssd tmm2, tmm5, tmm6; tdpbssd tmm3, tmm5, tmm7",
                    "dec {n}", "jnz 2b", "tilerelease", n = inout(reg) self.steps => _, config = in(reg) &config,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(readonly, nostack)
                );
            }
            return self.steps * 4 * 2 * 16 * 16 * 64;
        }
        #[cfg(target_arch = "x86_64")]
        match S::ISA {
            Isa::Avx2 => {
                bare_widened!("y", self.steps);
                return self.steps * 12 * 2 * 16;
            }
            Isa::Avx512 => {
                bare_widened!("z", self.steps);
                return self.steps * 12 * 2 * 32;
            }
            _ => {}
        }
        let mut acc = [s.splat_i32(0); 24];
        for _ in 0..self.steps {
            for acc in &mut acc {
                *acc = s.dot(*acc, quad, w);
            }
        }
        let mut sums = [0; 16];
        s.store_i32(acc.into_iter().fold(s.splat_i32(0), |a, b| s.add_i32(a, b)), &mut sums);
        assert_ne!(sums, [0; 16]);
        2 * self.steps * 24 * 64
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

/// Operations a second of the bare instruction, multiplications and additions; of this moment.
pub fn peak(level: Level) -> f64 {
    let mut operations = 0;
    let time = seconds(|| operations = level.run(Bare { steps: black_box(20_000) }));
    operations as f64 / time
}

/// Bytes a second that are read, in one stream or four, whichever is faster; of this moment.
pub fn stream(level: Level, bytes: &[i8]) -> f64 {
    let lines = bytemuck::cast_slice::<i8, [i32; 16]>(&bytes[..bytes.len() / 64 * 64]);
    let one = seconds(|| assert!(black_box(level.run(Stream::<1>(lines))) > 0));
    let four = seconds(|| assert!(black_box(level.run(Stream::<4>(lines))) > 0));
    (64 * lines.len()) as f64 / one.min(four)
}
