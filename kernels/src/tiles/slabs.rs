//! Rows on a unit for tiles times int8 weights that lie row by row: a slab of K of many columns is packed in about the order in which
//! it lies, so that each page is looked up once for many lines, and multiplied by all rows; their sums wait between two slabs.

use super::columns::QUADS;
use super::cut::WAITING;
use super::matmul::{Finished, GROUP, Sink};
use super::rows::PackedRows;
use super::unit::{UNIT_ROWS, each_block};
use super::waiting::widths;
use super::weight_rows::WeightRows;
use crate::pack::panel_vectors;
use crate::simd::{Ahead, Dot, TileBlock, TileUnit, Tiles};
use core::ops::Range;

/// Quads of K that are packed at once.
const SLAB: usize = 64;

/// The most rows: of more, so many sums wait that strips are narrow.
pub(super) const SLAB_ROWS: usize = 256;

/// Panels whose sums wait, for so many rows.
pub(super) fn slab_strip(rows: usize) -> usize {
    WAITING / rows.max(1) / GROUP * GROUP
}

/// The panels of a strip whose sums lie together.
fn groups(panels: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = panels.end;
    panels.clone().step_by(GROUP).map(move |first| first..end.min(first + GROUP))
}

/// A product of at most [`SLAB_ROWS`] rows.
pub(super) struct Slabs<'a> {
    pub x: PackedRows<'a>,
    pub weights: WeightRows<'a>,
    pub stage: &'a mut [[i8; 64]],
    pub sums: &'a mut [[i32; 16]],
}

impl Slabs<'_> {
    /// Whether a product takes this way, given vectors that can be packed.
    pub fn suit(rows: usize, weights: &WeightRows<'_>, stage: usize) -> bool {
        rows <= SLAB_ROWS && !weights.in_stripes() && stage >= GROUP * SLAB
    }

    #[inline(always)]
    pub fn run<S: Dot, U: TileUnit>(mut self, s: S, unit: U, panels: Range<usize>, sink: Sink<'_>) {
        let rows = self.x.rows();
        let (width, quads) = (slab_strip(rows).min(self.stage.len() / SLAB / GROUP * GROUP), panel_vectors(self.weights.k));
        for first in panels.clone().step_by(width) {
            let panels = first..panels.end.min(first + width);
            for from in (0..quads).step_by(SLAB) {
                let slab = from..quads.min(from + SLAB);
                self.pack(s, &panels, slab.clone());
                // SAFETY: they are dropped before the sink is called, and what is called before knows no unit.
                let mut tiles = unsafe { unit.tiles() };
                for group in groups(&panels) {
                    self.all_rows(&mut tiles, first, &group, &slab);
                }
            }
            for group in groups(&panels) {
                let sums = &self.sums[(group.start - first) * rows..][..group.len() * rows];
                sink(Finished { rows: 0..rows, sums, pitch: group.len(), panels: group });
            }
        }
    }

    /// Packs a slab of some panels.
    #[inline(always)]
    fn pack<S: Dot>(&mut self, s: S, panels: &Range<usize>, slab: Range<usize>) {
        s.apart(
            #[inline(always)]
            move || {
                for from in slab.clone().step_by(QUADS) {
                    let mut left = panels.clone();
                    while !left.is_empty() {
                        let to = &mut self.stage[(left.start - panels.start) * SLAB + from - slab.start..];
                        let (packed, _) = self.weights.pack(s, None, &left, from..from + QUADS, (to, SLAB), true);
                        left.start = packed.end;
                    }
                }
            },
        )
    }

    /// All rows over a slab of a group of panels, pair by pair; blocks that are not whole meet two pairs in a turn.
    #[inline(always)]
    fn all_rows<U: Tiles>(&mut self, tiles: &mut U, first: usize, group: &Range<usize>, slab: &Range<usize>) {
        let rows = self.x.rows();
        let width = if rows.is_multiple_of(UNIT_ROWS) { 2 } else { GROUP };
        for start in group.clone().step_by(width) {
            let panels = start..group.end.min(start + width);
            for some in each_block(0..rows, start / width) {
                for pair in widths::<2>(panels.clone()) {
                    match pair.len() {
                        1 => self.multiply::<_, 1>(tiles, first, group, pair.start, slab, some.clone()),
                        _ => self.multiply::<_, 2>(tiles, first, group, pair.start, slab, some.clone()),
                    }
                }
            }
        }
    }

    /// A block of rows over a slab of NV panels of a group.
    #[inline(always)]
    fn multiply<U: Tiles, const NV: usize>(
        &mut self,
        tiles: &mut U,
        first: usize,
        group: &Range<usize>,
        panel: usize,
        slab: &Range<usize>,
        some: Range<usize>,
    ) {
        let at = (group.start - first) * self.x.rows() + some.start * group.len() + panel - group.start;
        let mut w: [&[_]; NV] = [&[]; NV];
        for v in 0..NV {
            w[v] = &self.stage[(panel + v - first) * SLAB..][..slab.len()];
        }
        let all = self.x.block(some);
        // A quad is half a word.
        let block = TileBlock { x: &all.x[slab.start / 2..], steps: slab.len() / 16, adds: slab.start > 0, ..all };
        tiles.multiply(block, w, Ahead::NEAR, &mut self.sums[at..], group.len());
    }
}
