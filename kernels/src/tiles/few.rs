//! A few rows times packed int8 weights: their sums fit the registers for all of K, so each panel is read as it lies, once, or once for
//! each of some parts of the rows. Panels follow one another without a pause.

use super::gemv::gemv;
use super::matmul::{Finished, Sink, Sweep};
use super::side_by_side::slices;
use super::waiting::widths;
use crate::dispatch::has_small_first_cache;
use crate::simd::Dot;
use core::ops::Range;

/// Whether registers are so few that rows go in small parts, as many as it takes. Up to some number of rows this is faster than tiles
/// whose weights are widened once: here widening goes on beside the products, in units that these leave idle.
const fn in_small_parts<S: Dot>() -> bool {
    !S::MANY_REGISTERS
}

/// So many rows read weights as they lie: what the registers have sums for, with so many panels or, of many rows, with two.
const fn at_once<S: Dot>(nv: usize) -> usize {
    match nv {
        _ if in_small_parts::<S>() => 5,
        4 => 12,
        _ => 6,
    }
}

/// So many rows read them so in parts, if it takes any, all but the first from the second cache. Where the first is not small, slices of it
/// serve more rows better.
fn in_parts<S: Dot>(nv: usize) -> usize {
    match in_small_parts::<S>() {
        true if !has_small_first_cache() => 16,
        true => 128,
        false => at_once::<S>(nv),
    }
}

/// How many parts so many rows have: of small ones those of four waste the least time, those of five fewer rows now and then.
const fn parts<S: Dot>(rows: usize) -> usize {
    let (fours, fives) = (rows.div_ceil(4), rows.div_ceil(5));
    match in_small_parts::<S>() {
        true if 5 * fives < 4 * fours => fives,
        true => fours,
        false => 1,
    }
}

/// Twice the weights of NV panels must fit there: while the parts compute, the next panels come.
const SECOND_CACHE: usize = 1 << 20;

/// Lines from those of a step to those that it asks for, all panels together: as many as a memory delivers while one is on its way.
const AHEAD: usize = 160;

/// Rows from which on weights are asked for wherever they come from. The steps of fewer are so short that a processor sees enough of them
/// ahead, unless each widens its weights or they come from memory.
const LONG: usize = 3;

/// The same where requests for the first cache are few at a time: a page of each panel, into the second cache, since what hardware asks
/// for ends with a page; for so many rows, whose steps are not done before the next page is under way.
const PAGE: usize = 64;
const LONGER: usize = 5;

/// Lines from those of a step to those that it asks for, in each panel; 0 if it asks for none.
const fn ahead<S: Dot>(rows: usize, nv: usize, far: bool) -> usize {
    match far {
        _ if !S::MANY_REGISTERS => AHEAD / nv,
        true if rows >= LONGER => PAGE,
        true => 0,
        false => AHEAD / nv / 2 * 2,
    }
}

/// Whether so many rows ask for weights wherever these come from.
const fn is_long<S: Dot>(rows: usize) -> bool {
    !S::MANY_REGISTERS || rows >= LONG
}

/// The products of MR rows and NV panels. `next` are the panels that come, of which each part asks for its share; where the first
/// cache is small, requests are FAR. `asks` says whether there are any, of rows in one part.
#[inline(always)]
fn sums<S: Dot, const MR: usize, const NV: usize, const IN_PARTS: bool, const FAR: bool>(
    s: S,
    x: [&[S::Quad]; MR],
    w: [&[[i8; 64]]; NV],
    next: [&[[i8; 64]]; NV],
    (part, parts): (usize, usize),
    asks: bool,
) -> [[S::I32; NV]; MR] {
    let mut acc = [[s.splat_i32(0); NV]; MR];
    let end = w[0].len();
    if IN_PARTS {
        let share = end / parts;
        let coming = slices(next, share * part..share * (part + 1));
        acc = gemv::<S, MR, NV, NV, FAR>(s, slices(x, 0..share), slices(w, 0..share), coming, acc);
        return gemv::<S, MR, NV, 0, FAR>(s, slices(x, share..end), slices(w, share..end), [], acc);
    }
    if const { ahead::<S>(MR, NV, FAR) == 0 } || !asks {
        return gemv::<S, MR, NV, 0, FAR>(s, x, w, [], acc);
    }
    let split = end - end.min(ahead::<S>(MR, NV, FAR));
    for is_end in [false, true] {
        let (steps, coming) = match is_end {
            false => (0..split, slices(w, end - split..end)),
            true => (split..end, slices(next, 0..end - split)),
        };
        acc = gemv::<S, MR, NV, NV, FAR>(s, slices(x, steps.clone()), slices(w, steps), coming, acc);
    }
    acc
}

/// The most rows that read panels as they lie, NV at a time, of `k` each.
pub(super) fn most_rows<S: Dot>(nv: usize, k: usize) -> usize {
    if 2 * 16 * nv * k <= SECOND_CACHE { in_parts::<S>(nv) } else { at_once::<S>(nv) }
}

