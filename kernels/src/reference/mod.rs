//! The scalar definition of every kernel, operation for operation in the order of the vector body: what the tests compare bits
//! with. Written to be read, not to be fast.

mod apply;
mod attention;
mod choice;
mod int8;
mod keep_prefix;
pub use apply::*;
pub use attention::{attention, dot};
pub use choice::*;
pub use int8::int8_dot;
pub mod math;
mod multinomial;
mod philox;
mod rows;
mod sample_v1;
mod sampling;
pub use keep_prefix::*;
pub use multinomial::*;
pub use philox::*;
pub use rows::*;
pub use sample_v1::*;
pub use sampling::*;

/// `sum + lost`, where `lost` is what a rounded `sum` left out, rounded to odd: of the two neighbours in 53 bits the one with the
/// odd last bit. Rounding that to 24 bits rounds the exact value once.
#[inline(always)]
pub fn to_odd(sum: f64, lost: f64) -> f64 {
    let bits = sum.to_bits();
    // Both false for the NaN that an infinite sum leaves in `lost`. Without branches: half of all sums are even.
    let (more, less) = (lost > 0.0, lost < 0.0);
    let moves = !bits & u64::from(more | less);
    let away = u64::from(more == (sum > 0.0));
    f64::from_bits(bits.wrapping_add(moves & away).wrapping_sub(moves & !away))
}

/// `a * b + c`, rounded once.
///
/// ```
/// use tilekern_kernels::reference::fma;
///
/// let a = 1.0 + f32::EPSILON;
/// assert_eq!(fma(a, a, -1.0), a.mul_add(a, -1.0));
/// ```
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    let (p, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = p + c;
    let back = sum - p;
    to_odd(sum, (p - (sum - back)) + (c - back)) as f32
}

/// The one tree of a 16-lane sum: `i` and `i + 8`, then `i + 4`, `i + 2`, `i + 1`.
pub fn tree_add(mut a: [f32; 16]) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            a[i] += a[i + half];
        }
    }
    a[0]
}

/// The sum of `value(i)` for i in 0..n: 16 lanes inside blocks of 256 elements, each block by [`tree_add`] into one `f64`, blocks
/// in order.
pub fn row_sum(n: usize, value: impl Fn(usize) -> f32) -> f64 {
    let mut total = 0.0;
    for start in (0..n).step_by(256) {
        let mut lanes = [0.0; 16];
        for i in start..n.min(start + 256) {
            lanes[i % 16] += value(i);
        }
        total += f64::from(tree_add(lanes));
    }
    total
}
