//! A few rows by NV panels: the product of decode steps, bound by the reading of the weights.
//!
//! Each line of weights is read once, for all rows, straight from where it lies; each panel is a stream, as hardware prefetchers
//! like them. Two quads a step go into accumulators of their own where the rows and panels alone are too few chains to hide the
//! latency of the dot instruction, and registers are many: where they are few, a product is two instructions, of which only the
//! addition waits for the step before.

use super::requests::ask;
use super::side_by_side::{at, chunks, slices};
use crate::simd::Dot;

/// Accumulators that are chains enough.
const CHAINS: usize = 16;

/// `acc[m][v][n]` and the sum over k of `x[m][k] * w[v][k][n]`. With each step its lines of `coming` are asked for, FAR into the second cache.
#[inline(always)]
pub(super) fn gemv<S: Dot, const MR: usize, const NV: usize, const ASKED: usize, const FAR: bool>(
    s: S,
    x: [&[S::Quad]; MR],
    w: [&[[i8; 64]]; NV],
    coming: [&[[i8; 64]]; ASKED],
    mut acc: [[S::I32; NV]; MR],
) -> [[S::I32; NV]; MR] {
    // Equal lengths, so that no index below is checked. Runs of a known number of steps would spare the check that is left, of `coming`,
    // and take longer: their end is not foreseen.
    if const { !S::MANY_REGISTERS } {
        let steps = x[0].len();
        let (x, w, coming) = (slices(x, 0..steps), slices(w, 0..steps), slices(coming, 0..steps));
        for i in 0..steps {
            for v in 0..ASKED {
                ask(s, &coming[v][i], FAR);
            }
            step(s, at(x, i), at(w, i), &mut acc);
        }
        return acc;
    }
    let odd = if MR * NV < CHAINS { 1 } else { 0 };
    let mut acc = [acc, [[s.splat_i32(0); NV]; MR]];
    let pairs = x[0].len() / 2;
    let (x, w, coming) = (chunks::<_, 2, MR>(x, pairs), chunks::<_, 2, NV>(w, pairs), chunks::<_, 2, ASKED>(coming, pairs));
    for i in 0..pairs {
        let (x, w) = (at(x, i), at(w, i));
        for half in 0..2 {
            for v in 0..ASKED {
                ask(s, &coming[v][i][half], FAR);
            }
            step(s, at(x, half), at(w, half), &mut acc[odd * half]);
        }
    }
    for m in 0..MR {
        for v in 0..NV {
            acc[0][m][v] = s.add_i32(acc[0][m][v], acc[1][m][v]);
        }
    }
    acc[0]
}

/// The products of a step.
#[inline(always)]
fn step<S: Dot, const MR: usize, const NV: usize>(s: S, x: [&S::Quad; MR], w: [&[i8; 64]; NV], acc: &mut [[S::I32; NV]; MR]) {
    let mut weights = [s.weights(w[0]); NV];
    for v in 1..NV {
        weights[v] = s.weights(w[v]);
    }
    s.dots(x, weights, acc);
}
