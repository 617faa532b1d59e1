//! Up to 20 rows times int8 weights that lie row by row, up to 96 if they lie in stripes, 12 on processors with AMX, on tokens that
//! [weave](Dot::weave_four) four rows of weights into quads beside their products.
//!
//! A block of 16 rows by 64 columns of weights stays in registers while all rows meet it, whose sums wait. Whole rows of weights
//! are read 16 side by side, as streams; of stripes two, for all of K.

use super::columns::{AHEAD, Columns, QUADS, WIDTH};
use super::matmul::{Finished, Sink};
use super::rows::PackedRows;
use super::side_by_side::at;
use super::ways::should_ask;
use super::weight_rows::{Lines, WeightRows, ask_behind, each_lines, halves};
use crate::pack::ones;
use crate::simd::Dot;
use core::ops::Range;

/// Rows of a block.
const DEPTH: usize = 4 * QUADS;

/// The most rows. With them a group's sums and what passes over them are 32 KiB.
pub(super) const MOST: usize = 96;

/// Bytes of a stripe from those of a step to those that it asks for, if it [should](should_ask).
const STRIPE_AHEAD: usize = 8 << 10;

/// Sums of 16 lanes that wait.
const WAITING: usize = 5120;

/// 64-bit words of workspace.
pub(super) const WOVEN_WORDS: usize = WAITING * 8;

/// Panels whose sums wait, for so many rows.
pub(super) fn woven_strip(rows: usize) -> usize {
    WAITING / (rows + 1) / WIDTH * WIDTH
}

/// What waits for a row and a group of columns, or for the sums of the weights.
type Waiting = [[i32; 16]; WIDTH];

/// A product of at most [`MOST`] rows.
pub(super) struct Woven<'a> {
    pub x: PackedRows<'a>,
    pub weights: WeightRows<'a>,
}

impl Woven<'_> {
    #[inline(always)]
    pub fn run<S: Dot>(self, s: S, panels: Range<usize>, words: &mut [u64], sink: Sink<'_>) {
        let rows = self.x.rows();
        debug_assert!(rows <= MOST);
        let sums: &mut [Waiting] = bytemuck::cast_slice_mut(&mut words[..WOVEN_WORDS]);
        for first in panels.clone().step_by(woven_strip(rows)) {
            let panels = first..panels.end.min(first + woven_strip(rows));
            let columns = Columns::new(&panels, &self.weights);
            self.strip(s, columns, sums);
            for (start, sums) in columns.starts().zip(sums.chunks_exact_mut(rows + 1)) {
                let counted = columns.counted(start);
                if counted.start > 0 {
                    for sums in &mut sums[..rows] {
                        sums.as_flattened_mut().copy_within(counted.clone(), 0);
                    }
                }
                let first = (start + counted.start) / 16;
                let panels = first..first + counted.len().div_ceil(16);
                sink(Finished { rows: 0..rows, panels, sums: sums[..rows].as_flattened(), pitch: WIDTH });
            }
        }
    }

    /// The sums of a strip, group by group: of each row, and behind these room for those of the weights.
    #[inline(always)]
    fn strip<S: Dot>(&self, s: S, columns: Columns, sums: &mut [Waiting]) {
        s.apart(
            #[inline(always)]
            move || {
                let rows = self.x.rows();
                let mut x: [&[[S::Quad; QUADS]]; MOST] = [&[]; MOST];
                for m in 0..rows {
                    x[m] = self.x.row(m).as_chunks().0;
                }
                let x = &x[..rows];
                let sums = &mut sums[..columns.count() * (rows + 1)];
                match (self.weights.in_stripes(), rows) {
                    (false, _) => self.rows(s, x, columns, sums),
                    (true, 1) => self.few::<S, 1>(s, columns, sums),
                    (true, 2) => self.few::<S, 2>(s, columns, sums),
                    (true, 3) => self.few::<S, 3>(s, columns, sums),
                    (true, 4) => self.few::<S, 4>(s, columns, sums),
                    (true, 5) => self.few::<S, 5>(s, columns, sums),
                    (true, _) => self.stripes(s, x, columns, sums),
                }
                for sums in sums.chunks_exact_mut(rows + 1) {
                    finish(s, sums);
                }
            },
        )
    }

    /// Of whole rows of weights 16 at a time, all columns.
    #[inline(always)]
    fn rows<S: Dot>(&self, s: S, x: &[&[[S::Quad; QUADS]]], columns: Columns, sums: &mut [Waiting]) {
        let (weights, whole) = (&self.weights, columns.whole);
        let asks = should_ask(weights.among) && whole >= AHEAD;
        sums.fill([[0; 16]; WIDTH]);
        for block in 0..weights.k.div_ceil(DEPTH) {
            let rows = columns.lines::<DEPTH>(weights, block);
            let mut groups = sums.chunks_exact_mut(x.len() + 1);
            for (group, sums) in groups.by_ref().take(whole).enumerate() {
                let lines = at(rows, group);
                if asks {
                    let ahead = columns.ahead(weights, group);
                    for j in 0..DEPTH {
                        s.prefetch_behind(&lines[j][0], ahead);
                    }
                }
                add(s, x, block, halves(lines), sums);
            }
            if let (Some(last), Some(sums)) = (columns.last_lines(weights, block), groups.next()) {
                add(s, x, block, halves(last), sums);
            }
        }
    }

    /// Of two stripes all rows, so few that their sums stay in registers.
    #[inline(always)]
    fn few<S: Dot, const MR: usize>(&self, s: S, columns: Columns, sums: &mut [Waiting]) {
        let mut x: [&[S::Quad]; MR] = [&[]; MR];
        for m in 0..MR {
            x[m] = self.x.row(m);
        }
        let (asks, zero) = (should_ask(self.weights.among), [s.splat_i32(0); WIDTH]);
        for (start, sums) in columns.starts().zip(sums.chunks_exact_mut(MR + 1)) {
            let (mut acc, mut of_weights) = ([zero; MR], zero);
            each_lines::<4>(
                self.stripes_from(start),
                #[inline(always)]
                |q, lines| {
                    if asks {
                        ask_behind::<S, 4, false>(s, &lines, STRIPE_AHEAD);
                    }
                    let w = s.weave_four(lines);
                    if S::OFFSET {
                        add_weights(s, w, &mut of_weights);
                    }
                    s.dots(at(x, q), w, &mut acc);
                },
            );
            for (acc, sums) in acc.into_iter().chain([of_weights]).zip(sums) {
                store(s, acc, sums);
            }
        }
    }

    /// Of two stripes all rows, block by block.
    #[inline(always)]
    fn stripes<S: Dot>(&self, s: S, x: &[&[[S::Quad; QUADS]]], columns: Columns, sums: &mut [Waiting]) {
        let asks = should_ask(self.weights.among);
        for (start, sums) in columns.starts().zip(sums.chunks_exact_mut(x.len() + 1)) {
            sums.fill([[0; 16]; WIDTH]);
            each_lines::<DEPTH>(
                self.stripes_from(start),
                #[inline(always)]
                |block, lines| {
                    if asks {
                        ask_behind::<S, DEPTH, false>(s, &lines, STRIPE_AHEAD);
                    }
                    add(s, x, block, lines, sums);
                },
            );
        }
    }

    /// The stripes of a group.
    #[inline(always)]
    fn stripes_from(&self, start: usize) -> [&[[i8; 32]]; 2] {
        [self.weights.of_stripe(start), self.weights.of_stripe(start + 32)]
    }
}

