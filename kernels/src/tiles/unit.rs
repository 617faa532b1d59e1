//! The loops of a product on a unit that multiplies whole tiles: pairs of panels by blocks of 32 rows, all of K at once.
//!
//! The blocks of a pair find its weights in the second cache; meanwhile each asks for its share of the next pair, so that reading goes on
//! while they compute.

use super::matmul::{Finished, GROUP, MATMUL_WORDS, Matmul};
use crate::simd::{Ahead, TileUnit, Tiles};
use core::ops::Range;

/// Rows of a block on a unit for tiles.
pub(super) const UNIT_ROWS: usize = 32;

/// Rows whose sums go out together, at most.
const MOST_ROWS: usize = 256;

/// Panels of a group of a single block of rows: the fewer the rows, the longer the runs in which their sums go out.
const LONG_GROUP: usize = 16;

/// Accumulators of 16 lanes that a group of panels and the rows that go with it have at most.
pub(super) const GROUP_SUMS: usize = MOST_ROWS * GROUP;

/// Accumulators of 16 lanes that wait: the unit widens no weights, so all words are theirs.
const WAITING: usize = MATMUL_WORDS / 8;
const _: () = assert!(GROUP_SUMS <= WAITING && UNIT_ROWS * LONG_GROUP <= GROUP_SUMS);

/// Whether a unit for tiles is worth its setting up: with fewer rows reading the weights takes all the time, and vectors read a
/// little faster; a small product takes less than the setting up.
#[inline(always)]
pub(super) const fn suits_unit(rows: usize, k: usize) -> bool {
    rows > 5 && rows * k >= 640
}

/// Which panels and blocks of at most `rows` rows are multiplied before their sums go out: for each group of panels all blocks. But
/// for the last, groups are even.
pub(super) fn each_group(panels: Range<usize>, blocks: usize, rows: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let (width, most) = (if blocks * rows > UNIT_ROWS { GROUP } else { LONG_GROUP }, MOST_ROWS / rows);
    panels.clone().step_by(width).flat_map(move |panel| {
        let group = panel..panels.end.min(panel + width);
        (0..blocks).step_by(most).map(move |first| (group.clone(), first..blocks.min(first + most)))
    })
}

/// Blocks of some rows that meet panels, `turn` after turn: of rows that are no whole blocks back and forth. Where a block has not as many
/// rows as the one before, tiles are set up anew, which takes as long as three steps of a product.
pub(super) fn each_block(rows: Range<usize>, turn: usize) -> impl Iterator<Item = Range<usize>> {
    let (count, back) = (rows.len().div_ceil(UNIT_ROWS), turn % 2 == 1 && rows.len() % UNIT_ROWS > 0);
    (0..count).map(move |i| {
        let first = rows.start + UNIT_ROWS * if back { count - 1 - i } else { i };
        first..rows.end.min(first + UNIT_ROWS)
    })
}

impl Matmul<'_> {
    /// On the unit for tiles: groups of panels, and in a group pairs of them by blocks of rows.
    #[inline(always)]
    pub(super) fn on_unit<U: TileUnit>(mut self, unit: U) {
        for (panels, rows) in each_group(self.panels.clone(), self.x.rows(), 1) {
            // SAFETY: they are dropped before the sink is called, and what is called before knows no unit.
            let mut tiles = unsafe { unit.tiles() };
            for pair in panels.clone().step_by(2) {
                match panels.end - pair {
                    1 => self.unit_panels::<_, 1>(&mut tiles, pair, &panels, rows.clone()),
                    _ => self.unit_panels::<_, 2>(&mut tiles, pair, &panels, rows.clone()),
                }
            }
            drop(tiles);
            let sums = &bytemuck::cast_slice(&self.words[..WAITING * 8])[..rows.len() * panels.len()];
            (self.sink)(Finished { rows, sums, pitch: panels.len(), panels });
        }
    }

    /// Some rows over NV panels of a group, the weights behind them asked for by all blocks of rows in equal shares.
    #[inline(always)]
    fn unit_panels<U: Tiles, const NV: usize>(&mut self, tiles: &mut U, panel: usize, group: &Range<usize>, rows: Range<usize>) {
        let (x, parked) = (self.x, bytemuck::cast_slice_mut(&mut self.words[..WAITING * 8]));
        let mut w: [&[_]; NV] = [&[]; NV];
        for v in 0..NV {
            w[v] = self.weights.panel(panel + v);
        }
        let blocks = x.rows().div_ceil(UNIT_ROWS);
        // A block that is alone asks for the next panels only where they come from memory.
        let behind = (blocks > 1 || self.weights.come_from_memory()).then(|| self.weights.behind(panel + NV, NV));
        for (share, some) in (rows.start / UNIT_ROWS..).zip(each_block(rows.clone(), panel / 2)) {
            let ahead = behind.map_or(Ahead::NEAR, |behind| Ahead::share(behind, share, blocks));
            let at = (some.start - rows.start) * group.len() + panel - group.start;
            tiles.multiply(x.block(some), w, ahead, &mut parked[at..], group.len());
        }
    }
}
