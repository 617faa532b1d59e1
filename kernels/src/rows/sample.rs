//! One row of TopKTopPSample: the stages, the filtered copy, the middle result and the choice.
//!
//! Work is done only where something depends on it. Without noise the choice is the first maximum of the row whatever the stages are,
//! so with no list asked for either, one pass is all. A list is kept as keys and probabilities; only a row that no stage
//! touches has none and is walked in place.

use super::first_max::{Summary, first_max, position};
use super::key::{index_of, key};
use super::nucleus::{cut, top_p};
use super::race::{Noise, race, race_row};
use super::select::{block_maxima, gather, top_k};
use super::softmax::Weights;
use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::simd::{Dot, Simd};

/// What a status byte of a row is made of.
pub mod status {
    /// A NaN was seen, and treated as -inf.
    pub const NAN: u8 = 1;
    /// A +inf was seen, and treated as the largest finite number.
    pub const INFINITE: u8 = 2;
    /// Nothing to choose from.
    pub const EMPTY: u8 = 4;
}

/// What is kept of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stages {
    /// How many top-k keeps, at most 1024 and the length of the row; 0 switches it off.
    pub k: usize,
    /// Top-p: <= 0 keeps the best, >= 1 or NaN switches it off.
    pub p: f32,
    /// Min-p: >= 1 keeps the best, <= 0 or NaN switches it off.
    pub min_p: f32,
    /// Whether the row holds logits; else probabilities.
    pub is_logits: bool,
}

/// Where the list that is kept goes.
pub struct Middle<'a> {
    /// Tokens in list order, then 0; as long as the row.
    pub tokens: &'a mut [i64],
    /// Their probabilities, then 0; as long as the row.
    pub probabilities: &'a mut [f32],
}

/// Memory to work in; need not be initialised.
pub struct Workspace<'a> {
    /// As long as the row.
    pub keys: &'a mut [u64],
    /// As long as the row.
    pub probabilities: &'a mut [f32],
    /// As long as [`super::maxima_len`] of the row.
    pub maxima: &'a mut [f32],
}

/// A row of TopKTopPSample.
pub struct Sample<'a, T, const BLOCK: usize = 64> {
    /// Logits or probabilities, at least one, at most 2^20.
    pub row: &'a [T],
    /// What to keep.
    pub stages: Stages,
    /// How to choose.
    pub noise: Noise<'a>,
    /// The logits of the kept tokens, the fill elsewhere; as long as the row.
    pub filtered: Option<&'a mut [f32]>,
    /// The kept tokens as a list.
    pub middle: Option<Middle<'a>>,
    /// Memory to work in.
    pub work: Workspace<'a>,
}

/// The token chosen, and the status bits of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its index.
    pub token: usize,
    /// Bits of [`status`].
    pub status: u8,
}

/// What the stages leave.
enum Kept {
    /// The row as it is.
    Row(Weights),
    /// So many keys and probabilities in the workspace.
    List(usize),
}

impl<T: Element, const BLOCK: usize> Kernel for Sample<'_, T, BLOCK> {
    type Output = Choice;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Choice {
        if matches!(self.noise, Noise::None) && self.filtered.is_none() && self.middle.is_none() {
            let (first, summary) = first_max(s, self.row);
            let status = self.status(summary);
            return Choice { token: if status & status::EMPTY == 0 { first } else { 0 }, status };
        }
        // Large k ask for smaller blocks: a bound is only as good as there are maxima above the k-th.
        match self.row.len() / BLOCK >= 4 * self.stages.k {
            true => self.run_blocks::<S, BLOCK>(s),
            false => self.run_blocks::<S, 16>(s),
        }
    }
}

/// Whether there is nothing to choose from.
#[inline(always)]
fn is_empty<T: Element>(row: &[T], summary: Summary, is_logits: bool) -> bool {
    let zero = |x: &T| {
        let x: f32 = x.as_();
        x >= 0.0 || x.is_nan() || x == f32::NEG_INFINITY
    };
    summary.max == f32::NEG_INFINITY || (!is_logits && summary.max == 0.0 && row.iter().all(zero))
}

