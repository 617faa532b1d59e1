//! Bands of rows times int8 weights in stripes of 32 columns, whose rows lie one behind the other: pair by pair.
//!
//! The first band packs what it reads. A tile of 8 rows has 16 dots for each quad of a pair of panels; the quad's rows are woven into
//! two vectors of weights beside them, in a few operations more, and the other bands read these. So packing has no loop of its own
//! that waits for its lines, and sums wait only where K is long. The columns of a pair lie as the token weaves them until all
//! sums are there.

use super::bands::{BandPass, SLICE, UNIT, asking, slices};
use super::matmul::{Finished, Sink};
use super::rows::{Bands, PackedRows};
use super::unit::{GROUP_SUMS, each_group};
use super::waiting::Waiting;
use super::weight_rows::WeightRows;
use crate::pack::ones;
use crate::simd::Dot;
use core::ops::Range;

/// 64-bit words of workspace: the panels of a pair do not share the sets of a cache.
pub(super) const STRIPES_WORDS: usize = (GROUP_SUMS + 2 * SLICE + 1) * 8;

/// Rows in bands by stripes.
pub(super) struct Stripes<'a> {
    pub x: PackedRows<'a>,
    pub bands: Bands,
    /// Rows of 32 elements.
    pub weights: WeightRows<'a>,
    /// [`STRIPES_WORDS`]
    pub words: &'a mut [u64],
}

impl Stripes<'_> {
    /// All rows by some panels, of which the first is even.
    #[inline(always)]
    pub fn run<S: Dot>(self, s: S, panels: Range<usize>, sink: Sink<'_>) {
        asking!(self.bands, self.groups::<S>(s, panels, sink));
    }

    /// Groups of panels, and in a group pairs of them by all bands.
    #[inline(always)]
    fn groups<S: Dot, const ASK: usize, const ABREAST: bool>(mut self, s: S, panels: Range<usize>, sink: Sink<'_>) {
        let bands = self.bands;
        for (panels, some) in each_group(panels, bands.count(), Bands::MOST) {
            for panel in panels.clone().step_by(2) {
                self.pair::<S, ASK, ABREAST>(s, panel, &panels, some.clone());
            }
            let (rows, width) = (bands.range(some), panels.len());
            let sums = bytemuck::cast_slice_mut(&mut self.words[..GROUP_SUMS * 8]);
            in_order(s, &mut sums[..rows.len() * waiting(width)], width);
            let sums = &sums[..rows.len() * width];
            sink(Finished { rows, panels, sums, pitch: width });
        }
    }

    /// Some bands over a pair of a group, the stripe behind it asked for by all bands in equal shares.
    #[inline(always)]
    fn pair<S: Dot, const ASK: usize, const ABREAST: bool>(
        &mut self,
        s: S,
        panel: usize,
        group: &Range<usize>,
        some: Range<usize>,
    ) {
        s.apart(
            #[inline(always)]
            move || {
                let Stripes { x, bands, weights, ref mut words } = *self;
                let (sums, packed) = words[..STRIPES_WORDS].split_at_mut(GROUP_SUMS * 8);
                let sums = &mut bytemuck::cast_slice_mut(sums)[panel - group.start..];
                let (a, b) = bytemuck::cast_slice_mut(packed).split_at_mut(SLICE + 1);
                let (slices, cut) = slices(weights.k);
                for slice in 0..slices {
                    let steps = cut(slice)..cut(slice + 1);
                    let coming = match slice + 1 < slices {
                        true => lines(weights, panel, steps.end..cut(slice + 2)),
                        // Behind the last stripe it is asked for again: nothing else is to come.
                        false if 16 * (panel + 2) < weights.n => lines(weights, panel + 2, 0..cut(1)),
                        false => lines(weights, panel, 0..cut(1)),
                    };
                    let stripe = Stripe { weights, panel, packed: [&mut a[..steps.len()], &mut b[..steps.len()]] };
                    let pass = BandPass { x, bands, some: some.clone(), steps };
                    let sums = Waiting { sums: &mut *sums, pitch: waiting(group.len()) };
                    if const { ASK == 1 } {
                        stripe.pass(s, &pass, sums, pass.singly(s, [coming]));
                    } else {
                        let (a, b) = coming.split_at(coming.len() / 2);
                        stripe.pass(s, &pass, sums, pass.even::<S, 2, ASK, ABREAST>(s, [a, &b[..a.len()]]));
                    }
                }
            },
        )
    }
}

/// A stripe, and where some of its quads are packed.
struct Stripe<'a> {
    weights: WeightRows<'a>,
    /// The first of its panels.
    panel: usize,
    packed: [&'a mut [[i8; 64]]; 2],
}

