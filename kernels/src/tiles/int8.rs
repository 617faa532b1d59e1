//! The int8 dot tile: MR rows by NV panels of 16 columns, in registers.
//!
//! Each step reads NV vectors of weights and MR quads of activations and does MR * NV dot instructions. Registers of AVX-512 VNNI
//! at 4 x 4: 16 accumulators, 4 weights, 1 quad, of 32; every step 16 dots stand against 8 loads, and 16 chains of 5 cycles keep
//! two dot units busy. 8 x 2 has as many chains, 2 weights, 1 quad, and 16 dots against 10 loads. 6 x 4 does a little more for each
//! load, and leaves more rows of its last group idle. AVX-512 without VNNI: 4 x 4, half a quad at a time. AVX2 (16 registers, a
//! vector is two) at 4 x 1: 8 accumulators, 2 halves of weights, half a quad and a product. It has none to spare, so its steps are
//! not unrolled: of four of them the compiler would load what the later ones need first, and park accumulators. NEON (32 registers,
//! a vector is four): 4 x 1 x 4 accumulators, 4 weights, 1 quad.
//!
//! Weights come from the first cache. While a tile runs, it asks for the lines of the weights that come after these: reading and
//! computing then take the longer of the two times, not their sum.

use super::side_by_side::{at, chunks, slices};
use crate::simd::Dot;

/// Steps that are written out, and steps of a loop that is not, between two requests.
const UNIT: usize = 4;
const LOOP: usize = 16;

/// Steps from request to request.
pub(super) const fn steps_between_requests<S: Dot>() -> usize {
    if S::MANY_REGISTERS { UNIT } else { LOOP }
}

/// `acc[m][v][n] += sum over k of x[m][k] * w[v][k][n]`; `x[m]` holds a quad for each step, a multiple of 4 of them, `w[v]` a vector.
/// On the way `ask(u)` is called for the `u`-th time, to ask for weights that come.
#[inline(always)]
pub(super) fn tile<S: Dot, const MR: usize, const NV: usize>(
    s: S,
    x: [&[S::Quad]; MR],
    w: [&[S::Weights]; NV],
    mut ask: impl FnMut(usize),
    mut acc: [[S::I32; NV]; MR],
) -> [[S::I32; NV]; MR] {
    // Equal lengths, so that no index below is checked.
    if const { !S::MANY_REGISTERS } {
        let steps = x[0].len();
        let (x, w) = (slices(x, 0..steps), slices(w, 0..steps));
        for (u, from) in (0..steps).step_by(LOOP).enumerate() {
            ask(u);
            for i in from..steps.min(from + LOOP) {
                step(s, at(x, i), at(w, i), &mut acc);
            }
        }
        return acc;
    }
    let units = x[0].len() / UNIT;
    let (x, w) = (chunks::<_, UNIT, MR>(x, units), chunks::<_, UNIT, NV>(w, units));
    for u in 0..units {
        ask(u);
        let (x, w) = (at(x, u), at(w, u));
        for i in 0..UNIT {
            step(s, at(x, i), at(w, i), &mut acc);
        }
    }
    acc
}

/// The products of a step.
#[inline(always)]
fn step<S: Dot, const MR: usize, const NV: usize>(s: S, x: [&S::Quad; MR], w: [&S::Weights; NV], acc: &mut [[S::I32; NV]; MR]) {
    let mut weights = [s.load_weights(w[0]); NV];
    for v in 1..NV {
        weights[v] = s.load_weights(w[v]);
    }
    s.dots(x, weights, acc);
}
