//! Packed rows of int8 activations times packed int8 weights: the loops around the tile.
//!
//! A few rows take each panel as it lies ([one by one](PanelByPanel) if it comes from memory), and [bands](super::bands) pairs of panels
//! for much of K. For other rows, NV panels at a time, at most KC of k at a time, a block of rows passes over KC * 16 NV bytes of weights,
//! which stay in the first cache (widened there once, where the token's dot wants that). Between two steps of KC the accumulators wait in
//! `words`; a product with K <= KC waits once. While a block computes, each of its tiles [asks](Requests) for a share of the weights that
//! come next. A block's finished accumulators go from `words` to the [`Sink`]: so the product is compiled once, whatever is done with its
//! sums.
//!
//! All sums are exact integers, so neither MR, NR, KC nor the order moves a bit.

use super::bands::BANDED;
use super::int8::steps_between_requests;
use super::panel_by_panel::PanelByPanel;
use super::requests::Requests;
use super::rows::PackedRows;
use super::waiting::{Pass, Waiting, widths};
use super::ways::reads_best_in_one_stream;
use super::{few::most_rows, unit::suits_unit};
use crate::dispatch::{Isa, Kernel, compiled_here, has_small_first_cache};
use crate::pack::Panels;
use crate::simd::Dot;
use core::ops::Range;

/// Finished accumulators of some rows and panels.
#[derive(Clone)]
pub struct Finished<'a> {
    /// The rows.
    pub rows: Range<usize>,
    /// The panels.
    pub panels: Range<usize>,
    /// `[row][pitch][16]`, of which the panels are the first; columns beyond the last are meaningless.
    pub sums: &'a [[i32; 16]],
    /// Panels from row to row.
    pub pitch: usize,
}

impl Finished<'_> {
    /// Calls `put(row, sums)` for each row, with the sums of all panels.
    #[inline(always)]
    pub fn each_row(&self, mut put: impl FnMut(usize, &[[i32; 16]])) {
        for (row, sums) in self.rows.clone().zip(self.sums.chunks_exact(self.pitch)) {
            put(row, &sums[..self.panels.len()]);
        }
    }

    /// Calls `put(row, panel, sums)` for each row and panel.
    #[inline(always)]
    pub fn each(&self, mut put: impl FnMut(usize, usize, &[i32; 16])) {
        self.each_row(
            #[inline(always)]
            |row, sums| {
                for (panel, sums) in self.panels.clone().zip(sums) {
                    put(row, panel, sums);
                }
            },
        );
    }
}

/// Where finished accumulators go: each row and panel once, a block of them at a time.
pub type Sink<'a> = &'a mut dyn FnMut(Finished<'_>);

/// Accumulators of 16 lanes that wait between two steps of KC: a block of rows holds as many tiles as fit.
pub(super) const PARKED: usize = 512;

/// Panels whose sums go out together, of many rows: the longer the runs in which they are written, the fewer pages are looked up.
pub(super) const GROUP: usize = 4;

/// Vectors of weights that are widened at once, 128 bytes each: a slice of all panels of a tile.
const STAGED: usize = 512;

/// 64-bit words of workspace of a [`Matmul`].
pub const MATMUL_WORDS: usize = PARKED * 8 + STAGED * 16;

/// `sink[row][n] = sum over k of x[row][k] * weights[k][n]` for the columns of a range of panels.
///
/// ```
/// use tilekern_kernels::dispatch::Level;
/// use tilekern_kernels::pack::{Packed, pack_i8, packed_bytes};
/// use tilekern_kernels::tiles::{Activations, MATMUL_WORDS, Matmul, PackRows, PackedRows, row_words};
///
/// let (k, n, level) = (2, 3, Level::detect());
/// let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
/// pack_i8(&mut packed, k, n, |i, j| (10 * i + j) as i8);
/// let mut row = vec![0; row_words(k).unwrap()];
/// level.run(PackRows { x: Activations { data: &[1, -1], stride: k, rows: 1 }, k, words: &mut row });
///
/// let mut out = [0; 3];
/// level.run(Matmul {
///     x: PackedRows::new(&row, k, 1),
///     weights: Packed::new(&packed).unwrap().expert(0),
///     panels: 0..1,
///     words: &mut vec![0; MATMUL_WORDS],
///     sink: &mut |finished| finished.each_row(|_, sums| out.copy_from_slice(&sums[0][..3])),
/// });
/// assert_eq!(out, [-10; 3]);
/// ```
pub struct Matmul<'a> {
    /// The rows, as [`PackRows`](super::PackRows) made them on this instruction set for `weights.k()`.
    pub x: PackedRows<'a>,
    /// The weights of one expert; with up to 65 536 rows sums are exact.
    pub weights: Panels<'a>,
    /// Which panels.
    pub panels: Range<usize>,
    /// [`MATMUL_WORDS`]; contents irrelevant.
    pub words: &'a mut [u64],
    /// Takes the sums.
    pub sink: Sink<'a>,
}