impl<T: Element, const BLOCK: usize> Sample<'_, T, BLOCK> {
    #[inline(always)]
    fn status(&self, summary: Summary) -> u8 {
        let bit = |bit, holds| if holds { bit } else { 0 };
        bit(status::NAN, summary.nan)
            | bit(status::INFINITE, summary.infinite)
            | bit(status::EMPTY, is_empty(self.row, summary, self.stages.is_logits))
    }

    /// The row by way of its block maxima.
    #[inline(always)]
    fn run_blocks<S: Simd, const B: usize>(mut self, s: S) -> Choice {
        let summary = block_maxima::<S, T, B>(s, self.row, self.work.maxima);
        let status = self.status(summary);
        if status & status::EMPTY != 0 {
            self.write_list(0);
            return Choice { token: 0, status };
        }
        let block = position(s, self.work.maxima, 0, summary.max);
        let first = position(s, self.row, block * B, summary.max);
        let races = !matches!(self.noise, Noise::None);
        let winner = match self.keep::<S, B>(s, first, summary.max) {
            Kept::Row(weights) => {
                self.write_row(s, &weights);
                if races { race_row(s, self.row, &weights, &self.noise) } else { first }
            }
            Kept::List(n) => {
                self.write_list(n);
                let Workspace { keys, probabilities, .. } = &self.work;
                if races { index_of(keys[race(s, &probabilities[..n], &self.noise)]) } else { first }
            }
        };
        Choice { token: winner, status }
    }

    /// The stages. `first` is where the maximum of the row is.
    #[inline(always)]
    fn keep<S: Simd, const B: usize>(&mut self, s: S, first: usize, max: f32) -> Kept {
        let Stages { k, p, min_p, is_logits } = self.stages;
        let Workspace { keys, probabilities, maxima } = &mut self.work;
        let best = key(max, first);
        if p <= 0.0 {
            keys[0] = best;
            probabilities[0] = if is_logits { 1.0 } else { Weights::Given.of_one(s, max) };
            return Kept::List(1);
        }
        let nucleus = p > 0.0 && p < 1.0;
        let (mut n, weights);
        if k > 0 {
            top_k::<S, T, B>(s, self.row, k, maxima, keys);
            weights = Weights::of_list(s, &keys[..k], is_logits);
            weights.write(s, &keys[..k], probabilities);
            n = if nucleus { cut(&probabilities[..k], 0, p) } else { k };
        } else {
            weights = Weights::of_row(s, self.row, max, is_logits);
            if nucleus {
                n = top_p::<S, T, B>(s, self.row, p, &weights, maxima, keys, probabilities);
            } else {
                n = 0;
            }
        }
        let top = weights.of_one(s, max);
        let least = top * min_p;
        if min_p >= 1.0 {
            (keys[0], probabilities[0]) = (best, top);
            return Kept::List(1);
        }
        let min_p_on = min_p > 0.0 && top >= 0.0;
        if k == 0 && !nucleus {
            if !min_p_on {
                return Kept::Row(weights);
            }
            let bound = min_p_bound(&weights, least, min_p);
            n = gather::<S, T, B>(s, self.row, maxima, bound, self.row.len(), keys);
            weights.write(s, &keys[..n], probabilities);
        }
        if min_p_on {
            let listed = n;
            n = 0;
            for j in 0..listed {
                (keys[n], probabilities[n]) = (keys[j], probabilities[j]);
                n += usize::from(probabilities[j] >= least);
            }
        }
        Kept::List(n)
    }

    /// The outputs of a list.
    #[inline(always)]
    fn write_list(&mut self, n: usize) {
        let keys = &self.work.keys[..n];
        if let Some(filtered) = &mut self.filtered {
            filtered.fill(if self.stages.is_logits { f32::NEG_INFINITY } else { 0.0 });
            for &key in keys {
                filtered[index_of(key)] = self.row[index_of(key)].as_();
            }
        }
        if let Some(Middle { tokens, probabilities }) = &mut self.middle {
            for (token, &key) in tokens.iter_mut().zip(keys) {
                *token = index_of(key) as i64;
            }
            tokens[n..].fill(0);
            probabilities[..n].copy_from_slice(&self.work.probabilities[..n]);
            probabilities[n..].fill(0.0);
        }
    }

    /// The outputs of a row that no stage touched.
    #[inline(always)]
    fn write_row<S: Simd>(&mut self, s: S, weights: &Weights) {
        if let Some(filtered) = &mut self.filtered {
            for (to, from) in filtered.iter_mut().zip(self.row) {
                *to = from.as_();
            }
        }
        if let Some(Middle { tokens, probabilities }) = &mut self.middle {
            for (i, token) in tokens.iter_mut().enumerate() {
                *token = i as i64;
            }
            vectors(
                self.row.len(),
                #[inline(always)]
                |span| span.store(s, weights.of_span(s, self.row, span), probabilities),
            );
        }
    }
}

/// A value below which no entry has a probability of `least` = top * min_p.
#[inline(always)]
fn min_p_bound(weights: &Weights, least: f32, min_p: f32) -> f32 {
    match *weights {
        // Probabilities this large are normal, so that ln m is met but for roundings, all of them far below 1e-3.
        Weights::Softmax { max, .. } if least > 1e-30 => max + (libm::log(f64::from(min_p)) - 1e-3) as f32,
        Weights::Given if least > 0.0 => least,
        _ => f32::NEG_INFINITY,
    }
}
