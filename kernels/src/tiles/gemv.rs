//! One row by NV panels: the product of a decode step, bound by the reading of the weights.
//!
//! Two quads a step into separate accumulators: 2 * NV chains hide the latency of the dot instruction where NV is small.

use crate::simd::Dot;

/// `acc[v][n] += sum over k of x[k] * w[v][k][n]`
#[inline(always)]
pub(super) fn gemv<S: Dot, const NV: usize>(s: S, x: &[S::Quad], w: [&[[i8; 64]]; NV], acc: [S::I32; NV]) -> [S::I32; NV] {
    let (pairs, last) = x.as_chunks::<2>();
    let (mut even, mut odd) = (acc, [s.splat_i32(0); NV]);
    // Equal lengths, so that no index below is checked.
    let w = w.map(|w| w[..x.len()].as_chunks::<2>());
    let panels = w.map(|(panel, _)| &panel[..pairs.len()]);
    for i in 0..pairs.len() {
        let quads = [s.splat_quad(&pairs[i][0]), s.splat_quad(&pairs[i][1])];
        for v in 0..NV {
            even[v] = s.dot(even[v], quads[0], s.load_weights(&panels[v][i][0]));
            odd[v] = s.dot(odd[v], quads[1], s.load_weights(&panels[v][i][1]));
        }
    }
    for v in 0..NV {
        if let ([quad], [weights]) = (last, w[v].1) {
            even[v] = s.dot(even[v], s.splat_quad(quad), s.load_weights(weights));
        }
        even[v] = s.add_i32(even[v], odd[v]);
    }
    even
}