impl Kernel for Matmul<'_> {
    type Output = ();
    compiled_here!();

    /// With the tile that the benches found best for the instruction set; no other is compiled for it.
    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let rows = self.x.rows();
        if const { matches!(S::ISA, BANDED) }
            && let Some(bands) = self.x.bands()
        {
            return self.in_bands(s, bands);
        }
        match s.tile_unit() {
            Some(unit) if suits_unit(rows, self.weights.k()) => return self.on_unit(unit),
            _ => {}
        }
        if const { matches!(S::ISA, Isa::Avx512Vnni) } {
            // Few rows: reading counts, and the tile that leaves fewer of them idle.
            match rows {
                ..=PanelByPanel::MOST if reads_best_in_one_stream() && self.weights.come_from_memory() => {
                    PanelByPanel(self).run(s)
                }
                33.. if has_small_first_cache() => Tiled::<4, 4, 384>(self).run(s),
                33.. => Tiled::<4, 4, 512>(self).run(s),
                _ if rows.next_multiple_of(6) < rows.next_multiple_of(4) => Tiled::<6, 4, 256>(self).run(s),
                _ => Tiled::<4, 4, 256>(self).run(s),
            }
        } else if const { matches!(S::ISA, Isa::Avx512 | Isa::Avx512Amx) } {
            // Beside a unit for tiles: what does not suit it, a few rows or a product of one slice.
            Tiled::<4, 4, 256>(self).run(s)
        } else if const { matches!(S::ISA, Isa::Neon | Isa::NeonDot) } {
            Tiled::<4, 1, 1024>(self).run(s)
        } else {
            Tiled::<4, 1, 512>(self).run(s)
        }
    }
}

/// [`Matmul`] with a tile of MR rows by 16 NV columns, at most KC of k at a time: a multiple of 64, and NV * KC at most 2048, which is as
/// much as is widened at once.
pub struct Tiled<'a, const MR: usize, const NV: usize, const KC: usize>(pub Matmul<'a>);

impl<const MR: usize, const NV: usize, const KC: usize> Kernel for Tiled<'_, MR, NV, KC> {
    type Output = ();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        const { assert!(MR >= 1 && MR <= 8 && NV >= 1 && KC >= 64 && KC % 64 == 0 && NV * (KC / 4) <= STAGED) };
        let Matmul { x, weights, panels, words, sink } = self.0;
        let mut sweep = Sweep::new(x, weights, words);
        if (1..=most_rows::<S>(NV, weights.k())).contains(&x.rows()) {
            // As many panels at once as there is room for the sums of, if they are more a multiple of all widths.
            let room = PARKED / x.rows().max(6);
            let most = if room < 12 { room } else { room / 12 * 12 };
            for first in panels.clone().step_by(most) {
                sweep.few::<S, NV>(s, first..panels.end.min(first + most), sink);
            }
            return;
        }
        for first in panels.clone().step_by(GROUP) {
            sweep.group::<S, MR, NV, KC>(s, first..panels.end.min(first + GROUP), sink);
        }
    }
}

/// All rows, over panels.
pub(super) struct Sweep<'a> {
    pub x: PackedRows<'a>,
    pub weights: Panels<'a>,
    pub parked: &'a mut [[i32; 16]],
    staged: &'a mut [u64],
}

