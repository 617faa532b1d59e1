//! The race of a whole row with drawn noise: of logits that no stage touched, or of weights as they are. A number takes far longer to
//! draw than an element to read, and most elements need none: they would lose with the smallest number there is.

use super::blocks::{BLOCK, WIDER_BLOCK, block_maxima, maxima_len};
use super::find::find;
use super::lead::{LEAST, Lead, NEAR};
use super::select::{List, look_up_apart, top_k_bound};
use super::softmax::Weights;
use super::{Span, lanes, vectors};
use crate::dispatch::{Isa, Kernel};
use crate::element::Element;
use crate::per_element::per_element;
use crate::philox::{Exponential, SMALLEST};
use crate::simd::{Dot, Simd};
use core::ops::RangeInclusive;

/// Elements that are looked at before some of them race, at most.
const PIECE: usize = 4096;

/// The winner of a row of logits, if the sum of their [shifted](Weights::Shifted) weights cannot change it, or of a row of weights that are
/// [given](Weights::Given), if no other score comes near. `most` is the largest weight, and the maxima are those of the row's blocks. Its
/// largest elements race first, and tell who of the others can win.
#[inline(always)]
pub fn certain_draw<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    (weights, most): (Weights, f32),
    (numbers, first): (Exponential, u64),
    maxima: &[f32],
    list: &mut List<'_>,
) -> Option<usize> {
    // As many as blocks can tell of.
    let k = (row.len() / (4 * BLOCK)).clamp(1, 128);
    let mut least = top_k_bound::<S, BLOCK>(s, row.len(), k, maxima, list);
    if matches!(weights, Weights::Given) {
        // What weighs nothing wins nothing.
        least = least.max(f32::MIN_POSITIVE);
    }
    // All from that value on, or as many as the list has room for.
    let (n, at) = find::<S, T, BLOCK>(s, row, maxima, least, 0, list, 0);
    let indices = &mut *list.indices;
    let mut draw = Draw { row, weights, numbers, first, lead: Lead::NOBODY, most, raced: (f32::INFINITY, 0) };
    draw.race(s, &indices[..n]);
    draw.raced = (least, at * BLOCK);
    if draw.raced.1 >= row.len() {
        draw.most = weights.of_one(s, least);
    }
    let piece = PIECE.min(indices.len() - 16);
    let bound = draw.bound();
    for (i, part) in row.chunks(piece).enumerate() {
        let n = collect(s, part, i * piece, bound, indices);
        draw.race(s, &indices[..n]);
    }
    draw.lead.certain()
}

/// How many weights a [`Winner`] is found of: of fewer blocks tell too little, and of more their maxima leave no room for a list.
pub const WINNER_OF: RangeInclusive<usize> = 2048..=1 << 20;

/// The winner of an exponential race of a whole row of weights: their largest `weight / e`. `None` where another one comes near, or where
/// no weight or no quotient is large enough to tell.
pub struct Winner<'a, T> {
    /// The weights, [so many](WINNER_OF).
    pub weights: &'a [T],
    /// The numbers of the tensor.
    pub numbers: Exponential,
    /// The number that belongs to the first.
    pub first: u64,
    /// To work in: as many as there are weights, or 16 384.
    pub words: &'a mut [u64],
}

impl<T: Element> Winner<'_, T> {
    #[inline(always)]
    fn find<S: Simd, const BLOCK: usize>(self, s: S) -> Option<usize> {
        let Winner { weights, numbers, first, words } = self;
        let (maxima, list) = words.split_at_mut(maxima_len(weights.len(), BLOCK) / 2);
        let (values, indices) = list.split_at_mut(list.len() / 2);
        let length = 1 << (2 * values.len()).ilog2();
        let (values, indices) = (bytemuck::cast_slice_mut(values), bytemuck::cast_slice_mut(indices));
        let mut list = List { values: &mut values[..length], indices: &mut indices[..length] };
        let maxima = bytemuck::cast_slice_mut(maxima);
        let most = block_maxima::<S, T, BLOCK>(s, weights, maxima, false).max;
        // Whatever is drawn, no score is certain.
        if most <= LEAST * SMALLEST {
            return None;
        }
        certain_draw::<S, T, BLOCK>(s, weights, (Weights::Given, most), (numbers, first), maxima, &mut list)
    }
}

impl<T: Element> Kernel for Winner<'_, T> {
    type Output = Option<usize>;
    const DOT: bool = false;
    per_element!(run_winner);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Option<usize> {
        debug_assert!(WINNER_OF.contains(&self.weights.len()));
        if const { matches!(S::ISA, Isa::Avx2) } { self.find::<S, WIDER_BLOCK>(s) } else { self.find::<S, BLOCK>(s) }
    }
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
    /// What an element has to reach if it is to come near the lead with the smallest number.
    fn bound(&self) -> f32 {
        let least = f64::from(self.lead.best * NEAR * NEAR) * f64::from(SMALLEST);
        // Slack for the roundings of the bound, and of logits for those of exp and of its argument.
        let bound = match self.weights {
            Weights::Shifted { max } => f64::from(max) + (libm::log(least) - 1e-3) - 1e-6 * libm::fabs(f64::from(max)),
            _ => least * (1.0 - 1e-6),
        };
        (bound as f32).max(f32::MIN)
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
        look_up_apart(s, self.row, indices, &mut values[..indices.len()]);
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

#[cfg(test)]
mod tests;
