//! Requests for weights that come next, and a tile that asks, on its way, for its share of them.

use super::int8::tile;
use super::side_by_side::{at, slices};
use crate::simd::Dot;

/// Two slices of weights that are larger together do not both lie in a first cache: the coming one goes to the second.
const FIRST_CACHE: usize = 48 << 10;

/// Lines of NV panels that some tiles ask for, a share each.
pub(super) struct Requests<'a, const NV: usize> {
    coming: [&'a [[i8; 64]]; NV],
    /// Lines of each panel that a tile asks for.
    share: usize,
    /// Lines of each panel that it asks for at once: two at most where that is written out, and then the last of a share that has more
    /// are left out.
    each: usize,
}

impl<'a, const NV: usize> Requests<'a, NV> {
    /// Of all these lines by so many tiles, each of which may ask `times` times.
    #[inline(always)]
    pub fn shared<S: Dot>(coming: [&'a [[i8; 64]]; NV], tiles: usize, times: usize) -> Requests<'a, NV> {
        let share = coming[0].len().div_ceil(tiles);
        let each = share.div_ceil(times);
        Requests { coming, share, each: if S::MANY_REGISTERS { each.min(2) } else { each } }
    }

    /// [`tile`], the `i`-th of those that share.
    #[inline(always)]
    pub fn beside<S: Dot, const MR: usize, const KC: usize>(
        &self,
        s: S,
        i: usize,
        x: [&[S::Quad]; MR],
        w: [&[S::Weights]; NV],
        acc: [[S::I32; NV]; MR],
    ) -> [[S::I32; NV]; MR] {
        // The last of many tiles may be left without a share.
        let end = self.coming[0].len().min(self.share * (i + 1));
        let coming = slices(self.coming, end.min(self.share * i)..end);
        tile(
            s,
            x,
            w,
            #[inline(always)]
            |u| {
                let at = self.each * u;
                if const { !S::MANY_REGISTERS } {
                    for line in at..coming[0].len().min(at + self.each) {
                        request::<S, NV, KC>(s, coming, line);
                    }
                    return;
                }
                // Written out: a loop would take more time than what it asks for.
                if at < coming[0].len() {
                    request::<S, NV, KC>(s, coming, at);
                    if self.each > 1 && at + 1 < coming[0].len() {
                        request::<S, NV, KC>(s, coming, at + 1);
                    }
                }
            },
            acc,
        )
    }
}

/// Asks for a line of each panel.
#[inline(always)]
fn request<S: Dot, const NV: usize, const KC: usize>(s: S, coming: [&[[i8; 64]]; NV], line: usize) {
    for line in at(coming, line) {
        ask(s, line, 2 * 16 * NV * KC > FIRST_CACHE);
    }
}

/// Asks for a line, into the second cache if it is `far`: a constant, once this is inlined.
#[inline(always)]
pub(super) fn ask<S: Dot>(s: S, line: &[i8; 64], far: bool) {
    match far {
        true => s.prefetch_far(line),
        false => s.prefetch(line),
    }
}
