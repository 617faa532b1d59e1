//! A token drawn by one number from the smallest set of the most probable whose sum exceeds p.
//!
//! Masses are integers, so two questions of one kind answer it exactly: which is the first entry, in descending order, whose running
//! mass reaches a target? The first target is one unit more than p and gives the mass that is kept; the second is the random share of
//! that. As a rule both answers are among a few of the largest; else among more of them; else [`super::window`] finds where in the row
//! the mass ends. Masses are added in 128 bits: rows need not be normalised.

use super::blocks::BLOCK;
use super::largest::largest;
use super::mass::{End, ONE, bounded, mass};
use super::select::List;
use super::softmax::Weights;
use super::survivors::Above;
use super::top_k_choice::counted;
use super::window::{Known, Question, flat_cut};
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::{Dot, Simd};

/// How many are listed, at first and at most.
const LISTS: [usize; 2] = [128, 1024];

/// The first of the most probable whose running sum reaches `random` times the kept sum: its index. Kept is the smallest prefix of the
/// descending probabilities whose sum exceeds p, at least one.
pub struct TopPChoice<'a> {
    /// The probabilities.
    pub row: &'a [f32],
    /// Not a NaN.
    pub p: f64,
    /// In [0,1).
    pub random: f32,
    /// As long as [`super::workspace_maxima`] of the row.
    pub maxima: &'a mut [f32],
    /// As long as [`super::list_len`] of the row.
    pub list: List<'a>,
}

impl Kernel for TopPChoice<'_> {
    type Output = usize;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> usize {
        let TopPChoice { row, p, random, maxima, list } = self;
        let mut descending = Descending { row, maxima, list, listed: 0, all: None };
        let kept = match descending.reach(s, beyond(p)) {
            Ok((kept, _)) => kept,
            Err(all) => all,
        };
        // The kept mass is reached, and no target is larger.
        descending.reach(s, share(counted(random), kept)).map_or(0, |(_, index)| index)
    }
}

/// A row, and the list of its largest.
struct Descending<'a> {
    row: &'a [f32],
    maxima: &'a mut [f32],
    list: List<'a>,
    listed: usize,
    /// The mass of the row, once it was asked for.
    all: Option<u128>,
}

impl Descending<'_> {
    /// The first entry whose running mass reaches `target`: that mass, and its index. If none does, the mass of all.
    #[inline(never)]
    fn reach<S: Simd>(&mut self, s: S, target: u128) -> Result<(u128, usize), u128> {
        loop {
            let mut sum = 0;
            for (&value, &index) in self.list.values[..self.listed].iter().zip(&*self.list.indices) {
                sum += u128::from(mass(bounded(value)));
                if sum >= target {
                    return Ok((sum, index as usize));
                }
            }
            if self.listed == self.row.len() {
                return Err(sum);
            }
            let Some(&more) = LISTS.iter().find(|&&more| more > self.listed) else { break };
            self.listed = more.min(self.row.len());
            largest::<S, f32, BLOCK>(s, self.row, self.listed, self.maxima, &mut self.list);
        }
        let all = *self.all.get_or_insert_with(|| Above::ALL.mass(s, self.row, &Weights::Given));
        if target > all {
            return Err(all);
        }
        // The list goes.
        self.listed = 0;
        let (whole, known) = ((all as f64 / ONE) as f32, Known::nothing(f32::MAX));
        let asked = Question { weights: &Weights::Given, end: End::Mass(target), before: 0, whole, known };
        let above = flat_cut(s, self.row, asked, &mut self.list).unwrap_or(Above::ALL);
        Ok((above.mass(s, self.row, &Weights::Given), above.last(s, self.row)))
    }
}

/// The least mass that exceeds p.
fn beyond(p: f64) -> u128 {
    // Exact, and the cast rounds down and saturates.
    if p < 0.0 { 0 } else { ((p * ONE) as u128).saturating_add(1) }
}

/// `random * mass` rounded up, exact: 24 bits times at most 52 and as many as a row has elements.
fn share(random: f32, mass: u128) -> u128 {
    let (exponent, fraction) = (random.to_bits() >> 23, random.to_bits() & 0x007F_FFFF);
    let digits = if exponent == 0 { fraction } else { fraction | 0x0080_0000 };
    let (product, shift) = (u128::from(digits) * mass, 150 - exponent.max(1));
    match product.checked_shr(shift) {
        Some(whole) => whole + u128::from(whole << shift != product),
        None => u128::from(product != 0),
    }
}
