//! Packing of panels from weights that lie row by row, of eight bits and of four, which are widened first.

use super::weight_rows::{SLICE, WeightRows, pitch};
use crate::dispatch::{Kernel, compiled_here};
use crate::pack::{ones, panel_vectors};
use crate::simd::{Dot, Simd};
use core::ops::Range;

/// Packs some quads of `panels`, of which the first is even, `at` vectors behind where each begins in `to`, and adds them to the sums.
#[inline(always)]
pub(super) fn pack_quads<S: Dot>(
    s: S,
    weights: &WeightRows<'_>,
    (panels, quads): (Range<usize>, Range<usize>),
    (to, vectors, at): (&mut [[i8; 64]], usize, usize),
    sums: &mut [[i8; 64]],
) {
    let mut left = panels.clone();
    while !left.is_empty() {
        let done = left.start - panels.start;
        let to = (&mut to[done * vectors..], vectors, at);
        left.start += pack_next(s, weights, (&left, quads.clone()), to, &mut sums[done..]);
    }
}

/// The same of the next of the panels of `left`. Returns how many. What packs is apart: one function for all who do.
#[inline(always)]
fn pack_next<S: Dot>(
    s: S,
    weights: &WeightRows<'_>,
    (left, quads): (&Range<usize>, Range<usize>),
    (to, vectors, at): (&mut [[i8; 64]], usize, usize),
    sums: &mut [[i8; 64]],
) -> usize {
    let (packed, parts) = match left.len() {
        4.. => s.apart(
            #[inline(always)]
            move || weights.pack(s, Some(ones(s)), left, quads, (&mut to[at..], vectors), true),
        ),
        _ => pack_few(s, weights, (left, quads), (to, vectors, at)),
    };
    for (sums, part) in sums[..packed.len()].iter_mut().zip(parts.into_iter().flatten()) {
        let mut all = bytemuck::cast(*sums);
        s.store_i32(s.add_i32(s.load_i32(&all), part), &mut all);
        *sums = bytemuck::cast(all);
    }
    packed.len()
}

/// Packs some quads of fewer than four panels, beside which there is no room for others. Apart: so its memory is not that of all who pack.
#[inline(always)]
fn pack_few<S: Dot>(
    s: S,
    weights: &WeightRows<'_>,
    (left, quads): (&Range<usize>, Range<usize>),
    (to, vectors, at): (&mut [[i8; 64]], usize, usize),
) -> (Range<usize>, [[S::I32; 4]; 2]) {
    const PITCH: usize = pitch(SLICE / 4);
    s.apart(
        #[inline(always)]
        move || {
            let mut slice = [[0; 64]; 3 * PITCH + SLICE / 4];
            let packed = weights.pack(s, Some(ones(s)), left, quads.clone(), (&mut slice, PITCH), false);
            for (panel, slice) in to.chunks_exact_mut(vectors).zip(slice.chunks(PITCH)) {
                panel[at..][..quads.len()].copy_from_slice(&slice[..quads.len()]);
            }
            packed
        },
    )
}

/// Packs some panels.
pub struct PackStrip<'a> {
    /// The weights.
    pub weights: WeightRows<'a>,
    /// The first of the panels, an even number.
    pub first: usize,
    /// [`panel_vectors`]`(k)` for each 16 columns.
    pub panels: &'a mut [[i8; 64]],
    /// One for each 16 columns.
    pub sums: &'a mut [[i8; 64]],
}

impl Kernel for PackStrip<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let PackStrip { weights, first, panels, sums } = self;
        let (vectors, all) = (panel_vectors(weights.k), first..first + sums.len());
        sums.fill([0; 64]);
        for from in (0..vectors).step_by(SLICE / 4) {
            let quads = from..vectors.min(from + SLICE / 4);
            pack_quads(s, &weights, (all.clone(), quads), (panels, vectors, from), sums);
        }
    }
}

