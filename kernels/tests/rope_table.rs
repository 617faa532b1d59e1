//! Rows of the RoPE table against their definition: one cosine and one sine a pair.

mod common;
use common::Random;
use tilekern_kernels::rows;

#[test]
fn rows_equal_the_definition() {
    let mut random = Random(1);
    for size in [2, 8, 48, 128] {
        let mut frequencies = vec![0.0; size / 2];
        rows::rope_frequencies(1e4, &mut frequencies);
        for _ in 0..50 {
            let bits = random.below(40);
            let position = random.below(1 << bits) as f64;
            let mut row = vec![0.0; size];
            rows::rope_row(position, &frequencies, &mut row);
            for i in 0..size / 2 {
                let angle = position * libm::pow(1e4, -((2 * i) as f64) / size as f64);
                let expected = [libm::cos(angle) as f32, libm::sin(angle) as f32];
                assert_eq!(row[2 * i..2 * i + 2], expected, "D={size} position {position} pair {i}");
            }
        }
    }
}
