//! Keys: a value and its place as one integer that sorts as lists do, larger values first, of equal ones the lower index first.
//!
//! The high half are the bits of the value, mapped so that unsigned order is descending order; the low half is the index. Keys of a row
//! are unique, so every way of selecting or sorting them gives the same list.

use crate::element::Element;
use crate::simd::Simd;

/// What logits count as: NaN as -inf, +inf as the largest finite number.
#[inline(always)]
pub fn clean<S: Simd>(s: S, v: S::F32) -> S::F32 {
    s.min(s.max(v, s.splat(f32::NEG_INFINITY)), s.splat(f32::MAX))
}

/// The key of a cleaned value; -0 counts as +0.
#[inline(always)]
pub fn key(value: f32, index: usize) -> u64 {
    u64::from(descending(value)) << 32 | index as u64
}

/// The index in a key.
#[inline(always)]
pub fn index_of(key: u64) -> usize {
    key as u32 as usize
}

/// The value in a key.
#[inline(always)]
pub fn value_of(key: u64) -> f32 {
    ascending_to_value(!((key >> 32) as u32) as i32 ^ i32::MIN)
}

/// Unsigned, descending as the value ascends.
#[inline(always)]
fn descending(value: f32) -> u32 {
    !((value_to_ascending(value + 0.0) ^ i32::MIN) as u32)
}

/// Signed, ascending with the value.
#[inline(always)]
pub fn value_to_ascending(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    bits ^ (bits >> 31 & i32::MAX)
}

/// The value of [`value_to_ascending`].
#[inline(always)]
pub fn ascending_to_value(order: i32) -> f32 {
    f32::from_bits((order ^ (order >> 31 & i32::MAX)) as u32)
}

/// [`value_to_ascending`] of bits, and back.
#[inline(always)]
pub fn order<S: Simd>(s: S, bits: S::I32) -> S::I32 {
    let negative = s.gt_i32(s.splat_i32(0), bits);
    s.select_i32(negative, s.xor(bits, s.splat_i32(i32::MAX)), bits)
}

/// Between two places in the order of numbers the neighbours where `holds` begins to hold: the last number for which it does not, and
/// the first for which it does. It is not asked of `low`, for which it counts as false, nor of `high`, for which it counts as true.
#[inline(always)]
pub fn bisect(mut low: i32, mut high: i32, holds: impl Fn(f32) -> bool) -> (f32, f32) {
    while i64::from(high) - i64::from(low) > 1 {
        let middle = low.midpoint(high);
        if holds(ascending_to_value(middle)) { high = middle } else { low = middle }
    }
    (ascending_to_value(low), ascending_to_value(high))
}

/// How many of the numbers below `n` it holds for, which are the first of them.
#[inline(always)]
pub fn prefix(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The bits of a number of 16 bits. Of numbers that are not negative the larger has the larger.
#[inline(always)]
pub fn bits_of_half<T: Element>(x: T) -> i16 {
    i16::from_ne_bytes(bytemuck::cast(x))
}
