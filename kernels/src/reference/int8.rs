//! The int8 product, one sum at a time.

/// `sum over k of x[k] * weight(k)`; exact for up to 65 536 terms.
pub fn int8_dot(x: &[i8], weight: impl Fn(usize) -> i8) -> i32 {
    x.iter().enumerate().map(|(k, &x)| i32::from(x) * i32::from(weight(k))).sum()
}
