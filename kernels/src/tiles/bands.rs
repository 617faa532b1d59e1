//! Bands of rows times packed int8 weights: a pair of panels stays in the second cache while all bands pass, for as much of K as it has
//! room for.
//!
//! The quads of a band lie side by side, so a tile of up to 8 rows by 2 panels follows three pointers, and the compiler keeps its 16
//! accumulators in registers. Each step loads 2 lines of weights against 16 dots: no more than a second cache delivers meanwhile,
//! so sums wait seldom. Lines of the next pair are asked for all along, one to four every four steps: in bunches they would keep the
//! loads of the tile waiting. They come into the first cache and, when others take their places there, lie in the second: from memory
//! that is faster than to ask for that alone. Processors differ in the order in which memory is read fastest: in that in which lines lie,
//! each asked for once, or, on those with AMX, from two pages at a time.

use super::matmul::{Finished, MATMUL_WORDS, Matmul};
use super::rows::{Bands, PackedRows};
use super::side_by_side::chunks;
use super::unit::each_group;
use super::waiting::{Waiting, widths};
use crate::dispatch::Isa;
use crate::pack::panel_vectors;
use crate::simd::Dot;
use core::ops::Range;

/// Steps between two requests, which a tile writes out.
pub(super) const UNIT: usize = 4;

/// Quads of K whose weights stay in a second cache of 2 MiB, as processors with AMX have, and of 1 MiB, with those that come next.
pub(super) const SLICE: usize = 16384 / 4;
const SHORT_SLICE: usize = 4096 / 4;

/// The instruction set whose products take bands.
pub(super) const BANDED: Isa = Isa::Avx512Vnni;

/// The slices of K that pass one after the other: how many, and where the quads of each begin.
pub(super) fn slices(k: usize) -> (usize, impl Fn(usize) -> usize) {
    let units = panel_vectors(k) / UNIT;
    let count = (units * UNIT).div_ceil(if Isa::Avx512Amx.is_available() { SLICE } else { SHORT_SLICE });
    (count, move |slice| units * slice / count * UNIT)
}

/// Calls a method for the way in which bands ask for lines that come: so many in a unit, of two parts one after the other or abreast.
/// Processors differ in what is fastest, and a tile that chose while running would ask later.
macro_rules! asking {
    ($bands:expr, $this:ident.$method:ident::<$s:ident>($($argument:ident),*)) => {
        match ($crate::dispatch::Isa::Avx512Amx.is_available(), $bands.count()) {
            (false, ..4) => $this.$method::<$s, 4, false>($($argument),*),
            (false, 4..8) => $this.$method::<$s, 2, false>($($argument),*),
            (false, _) => $this.$method::<$s, 1, false>($($argument),*),
            (true, ..4) => $this.$method::<$s, 4, true>($($argument),*),
            (true, _) => $this.$method::<$s, 2, true>($($argument),*),
        }
    };
}
pub(super) use asking;

impl Matmul<'_> {
    /// Rows that lie in bands.
    #[inline(always)]
    pub(super) fn in_bands<S: Dot>(self, s: S, bands: Bands) {
        asking!(bands, self.groups::<S>(s, bands));
    }

    /// Groups of panels, in a group slices of K, and of a slice pairs of panels by all bands.
    #[inline(always)]
    fn groups<S: Dot, const ASK: usize, const ABREAST: bool>(mut self, s: S, bands: Bands) {
        let (count, cut) = slices(self.weights.k());
        for (panels, some) in each_group(self.panels.clone(), bands.count(), Bands::MOST) {
            for slice in 0..count {
                let steps = cut(slice)..cut(slice + 1);
                for pair in widths::<2>(panels.clone()) {
                    // What the bands take next.
                    let coming = match (pair.end < panels.end, slice + 1 < count) {
                        (true, _) => (pair.end, steps.clone()),
                        (_, true) => (panels.start, steps.end..cut(slice + 2)),
                        _ => (panels.end, 0..cut(1)),
                    };
                    let pass = BandPass { x: self.x, bands, some: some.clone(), steps: steps.clone() };
                    match pair.len() {
                        1 => self.band_panels::<S, 1, ASK, ABREAST>(s, pair.start, &panels, pass, coming),
                        _ => self.band_panels::<S, 2, ASK, ABREAST>(s, pair.start, &panels, pass, coming),
                    }
                }
            }
            let rows = bands.range(some);
            let sums = &bytemuck::cast_slice(&self.words[..MATMUL_WORDS])[..rows.len() * panels.len()];
            (self.sink)(Finished { rows, sums, pitch: panels.len(), panels });
        }
    }

    /// Some bands over a slice of NV panels of a group, the slice of the panels behind it asked for by all bands in equal shares.
    #[inline(always)]
    fn band_panels<S: Dot, const NV: usize, const ASK: usize, const ABREAST: bool>(
        &mut self,
        s: S,
        panel: usize,
        group: &Range<usize>,
        pass: BandPass<'_>,
        (after, lines): (usize, Range<usize>),
    ) {
        s.apart(
            #[inline(always)]
            move || {
                let weights = self.weights;
                let sums: &mut [[i32; 16]] = bytemuck::cast_slice_mut(&mut self.words[..MATMUL_WORDS]);
                let (mut w, mut next): ([&[_]; NV], [&[_]; NV]) = ([&[]; NV], [&[]; NV]);
                let mut start = [s.splat_i32(0); NV];
                for v in 0..NV {
                    w[v] = &weights.panel(panel + v)[pass.steps.clone()];
                    // Behind the last panels of all they are asked for again: nothing else is to come.
                    next[v] = &weights.coming(after + v).unwrap_or(weights.panel(panel + v))[lines.clone()];
                    if pass.steps.start == 0 {
                        start[v] = s.start(s.load_i32(&weights.sums(panel + v)));
                    }
                }
                let sums = Waiting { sums: &mut sums[panel - group.start..], pitch: group.len() };
                if const { ASK == 1 } {
                    pass.run(s, w, start, sums, pass.singly(s, next));
                } else {
                    pass.run(s, w, start, sums, pass.even::<S, NV, ASK, ABREAST>(s, next));
                }
            },
        )
    }
}

