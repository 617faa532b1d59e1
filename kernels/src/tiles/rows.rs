//! Rows of int8 activations in the form that a token's dot instruction reads.
//!
//! A tile reads every row once for each NV panels, so the form is made once, for all panels. Row by row it is a vector loop.

use crate::dispatch::{Kernel, compiled_here};
use crate::simd::{Dot, TileBlock};

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

/// What [`PackRows`] made, on the same instruction set.
#[derive(Clone, Copy, Debug)]
pub struct PackedRows<'a> {
    words: &'a [u64],
    quads: usize,
    /// Words from row to row.
    pitch: usize,
    rows: usize,
}

impl<'a> PackedRows<'a> {
    /// The first `rows` rows of length `k` in `words`.
    pub fn new(words: &'a [u64], k: usize, rows: usize) -> PackedRows<'a> {
        PackedRows::strided(words, k, rows, k.next_multiple_of(64) / 4 + 8)
    }

    /// The same, `pitch` words from row to row.
    pub fn strided(words: &'a [u64], k: usize, rows: usize, pitch: usize) -> PackedRows<'a> {
        PackedRows { words, quads: k.next_multiple_of(64) / 4, pitch, rows }
    }

    /// Some of the rows.
    pub fn range(self, rows: core::ops::Range<usize>) -> PackedRows<'a> {
        debug_assert!(rows.end <= self.rows);
        PackedRows { words: &self.words[rows.start * self.pitch..], rows: rows.len(), ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Some of the rows, for a unit that multiplies tiles.
    #[inline(always)]
    pub(super) fn block(&self, rows: core::ops::Range<usize>) -> TileBlock<'a> {
        let x = &self.words[rows.start * self.pitch..];
        TileBlock { x, pitch: self.pitch, rows: rows.len(), steps: self.quads / 16 }
    }

    /// The quads of a row.
    #[inline(always)]
    pub(super) fn row<Q: bytemuck::Pod>(&self, row: usize) -> &'a [Q] {
        &bytemuck::cast_slice(&self.words[row * self.pitch..][..self.quads])[..self.quads]
    }
}
