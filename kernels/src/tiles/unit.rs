//! The loops of a product on a unit that multiplies whole tiles: pairs of panels by blocks of 32 rows, all of K at once.
//!
//! The first block of a pair brings its weights into the second cache and the others find them there; meanwhile each asks for its
//! share of the next pair, so that reading goes on while they compute.

use super::matmul::{Finished, Matmul, PARKED};
use crate::simd::TileUnit;

/// Rows of a block on a unit for tiles.
const UNIT_ROWS: usize = 32;

/// Whether a unit for tiles is worth its setting up: with fewer rows reading the weights takes all the time, and a small product takes less
/// than the setting up.
#[inline(always)]
pub(super) const fn suits_unit(rows: usize, k: usize) -> bool {
    rows >= 4 && rows * k >= 640
}

impl Matmul<'_> {
    /// On the unit for tiles: pairs of panels by blocks of rows, whole sums at once.
    #[inline(always)]
    pub(super) fn on_unit<U: TileUnit>(mut self, unit: U) {
        let (mut panel, mut configured) = (self.panels.start, 0);
        while panel < self.panels.end {
            panel += match self.panels.end - panel {
                1 => self.unit_panels::<U, 1>(unit, panel, &mut configured),
                _ => self.unit_panels::<U, 2>(unit, panel, &mut configured),
            };
        }
        unit.release();
    }

    /// All rows over NV panels, the weights behind them asked for by all blocks in equal shares; returns NV.
    #[inline(always)]
    fn unit_panels<U: TileUnit, const NV: usize>(&mut self, unit: U, panel: usize, configured: &mut usize) -> usize {
        let (x, parked) = (self.x, bytemuck::cast_slice_mut(&mut self.words[..PARKED * 8]));
        let (mut w, mut next): ([&[_]; NV], [&[_]; NV]) = ([&[]; NV], [&[]; NV]);
        for v in 0..NV {
            w[v] = self.weights.panel(panel + v);
            // A block that is alone keeps the stream running itself.
            if x.rows() > UNIT_ROWS && panel + 2 * NV <= self.weights.len() {
                next[v] = self.weights.panel(panel + NV + v);
            }
        }
        let blocks = x.rows().div_ceil(UNIT_ROWS);
        for first in (0..x.rows()).step_by(PARKED / 2) {
            let end = x.rows().min(first + PARKED / 2);
            for row in (first..end).step_by(UNIT_ROWS) {
                let (i, block) = (row / UNIT_ROWS, x.block(row..end.min(row + UNIT_ROWS)));
                if core::mem::replace(configured, block.rows) != block.rows {
                    unit.configure(block.rows);
                }
                let ahead = next.map(|next| &next[next.len() * i / blocks..next.len() * (i + 1) / blocks]);
                unit.multiply(block, w, ahead, &mut parked[(row - first) * NV..]);
            }
            (self.sink)(Finished { rows: first..end, panels: panel..panel + NV, sums: &parked[..(end - first) * NV] });
        }
        NV
    }
}
