//! The loops of a product on a unit that multiplies whole tiles: pairs of panels by blocks of 32 rows, all of K at once.
//!
//! The first block of a pair brings its weights into the second cache and the others find them there; meanwhile each asks for its
//! share of the next pair, so that reading goes on while they compute.

use super::matmul::{Finished, Matmul, PARKED};
use crate::simd::TileUnit;
use core::ops::Range;

/// Rows of a block on a unit for tiles.
const UNIT_ROWS: usize = 32;

/// Whether a unit for tiles is worth its setting up: with fewer rows reading the weights takes all the time, and vectors read a little faster;
/// a small product takes less than the setting up.
#[inline(always)]
pub(super) const fn suits_unit(rows: usize, k: usize) -> bool {
    rows > 8 && rows * k >= 640
}

impl Matmul<'_> {
    /// On the unit for tiles: groups of panels, so many that their sums just have room, and in a group pairs of them by blocks of rows.
    #[inline(always)]
    pub(super) fn on_unit<U: TileUnit>(mut self, unit: U) {
        let (mut configured, rows) = (0, self.x.rows().min(PARKED / 2));
        // An even number, so that only the last panel can be one without another. The fewer the rows, the longer the runs in which their
        // sums go out.
        let width = PARKED / rows.next_power_of_two();
        for panel in self.panels.clone().step_by(width) {
            let panels = panel..self.panels.end.min(panel + width);
            for first in (0..self.x.rows()).step_by(rows) {
                let chunk = first..self.x.rows().min(first + rows);
                for pair in panels.clone().step_by(2) {
                    match panels.end - pair {
                        1 => self.unit_panels::<U, 1>(unit, pair, &panels, chunk.clone(), &mut configured),
                        _ => self.unit_panels::<U, 2>(unit, pair, &panels, chunk.clone(), &mut configured),
                    }
                }
                let sums = &bytemuck::cast_slice(&self.words[..PARKED * 8])[..chunk.len() * panels.len()];
                (self.sink)(Finished { rows: chunk, panels: panels.clone(), sums });
            }
        }
        unit.release();
    }

    /// Some rows over NV panels of a group, the weights behind them asked for by all blocks of rows in equal shares.
    #[inline(always)]
    fn unit_panels<U: TileUnit, const NV: usize>(
        &mut self,
        unit: U,
        panel: usize,
        group: &Range<usize>,
        rows: Range<usize>,
        configured: &mut usize,
    ) {
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
        for row in rows.clone().step_by(UNIT_ROWS) {
            let (i, block) = (row / UNIT_ROWS, x.block(row..rows.end.min(row + UNIT_ROWS)));
            if core::mem::replace(configured, block.rows) != block.rows {
                unit.configure(block.rows);
            }
            let ahead = next.map(|next| &next[next.len() * i / blocks..next.len() * (i + 1) / blocks]);
            let at = (row - rows.start) * group.len() + panel - group.start;
            unit.multiply(block, w, ahead, &mut parked[at..], group.len());
        }
    }
}
