//! A few rows times packed int8 weights: their sums fit the registers for all of K, so each panel is read as it lies, once or, by two
//! parts of the rows, twice. Panels follow one another without a pause.

use super::gemv::gemv;
use super::matmul::{Finished, Sink, Sweep, widths};
use crate::simd::Dot;
use core::ops::Range;

/// So many rows read weights as they lie: what the registers have sums for, with so many panels.
const fn at_once(nv: usize) -> usize {
    if nv == 4 { 8 } else { 6 }
}

/// So many rows read them so in two parts, the second from the second cache.
const IN_TWO_PARTS: usize = 12;

/// Twice the weights of NV panels must fit there: while the parts compute, the next panels come.
const SECOND_CACHE: usize = 1 << 20;

/// Accumulators with which a step of a few rows takes so long that it has to ask for weights that come: what hardware asks for ends
/// with a page, and before the next one is under way the steps that the processor sees ahead are done.
const LONG_STEP: usize = 20;

/// Lines from those of a step to those that it asks for, a page.
const AHEAD: usize = 64;

/// The most rows that read panels as they lie, NV at a time, of `k` each.
pub(super) const fn most_rows(nv: usize, k: usize) -> usize {
    if nv == 4 && 2 * 16 * nv * k <= SECOND_CACHE { IN_TWO_PARTS } else { at_once(nv) }
}

impl Sweep<'_> {
    /// All rows, at most [`most_rows`], over some panels, NV at a time.
    #[inline(always)]
    pub fn few<S: Dot, const NV: usize>(&mut self, s: S, panels: Range<usize>, sink: Sink<'_>) {
        let rows = self.x.rows();
        let parts = rows.div_ceil(at_once(NV));
        match rows.div_ceil(parts) {
            1 => self.streams::<S, 1, NV>(s, panels.clone(), parts),
            2 => self.streams::<S, 2, NV>(s, panels.clone(), parts),
            3 => self.streams::<S, 3, NV>(s, panels.clone(), parts),
            4 => self.streams::<S, 4, NV>(s, panels.clone(), parts),
            5 => self.streams::<S, 5, NV>(s, panels.clone(), parts),
            7 if NV == 4 => self.streams::<S, 7, 3>(s, panels.clone(), parts),
            8 if NV == 4 => self.streams::<S, 8, 3>(s, panels.clone(), parts),
            _ => self.streams::<S, 6, NV>(s, panels.clone(), parts),
        }
        sink(Finished { rows: 0..rows, sums: &self.parked[..rows * panels.len()], panels });
    }

    /// All rows, in equal parts of at most MR, over some panels, one after the other without a pause: reading goes on.
    #[inline(never)]
    fn streams<S: Dot, const MR: usize, const NV: usize>(&mut self, s: S, panels: Range<usize>, parts: usize) {
        s.vectorize(
            #[inline(always)]
            || {
                for some in widths::<NV>(panels.clone()) {
                    for part in 0..parts {
                        match some.len() {
                            1 => self.stream::<S, MR, 1>(s, some.start, &panels, [part, parts]),
                            2 => self.stream::<S, MR, 2>(s, some.start, &panels, [part, parts]),
                            _ => self.stream::<S, MR, NV>(s, some.start, &panels, [part, parts]),
                        }
                    }
                }
            },
        )
    }

    /// One of the parts of the rows, at most MR of them, over NV of the panels, from `panel` on.
    #[inline(always)]
    fn stream<S: Dot, const MR: usize, const NV: usize>(
        &mut self,
        s: S,
        panel: usize,
        panels: &Range<usize>,
        [part, parts]: [usize; 2],
    ) {
        let (first, end) = (self.x.rows() * part / parts, self.x.rows() * (part + 1) / parts);
        // Behind the last row it is repeated.
        let row = |m: usize| (first + m).min(end - 1);
        let mut x: [&[S::Quad]; MR] = [&[]; MR];
        for m in 0..MR {
            x[m] = self.x.row(row(m));
        }
        let follows = panel + 2 * NV <= self.weights.len();
        let (mut w, mut next): ([&[[i8; 64]]; NV], [&[[i8; 64]]; NV]) = ([&[]; NV], [&[]; NV]);
        for v in 0..NV {
            w[v] = self.weights.panel(panel + v);
            if follows {
                next[v] = self.weights.panel(panel + NV + v);
            }
        }
        let lines = w[0].len();
        let acc = gemv(
            s,
            x,
            w,
            self.start::<S, NV>(s, panel),
            #[inline(always)]
            |pair| {
                if parts > 1 {
                    // Each of two parts asks for half of the next panels.
                    for v in 0..NV {
                        if let Some(line) = next[v].get(part * (lines / 2) + pair) {
                            s.prefetch_far(line);
                        }
                    }
                } else if MR * NV >= LONG_STEP {
                    for step in 2 * pair..2 * pair + 2 {
                        let to = step + AHEAD;
                        for v in 0..NV {
                            if let Some(line) = if to < lines { w[v].get(to) } else { next[v].get(to - lines) } {
                                s.prefetch_far(line);
                            }
                        }
                    }
                }
            },
        );
        for m in 0..MR {
            let parked = &mut self.parked[row(m) * panels.len() + panel - panels.start..][..NV];
            for v in 0..NV {
                s.store_i32(acc[m][v], &mut parked[v]);
            }
        }
    }
}
