//! Whole rows of weights, against the definition.

use super::super::random::random;
use super::{WINNER_OF, Winner};
use crate::dispatch::{Isa, Level};
use crate::philox::Exponential;
use crate::reference::{exponential, weight_race};
use std::vec;
use std::vec::Vec;

/// Rows of ordinary weights have a certain winner, which is that of the definition: otherwise nobody would see that the slow way answers.
#[test]
fn ordinary_rows_have_a_certain_winner() {
    let mut state = 1;
    let lengths = if cfg!(miri) { &[2048][..] } else { &[2048, 2049, 20_000] };
    for (&n, seed) in lengths.iter().zip(7..) {
        let steep = steep(n, &mut state);
        let mut unit = || random(&mut state) as f32;
        let few: Vec<f32> = (0..n).map(|_| if unit() < 0.005 { unit() } else { 0.0 }).collect();
        let even: Vec<f32> = (0..n).map(|_| 1e6 * unit()).collect();
        for weights in [steep, few, even] {
            assert_winner(&weights, seed);
        }
    }
}

/// So has the longest row.
#[test]
#[cfg_attr(miri, ignore = "sorts a million numbers")]
fn long_rows_have_a_certain_winner() {
    assert_winner(&steep(*WINNER_OF.end(), &mut 1), 10);
}

fn steep(n: usize, state: &mut u64) -> Vec<f32> {
    (0..n).map(|_| libm::expf(24.0 * random(state) as f32 - 12.0)).collect()
}

/// On every instruction set, the winner is that of the definition, which sorts.
fn assert_winner(weights: &[f32], seed: u64) {
    let n = weights.len();
    let (offset, all, first) = (4, 2 * n as u64, n as u64);
    let mut order = vec![0; n];
    weight_race(weights, |j| exponential(seed, offset, all, first + j as u64), &mut order);
    for level in Isa::ALL.into_iter().filter_map(Level::new) {
        let words = &mut vec![u64::MAX / 3; n.min(16_384)];
        let winner = Winner { weights, numbers: Exponential::new(seed, offset, all), first, words };
        assert_eq!(level.run(winner), Some(order[0] as usize), "{:?}, {n}", level.isa());
    }
}