impl Stripe<'_> {
    /// Adds the products of the pass to the sums of its bands, which count as 0 before the first step. `ask` is called in each unit.
    #[inline(always)]
    fn pass<S: Dot>(mut self, s: S, pass: &BandPass<'_>, mut sums: Waiting<'_>, mut ask: impl FnMut()) {
        let first = pass.bands.rows(pass.some.start);
        let start = match first.len() {
            5 => self.first::<S, 5>(s, pass, first.start, &mut sums, &mut ask),
            6 => self.first::<S, 6>(s, pass, first.start, &mut sums, &mut ask),
            7 => self.first::<S, 7>(s, pass, first.start, &mut sums, &mut ask),
            _ => self.first::<S, 8>(s, pass, first.start, &mut sums, &mut ask),
        };
        let others = BandPass { some: pass.some.start + 1..pass.some.end, steps: pass.steps.clone(), ..*pass };
        let [a, b] = self.packed;
        others.run(s, [a, b], start, sums.from(first.len()), ask);
    }

    /// The first band, of MR rows; returns what the sums of the others start from.
    #[inline(always)]
    fn first<S: Dot, const MR: usize>(
        &mut self,
        s: S,
        pass: &BandPass<'_>,
        row: usize,
        sums: &mut Waiting<'_>,
        ask: &mut impl FnMut(),
    ) -> [S::I32; 2] {
        let zero = [s.splat_i32(0); 2];
        let mut tile = Weaving { one: ones(s), acc: sums.resume::<S, MR, 2>(s, zero, pass.steps.start), columns: zero };
        let x = pass.x.band::<S::Quad, MR>(row)[pass.steps.clone()].as_chunks::<UNIT>().0;
        let [a, b] = &mut self.packed;
        let to = a.as_chunks_mut().0.iter_mut().zip(b.as_chunks_mut().0);
        let (from, whole) = (pass.steps.start, self.weights.k / (4 * UNIT));
        let stripe = from_row(self.weights, self.panel, 4 * from);
        let quads = stripe.as_chunks::<32>().0.as_chunks::<4>().0.as_chunks::<UNIT>().0;
        let quads = &quads[..quads.len().min(whole.saturating_sub(from / UNIT))];
        let (mut units, done) = (x.iter().zip(to), quads.len());
        for ((x, to), quads) in units.by_ref().take(done).zip(quads) {
            ask();
            tile.unit(s, x, quads, to);
        }
        for (u, (x, to)) in (from / UNIT + done..).zip(units) {
            ask();
            tile.unit(s, x, &edge(self.weights, self.panel, 4 * UNIT * u), to);
        }
        let start = [s.start(tile.columns[0]), s.start(tile.columns[1])];
        for m in 0..MR {
            for v in 0..2 {
                tile.acc[m][v] = s.add_i32(tile.acc[m][v], start[v]);
            }
        }
        sums.park(s, tile.acc);
        start
    }
}

/// The accumulators of MR rows by a pair of panels, and the sums of the pair's columns.
struct Weaving<S: Dot, const MR: usize> {
    one: S::X,
    acc: [[S::I32; 2]; MR],
    columns: [S::I32; 2],
}

impl<S: Dot, const MR: usize> Weaving<S, MR> {
    /// Packs a unit and adds its products.
    #[inline(always)]
    fn unit(
        &mut self,
        s: S,
        x: &[[S::Quad; MR]; UNIT],
        quads: &[[[i8; 32]; 4]; UNIT],
        (a, b): (&mut [[i8; 64]; UNIT], &mut [[i8; 64]; UNIT]),
    ) {
        for i in 0..UNIT {
            s.weave(&quads[i], [&mut a[i], &mut b[i]]);
            let w = [s.weights(&a[i]), s.weights(&b[i])];
            for v in 0..2 {
                self.columns[v] = s.dot(self.columns[v], self.one, w[v]);
            }
            s.dots(x[i].each_ref(), w, &mut self.acc);
        }
    }
}

/// The stripe of a pair of panels from a row on, and what lies behind it.
#[inline(always)]
fn from_row(weights: WeightRows<'_>, panel: usize, row: usize) -> &[i8] {
    weights.data.get(panel / 2 * weights.stripe + 32 * row..).unwrap_or_default()
}

/// The quads of a unit that begin with a row, zeros for what the weight does not have.
#[cold]
#[inline(never)]
fn edge(weights: WeightRows<'_>, panel: usize, row: usize) -> [[[i8; 32]; 4]; UNIT] {
    let mut quads = [[[0; 32]; 4]; UNIT];
    let columns = weights.n.saturating_sub(16 * panel).min(32);
    for (row, to) in (row..weights.k).zip(quads.as_flattened_mut()) {
        to[..columns].copy_from_slice(&from_row(weights, panel, row)[..columns]);
    }
    quads
}

/// The whole lines of some quads of a stripe.
#[inline(always)]
fn lines(weights: WeightRows<'_>, panel: usize, quads: Range<usize>) -> &[[i8; 64]] {
    let all = from_row(weights, panel, 4 * quads.start).as_chunks().0;
    &all[..all.len().min(2 * quads.len())]
}

/// Panels whose sums wait beside each other: those of a pair are never apart.
const fn waiting(width: usize) -> usize {
    width.next_multiple_of(2)
}

/// Puts the sums of rows over `width` panels, [`waiting`] of which wait, one behind the other and in the order of their columns.
#[inline(always)]
fn in_order<S: Dot>(s: S, sums: &mut [[i32; 16]], width: usize) {
    let pitch = waiting(width);
    for row in 0..sums.len() / pitch {
        for v in (0..width).step_by(2) {
            let from = &sums[row * pitch + v..][..2];
            let pair = s.in_order([s.load_i32(&from[0]), s.load_i32(&from[1])]);
            for (part, to) in pair.into_iter().zip(&mut sums[row * width + v..(row + 1) * width]) {
                s.store_i32(part, to);
            }
        }
    }
}
