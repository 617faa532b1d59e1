//! Rows of int8 activations in the form that a token's dot instruction reads.
//!
//! A tile reads every row once for each NV panels, so the form is made once, for all panels. Row by row it is a vector loop.

use super::side_by_side::{at, chunks};
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::{Dot, TileBlock};
use core::ops::Range;

/// Rows of int8 activations, each contiguous, `stride` apart.
#[derive(Clone, Copy, Debug)]
pub struct Activations<'a> {
    /// From the first element of the first row.
    pub data: &'a [i8],
    /// Elements from row to row.
    pub stride: usize,
    /// Number of rows.
    pub rows: usize,
}

/// 64-bit words of a packed row of length `k`, on any instruction set: K rounded up to 64, and a cache line, so that rows of a
/// power of two do not share the sets of a cache.
///
/// ```
/// assert_eq!(tilekern_kernels::tiles::row_words(65), Some(128 / 4 + 8));
/// ```
pub const fn row_words(k: usize) -> Option<usize> {
    match k.checked_next_multiple_of(64) {
        Some(k) => Some(k / 4 + 8),
        None => None,
    }
}

/// Packs rows of length `k`.
pub struct PackRows<'a> {
    /// The rows.
    pub x: Activations<'a>,
    /// Elements of a row.
    pub k: usize,
    /// [`row_words`]`(k)` for each row.
    pub words: &'a mut [u64],
}

impl Kernel for PackRows<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let quads = self.k.next_multiple_of(64) / 4;
        let pitch = quads + 8;
        for (row, words) in self.words.chunks_exact_mut(pitch).take(self.x.rows).enumerate() {
            let (full, tail) = self.x.data[row * self.x.stride..][..self.k].as_chunks::<4>();
            let to = &mut bytemuck::cast_slice_mut::<u64, S::Quad>(words)[..quads];
            for (to, quad) in to.iter_mut().zip(full) {
                *to = s.pack_quad(*quad);
            }
            if full.len() < quads {
                let mut last = [0; 4];
                last[..tail.len()].copy_from_slice(tail);
                to[full.len()] = s.pack_quad(last);
                // Beyond K the weights are zeros.
                to[full.len() + 1..].fill(s.pack_quad([0; 4]));
            }
        }
    }
}

/// Rows cut into bands, which differ by one row at most: of 13 rows or more, bands of 5 to 8.
///
/// ```
/// use tilekern_kernels::tiles::Bands;
///
/// let bands = Bands::of(17);
/// assert_eq!(bands.count(), 3);
/// assert_eq!([0, 1, 2].map(|i| bands.rows(i)), [0..5, 5..11, 11..17]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bands {
    rows: usize,
    count: usize,
}

impl Bands {
    /// The most rows of a band.
    pub const MOST: usize = 8;

    /// The fewest rows that are cut: fewer meet each panel once, with all their sums in registers.
    pub const FROM: usize = 13;

    /// The bands of so many rows.
    pub const fn of(rows: usize) -> Bands {
        Bands { rows, count: rows.div_ceil(Bands::MOST) }
    }

    /// How many.
    pub const fn count(self) -> usize {
        self.count
    }

    /// The rows of one of them.
    #[inline(always)]
    pub const fn rows(self, band: usize) -> Range<usize> {
        self.range(band..band + 1)
    }

    /// The rows of some of them.
    #[inline(always)]
    pub(super) const fn range(self, some: Range<usize>) -> Range<usize> {
        self.rows * some.start / self.count..self.rows * some.end / self.count
    }
}

/// Packs a band, 5 to 8 rows, of which the quads come to lie side by side.
pub struct PackBand<'a> {
    /// The rows.
    pub rows: &'a [&'a [i8]],
    /// [`row_words`]`(k)` for each row.
    pub words: &'a mut [u64],
}

impl Kernel for PackBand<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        match *self.rows {
            [a, b, c, d, e] => pack_band(s, [a, b, c, d, e], self.words),
            [a, b, c, d, e, f] => pack_band(s, [a, b, c, d, e, f], self.words),
            [a, b, c, d, e, f, g] => pack_band(s, [a, b, c, d, e, f, g], self.words),
            [a, b, c, d, e, f, g, h] => pack_band(s, [a, b, c, d, e, f, g, h], self.words),
            _ => unreachable!("a band has 5 to 8 rows"),
        }
    }
}

