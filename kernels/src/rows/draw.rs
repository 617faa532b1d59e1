//! The race of a row that no stage touched with drawn noise. A number takes far longer to draw than an element to read, and most
//! elements need none: they would lose with the smallest number there is.

use super::lead::{Lead, NEAR};
use super::select::look_up;
use super::softmax::Weights;
use super::{Span, lanes, vectors};
use crate::element::Element;
use crate::philox::{Exponential, SMALLEST};
use crate::simd::Simd;

/// Elements that are looked at before some of them race, at most.
const PIECE: usize = 4096;

/// The winner of a row whose largest logit is `max`, if the sum of the weights cannot change it. The first `n` of `indices` are
/// those of all elements from the value `listed.0` on that stand before the index `listed.1`; they race first, and tell who of the
/// others can win.
#[inline(always)]
pub fn certain_draw<S: Simd, T: Element>(
    s: S,
    row: &[T],
    max: f32,
    (numbers, first): (Exponential, u64),
    indices: &mut [i32],
    n: usize,
    listed: (f32, usize),
) -> Option<usize> {
    let weights = Weights::Shifted { max };
    let mut draw = Draw { row, weights, numbers, first, lead: Lead::NOBODY, most: 1.0, raced: (f32::INFINITY, 0) };
    draw.race(s, &indices[..n]);
    draw.raced = listed;
    draw.most = if listed.1 < row.len() { 1.0 } else { weights.of_one(s, listed.0) };
    let piece = PIECE.min(indices.len() - 16);
    let bound = draw.bound(max);
    for (i, part) in row.chunks(piece).enumerate() {
        let n = collect(s, part, i * piece, bound, indices);
        draw.race(s, &indices[..n]);
    }
    draw.lead.certain()
}

/// Writes the indices of the elements of a part of the row, which begins at `start`, that reach `bound`; returns how many they are.
#[inline(always)]
pub(super) fn collect<S: Simd, T: Element>(s: S, part: &[T], start: usize, bound: f32, indices: &mut [i32]) -> usize {
    s.apart(
        #[inline(always)]
        move || {
            let (bound, mut n, mut at) = (s.splat(bound), 0, s.add_i32(lanes(s), s.splat_i32(start as i32)));
            vectors(
                part.len(),
                #[inline(always)]
                |span| {
                    let reached = s.le(bound, span.load(s, part, T::NEG_INFINITY));
                    n += s.compress(reached, at, indices[n..].first_chunk_mut().expect("room"));
                    at = s.add_i32(at, s.splat_i32(16));
                },
            );
            n
        },
    )
}

/// The elements of a row, and who of them leads.
struct Draw<'a, T> {
    row: &'a [T],
    weights: Weights,
    numbers: Exponential,
    /// The element of the tensor that the row begins with.
    first: u64,
    lead: Lead,
    /// No element that races now weighs more.
    most: f32,
    /// From which value on, and before which index, elements have had their race.
    raced: (f32, usize),
}

impl<T: Element> Draw<'_, T> {
    /// What an element has to reach if it is to come near the lead with the smallest number; `max` is the largest.
    fn bound(&self, max: f32) -> f32 {
        // Slack for the roundings of the bound, of exp and of its argument.
        let least = libm::log(f64::from(self.lead.best * NEAR * NEAR) * f64::from(SMALLEST)) - 1e-3;
        let bound = (f64::from(max) + least - 1e-6 * libm::fabs(f64::from(max))) as f32;
        bound.max(f32::MIN)
    }

    /// Lets the elements of these indices, which ascend, race.
    #[inline(always)]
    fn race<S: Simd>(&mut self, s: S, indices: &[i32]) {
        s.apart(
            #[inline(always)]
            move || {
                let (numbers, first, least) = (self.numbers, self.first, self.least_word());
                numbers.reaching_listed(
                    s,
                    first,
                    indices,
                    least,
                    #[inline(always)]
                    |span, words| {
                        self.meets(s, &indices[span.at..][..span.len], words);
                        self.least_word()
                    },
                );
            },
        )
    }

    /// The least word with which an element could come near the lead.
    #[inline(always)]
    fn least_word(&self) -> i32 {
        let best = f64::from(self.lead.best);
        Exponential::least_word(if best > 0.0 { f64::from(self.most) / best } else { f64::INFINITY })
    }

    /// Lets up to 16 elements with these words meet the lead.
    #[inline(always)]
    fn meets<S: Simd>(&mut self, s: S, indices: &[i32], words: S::I32) {
        let mut values = [f32::NEG_INFINITY; 16];
        look_up(s, self.row, indices, &mut values[..indices.len()]);
        let (v, (value, end)) = (s.load(&values), self.raced);
        let before = s.gt_i32(s.splat_i32(end as i32), Span { at: 0, len: indices.len() }.load_i32(s, indices));
        let raced = s.both(before, s.le(s.splat(value), v));
        let e = s.select(raced, s.splat(0.0), self.weights.of(s, v));
        self.lead.meets_lanes(
            s,
            e,
            Exponential::of_words(s, words),
            indices.len(),
            #[inline(always)]
            |lane| indices[lane] as usize,
        );
    }
}