/// Adds the products of a block to the sums of a group.
#[inline(always)]
fn add<S: Dot>(s: S, x: &[&[[S::Quad; QUADS]]], block: usize, lines: Lines<'_, DEPTH>, sums: &mut [Waiting]) {
    let fours = lines.as_chunks::<4>().0;
    // Not a loop: the compiler might leave it one, with the weights in memory.
    let w: [_; QUADS] = [s.weave_four(fours[0]), s.weave_four(fours[1]), s.weave_four(fours[2]), s.weave_four(fours[3])];
    let Some((of_weights, sums)) = sums.split_last_mut() else { return };
    for (x, sums) in x.iter().zip(sums) {
        let x = &x[block];
        let mut acc = load(s, sums);
        for q in 0..QUADS {
            let x = s.splat_quad(&x[q]);
            for v in 0..WIDTH {
                acc[v] = s.dot(acc[v], x, w[q][v]);
            }
        }
        store(s, acc, sums);
    }
    if S::OFFSET {
        let mut acc = load(s, of_weights);
        for w in w {
            add_weights(s, w, &mut acc);
        }
        store(s, acc, of_weights);
    }
}

/// Adds a quad of weights to their sums.
#[inline(always)]
fn add_weights<S: Dot>(s: S, w: [S::W; WIDTH], acc: &mut [S::I32; WIDTH]) {
    for v in 0..WIDTH {
        acc[v] = s.dot(acc[v], ones(s), w[v]);
    }
}

/// Adds what the sums of a group start from, and puts them in the order of their columns.
#[inline(always)]
fn finish<S: Dot>(s: S, sums: &mut [Waiting]) {
    let Some((of_weights, sums)) = sums.split_last_mut() else { return };
    let mut start = load(s, of_weights);
    for v in 0..WIDTH {
        start[v] = s.start(start[v]);
    }
    for sums in sums {
        let mut acc = load(s, sums);
        for v in 0..WIDTH {
            acc[v] = s.add_i32(acc[v], start[v]);
        }
        store(s, s.in_order_four(acc), sums);
    }
}

#[inline(always)]
fn load<S: Dot>(s: S, from: &Waiting) -> [S::I32; WIDTH] {
    let mut sums = [s.splat_i32(0); WIDTH];
    for v in 0..WIDTH {
        sums[v] = s.load_i32(&from[v]);
    }
    sums
}

#[inline(always)]
fn store<S: Dot>(s: S, sums: [S::I32; WIDTH], to: &mut Waiting) {
    for v in 0..WIDTH {
        s.store_i32(sums[v], &mut to[v]);
    }
}
