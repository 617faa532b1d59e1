//! A few rows times int8 weights that lie row by row: the weights are read once, in the order in which they lie, and packed in
//! registers.
//!
//! Of whole rows of weights some pass side by side over all columns: each is a stream, as hardware prefetchers like them, and a page
//! is looked up once for all that it holds. The sums of all columns wait meanwhile. Of stripes two pass side by side for all of K, and
//! their sums stay in registers.

use super::columns::{AHEAD, COLUMNS, Columns, QUADS, WIDTH};
use super::matmul::{Finished, Sink};
use super::rows::PackedRows;
use super::side_by_side::{at, chunks};
use super::waiting::Waiting;
use super::ways::should_ask;
use super::weight_rows::{WeightRows, ask_behind, each_lines, halves};
use crate::simd::Dot;
use core::ops::Range;

/// The most rows.
pub(super) const STRAIGHT_ROWS: usize = 4;

/// Where registers are few, their halves one after the other.
const HALF: usize = WIDTH / 2;

/// Bytes of a stripe from those of a step to those that it asks for: where registers are few, steps are long, and a processor
/// sees too few loads ahead.
const STRIPE_AHEAD: usize = 10 << 10;

/// Accumulators of 16 lanes that wait.
const WAITING: usize = 4096;

/// 64-bit words of workspace.
pub(super) const STRAIGHT_WORDS: usize = (WAITING + STRAIGHT_ROWS * WIDTH) * 8;

/// Panels whose sums wait, for so many rows.
pub(super) fn straight_strip(rows: usize) -> usize {
    WAITING / rows.max(1) / WIDTH * WIDTH
}

/// A product of at most [`STRAIGHT_ROWS`] rows.
pub(super) struct Straight<'a> {
    pub x: PackedRows<'a>,
    pub weights: WeightRows<'a>,
}

impl Straight<'_> {
    #[inline(always)]
    pub fn run<S: Dot>(self, s: S, panels: Range<usize>, words: &mut [u64], sink: Sink<'_>) {
        let rows = self.x.rows();
        let (sums, last) = bytemuck::cast_slice_mut(&mut words[..STRAIGHT_WORDS]).split_at_mut(WAITING);
        let width = straight_strip(rows);
        for first in panels.clone().step_by(width) {
            let panels = first..panels.end.min(first + width);
            let mut strip = Strip { columns: Columns::new(&panels, &self.weights), sums, count: panels.len(), last };
            match rows {
                1 => self.strip::<S, 1>(s, &mut strip),
                2 => self.strip::<S, 2>(s, &mut strip),
                3 => self.strip::<S, 3>(s, &mut strip),
                _ => self.strip::<S, 4>(s, &mut strip),
            }
            sink(Finished { rows: 0..rows, sums: strip.finished(rows), pitch: panels.len(), panels });
        }
    }

    /// All rows over the columns of a strip.
    #[inline(always)]
    fn strip<S: Dot, const MR: usize>(&self, s: S, strip: &mut Strip<'_>) {
        s.apart(
            #[inline(always)]
            move || {
                let mut x: [&[S::Quad]; MR] = [&[]; MR];
                for m in 0..MR {
                    x[m] = self.x.row(m);
                }
                match self.weights.in_stripes() {
                    true => self.stripes(s, x, strip),
                    false => self.rows(s, x, strip),
                }
            },
        )
    }

    /// Of whole rows of weights some at a time.
    #[inline(always)]
    fn rows<S: Dot, const MR: usize>(&self, s: S, x: [&[S::Quad]; MR], strip: &mut Strip<'_>) {
        let (weights, columns) = (&self.weights, strip.columns);
        let blocks = weights.k.div_ceil(4 * QUADS);
        let x = chunks::<_, QUADS, MR>(x, blocks);
        // AVX-512 asks where a processor sees too few loads of so many streams ahead; the steps of AVX2 are so long that any does.
        let asks = (!S::MANY_REGISTERS || should_ask(weights.among)) && columns.whole >= AHEAD;
        for block in 0..blocks {
            let (x, rows) = (at(x, block), columns.lines(weights, block));
            for group in 0..columns.whole {
                let ahead = columns.ahead(weights, group);
                add_block(s, x, block, at(rows, group), asks.then_some(ahead), strip.group(group));
            }
            if let Some(last) = columns.last_lines(weights, block) {
                add_block(s, x, block, last, None, strip.group(columns.whole));
            }
        }
    }

    /// Of stripes two at a time, or one.
    #[inline(always)]
    fn stripes<S: Dot, const MR: usize>(&self, s: S, x: [&[S::Quad]; MR], strip: &mut Strip<'_>) {
        for (group, column) in strip.columns.starts().enumerate() {
            let (left, right) = (self.weights.of_stripe(column), self.weights.of_stripe(column + 32));
            if const { S::MANY_REGISTERS } {
                add_stripes::<S, MR, WIDTH>(s, x, [left, right], strip.group(group));
            } else {
                add_stripes::<S, MR, HALF>(s, x, [left; 2], strip.group(group));
                add_stripes::<S, MR, HALF>(s, x, [right; 2], strip.group(group).behind(HALF));
            }
        }
    }
}

