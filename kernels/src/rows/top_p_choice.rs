//! A token drawn by one number from the smallest set of the most probable whose sum exceeds p.
//!
//! Masses are integers, so two questions of one kind answer it exactly: which is the first entry, in descending order, whose running
//! mass reaches a target? The first target is one unit more than p and gives the mass that is kept; the second is the random share of
//! that. The most probable are listed, and as a rule both answers are among them. Where the list ends before, an entry is found
//! without sorting: eight bits of its value at a time, by the masses of each digit; entries of equal value have equal masses, so
//! they are told apart by counting. Masses are added in 128 bits: rows need not be normalised.

use super::blocks::{BLOCK, block_maxima};
use super::key::value_to_ascending;
use super::mass::{ONE, bounded, mass};
use super::select::{List, top_k};
use super::top_k_choice::counted;
use crate::dispatch::{Kernel, compiled_here};
use crate::simd::Dot;

/// How many are listed.
pub const LISTED: usize = 1024;

/// The first of the most probable whose running sum reaches `random` times the kept sum: its index. Kept is the smallest prefix of the
/// descending probabilities whose sum exceeds p, at least one.
pub struct TopPChoice<'a> {
    /// The probabilities.
    pub row: &'a [f32],
    /// Not a NaN.
    pub p: f64,
    /// In [0,1).
    pub random: f32,
    /// As long as [`super::maxima_len`] of the row, in blocks of [`BLOCK`].
    pub maxima: &'a mut [f32],
    /// As long as [`super::choice_len`] of [`LISTED`].
    pub list: List<'a>,
}

impl Kernel for TopPChoice<'_> {
    type Output = usize;
    const DOT: bool = false;
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) -> usize {
        let k = self.row.len().min(LISTED);
        block_maxima::<S, f32, BLOCK>(s, self.row, self.maxima, false);
        top_k::<S, f32, BLOCK>(s, self.row, k, self.maxima, &mut self.list);
        let descending = Descending { row: self.row, values: &self.list.values[..k], indices: &self.list.indices[..k] };
        descending.choose(self.p, counted(self.random))
    }
}

/// A row, and the list of its largest.
struct Descending<'a> {
    row: &'a [f32],
    values: &'a [f32],
    indices: &'a [i32],
}

impl Descending<'_> {
    fn choose(&self, p: f64, random: f32) -> usize {
        let kept = match self.reach(beyond(p)) {
            Ok((kept, _)) => kept,
            Err(all) => all,
        };
        // The kept mass is reached, and no target is larger.
        self.reach(share(random, kept)).map_or(0, |(_, index)| index)
    }

    /// The first entry whose running mass reaches `target`: that mass, and its index. If none does, the mass of all.
    fn reach(&self, target: u128) -> Result<(u128, usize), u128> {
        let mut sum = 0;
        for (&value, &index) in self.values.iter().zip(self.indices) {
            sum += mass_of(value);
            if sum >= target {
                return Ok((sum, index as usize));
            }
        }
        if self.values.len() < self.row.len() { reach_by_digits(self.row, target) } else { Err(sum) }
    }
}

/// [`Descending::reach`] of a target that at least one entry stands before.
#[inline(never)]
fn reach_by_digits(row: &[f32], target: u128) -> Result<(u128, usize), u128> {
    let (mut found, mut known, mut sum) = (0, 0, 0);
    for shift in [24, 16, 8, 0] {
        let mut masses = [0u128; 256];
        for &x in row {
            let key = ascending(x);
            if key & known == found {
                masses[(key >> shift & 0xFF) as usize] += mass_of(x);
            }
        }
        let digit = (0..256).rev().find(|&digit| {
            let reaches = sum + masses[digit] >= target;
            sum += if reaches { 0 } else { masses[digit] };
            reaches
        });
        let Some(digit) = digit else { return Err(sum) };
        found |= (digit as u32) << shift;
        known |= 0xFF << shift;
    }
    for (index, &x) in row.iter().enumerate() {
        if ascending(x) == found {
            sum += mass_of(x);
            if sum >= target {
                return Ok((sum, index));
            }
        }
    }
    Err(sum)
}

/// Unsigned, ascending with the value: a NaN as -inf, +inf as the largest finite number, -0 as 0.
#[inline(always)]
fn ascending(x: f32) -> u32 {
    let x = if x.is_nan() { f32::NEG_INFINITY } else { x.min(f32::MAX) + 0.0 };
    (value_to_ascending(x) ^ i32::MIN) as u32
}

/// The mass of a probability: of one outside [0,1] that of the nearest inside, of a NaN 0.
#[inline(always)]
fn mass_of(x: f32) -> u128 {
    u128::from(mass(if x.is_nan() { 0.0 } else { bounded(x) }))
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
