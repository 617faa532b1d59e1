//! Packing of panels from weights of floats, each column quantised as a row is: its largest magnitude first, then its bytes.

use super::pack_columns::{ByteColumns, PART, WeightColumns, pack_panel};
use super::pack_strip::pack_quads;
use super::weight_rows::WeightRows;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::pack::panel_vectors;
use crate::per_element::per_element;
use crate::rows::quantize::{Inverses, round, top, usable};
use crate::rows::vectors;
use crate::simd::{Dot, Simd};
use core::ops::Range;

/// A weight of floats that lies row by row.
#[derive(Clone, Copy, Debug)]
pub struct FloatRows<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Elements from row to row.
    pub pitch: usize,
    /// Rows.
    pub k: usize,
}

/// Columns that are quantised side by side: a row may be a page of its own, which is looked up once for all of them.
const COLUMNS: usize = 256;
/// Rows that are quantised, then packed.
const ROWS: usize = 64;
/// Rows behind the one that is read, of which the columns are asked for.
const AHEAD: usize = 4;

/// The bytes of some rows, and some more rows, so that the last are read like the others.
type Bytes = [[i8; COLUMNS]; ROWS + 4];

impl<'a, T: Element> FloatRows<'a, T> {
    /// Some columns of some rows.
    #[inline(always)]
    fn of(&self, columns: &Range<usize>, rows: Range<usize>) -> impl Iterator<Item = &'a [T]> {
        let (data, pitch, first, count) = (self.data, self.pitch, columns.start, columns.len());
        rows.map(move |row| &data[row * pitch + first..][..count])
    }

    /// Asks for the same columns some rows behind.
    #[inline(always)]
    fn ask_behind<S: Simd>(&self, s: S, columns: &[T]) {
        if let Some(at) = bytemuck::cast_slice(columns).first() {
            s.prefetch_behind(at, AHEAD * self.pitch * size_of::<T>());
        }
    }

    /// Writes the scales of [`COLUMNS`] columns at most.
    #[inline(always)]
    fn scales<S: Simd>(&self, s: S, columns: &Range<usize>, scales: &mut [f32]) {
        let (mut tops, magnitude) = ([[0; 16]; COLUMNS / 16], s.splat_i32(0x7FFF_FFFF));
        for row in self.of(columns, 0..self.k) {
            // The bits of magnitudes order as they do, with a NaN above all.
            vectors(
                row.len(),
                #[inline(always)]
                |span| {
                    self.ask_behind(s, &row[span.at..]);
                    let top = &mut tops[span.at / 16];
                    let value = s.bits(span.load(s, row, T::default()));
                    s.store_i32(s.max_i32(s.load_i32(top), s.and(value, magnitude)), top);
                },
            );
        }
        vectors(
            scales.len(),
            #[inline(always)]
            |span| {
                let top = s.from_bits(s.load_i32(&tops[span.at / 16]));
                span.store(s, s.div(top, s.splat(127.0)), scales);
            },
        );
    }
}

/// Packs some panels of a weight of floats that lies row by row.
pub struct PackFloats<'a, T> {
    /// The weights.
    pub weights: FloatRows<'a, T>,
    /// The first of the panels.
    pub first: usize,
    /// [`panel_vectors`]`(k)` for each 16 columns.
    pub panels: &'a mut [[i8; 64]],
    /// One for each 16 columns.
    pub sums: &'a mut [[i8; 64]],
    /// One for each column.
    pub scales: &'a mut [f32],
}

impl<T: Element> Kernel for PackFloats<'_, T> {
    type Output = ();
    per_element!(run_pack_floats);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let PackFloats { weights, first, panels, sums, scales } = self;
        let depth = panel_vectors(weights.k);
        // On its own: out of a tuple it would be copied, and take its memory twice.
        let mut bytes: Bytes = [[0; COLUMNS]; _];
        sums.fill([0; 64]);
        let groups = panels.chunks_mut(COLUMNS / 16 * depth).zip(sums.chunks_mut(COLUMNS / 16)).zip(scales.chunks_mut(COLUMNS));
        for (first, ((panels, sums), scales)) in (16 * first..).step_by(COLUMNS).zip(groups) {
            let columns = first..first + scales.len();
            weights.scales(s, &columns, scales);
            let mut inverses = [Inverses::of(s, s.splat(0.0)); COLUMNS / 16];
            vectors(
                scales.len(),
                #[inline(always)]
                |span| inverses[span.at / 16] = Inverses::of(s, span.load(s, scales, 0.0)),
            );
            for from in (0..depth).step_by(ROWS / 4) {
                let rows = 4 * from..weights.k.min(4 * from + ROWS);
                for (row, to) in weights.of(&columns, rows.clone()).zip(&mut bytes) {
                    vectors(
                        row.len(),
                        #[inline(always)]
                        |span| {
                            weights.ask_behind(s, &row[span.at..]);
                            let codes = inverses[span.at / 16].quantize(s, span.load(s, row, T::default()));
                            span.store_i8(s, codes, to);
                        },
                    );
                }
                let (k, n) = (rows.len(), columns.len());
                let weights = WeightRows { data: bytes.as_flattened(), pitch: COLUMNS, stripe: 32, k, n, among: 0 };
                pack_quads(s, &weights, (0..sums.len(), 0..ROWS / 4), (panels, depth, from), sums);
            }
        }
    }
}

/// Quantises parts of columns.
struct Quantised<'a, T> {
    weights: WeightColumns<'a, T>,
    /// The first of the columns that have a scale, and the scales of them.
    first: usize,
    scales: [f32; 16],
    part: [i8; PART],
}

impl<T: Element> ByteColumns for Quantised<'_, T> {
    #[inline(always)]
    fn part<S: Simd>(&mut self, s: S, column: usize, range: Range<usize>) -> &[i8] {
        let (values, scale) = (self.weights.of(column, range), self.scales[column - self.first]);
        let inverse = s.splat(1.0 / scale);
        round(
            s,
            usable(scale),
            values.len(),
            #[inline(always)]
            |span| s.mul(span.load(s, values, T::default()), inverse),
            &mut self.part,
        );
        &self.part[..values.len()]
    }
}

/// Packs some panels of a weight of floats that lies column by column.
pub struct PackFloatColumns<'a, T> {
    /// The weights.
    pub weights: WeightColumns<'a, T>,
    /// The first of the panels.
    pub first: usize,
    /// [`panel_vectors`]`(k)` for each 16 columns.
    pub panels: &'a mut [[i8; 64]],
    /// One for each 16 columns.
    pub sums: &'a mut [[i8; 64]],
    /// One for each column.
    pub scales: &'a mut [f32],
}

impl<T: Element> Kernel for PackFloatColumns<'_, T> {
    type Output = ();
    per_element!(run_pack_float_columns);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let PackFloatColumns { weights, first, panels, sums, scales } = self;
        let k = weights.k;
        let mut source = Quantised { weights, first: 0, scales: [0.0; 16], part: [0; PART] };
        let each = panels.chunks_exact_mut(panel_vectors(k)).zip(sums).zip(scales.chunks_mut(16));
        for (first, ((panel, sums), scales)) in (first..).map(|number| 16 * number).zip(each) {
            for (column, scale) in (first..).zip(&mut *scales) {
                let values = weights.of(column, 0..k);
                let largest = top(
                    s,
                    k,
                    #[inline(always)]
                    |span| span.load(s, values, T::default()),
                );
                *scale = largest / 127.0;
            }
            source.first = first;
            source.scales[..scales.len()].copy_from_slice(scales);
            pack_panel(s, &mut source, (first..first + scales.len(), k), panel, sums);
        }
    }
}
