//! What tokens add to a vector for products of int8: a dot instruction, and where there is one a unit that multiplies whole tiles.

use super::{Ahead, Simd};

/// The 4-wide int8 dot product into `i32`: exact over the full range, -128 * -128 included.
///
/// A token's own unit may want the activations in another form (offset into unsigned, or widened to 16 bits), so they are packed
/// once per block of rows ([`Dot::pack_quad`]) and read in that form by the tiles. Weights stay `i8` in the one packed format.
pub trait Dot: Simd {
    /// Four activations, prepared, in every 32-bit lane.
    type X: Copy;
    /// 16 columns of four weights, prepared.
    type W: Copy;
    /// Four activations as [`Dot::splat_quad`] reads them.
    type Quad: bytemuck::Pod;
    /// 16 columns of four weights as [`Dot::load_weights`] reads them.
    type Weights: Copy;
    /// Whether registers are left beside the accumulators of a tile: loops write out a few steps then, else one, or the compiler
    /// mixes them.
    const MANY_REGISTERS: bool = true;
    /// Whether the processors with this token have a first cache of less than 48 KiB, so that requests for weights go to the second;
    /// `None` where some have: the processor is asked then. `Some(false)` too where there are no such requests.
    const SMALL_FIRST_CACHE: Option<bool> = Some(false);
    /// Whether [`Dot::dot`] adds something of its own for each weight, which [`Dot::start`] takes back.
    const OFFSET: bool = false;
    /// Whether [`Dot::weave_four`] takes a few operations, and 16 vectors of weights stay in registers beside the products of a
    /// row.
    const WEAVES: bool = false;
    /// What [`Dot::tile_unit`] gives.
    type Unit: TileUnit;

    /// Four activations in the form that this token reads.
    fn pack_quad(self, x: [i8; 4]) -> Self::Quad;
    /// The quad in every lane.
    fn splat_quad(self, x: &Self::Quad) -> Self::X;
    /// Panels in the form that [`Dot::load_weights`] reads: as they lie, or made in `words`, 16 for each vector. For weights that
    /// are read many times.
    fn stage<'a, const NV: usize>(self, w: [&'a [[i8; 64]]; NV], words: &'a mut [u64]) -> [&'a [Self::Weights]; NV];
    /// Reads `[16][4]` weights of one quad of k, staged.
    fn load_weights(self, w: &Self::Weights) -> Self::W;
    /// Reads `[16][4]` weights of one quad of k as they lie in a panel.
    fn weights(self, w: &[i8; 64]) -> Self::W;
    /// What an accumulator starts from, given the column sums of the weights: without an [`Dot::OFFSET`] zero, whatever they are.
    #[inline(always)]
    fn start(self, _column_sums: Self::I32) -> Self::I32 {
        self.splat_i32(0)
    }
    /// `acc[n] += sum over i of x[i] * w[n][i]`
    fn dot(self, acc: Self::I32, x: Self::X, w: Self::W) -> Self::I32;
    /// `acc[m][v]` plus the dot product of `x[m]` and `w[v]`, for all. A token whose quads take two instructions each does the first of
    /// all before the second: it needs one register for an activation then, and one for a vector of weights.
    #[inline(always)]
    fn dots<const MR: usize, const NV: usize>(self, x: [&Self::Quad; MR], w: [Self::W; NV], acc: &mut [[Self::I32; NV]; MR]) {
        for m in 0..MR {
            let x = self.splat_quad(x[m]);
            for v in 0..NV {
                acc[m][v] = self.dot(acc[m][v], x, w[v]);
            }
        }
    }
    /// Four rows of 32 columns as two vectors of weights, whose columns may lie in an order of the token's own.
    #[inline(always)]
    fn weave(self, rows: &[[i8; 32]; 4], to: [&mut [i8; 64]; 2]) {
        for (part, to) in to.into_iter().enumerate() {
            for i in 0..64 {
                to[i] = rows[i % 4][16 * part + i / 4];
            }
        }
    }
    /// Numbers of columns that lie as [`Dot::weave`] lays them, in their order.
    #[inline(always)]
    fn in_order(self, columns: [Self::I32; 2]) -> [Self::I32; 2] {
        columns
    }
    /// Four rows of 64 columns, in halves, as four vectors of weights, whose columns may lie in an order of the token's own.
    #[inline(always)]
    fn weave_four(self, rows: [[&[i8; 32]; 2]; 4]) -> [Self::W; 4] {
        let mut packed = [[0; 64]; 4];
        self.interleave(rows, packed.each_mut());
        [self.weights(&packed[0]), self.weights(&packed[1]), self.weights(&packed[2]), self.weights(&packed[3])]
    }
    /// Numbers of columns that lie as [`Dot::weave_four`] lays them, in their order.
    #[inline(always)]
    fn in_order_four(self, columns: [Self::I32; 4]) -> [Self::I32; 4] {
        columns
    }
    /// The unit that multiplies blocks of rows by panels, where there is one; its activations are bytes as they are.
    #[inline(always)]
    fn tile_unit(self) -> Option<Self::Unit> {
        None
    }
}

