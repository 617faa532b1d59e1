//! The int8 dot tile: MR rows by NV panels of 16 columns, in registers.
//!
//! Each step reads NV vectors of weights and MR quads of activations and does MR * NV dot instructions. Registers of AVX-512 VNNI at
//! the default 4 x 4: 16 accumulators, 4 weights, 1 quad, of 32; every step 16 dots stand against 8 loads, and 16 chains of 4 cycles
//! keep two dot units busy. AVX2 (16 registers, a logical vector is two): 2 x 1 x 2 accumulators, 8 registers of widened weights, 2 of
//! a quad. NEON (32 registers, a vector is four): 4 x 1 x 4 accumulators, 4 weights, 1 quad.

use crate::simd::Dot;

/// `acc[m][v][n] += sum over k of x[m][k] * w[v][k][n]`; `x[m]` holds a quad for each step, `w[v]` a vector.
#[inline(always)]
pub(super) fn tile<S: Dot, const MR: usize, const NV: usize>(
    s: S,
    x: [&[S::Quad]; MR],
    w: [&[[i8; 64]]; NV],
    mut acc: [[S::I32; NV]; MR],
) -> [[S::I32; NV]; MR] {
    // Equal lengths, so that no index below is checked.
    let steps = x[0].len();
    let (x, w) = (x.map(|x| &x[..steps]), w.map(|w| &w[..steps]));
    for i in 0..steps {
        let mut weights = [s.load_weights(&w[0][i]); NV];
        for v in 1..NV {
            weights[v] = s.load_weights(&w[v][i]);
        }
        for m in 0..MR {
            let quad = s.splat_quad(&x[m][i]);
            for v in 0..NV {
                acc[m][v] = s.dot(acc[m][v], quad, weights[v]);
            }
        }
    }
    acc
}
