//! Where a nucleus may end, against sums one after the other in `f64`.

use super::Front;
use crate::dispatch::{Isa, Kernel, Level};
use crate::simd::Dot;
use std::vec::Vec;

struct Ends<'a> {
    e: &'a [f32],
    outside: [f64; 2],
    p: f32,
}

impl Kernel for Ends<'_> {
    type Output = (Front, bool);
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> (Front, bool) {
        Front::in_list(s, self.e, self.outside, self.p)
    }
}

/// How many entries are in where so much lies outside the list: the first, and each before which there is less than `p`.
fn kept(e: &[f32], outside: f64, p: f64) -> usize {
    let whole = outside + e.iter().map(|&e| f64::from(e)).sum::<f64>();
    let mut before = 0.0;
    e.iter()
        .take_while(|&&e| {
            let is_in = before < p * whole;
            before += f64::from(e);
            is_in
        })
        .count()
}

#[test]
fn what_is_surely_in_or_out_is() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f64 / (1u64 << 24) as f64
    };
    for n in (1..=70).chain([127, 128, 129, 600]) {
        for _ in 0..40 {
            // From flat to steep.
            let slope = 4.0 * random() * random();
            let mut e: Vec<f32> = (0..n).map(|i| (-slope * (i as f64 + random())).exp() as f32).collect();
            e.sort_by(|a, b| b.total_cmp(a));
            let low = if random() < 0.3 { 0.0 } else { 3.0 * random() * random() };
            let high = low + if random() < 0.3 { 0.0 } else { random() };
            let p = (0.02 + 0.97 * random()) as f32;
            let at = |outside, slack: f64| kept(&e, outside, f64::from(p) * slack);
            let mut found = Vec::new();
            for level in Isa::ALL.into_iter().filter_map(Level::new) {
                let (Front { least, most }, ends) = level.run(Ends { e: &e, outside: [low, high], p });
                found.push((least, most, ends));
                assert_eq!(found[0], (least, most, ends), "{:?}", level.isa());
                let case = (level.isa(), n, slope, low, high, p);
                assert!(least <= at(low, 1.0) && at(high, 1.0) <= most, "{case:?}");
                assert!(least >= at(low, 1.0 - 3e-4) && most <= at(high, 1.0 + 3e-4), "{case:?}");
                assert!(most <= n && (most == n || ends), "{case:?}");
                let sum = e.iter().map(|&e| f64::from(e)).sum::<f64>();
                let past = |slack: f64| sum > f64::from(p) * slack * (sum + high);
                assert!((!ends || past(1.0)) && (ends || !past(1.0 + 3e-4)), "{case:?}");
            }
        }
    }
}