/// Rows of packed activations for a [`TileUnit`].
#[derive(Clone, Copy, Debug)]
pub struct TileBlock<'a> {
    /// From the first row on.
    pub x: &'a [u64],
    /// Words from row to row.
    pub pitch: usize,
    /// At most 32.
    pub rows: usize,
    /// 64 elements of K each.
    pub steps: usize,
    /// Whether products are added to what the sums hold.
    pub adds: bool,
}

/// A unit that multiplies whole tiles: up to 32 rows by two panels at once.
pub trait TileUnit: Copy {
    /// The unit in use, given back when dropped.
    type Tiles: Tiles;

    /// Takes the unit.
    ///
    /// # Safety
    ///
    /// While the tiles live, nothing else on this thread takes the unit.
    unsafe fn tiles(self) -> Self::Tiles;
}

/// The tiles of a [`TileUnit`].
pub trait Tiles {
    /// `to[row * pitch + v] = sum over k of x[row][k] * w[v][k]`, for one or two panels, or added to it. What is `ahead` is asked for on
    /// the way.
    fn multiply<const NV: usize>(
        &mut self,
        block: TileBlock<'_>,
        w: [&[[i8; 64]]; NV],
        ahead: Ahead<'_>,
        to: &mut [[i32; 16]],
        pitch: usize,
    );
}

/// No unit.
impl TileUnit for core::convert::Infallible {
    type Tiles = Self;
    unsafe fn tiles(self) -> Self {
        match self {}
    }
}

impl Tiles for core::convert::Infallible {
    fn multiply<const NV: usize>(
        &mut self,
        _block: TileBlock<'_>,
        _w: [&[[i8; 64]]; NV],
        _ahead: Ahead<'_>,
        _to: &mut [[i32; 16]],
        _pitch: usize,
    ) {
        match *self {}
    }
}

/// [`Dot::pack_quad`] of a token whose products are of 16 bits: those of even number, then those of odd.
#[inline(always)]
pub(super) fn even_odd(x: [i8; 4]) -> [i16; 4] {
    [x[0].into(), x[2].into(), x[1].into(), x[3].into()]
}

/// [`Dot::stage`] of a token that reads weights of 16 bits.
#[inline(always)]
pub(super) fn widen<'a, const NV: usize>(
    w: [&[[i8; 64]]; NV],
    words: &'a mut [u64],
    one: impl Fn(&[i8; 64], &mut [i16; 64]),
) -> [&'a [[i16; 64]]; NV] {
    let length = w[0].len();
    let all = bytemuck::cast_slice_mut::<u64, i16>(words).as_chunks_mut::<64>().0;
    for v in 0..NV {
        for (w, to) in w[v].iter().zip(&mut all[v * length..]) {
            one(w, to);
        }
    }
    let mut panels: [&[[i16; 64]]; NV] = [&[]; NV];
    for v in 0..NV {
        panels[v] = &all[v * length..][..length];
    }
    panels
}
