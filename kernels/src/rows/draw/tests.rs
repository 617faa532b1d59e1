//! Whole rows of weights, against the definition.

use super::Winner;
use crate::dispatch::{Isa, Level};
use crate::philox::Exponential;
use crate::reference::{exponential, weight_race};
use std::vec;
use std::vec::Vec;

/// Numbers between 0 and 1, and none of them 0.
fn units(mut state: u64) -> impl FnMut() -> f32 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 + 0.5) / (1 << 24) as f32
    }
}

/// Rows of ordinary weights have a certain winner, which is that of the definition: otherwise nobody would see that the slow way answers.
#[test]
fn ordinary_rows_have_a_certain_winner() {
    let mut unit = units(1);
    let lengths = if cfg!(miri) { &[2048][..] } else { &[2048, 2049, 20_000, Winner::MOST] };
    for (i, &n) in lengths.iter().enumerate() {
        let steep: Vec<f32> = (0..n).map(|_| libm::expf(24.0 * unit() - 12.0)).collect();
        let few: Vec<f32> = (0..n).map(|_| if unit() < 0.005 { unit() } else { 0.0 }).collect();
        let even: Vec<f32> = (0..n).map(|_| 1e6 * unit()).collect();
        // The definition sorts.
        for weights in [steep, few, even].into_iter().take(if n < Winner::MOST { 3 } else { 1 }) {
            let (seed, offset, all, first) = (7 + i as u64, 4, 2 * n as u64, n as u64);
            let mut order = vec![0; n];
            weight_race(&weights, |j| exponential(seed, offset, all, first + j as u64), &mut order);
            for level in Isa::ALL.into_iter().filter_map(Level::new) {
                let words = &mut vec![u64::MAX / 3; n.min(16_384)];
                let winner = Winner { weights: &weights, numbers: Exponential::new(seed, offset, all), first, words };
                assert_eq!(level.run(winner), Some(order[0] as usize), "{:?}, {n}", level.isa());
            }
        }
    }
}
