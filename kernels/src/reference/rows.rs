//! Rows of the decoder, one number at a time.

use super::row_sum;
use crate::element::Element;

/// `1 / sqrt(mean(x^2) + eps)`
pub fn rms_scale<T: Element>(x: &[T], eps: f64) -> f32 {
    let squares = row_sum(x.len(), |i| x[i].as_() * x[i].as_());
    if squares.is_nan() || squares == f64::INFINITY {
        return f32::NAN;
    }
    (1.0 / libm::sqrt(squares / x.len() as f64 + eps)).min(f32::MAX.into()) as f32
}

/// `output = gamma * (r * input)`
pub fn rms_norm<T: Element>(input: &[T], gamma: &[T], eps: f64, output: &mut [T]) {
    let r = rms_scale(input, eps);
    for i in 0..input.len() {
        output[i] = T::narrow(gamma[i].as_() * (r * input[i].as_()));
    }
}

/// `max |value| / 127`, a NaN above all.
pub fn quantize_scale(n: usize, value: impl Fn(usize) -> f32) -> f32 {
    let top = (0..n).map(|i| value(i).to_bits() & 0x7FFF_FFFF).max().unwrap_or(0);
    f32::from_bits(top) / 127.0
}

/// `rne(value / scale)` through the reciprocal; 0 where the scale has no finite one.
pub fn quantize(value: f32, scale: f32) -> i8 {
    let usable = scale > f32::from_bits(0x0020_0000) && scale < f32::INFINITY;
    if usable { libm::rintf(value * (1.0 / scale)) as i8 } else { 0 }
}

/// Quantises `value(0) .. value(n - 1)`; returns the scale.
pub fn quantize_row(n: usize, value: impl Fn(usize) -> f32, output: &mut [i8]) -> f32 {
    let scale = quantize_scale(n, &value);
    for i in 0..n {
        output[i] = quantize(value(i), scale);
    }
    scale
}

/// `output = quantised gamma * (r * input)`; returns the scale.
pub fn rms_norm_quant<T: Element>(input: &[T], gamma: &[T], eps: f64, output: &mut [i8]) -> f32 {
    let r = rms_scale(input, eps);
    quantize_row(input.len(), |i| gamma[i].as_() * (r * input[i].as_()), output)
}

/// `(f32(sum) * row_scale) * column_scale`
pub fn dequant(sum: i32, row_scale: f32, column_scale: f32) -> f32 {
    sum as f32 * row_scale * column_scale
}

/// `output = input * input_scale * weight_scale + residual`
pub fn dequant_residual<T: Element>(input: &[i32], input_scale: f32, weight_scale: &[f32], residual: &[T], output: &mut [T]) {
    for i in 0..input.len() {
        output[i] = T::narrow(dequant(input[i], input_scale, weight_scale[i]) + residual[i].as_());
    }
}

/// Pair (a, b) of every head turns into (a cos - b sin, b cos + a sin), with cos and sin interleaved in `freqs`.
pub fn dequant_rope(input: &[i32], input_scale: f32, weight_scale: &[f32], freqs: &[f32], output: &mut [f32]) {
    for i in (0..input.len()).step_by(2) {
        let a = dequant(input[i], input_scale, weight_scale[i]);
        let b = dequant(input[i + 1], input_scale, weight_scale[i + 1]);
        let (cos, sin) = (freqs[i % freqs.len()], freqs[i % freqs.len() + 1]);
        (output[i], output[i + 1]) = (a * cos - b * sin, b * cos + a * sin);
    }
}

/// `(a / (1 + exp(-a))) * b`
pub fn swiglu(a: f32, b: f32) -> f32 {
    a / (1.0 + super::math::exp(0.0 - a)) * b
}