/// The sums of two stripes, or of one, given twice, if NV is [`HALF`].
#[inline(always)]
fn add_stripes<S: Dot, const MR: usize, const NV: usize>(s: S, x: [&[S::Quad]; MR], stripes: [&[[i8; 32]]; 2], to: Waiting<'_>) {
    let mut sums = Sums::<S, MR, NV>::resume(s, &to, 0);
    each_lines::<4>(
        stripes,
        #[inline(always)]
        |q, lines| {
            if !S::MANY_REGISTERS {
                ask_behind::<S, 4, true>(s, &lines, STRIPE_AHEAD);
            }
            sums.add(s, at(x, q), lines);
        },
    );
    sums.park(s, to);
}

/// Some columns, and their sums.
struct Strip<'a> {
    columns: Columns,
    /// `[row][panel]`, and how many panels these are.
    sums: &'a mut [[i32; 16]],
    count: usize,
    /// The same of the group of the last columns.
    last: &'a mut [[i32; 16]],
}

impl<'a> Strip<'a> {
    /// Where the sums of a group wait.
    #[inline(always)]
    fn group(&mut self, group: usize) -> Waiting<'_> {
        match group < self.columns.whole {
            true => Waiting { sums: &mut self.sums[group * WIDTH..], pitch: self.count },
            false => Waiting { sums: self.last, pitch: WIDTH },
        }
    }

    /// `[row][panel]` of all columns.
    fn finished(self, rows: usize) -> &'a [[i32; 16]] {
        let sums = &mut self.sums[..rows * self.count];
        if let Some(from) = self.columns.rest {
            let (at, counted) = (self.columns.whole * COLUMNS, self.columns.counted(from));
            for (sums, last) in sums.chunks_exact_mut(self.count).zip(self.last.as_chunks::<WIDTH>().0) {
                let to = &mut sums.as_flattened_mut()[at..][..counted.len()];
                to.copy_from_slice(&last.as_flattened()[counted.clone()]);
            }
        }
        sums
    }
}

/// Adds the products of a block of [`QUADS`] to sums, which count as 0 before the first. What comes so many bytes ahead is asked for.
#[inline(always)]
fn add_block<S: Dot, const MR: usize>(
    s: S,
    x: [&[S::Quad; QUADS]; MR],
    block: usize,
    rows: [&[i8; COLUMNS]; 4 * QUADS],
    ahead: Option<usize>,
    waiting: Waiting<'_>,
) {
    let mut sums = Sums::<S, MR, WIDTH>::resume(s, &waiting, block);
    for (q, rows) in rows.as_chunks().0.iter().enumerate() {
        if let Some(ahead) = ahead {
            for row in rows {
                s.prefetch_behind(&row[0], ahead);
            }
        }
        sums.add(s, at(x, q), halves(*rows));
    }
    sums.park(s, waiting);
}

/// Sums of MR rows and NV panels.
struct Sums<S: Dot, const MR: usize, const NV: usize>([[S::I32; NV]; MR]);

impl<S: Dot, const MR: usize, const NV: usize> Sums<S, MR, NV> {
    #[inline(always)]
    fn resume(s: S, from: &Waiting<'_>, step: usize) -> Self {
        Sums(from.resume(s, [s.splat_i32(0); NV], step))
    }

    #[inline(always)]
    fn park(self, s: S, mut to: Waiting<'_>) {
        to.park(s, self.0);
    }

    /// Adds the products of a quad.
    #[inline(always)]
    fn add(&mut self, s: S, x: [&S::Quad; MR], rows: [[&[i8; 32]; 2]; 4]) {
        if const { S::MANY_REGISTERS || NV == HALF } {
            return self.add_panels::<NV>(s, x, rows, 0);
        }
        // Both halves of what is packed are the same, and one is not used.
        let [[a, e], [b, f], [c, g], [d, h]] = rows;
        self.add_panels::<HALF>(s, x, [[a; 2], [b; 2], [c; 2], [d; 2]], 0);
        self.add_panels::<HALF>(s, x, [[e; 2], [f; 2], [g; 2], [h; 2]], HALF);
    }

    /// Of SOME panels, from the `first` sums on.
    #[inline(always)]
    fn add_panels<const SOME: usize>(&mut self, s: S, x: [&S::Quad; MR], rows: [[&[i8; 32]; 2]; 4], first: usize) {
        let mut packed = [[0; 64]; WIDTH];
        s.interleave(rows, packed.each_mut());
        let mut weights = [s.weights(&packed[0]); SOME];
        for v in 1..SOME {
            weights[v] = s.weights(&packed[v]);
        }
        let mut acc = [[s.splat_i32(0); SOME]; MR];
        for m in 0..MR {
            for v in 0..SOME {
                acc[m][v] = self.0[m][first + v];
            }
        }
        s.dots(x, weights, &mut acc);
        for m in 0..MR {
            for v in 0..SOME {
                self.0[m][first + v] = acc[m][v];
            }
        }
    }
}