/// Bands over a slice of the weights of some panels.
pub(super) struct BandPass<'a> {
    pub x: PackedRows<'a>,
    pub bands: Bands,
    /// Which bands.
    pub some: Range<usize>,
    /// Quads of K.
    pub steps: Range<usize>,
}

impl BandPass<'_> {
    /// Adds the slice's products and `start` to the sums of the bands, which count as 0 before the first step. `ask` is called once in
    /// each unit.
    #[inline(always)]
    pub fn run<S: Dot, const NV: usize>(
        &self,
        s: S,
        w: [&[[i8; 64]]; NV],
        start: [S::I32; NV],
        mut sums: Waiting<'_>,
        mut ask: impl FnMut(),
    ) {
        let first = self.bands.rows(self.some.start).start;
        for band in self.some.clone() {
            let rows = self.bands.rows(band);
            let sums = sums.from(rows.start - first);
            match rows.len() {
                5 => self.band::<S, 5, NV>(s, rows.start, w, start, sums, &mut ask),
                6 => self.band::<S, 6, NV>(s, rows.start, w, start, sums, &mut ask),
                7 => self.band::<S, 7, NV>(s, rows.start, w, start, sums, &mut ask),
                _ => self.band::<S, 8, NV>(s, rows.start, w, start, sums, &mut ask),
            }
        }
    }

    /// A band of MR rows.
    #[inline(always)]
    fn band<S: Dot, const MR: usize, const NV: usize>(
        &self,
        s: S,
        row: usize,
        w: [&[[i8; 64]]; NV],
        start: [S::I32; NV],
        mut sums: Waiting<'_>,
        ask: &mut impl FnMut(),
    ) {
        let acc = sums.resume::<S, MR, NV>(s, start, self.steps.start);
        let acc = tile(s, &self.x.band(row)[self.steps.clone()], w, ask, acc);
        sums.park(s, acc);
    }

    /// Asks for ASK lines of `coming` in each unit: for all but the last few at an even pace while all bands pass, one part after the other
    /// or both [abreast](request); for fewer than ASK not at all.
    #[inline(always)]
    pub fn even<S: Dot, const NV: usize, const ASK: usize, const ABREAST: bool>(
        &self,
        s: S,
        coming: [&[[i8; 64]]; NV],
    ) -> impl FnMut() {
        let units = self.steps.len() / UNIT;
        let coming = if coming[0].len() < ASK { [&[[0; 64]; ASK][..]; NV] } else { coming };
        let lines = if ABREAST { coming[0].len() - ASK / NV } else { NV * coming[0].len() - ASK };
        // In 2^-32 of a line.
        let rate = ((lines as u64) << 32) / (self.bands.count() * units) as u64;
        let mut at = rate * (self.some.start * units) as u64;
        #[inline(always)]
        move || {
            request::<S, NV, ASK, ABREAST>(s, coming, (at >> 32) as usize);
            at += rate;
        }
    }

    /// Asks for all lines of `coming` in the same order, one in a unit, where that is enough: each band for its share, in its first units.
    /// At an even pace more bands than eight would ask again for lines that are on their way, which only processors with AMX do not mind.
    #[inline(always)]
    pub fn singly<S: Dot, const NV: usize>(&self, s: S, coming: [&[[i8; 64]]; NV]) -> impl FnMut() {
        let (lines, units) = (NV * coming[0].len(), self.steps.len() / UNIT);
        let share = lines.div_ceil(self.bands.count());
        let (mut unit, mut line) = (0, share * self.some.start);
        #[inline(always)]
        move || {
            if unit < share && line < lines {
                request::<S, NV, 1, false>(s, coming, line);
                line += 1;
            }
            unit = if unit + 1 < units { unit + 1 } else { 0 };
        }
    }
}

/// Asks for ASK lines of one or two parts of equal length from a line on, counted through both, or in each of both if they are ABREAST.
#[inline(always)]
fn request<S: Dot, const NV: usize, const ASK: usize, const ABREAST: bool>(s: S, parts: [&[[i8; 64]]; NV], first: usize) {
    const { assert!(NV <= 2 && (!ABREAST || ASK % NV == 0)) };
    let length = parts[0].len();
    for i in 0..ASK {
        let (part, line) = match first + i {
            _ if ABREAST => (i % NV, first + i / NV),
            line if NV == 1 || line < length => (0, line),
            line => (1, line - length),
        };
        s.prefetch(&parts[part][line]);
    }
}

/// `acc[m][v][n] += sum over k of x[k][m] * w[v][k][n]`, with a request in each unit.
#[inline(always)]
fn tile<S: Dot, const MR: usize, const NV: usize>(
    s: S,
    x: &[[S::Quad; MR]],
    w: [&[[i8; 64]]; NV],
    ask: &mut impl FnMut(),
    mut acc: [[S::I32; NV]; MR],
) -> [[S::I32; NV]; MR] {
    // Equal lengths, so that no index below is checked.
    let units = x.len() / UNIT;
    let (x, w) = (&x.as_chunks::<UNIT>().0[..units], chunks::<_, UNIT, NV>(w, units));
    for u in 0..units {
        ask();
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

#[cfg(test)]
mod tests;
