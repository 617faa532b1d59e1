//! One row by NV panels: the product of a decode step, bound by the reading of the weights.
//!
//! Two quads a step into separate accumulators: 2 * NV chains hide the latency of the dot instruction where NV is small. Each panel is
//! a stream, and its lines are asked for [`AHEAD`] lines before they are read; behind a panel lies the next one.

use crate::simd::Dot;

/// Lines between a request and its use: 4 KiB, which at 100 GB/s are 40 ns for each of a few streams.
const AHEAD: usize = 64;

/// `acc[v][n] += sum over k of x[k] * w[v][k][n]`; `w[v]` may go on behind the row.
#[inline(always)]
pub(super) fn gemv<S: Dot, const NV: usize>(s: S, x: &[S::Quad], w: [&[[i8; 64]]; NV], acc: [S::I32; NV]) -> [S::I32; NV] {
    let (pairs, _) = x.as_chunks::<2>();
    let (mut even, mut odd) = (acc, [s.splat_i32(0); NV]);
    // Equal lengths, so that no index below is checked.
    let panels = w.map(|w| &w.as_chunks::<2>().0[..pairs.len()]);
    for i in 0..pairs.len() {
        for v in 0..NV {
            for line in [2 * i + AHEAD, 2 * i + AHEAD + 1] {
                if let Some(line) = w[v].get(line) {
                    s.prefetch(line);
                }
            }
        }
        let quads = [s.splat_quad(&pairs[i][0]), s.splat_quad(&pairs[i][1])];
        for v in 0..NV {
            even[v] = s.dot(even[v], quads[0], s.weights(&panels[v][i][0]));
            odd[v] = s.dot(odd[v], quads[1], s.weights(&panels[v][i][1]));
        }
    }
    for v in 0..NV {
        even[v] = s.add_i32(even[v], odd[v]);
    }
    even
}
