//! Packing of panels from weights that lie column by column: four neighbours are a quad.

use crate::dispatch::{Kernel, compiled_here};
use crate::pack::{column_sums, ones, panel_vectors};
use crate::simd::{Dot, Simd};
use core::ops::Range;

/// The most elements of a column that are packed at once: what they are packed into stays in the first cache while all columns pass.
pub(super) const PART: usize = 1024;

/// Columns of bytes, or of what becomes bytes.
pub(super) trait ByteColumns {
    /// Some elements of a column, [`PART`] at most.
    fn part<S: Simd>(&mut self, s: S, column: usize, range: Range<usize>) -> &[i8];
}

/// Packs up to 16 columns of `k` rows.
#[inline(always)]
pub(super) fn pack_panel<S: Dot>(
    s: S,
    source: &mut impl ByteColumns,
    (columns, k): (Range<usize>, usize),
    panel: &mut [[i8; 64]],
    sums: &mut [i8; 64],
) {
    for (part, vectors) in panel.chunks_mut(PART / 4).enumerate() {
        let range = PART * part..k.min(PART * (part + 1));
        for column in 0..16 {
            let bytes = if column < columns.len() { source.part(s, columns.start + column, range.clone()) } else { &[] };
            let (quads, rest) = bytes.as_chunks::<4>();
            let mut to = vectors.iter_mut().map(|vector| &mut vector.as_chunks_mut::<4>().0[column]);
            // In this order none of `to` is lost where the quads end.
            for (quad, to) in quads.iter().zip(to.by_ref()) {
                *to = *quad;
            }
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            for to in to {
                *to = core::mem::take(&mut last);
            }
        }
    }
    *sums = column_sums(s, ones(s), panel);
}

/// A weight that lies column by column.
#[derive(Clone, Copy, Debug)]
pub struct WeightColumns<'a, T = i8> {
    /// The elements.
    pub data: &'a [T],
    /// Elements from column to column.
    pub pitch: usize,
    /// Rows.
    pub k: usize,
    /// Columns.
    pub n: usize,
}

impl<'a, T> WeightColumns<'a, T> {
    /// Some elements of a column.
    #[inline(always)]
    pub(super) fn of(&self, column: usize, range: Range<usize>) -> &'a [T] {
        &self.data[column * self.pitch..][range]
    }
}

impl ByteColumns for WeightColumns<'_> {
    #[inline(always)]
    fn part<S: Simd>(&mut self, _: S, column: usize, range: Range<usize>) -> &[i8] {
        self.of(column, range)
    }
}

/// Packs some panels of a weight of bytes that lies column by column.
pub struct PackColumns<'a> {
    /// The weights.
    pub weights: WeightColumns<'a>,
    /// The first of the panels.
    pub first: usize,
    /// [`panel_vectors`]`(k)` for each 16 columns.
    pub panels: &'a mut [[i8; 64]],
    /// One for each 16 columns.
    pub sums: &'a mut [[i8; 64]],
}

impl Kernel for PackColumns<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let PackColumns { mut weights, first, panels, sums } = self;
        let (k, n) = (weights.k, weights.n);
        for ((number, panel), sums) in (first..).zip(panels.chunks_exact_mut(panel_vectors(k))).zip(sums) {
            pack_panel(s, &mut weights, (16 * number..n.min(16 * (number + 1)), k), panel, sums);
        }
    }
}