impl<'a> Sweep<'a> {
    /// In `words`, [`MATMUL_WORDS`] of them.
    pub fn new(x: PackedRows<'a>, weights: Panels<'a>, words: &'a mut [u64]) -> Sweep<'a> {
        let (parked, staged) = words[..MATMUL_WORDS].split_at_mut(PARKED * 8);
        Sweep { x, weights, parked: bytemuck::cast_slice_mut(parked), staged }
    }
}

impl Sweep<'_> {
    /// All rows, in equal blocks, over some panels, NV at a time.
    #[inline(always)]
    fn group<S: Dot, const MR: usize, const NV: usize, const KC: usize>(&mut self, s: S, group: Range<usize>, sink: Sink<'_>) {
        let rows = self.x.rows();
        let tiles = rows.div_ceil(MR);
        let blocks = tiles.div_ceil(PARKED / (MR * GROUP));
        for block in 0..blocks {
            let range = tiles * block / blocks..tiles * (block + 1) / blocks;
            // The weights behind the group are asked for by the last block, also behind the range: they are what is taken next, here or
            // by the next task. The other blocks come back to the first.
            let back = if block + 1 == blocks { group.end } else { group.start };
            for panels in widths::<NV>(group.clone()) {
                let after = if panels.end < group.end { panels.end } else { back };
                match panels.len() {
                    1 if const { NV > 1 } => self.block::<S, MR, 1, KC>(s, panels.start, after, &group, range.clone()),
                    2 if const { NV > 2 } => self.block::<S, MR, 2, KC>(s, panels.start, after, &group, range.clone()),
                    _ => self.block::<S, MR, NV, KC>(s, panels.start, after, &group, range.clone()),
                }
            }
            let (first, end) = (range.start * MR, rows.min(range.end * MR));
            let sums = &self.parked[..(end - first) * GROUP];
            sink(Finished { rows: first..end, panels: group.clone(), sums, pitch: GROUP });
        }
    }

    /// What the accumulators of NV panels start from.
    #[inline(always)]
    pub fn start<S: Dot, const NV: usize>(&self, s: S, panel: usize) -> [S::I32; NV] {
        let mut start = [s.splat_i32(0); NV];
        for v in 0..NV {
            start[v] = s.start(s.load_i32(&self.weights.sums(panel + v)));
        }
        start
    }

    /// Finished products of some rows with NV of some panels, `[row][panel]` into `parked`; behind the last row it was repeated.
    #[inline(always)]
    pub fn finish<S: Dot, const MR: usize, const NV: usize>(
        &mut self,
        s: S,
        acc: [[S::I32; NV]; MR],
        rows: Range<usize>,
        panel: usize,
        panels: &Range<usize>,
    ) {
        let start = self.start::<S, NV>(s, panel);
        for m in 0..MR {
            let row = (rows.start + m).min(rows.end - 1);
            let parked = &mut self.parked[row * panels.len() + panel - panels.start..][..NV];
            for v in 0..NV {
                s.store_i32(s.add_i32(acc[m][v], start[v]), &mut parked[v]);
            }
        }
    }

    /// Some groups of MR rows over NV panels of a group, `[row][panel]` into `parked`; afterwards come the panels from `after` on.
    #[inline(always)]
    fn block<S: Dot, const MR: usize, const NV: usize, const KC: usize>(
        &mut self,
        s: S,
        panel: usize,
        after: usize,
        group: &Range<usize>,
        groups: Range<usize>,
    ) {
        s.apart(
            #[inline(always)]
            move || {
                let zero = [s.splat_i32(0); NV];
                let start = self.start::<S, NV>(s, panel);
                let count = groups.len();
                let mut w: [&[[i8; 64]]; NV] = [&[]; NV];
                let mut next: [&[[i8; 64]]; NV] = [&[]; NV];
                for v in 0..NV {
                    w[v] = self.weights.panel(panel + v);
                    next[v] = self.weights.coming(after + v).unwrap_or(w[v]);
                    if after + v < self.weights.len() {
                        s.prefetch(self.weights.sums_line(after + v));
                    }
                }
                // Slices of one length, or about: a short one would have little time to ask for the long one that follows it.
                let steps = w[0].len();
                let slice = steps.div_ceil(steps.div_ceil(KC / 4)).next_multiple_of(16);
                for from in (0..steps).step_by(slice) {
                    let to = steps.min(from + slice);
                    let mut coming = next;
                    let mut part = w;
                    for v in 0..NV {
                        coming[v] = if to < steps { &w[v][to..steps.min(to + slice)] } else { &next[v][..slice.min(steps)] };
                        part[v] = &w[v][from..to];
                    }
                    let requests = Requests::<NV>::shared::<S>(coming, count, (to - from) / steps_between_requests::<S>());
                    let pass = Pass { x: self.x, groups: groups.clone(), steps: from..to };
                    let weights = s.stage(part, self.staged);
                    let start = if from == 0 { start } else { zero };
                    pass.run::<S, MR, NV>(
                        s,
                        start,
                        Waiting { sums: &mut self.parked[panel - group.start..], pitch: GROUP },
                        #[inline(always)]
                        |i, x, acc| requests.beside::<S, MR, KC>(s, i, x, weights, acc),
                    );
                }
            },
        )
    }
}
