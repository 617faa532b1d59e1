//! The choice by one number among exact masses: the first entry, in the order of what is kept, up to which they exceed a share of all.

use super::mass::{End, bounded, mass, total};
use super::select::List;
use super::softmax::Weights;
use super::survivors::{Above, pieces};
use super::window::{Known, Question, flat_cut};
use crate::element::Element;
use crate::simd::Simd;

/// Elements whose mass is added up together.
const PART: usize = 4096;
/// Parts of the longest row.
const PARTS: usize = (1 << 20) / PART;

/// `number * 2^-64` of a mass, rounded down; `None` of nothing.
fn share(number: u64, all: u128) -> Option<u128> {
    (all > 0).then(|| (u128::from(number) * all) >> 64)
}

/// The first place up to which the masses of probabilities exceed `rest`.
fn place(probabilities: &[f32], mut rest: u128) -> Option<usize> {
    probabilities.iter().position(|&pr| {
        let mass = u128::from(mass(bounded(pr)));
        let found = rest < mass;
        rest = rest.saturating_sub(mass);
        found
    })
}

/// The place in a list of probabilities; `None` where none has a mass.
#[inline(always)]
pub fn place_by_share<S: Simd>(s: S, probabilities: &[f32], number: u64) -> Option<usize> {
    place(probabilities, share(number, total(s, probabilities))?)
}

/// The index in a row of which all from a value on is kept, in the order of their indices.
#[inline(always)]
pub fn index_by_share<S: Simd, T: Element>(
    s: S,
    row: &[T],
    kept: Above,
    weights: &Weights,
    number: u64,
    list: &mut List<'_>,
) -> Option<usize> {
    debug_assert!(kept.ties == usize::MAX && row.len() <= PARTS * PART);
    let (mut sums, mut all) = ([0; PARTS], 0);
    for (sum, part) in sums.iter_mut().zip(row.chunks(PART)) {
        *sum = kept.mass(s, part, weights);
        all += *sum;
    }
    let mut rest = share(number, all)?;
    let part = sums.iter().position(|&sum| {
        let found = rest < sum;
        rest -= if found { 0 } else { sum };
        found
    })?;
    let (start, mut index) = (part * PART, None);
    pieces(
        s,
        &row[start..row.len().min(start + PART)],
        kept,
        list,
        #[inline(always)]
        |list, n| {
            if index.is_some() {
                return;
            }
            let probabilities = &mut list.values[..n];
            weights.apply(s, probabilities);
            let sum = total(s, probabilities);
            if rest < sum {
                index = place(probabilities, rest).map(|at| start + list.indices[at] as usize);
            } else {
                rest -= sum;
            }
        },
    );
    index
}

/// The index in a row of logits of which this is kept, in descending order; nothing is above `most`.
#[inline(always)]
pub fn sorted_by_share<S: Simd, T: Element>(
    s: S,
    row: &[T],
    (kept, most): (Above, f32),
    weights: &Weights,
    number: u64,
    list: &mut List<'_>,
) -> Option<usize> {
    let end = End::Mass(share(number, kept.mass(s, row, weights))? + 1);
    let asked = Question { weights, end, before: 0, whole: 1.0, known: Known::nothing(most) };
    Some(flat_cut(s, row, asked, list).unwrap_or(kept).last(s, row))
}

#[cfg(test)]
mod tests;
