//! Shares of lists, against the definition.

use super::place_by_share;
use crate::dispatch::{Isa, Kernel, Level};
use crate::reference::{philox4x32, share_choice};
use crate::simd::Dot;

struct Place<'a>(&'a [f32], u64);

impl Kernel for Place<'_> {
    type Output = Option<usize>;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) -> Option<usize> {
        place_by_share(s, self.0, self.1)
    }
}

/// The same place on every instruction set, and by the definition.
fn place(probabilities: &[f32], number: u64) -> Option<usize> {
    let expected = share_choice(probabilities, number);
    for level in Isa::ALL.into_iter().filter_map(Level::new) {
        assert_eq!(level.run(Place(probabilities, number)), expected, "{:?} {number}", level.isa());
    }
    expected
}

/// As the decoding loop makes it, with seed 7.
fn number(count: u32) -> u64 {
    let words = philox4x32([count, 0, 0, 0], [7, 0]);
    u64::from(words[0]) | u64::from(words[1]) << 32
}

/// Tokens 18 to 20 nats below the best, between two that have half each: a number of 24 bits has no value that falls on them.
/// They are drawn as often as they should be: 18 nats below twice in the first 271 223 520 counts, where 2.07 are expected. The
/// counts are the result of a search.
#[test]
fn unlikely_tokens_are_drawn() {
    for (gap, counts) in
        [(18.0f64, [259_545_263, 271_223_519]), (19.0, [259_545_263, 271_223_519]), (20.0, [271_223_519, 601_292_160])]
    {
        let probabilities = [0.5, (0.5 * libm::exp(-gap)) as f32, 0.5];
        for count in counts {
            assert_eq!(place(&probabilities, number(count)), Some(1), "{gap}");
            assert_ne!(place(&probabilities, number(count + 1)), Some(1), "{gap}");
        }
    }
}

/// Half a unit of mass is none.
#[test]
fn a_row_without_mass_draws_nothing() {
    for number in [0, number(1), u64::MAX] {
        assert_eq!(place(&[0.0, 0.0], number), None);
        assert_eq!(place(&[0.0, f32::from_bits(0x2500_0000)], number), None);
        assert_eq!(place(&[0.0, f32::from_bits(0x2580_0001)], number), Some(1));
    }
}

#[test]
fn both_ends_are_reached() {
    let probabilities = [0.25f32, 0.0, 0.5, 0.25, 0.0];
    assert_eq!((place(&probabilities, 0), place(&probabilities, u64::MAX)), (Some(0), Some(3)));
    let quarter = u64::MAX / 4;
    assert_eq!((place(&probabilities, quarter), place(&probabilities, quarter + 1)), (Some(0), Some(2)));
}