impl Sweep<'_> {
    /// All rows, at most [`most_rows`], over some panels, NV at a time.
    #[inline(always)]
    pub fn few<S: Dot, const NV: usize>(&mut self, s: S, panels: Range<usize>, sink: Sink<'_>) {
        let rows = self.x.rows();
        let parts = parts::<S>(rows);
        match (parts, rows.div_ceil(parts)) {
            (1, 1) => self.streams::<S, 1, NV, false>(s, panels.clone(), parts),
            (1, 2) => self.streams::<S, 2, NV, false>(s, panels.clone(), parts),
            (1, 3) => self.streams::<S, 3, NV, false>(s, panels.clone(), parts),
            (1, 4) => self.streams::<S, 4, NV, false>(s, panels.clone(), parts),
            (1, 5) => self.streams::<S, 5, NV, false>(s, panels.clone(), parts),
            (1, 7) if const { S::MANY_REGISTERS && NV == 4 } => self.streams::<S, 7, 2, false>(s, panels.clone(), parts),
            (1, 8) if const { S::MANY_REGISTERS && NV == 4 } => self.streams::<S, 8, 2, false>(s, panels.clone(), parts),
            (1, 9 | 10) if const { S::MANY_REGISTERS && NV == 4 } => self.streams::<S, 10, 2, false>(s, panels.clone(), parts),
            (1, 11 | 12) if const { S::MANY_REGISTERS && NV == 4 } => self.streams::<S, 12, 2, false>(s, panels.clone(), parts),
            (_, 3) if const { in_small_parts::<S>() } => self.streams::<S, 3, NV, true>(s, panels.clone(), parts),
            (_, 4) if const { in_small_parts::<S>() } => self.streams::<S, 4, NV, true>(s, panels.clone(), parts),
            _ if const { in_small_parts::<S>() } => self.streams::<S, 5, NV, true>(s, panels.clone(), parts),
            _ => self.streams::<S, 6, NV, false>(s, panels.clone(), parts),
        }
        sink(Finished { rows: 0..rows, sums: &self.parked[..rows * panels.len()], pitch: panels.len(), panels });
    }

    /// All rows, in equal parts of at most MR, over some panels, one after the other without a pause: reading goes on.
    #[inline(always)]
    fn streams<S: Dot, const MR: usize, const NV: usize, const IN_PARTS: bool>(
        &mut self,
        s: S,
        panels: Range<usize>,
        parts: usize,
    ) {
        let parts = if IN_PARTS { parts } else { 1 };
        s.apart(
            #[inline(always)]
            move || {
                for some in widths::<NV>(panels.clone()) {
                    for part in 0..parts {
                        match some.len() {
                            1 if const { NV > 1 } => self.stream::<S, MR, 1, IN_PARTS>(s, some.start, &panels, (part, parts)),
                            2 if const { NV > 2 } => self.stream::<S, MR, 2, IN_PARTS>(s, some.start, &panels, (part, parts)),
                            _ => self.stream::<S, MR, NV, IN_PARTS>(s, some.start, &panels, (part, parts)),
                        }
                    }
                }
            },
        )
    }

    /// One of the parts of the rows, at most MR of them, over NV of the panels, from `panel` on.
    #[inline(always)]
    fn stream<S: Dot, const MR: usize, const NV: usize, const IN_PARTS: bool>(
        &mut self,
        s: S,
        panel: usize,
        panels: &Range<usize>,
        (part, parts): (usize, usize),
    ) {
        let (first, end) = (self.x.rows() * part / parts, self.x.rows() * (part + 1) / parts);
        // Behind the last row it is repeated.
        let mut x: [&[S::Quad]; MR] = [&[]; MR];
        for m in 0..MR {
            x[m] = self.x.row((first + m).min(end - 1));
        }
        let (mut w, mut next): ([&[[i8; 64]]; NV], [&[[i8; 64]]; NV]) = ([&[]; NV], [&[]; NV]);
        for v in 0..NV {
            w[v] = self.weights.panel(panel + v);
            next[v] = self.weights.coming(panel + NV + v).unwrap_or(w[v]);
            s.prefetch(self.weights.sums_line(panel + v));
        }
        let asks = const { is_long::<S>(MR) } || self.weights.come_from_memory();
        let acc = if const { matches!(S::SMALL_FIRST_CACHE, Some(true)) }
            || const { S::SMALL_FIRST_CACHE.is_none() } && has_small_first_cache()
        {
            sums::<S, MR, NV, IN_PARTS, true>(s, x, w, next, (part, parts), asks)
        } else {
            sums::<S, MR, NV, IN_PARTS, false>(s, x, w, next, (part, parts), asks)
        };
        self.finish(s, acc, first..end, panel, panels);
    }
}