/// A band of MR rows.
#[inline(always)]
fn pack_band<S: Dot, const MR: usize>(s: S, rows: [&[i8]; MR], words: &mut [u64]) {
    let quads = bytemuck::cast_slice_mut::<u64, S::Quad>(words).as_chunks_mut::<MR>().0;
    let (to, last) = quads.as_chunks_mut().0.split_at_mut(rows[0].len() / 64);
    let (blocks, k) = (to.len(), rows[0].len());
    let whole = chunks::<_, 64, MR>(rows, blocks);
    for i in 0..blocks {
        pack_block(s, at(whole, i), &mut to[i]);
    }
    // Beyond K the weights are zeros.
    if let Some(to) = last.first_mut().filter(|_| k % 64 > 0) {
        let mut ends = [[0; 64]; MR];
        for m in 0..MR {
            ends[m][..k % 64].copy_from_slice(&rows[m][64 * blocks..]);
        }
        pack_block(s, ends.each_ref(), to);
    }
}

/// 64 elements of each row of a band.
#[inline(always)]
fn pack_block<S: Dot, const MR: usize>(s: S, rows: [&[i8; 64]; MR], to: &mut [[S::Quad; MR]; 16]) {
    for i in 0..16 {
        for m in 0..MR {
            to[i][m] = s.pack_quad(rows[m].as_chunks().0[i]);
        }
    }
}

/// What [`PackRows`] made, on the same instruction set.
#[derive(Clone, Copy, Debug)]
pub struct PackedRows<'a> {
    words: &'a [u64],
    quads: usize,
    /// Words from row to row.
    pitch: usize,
    rows: usize,
    /// `None`: one behind the other.
    bands: Option<Bands>,
}

impl<'a> PackedRows<'a> {
    /// The first `rows` rows of length `k` in `words`.
    pub fn new(words: &'a [u64], k: usize, rows: usize) -> PackedRows<'a> {
        let quads = k.next_multiple_of(64) / 4;
        PackedRows { words, quads, pitch: quads + 8, rows, bands: None }
    }

    /// The same, packed in [`Bands`] if it says so: where [`suit_bands`](super::suit_bands) may hold. Products on other instruction sets
    /// panic.
    pub fn in_bands(self, banded: bool) -> PackedRows<'a> {
        debug_assert!(!banded || self.rows >= Bands::FROM);
        PackedRows { bands: banded.then_some(Bands::of(self.rows)), ..self }
    }

    /// The bands that the rows lie in, unless they lie one behind the other.
    #[inline(always)]
    pub(super) fn bands(&self) -> Option<Bands> {
        self.bands
    }

    /// Some of the rows, one behind the other.
    pub fn range(self, rows: Range<usize>) -> PackedRows<'a> {
        debug_assert!(rows.end <= self.rows);
        PackedRows { words: &self.words[rows.start * self.pitch..], rows: rows.len(), bands: None, ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Some of the rows, for a unit that multiplies tiles.
    #[inline(always)]
    pub(super) fn block(&self, rows: Range<usize>) -> TileBlock<'a> {
        assert!(self.bands.is_none(), "rows in bands");
        let x = &self.words[rows.start * self.pitch..];
        TileBlock { x, pitch: self.pitch, rows: rows.len(), steps: self.quads / 16, adds: false }
    }

    /// The quads of a row.
    #[inline(always)]
    pub(super) fn row<Q: bytemuck::Pod>(&self, row: usize) -> &'a [Q] {
        assert!(self.bands.is_none(), "rows in bands");
        &bytemuck::cast_slice(&self.words[row * self.pitch..][..self.quads])[..self.quads]
    }

    /// Some quads of each of MR rows from `first` on. Behind the last row it is repeated.
    #[inline(always)]
    pub(super) fn group<Q: bytemuck::Pod, const MR: usize>(&self, first: usize, steps: Range<usize>) -> [&'a [Q]; MR] {
        assert!(self.bands.is_none(), "rows in bands");
        let mut words = &self.words[first * self.pitch..];
        let mut group: [&[Q]; MR] = [&[]; MR];
        for m in 0..MR {
            group[m] = &bytemuck::cast_slice(&words[..self.quads])[..self.quads][steps.clone()];
            if first + m + 1 < self.rows {
                words = &words[self.pitch..];
            }
        }
        group
    }

    /// The quads of a band of MR rows, which begins with row `first`.
    #[inline(always)]
    pub(super) fn band<Q: bytemuck::Pod, const MR: usize>(&self, first: usize) -> &'a [[Q; MR]] {
        assert!(self.bands.is_some(), "rows one behind the other");
        let words = &self.words[first * self.pitch..][..MR * self.quads];
        &bytemuck::cast_slice::<_, Q>(words).as_chunks().0[..self.quads]
    }
}
