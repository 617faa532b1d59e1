//! That runs are what they are described as.

use super::{Length, is_long_of_halves, runs};

#[test]
fn runs_are_a_row_from_its_end() {
    for (step, last) in [(16, 384), (64, 96), (1024, 6), (6144, 1), (100_000, 1)] {
        for steps in (0..=100).chain([383, 384, 385, 1000, 5000]) {
            for length in [Length::Step, Length::Even, Length::Growing] {
                let mut end = steps;
                for run in runs::<f32>(steps, step, length) {
                    let behind = steps - end;
                    let most = match length {
                        Length::Step => 1,
                        Length::Even => last,
                        Length::Growing => behind.max(last),
                    };
                    assert_eq!((run.end, run.len()), (end, most.min(end)), "{steps} steps of {step}");
                    end = run.start;
                }
                assert_eq!(end, 0, "{steps} steps of {step}");
            }
        }
    }
}

#[test]
fn rows_are_long_from_128_kib_of_halves_on() {
    assert!(is_long_of_halves::<u16>(65_537) && !is_long_of_halves::<u16>(65_536) && !is_long_of_halves::<f32>(1 << 20));
}
