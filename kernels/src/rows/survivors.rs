//! Survivors of a stage that are too many for a list: all above a value, and the first few equal to it.

use super::key::clean;
use super::mass::Total;
use super::select::List;
use super::softmax::Weights;
use super::{Span, first_lanes, lanes, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// A set of elements: those above `value`, and of those equal to it the first `ties`.
#[derive(Clone, Copy, Debug)]
pub struct Above {
    /// The least value that is in.
    pub value: f32,
    /// How many of it are in, in index order.
    pub ties: usize,
}

impl Above {
    /// All elements.
    pub const ALL: Above = Above::from(f32::NEG_INFINITY);

    /// The entries of a list that ascends or descends to its end.
    pub fn of_list(values: &[f32]) -> Above {
        let value = values[values.len() - 1];
        Above { value, ties: values.iter().rev().take_while(|&&x| x == value).count() }
    }

    /// All elements from `value` on.
    pub const fn from(value: f32) -> Above {
        Above { value, ties: usize::MAX }
    }

    /// Which lanes are in, of the first `len`. Ties are used up on the way.
    #[inline(always)]
    pub fn mask<S: Simd>(&mut self, s: S, v: S::F32, len: usize) -> S::Mask {
        let value = s.splat(self.value);
        let mut m = s.le(value, v);
        if len < 16 {
            m = s.both(m, first_lanes(s, len));
        }
        if self.ties == usize::MAX {
            return m;
        }
        let equal = s.both(m, s.eq(v, value));
        let bits = s.mask_bits(equal);
        let ties = bits.count_ones() as usize;
        if ties <= self.ties {
            self.ties -= ties;
            return m;
        }
        let mut late = bits;
        for _ in 0..self.ties {
            late &= late - 1;
        }
        self.ties = 0;
        let from = late.trailing_zeros() as i32;
        s.differ(m, s.both(equal, s.gt_i32(lanes(s), s.splat_i32(from - 1))))
    }

    /// Calls `body` with each vector of a row, cleaned, and which of its lanes are in. Ties are used up on the way.
    #[inline(always)]
    fn each<S: Simd, T: Element>(&mut self, s: S, row: &[T], mut body: impl FnMut(Span, S::F32, S::Mask)) {
        vectors(
            row.len(),
            #[inline(always)]
            |span| {
                let v = clean(s, span.load(s, row, T::NEG_INFINITY));
                body(span, v, self.mask(s, v, span.len));
            },
        );
    }

    /// How many elements of a row are in.
    #[inline(always)]
    pub fn count<S: Simd, T: Element>(self, s: S, row: &[T]) -> usize {
        s.apart(
            #[inline(always)]
            move || {
                let (mut above, mut n) = (self, 0);
                above.each(
                    s,
                    row,
                    #[inline(always)]
                    |_, _, m| n += s.mask_bits(m).count_ones() as usize,
                );
                n
            },
        )
    }

    /// The mass of what is in.
    #[inline(always)]
    pub fn mass<S: Simd, T: Element>(self, s: S, row: &[T], weights: &Weights) -> u128 {
        s.apart(
            #[inline(always)]
            move || {
                let (weights, mut above, mut sum) = (*weights, self, Total::new(s));
                above.each(
                    s,
                    row,
                    #[inline(always)]
                    |_, v, m| sum.add(s, s.select(m, weights.bounded(s, v), s.splat(0.0))),
                );
                sum.get(s)
            },
        )
    }

    /// Where the last of what is in stands, in descending order; 0 if nothing is.
    #[inline(always)]
    pub fn last<S: Simd, T: Element>(self, s: S, row: &[T]) -> usize {
        s.apart(
            #[inline(always)]
            move || {
                let (mut above, mut least, mut index) = (self, f32::INFINITY, 0);
                above.each(
                    s,
                    row,
                    #[inline(always)]
                    |span, v, m| {
                        if s.mask_bits(s.both(m, s.le(v, s.splat(least)))) != 0 {
                            let below = s.select(m, s.sub(s.splat(0.0), v), s.splat(f32::NEG_INFINITY));
                            least = 0.0 - s.reduce_max(below);
                            let hits = s.mask_bits(s.both(m, s.eq(v, s.splat(least))));
                            index = span.at + hits.ilog2() as usize;
                        }
                    },
                );
                index
            },
        )
    }

    /// Copies what is in to `output`, with `fill` elsewhere.
    #[inline(always)]
    pub fn copy<S: Simd, T: Element>(self, s: S, row: &[T], fill: f32, output: &mut [f32]) {
        s.apart(
            #[inline(always)]
            move || {
                let (mut above, fill) = (self, s.splat(fill));
                vectors(
                    row.len(),
                    #[inline(always)]
                    |span| {
                        let v = span.load(s, row, T::NEG_INFINITY);
                        let m = above.mask(s, clean(s, v), span.len);
                        span.store(s, s.select(m, v, fill), output);
                    },
                );
            },
        )
    }
}

/// Walks the survivors in index order, as many at a time as `list` takes at once: calls `piece` with their number.
#[inline(always)]
pub fn pieces<S: Simd, T: Element>(
    s: S,
    row: &[T],
    mut above: Above,
    list: &mut List<'_>,
    mut piece: impl FnMut(&mut List<'_>, usize),
) {
    const PIECE: usize = 512;
    for (i, part) in row.chunks(PIECE).enumerate() {
        let n = collect(s, part, i * PIECE, &mut above, list);
        if n > 0 {
            piece(list, n);
        }
    }
}

/// Makes a list of the survivors of a part of the row that starts at `start`.
#[inline(always)]
fn collect<S: Simd, T: Element>(s: S, part: &[T], start: usize, above: &mut Above, list: &mut List<'_>) -> usize {
    s.apart(
        #[inline(always)]
        move || {
            // Copies, which no store to the list can change.
            let (mut kept, mut list, mut n) = (*above, list.reborrow(), 0);
            kept.each(
                s,
                part,
                #[inline(always)]
                |span, v, m| n = list.push(s, n, m, v, s.add_i32(lanes(s), s.splat_i32((start + span.at) as i32))),
            );
            *above = kept;
            n
        },
    )
}
