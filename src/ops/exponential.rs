//! Random numbers of an exponential distribution.

use super::check;
use crate::backend::Backend;
use crate::error::{Error, Value};
use crate::tensor::Describe;

/// Exponential numbers of a rate, `out_i = e_i * (1 / rate)` with `e_i = -ln u_i`, all in f32, u_i from Philox4x32-10.
///
/// The number of an element follows from (seed, offset), its place i in row-major order and the size n of the tensor alone, by the
/// mapping of CUDA on 78 multiprocessors: with `T = 256 * min(ceil(n / 256), 624)` threads, element i is served by thread i mod T in
/// its turn r = i div T; the counter is `(ceil(offset / 4) + r div 4, i mod T)` as two words of 64 bits, the key is the seed, and word
/// r mod 4 of the result is w. Then `u = w * 2^-32 + 2^-33` in f32, which is in (0,1], and -ln u is at least 2^-24. The product
/// is rounded to the dtype of `out` at the end. The reciprocal of 2^-128 and less is infinite, that of more than f32 holds 0.
///
/// * Shapes: `out` of any rank and strides. Without rows nothing is written; another dimension of 0 is refused.
/// * Dtypes: `out` f32, f16 or bf16. `seed` and `offset` are 64-bit patterns.
/// * A call uses the offsets up to `offset + 4 * ceil(n / (4 T))`; calls whose offsets are at least 4 apart share no number as long as
///   n <= 4 T, which is 638 976.
/// * **Limit.** u has the 24 bits of an f32: e is never below 2^-24 and never above 22.874. A race on `p / e` therefore never draws a
///   token whose logit is more than 19.77 below the best, and one beyond about 16 too rarely: of two tokens, drawn / expected is 0.998
///   at a distance of 14, 0.986 at 15, 0.914 at 16, 0.617 at 17, 0.119 at 18, 3.8e-4 at 19 and 6e-7 at 19.5.
/// * Workspace: 16 KiB a worker, used where `out` is not contiguous.
/// * Errors: 161001 `out` without data; 161002 a rate that is not above 0, an `out` that overlaps itself.
/// * Document 000, the noise of `npu_top_k_top_p_sample`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, TensorMut, ops::Exponential};
///
/// let mut e = [0.0f32; 8];
/// let mut call = Exponential::new(TensorMut::new([2, 4], &mut e)?);
/// call.seed = 1;
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert!((e[1] - 3.595_307_8).abs() < 1e-6 && (e[7] - 3.359_809).abs() < 1e-6);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct Exponential<'a, B: Backend, T: 'a> {
    /// Above 0; 1. Taken as f32.
    pub rate: f64,
    /// The key; 0.
    pub seed: i64,
    /// Counted in words, four to a counter; 0.
    pub offset: i64,
    /// The numbers.
    pub out: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> Exponential<'a, B, T> {
    /// Rate 1, seed and offset 0.
    pub fn new(out: B::ViewMut<'a, T>) -> Self {
        Exponential { rate: 1.0, seed: 0, offset: 0, out }
    }

    /// Validates, for a query or with data for a run.
    pub(crate) fn check(&self, data: bool) -> Result<(), Error> {
        check::attribute("rate", self.rate > 0.0, "a rate above 0", self.rate)?;
        let shape = self.out.dims().shape();
        if shape.iter().skip(1).any(|&n| n == 0) {
            return Err(Error::invalid("out", "no dimension of 0", Value::shape(shape)));
        }
        check::memory(data, &[("out", self.out.location())], &[])
    }
}
