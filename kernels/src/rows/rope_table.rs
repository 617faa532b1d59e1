//! Rows of the RoPE table: cos and sin of `position * theta^(-2i/D)`, interleaved.
//!
//! Scalar `f64` by the `libm` crate, rounded once: a table is computed once, and has to have the same bits on every platform. A
//! frequency in `f32` would be off by 2^-24 of itself, which position 100 000 makes 6e-3 radians.

/// `frequencies[i] = theta^(-2i/D)` for a head of D = 2 * `frequencies.len()`.
///
/// ```
/// let mut frequencies = [0.0; 2];
/// tilekern_kernels::rows::rope_frequencies(100.0, &mut frequencies);
/// assert_eq!(frequencies, [1.0, 0.1]);
/// ```
pub fn rope_frequencies(theta: f64, frequencies: &mut [f64]) {
    let size = (2 * frequencies.len()) as f64;
    for i in 0..frequencies.len() {
        frequencies[i] = libm::pow(theta, -((2 * i) as f64) / size);
    }
}

/// One row, twice as long as `frequencies`.
pub fn rope_row(position: f64, frequencies: &[f64], output: &mut [f32]) {
    for (pair, frequency) in output.chunks_exact_mut(2).zip(frequencies) {
        let (sin, cos) = libm::sincos(position * frequency);
        (pair[0], pair[1]) = (cos as f32, sin as f32);
    }
}