/// A weight of four bits that lies row by row, two columns to a byte, the low half for the even one: whole rows, or stripes of 64 columns
/// one after the other.
#[derive(Clone, Copy, Debug)]
pub struct NibbleRows<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Bytes from row to row.
    pub pitch: usize,
    /// Bytes from 64 columns to the next 64 of the same row.
    pub stripe: usize,
    /// Rows.
    pub k: usize,
    /// Columns, an even number.
    pub n: usize,
}

/// Rows of 64 columns in a byte each, and some more, so that the last are read like the others.
type Wide = [[i8; COLUMNS]; SLICE + 4];
const COLUMNS: usize = 64;

impl NibbleRows<'_> {
    /// 64 columns of [`SLICE`] rows from row `from` on, or what there is of them, in a byte each.
    #[inline(always)]
    fn widen<'w, S: Simd>(&self, s: S, strip: usize, from: usize, wide: &'w mut Wide) -> WeightRows<'w> {
        let (rows, columns) = ((self.k - from).min(SLICE), (self.n - COLUMNS * strip).min(COLUMNS));
        for (row, to) in (from..).zip(&mut wide[..rows]) {
            let bytes = &self.data[strip * self.stripe + row * self.pitch..][..columns / 2];
            *to = match bytes.first_chunk() {
                Some(whole) => widened(s, whole),
                None => {
                    let mut whole = [0; COLUMNS / 2];
                    whole[..bytes.len()].copy_from_slice(bytes);
                    widened(s, &whole)
                }
            };
        }
        WeightRows { data: wide.as_flattened(), pitch: COLUMNS, stripe: 32, k: rows, n: columns, among: 0 }
    }
}

/// The halves of each byte, the low one first, as signed numbers of a byte each.
#[inline(always)]
fn widened<S: Simd>(s: S, bytes: &[u8; COLUMNS / 2]) -> [i8; COLUMNS] {
    // Two bytes to a lane, which has room for their four halves.
    let pairs = s.load_u16(&bytemuck::cast(*bytes));
    let apart = s.and(s.or(pairs, s.shl(pairs, 8)), s.splat_i32(0x00FF_00FF));
    let halves = s.and(s.or(apart, s.shl(apart, 4)), every(s, 0x0F));
    // 8 is added and taken away again, from bytes that are large enough for no one to borrow of the next.
    let large = s.or(s.xor(halves, every(s, 0x08)), every(s, 0x80));
    let mut signed = [0; 16];
    s.store_i32(s.xor(s.sub_i32(large, every(s, 0x08)), every(s, 0x80)), &mut signed);
    bytemuck::cast(signed)
}

/// A byte in every byte.
#[inline(always)]
fn every<S: Simd>(s: S, byte: u8) -> S::I32 {
    s.splat_i32(i32::from_le_bytes([byte; 4]))
}

/// Packs some panels of a weight of four bits.
pub struct PackNibbles<'a> {
    /// The weights.
    pub weights: NibbleRows<'a>,
    /// The first of the panels, a multiple of four.
    pub first: usize,
    /// [`panel_vectors`]`(k)` for each 16 columns.
    pub panels: &'a mut [[i8; 64]],
    /// One for each 16 columns.
    pub sums: &'a mut [[i8; 64]],
}

impl Kernel for PackNibbles<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let PackNibbles { weights, first, panels, sums } = self;
        assert!(first % 4 == 0, "the first of four panels");
        let vectors = panel_vectors(weights.k);
        // On its own: out of a tuple it would be copied, and take its memory twice.
        let mut wide = [[0; COLUMNS]; _];
        sums.fill([0; 64]);
        for ((strip, panels), sums) in (first / 4..).zip(panels.chunks_mut(4 * vectors)).zip(sums.chunks_mut(4)) {
            for from in (0..vectors).step_by(SLICE / 4) {
                let rows = weights.widen(s, strip, 4 * from, &mut wide);
                let part = (0..sums.len(), 0..(vectors - from).min(SLICE / 4));
                pack_quads(s, &rows, part, (panels, vectors, from), sums);
            }
        }
    }
}
