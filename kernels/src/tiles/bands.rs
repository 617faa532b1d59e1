//! Bands of rows times packed int8 weights: a pair of panels stays in the second cache while all bands pass, for all of K.
//!
//! The quads of a band lie side by side, so a tile of up to 8 rows by 2 panels follows three pointers, and the compiler keeps its 16
//! accumulators in registers. Each step loads 2 lines of weights against 16 dots: no more than a second cache delivers meanwhile,
//! so no sums wait between slices of K. Lines of the next pair are asked for all along, one or two of each panel every four steps: in
//! bunches they would keep the loads of the tile waiting.

use super::matmul::{Finished, MATMUL_WORDS, Matmul};
use super::rows::{Bands, PackedRows};
use super::unit::each_group;
use crate::dispatch::Isa;
use crate::simd::Dot;
use core::ops::Range;

/// Steps between two requests, which a tile writes out.
const UNIT: usize = 4;

/// Quads of K whose weights stay in the second cache, with those that come next.
const SLICE: usize = 16384 / 4;

/// Whether packed rows should lie in bands: where the second cache holds two pairs of panels for any usual K. Measured on processors
/// that have AMX.
pub fn suit_bands(isa: Isa, rows: usize) -> bool {
    isa == Isa::Avx512Vnni && rows >= Bands::FROM && Isa::Avx512Amx.is_available()
}

impl Matmul<'_> {
    /// Rows that lie in bands: groups of panels, in a group pairs of them by all bands.
    #[inline(always)]
    pub(super) fn in_bands<S: Dot>(mut self, s: S, bands: Bands) {
        for (panels, some) in each_group(self.panels.clone(), bands.count(), Bands::MOST) {
            for pair in panels.clone().step_by(2) {
                match panels.end - pair {
                    1 => self.band_panels::<S, 1>(s, pair, &panels, bands, some.clone()),
                    _ => self.band_panels::<S, 2>(s, pair, &panels, bands, some.clone()),
                }
            }
            let rows = bands.rows(some.start).start..bands.rows(some.end - 1).end;
            let sums = &bytemuck::cast_slice(&self.words[..MATMUL_WORDS])[..rows.len() * panels.len()];
            (self.sink)(Finished { rows, panels, sums });
        }
    }

    /// Some bands over NV panels of a group, the weights behind them asked for by all bands in equal shares.
    #[inline(never)]
    fn band_panels<S: Dot, const NV: usize>(
        &mut self,
        s: S,
        panel: usize,
        group: &Range<usize>,
        bands: Bands,
        some: Range<usize>,
    ) {
        s.vectorize(
            #[inline(always)]
            || {
                let (x, weights) = (self.x, self.weights);
                let sums: &mut [[i32; 16]] = bytemuck::cast_slice_mut(&mut self.words[..MATMUL_WORDS]);
                let (mut w, mut next): ([&[_]; NV], [&[_]; NV]) = ([&[]; NV], [&[]; NV]);
                let mut start = [s.splat_i32(0); NV];
                for v in 0..NV {
                    w[v] = weights.panel(panel + v);
                    // Behind the last panels they are asked for again, which costs nothing.
                    next[v] = if panel + 2 * NV <= weights.len() { weights.panel(panel + NV + v) } else { w[v] };
                    start[v] = s.start(s.load_i32(&weights.sums(panel + v)));
                }
                let (units, slices) = (w[0].len() / UNIT, w[0].len().div_ceil(SLICE));
                let cut = |slice: usize| units * slice / slices * UNIT;
                for slice in 0..slices {
                    let steps = cut(slice)..cut(slice + 1);
                    let coming = match slice + 1 < slices {
                        true => w.map(|w| &w[steps.end..cut(slice + 2)]),
                        false => next.map(|w| &w[..cut(1)]),
                    };
                    let part = w.map(|w| &w[steps.clone()]);
                    let pass = Pass { x, bands, w: part, coming, steps, start: (slice == 0).then_some(start) };
                    for band in some.clone() {
                        let row = bands.rows(band).start - bands.rows(some.start).start;
                        let sums = &mut sums[row * group.len() + panel - group.start..];
                        match bands.rows(band).len() {
                            5 => pass.band::<5>(s, band, sums, group.len()),
                            6 => pass.band::<6>(s, band, sums, group.len()),
                            7 => pass.band::<7>(s, band, sums, group.len()),
                            _ => pass.band::<8>(s, band, sums, group.len()),
                        }
                    }
                }
            },
        )
    }
}

/// A slice of NV panels.
struct Pass<'a, S: Dot, const NV: usize> {
    x: PackedRows<'a>,
    bands: Bands,
    w: [&'a [[i8; 64]]; NV],
    /// What is asked for meanwhile.
    coming: [&'a [[i8; 64]]; NV],
    /// Quads of K.
    steps: Range<usize>,
    /// What sums start from, before the first slice.
    start: Option<[S::I32; NV]>,
}

impl<S: Dot, const NV: usize> Pass<'_, S, NV> {
    /// A band of MR rows, whose sums are `pitch` apart.
    #[inline(always)]
    fn band<const MR: usize>(&self, s: S, band: usize, sums: &mut [[i32; 16]], pitch: usize) {
        let mut acc = [self.start.unwrap_or([s.splat_i32(0); NV]); MR];
        if self.start.is_none() {
            for m in 0..MR {
                for v in 0..NV {
                    acc[m][v] = s.load_i32(&sums[m * pitch + v]);
                }
            }
        }
        let x = &self.x.band(self.bands.rows(band).start)[self.steps.clone()];
        let share = (band, self.bands.count());
        let acc = match share.1 {
            ..4 => tile::<S, MR, NV, 2>(s, x, self.w, self.coming, share, acc),
            _ => tile::<S, MR, NV, 1>(s, x, self.w, self.coming, share, acc),
        };
        for m in 0..MR {
            for v in 0..NV {
                s.store_i32(acc[m][v], &mut sums[m * pitch + v]);
            }
        }
    }
}

/// `acc[m][v][n] += sum over k of x[k][m] * w[v][k][n]`. In each unit ASK lines of each panel of `coming` are asked for; `share.0` of
/// `share.1` equal parts begins here.
#[inline(always)]
fn tile<S: Dot, const MR: usize, const NV: usize, const ASK: usize>(
    s: S,
    x: &[[S::Quad; MR]],
    w: [&[[i8; 64]]; NV],
    coming: [&[[i8; 64]]; NV],
    share: (usize, usize),
    mut acc: [[S::I32; NV]; MR],
) -> [[S::I32; NV]; MR] {
    // Equal lengths, so that no index below is checked.
    let units = x.len() / UNIT;
    let (x, w) = (&x.as_chunks::<UNIT>().0[..units], w.map(|w| &w.as_chunks::<UNIT>().0[..units]));
    // In 2^-32 of a line.
    let rate = (((coming[0].len() - ASK) as u64) << 32) / (share.1 * units) as u64;
    let mut at = rate * (share.0 * units) as u64;
    for u in 0..units {
        for v in 0..NV {
            for line in &coming[v][(at >> 32) as usize..][..ASK] {
                s.prefetch_far(line);
            }
        }
        at += rate;
        for i in 0..UNIT {
            let mut weights = [s.weights(&w[0][u][i]); NV];
            for v in 1..NV {
                weights[v] = s.weights(&w[v][u][i]);
            }
            s.dots(x[u][i].each_ref(), weights, &mut acc);
        }
    }
    acc
}
