//! Drawing from rows of weights.

use super::check;
use crate::backend::Backend;
use crate::error::{Error, Value};
use crate::tensor::Describe;
use half::{bf16, f16};
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::rows::{Widen, Winner};

/// The most weights of a row: an f32 counts no further.
const MAX_CATEGORIES: usize = 1 << 24;

mod sealed {
    use super::*;

    pub trait Widened: Copy + Send + Sync + 'static {
        /// One, as `f32`.
        fn to_f32(self) -> f32;
        /// Some, as `f32`: where they lie, or widened into `to`, which is as long.
        fn widened<'b>(level: Level, from: &'b [Self], to: &'b mut [f32]) -> &'b [f32];
        /// The winner of a whole row, where it is certain.
        fn winner(level: Level, row: Winner<'_, Self>) -> Option<usize>;
    }

    impl Widened for f32 {
        fn to_f32(self) -> f32 {
            self
        }
        fn widened<'b>(_: Level, from: &'b [f32], _: &'b mut [f32]) -> &'b [f32] {
            from
        }
        fn winner(level: Level, row: Winner<'_, f32>) -> Option<usize> {
            level.run(row)
        }
    }

    impl Widened for f64 {
        fn to_f32(self) -> f32 {
            self as f32
        }
        fn widened<'b>(_: Level, from: &'b [f64], to: &'b mut [f32]) -> &'b [f32] {
            for (to, from) in to.iter_mut().zip(from) {
                *to = *from as f32;
            }
            to
        }
        fn winner(_: Level, _: Winner<'_, f64>) -> Option<usize> {
            None
        }
    }

    macro_rules! half {
        ($($t:ty)*) => {$(
            impl Widened for $t {
                fn to_f32(self) -> f32 {
                    <$t>::to_f32(self)
                }
                fn widened<'b>(level: Level, input: &'b [$t], output: &'b mut [f32]) -> &'b [f32] {
                    level.run(Widen { input, output: &mut *output });
                    output
                }
                fn winner(level: Level, row: Winner<'_, $t>) -> Option<usize> {
                    level.run(row)
                }
            }
        )*};
    }
    half!(f16 bf16);
}

/// What a weight may be: f32, f16, bf16, or f64, which is rounded to f32.
pub trait Weight: sealed::Widened {}

impl Weight for f32 {}
impl Weight for f64 {}
impl Weight for f16 {}
impl Weight for bf16 {}

/// The sizes of a multinomial.
#[derive(Clone, Copy)]
pub(crate) struct Draws {
    pub rows: usize,
    pub categories: usize,
    pub samples: usize,
}

/// Draws `num_samples` indices from each row of weights, with or without replacement.
///
/// Weights w are taken as f32 and need not sum to 1. One sample, or any number without replacement, is an exponential race: the
/// places of the largest `w_j / e_j`, descending, of equal ones the lower first. e is the tensor of exponential numbers that
/// [`Exponential`](super::Exponential) gives for the shape of `probs`: element `n * C + j` for weight j of row n. Several samples
/// with replacement search the running sum: sample s of row n is the first j with `cdf_j >= u`, where u = `w * 2^-32 + 2^-33` from
/// the first word w of Philox4x32-10 for the counter `(ceil(offset / 4), n * R + s)`, R being `num_samples` rounded up to a
/// multiple of 128, and `cdf_j` is the sum of the exact masses `round(w_i / sum * 2^52)` for i <= j, rounded once to f32. Where u
/// lies above the last sum, the first index with that sum is taken: an index without weight never is.
///
/// * Shapes: `probs` `[N,C]` or `[C]`, `out` `[N,num_samples]` or `[num_samples]`. An empty `probs` writes nothing (where C is
///   0, with replacement only). C <= 2^24.
/// * Dtypes: `probs` f32, f16, bf16 or f64; `out` i64. `seed` and `offset` are 64-bit patterns.
/// * Calls share no number where offsets are 4 apart for each 638 976 elements of `probs`, `4 * ceil(N C / 638 976)`; where several are
///   drawn with replacement, 4 apart. Offsets from 4n + 1 to 4n + 4 are the same.
/// * A negative or NaN weight counts as 0, an infinite one as the largest f32. A row without weight gives 0 for each sample,
///   without replacement 0, 1, 2 and so on; so do rows with fewer weights than samples behind these. A sum that overflows is taken
///   of the weights times 2^-30.
/// * **Limit** of the race: a weight below 2^-28.5 of the largest is never drawn, see [`Exponential`](super::Exponential). u has 24
///   bits: with replacement, weights below 2^-25 of the sum are drawn too rarely where they stand late in the row. In a race of
///   nothing but weights of some 2^-149 every quotient may be 0, and index 0 comes first with or without weight.
/// * Workspace: at most 144 KiB a worker, of long rows 16 KiB and 128 KiB once. Several samples without replacement need 8 bytes for
///   each of min(C, n + max(16 384, n / 2)) keys, once for the whole call where C is above 16 384, else for each worker.
/// * Errors: 161001 a tensor without data; 161002, in this order: the rank of `probs`, the rank of `out`, its last dimension, its first,
///   `num_samples` < 1, `num_samples` > C without replacement, C > 2^24, overlapping tensors.
/// * Document 000, the choice `multiNomial`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::Multinomial};
///
/// let probs = [0.1f32, 0.2, 0.3, 0.4, 0.25, 0.25, 0.25, 0.25];
/// let mut out = [0i64; 16];
/// let mut call = Multinomial::new(Tensor::new([2, 4], &probs)?, TensorMut::new([2, 8], &mut out)?);
/// (call.num_samples, call.seed) = (8, 42);
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(out, [3, 0, 2, 0, 1, 2, 3, 2, 3, 1, 3, 0, 1, 1, 0, 0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct Multinomial<'a, B: Backend, T: 'a> {
    /// `[N,C]` or `[C]`
    pub probs: B::View<'a, T>,
    /// 1
    pub num_samples: i64,
    /// Whether an index may come again; true.
    pub replacement: bool,
    /// The key; 0.
    pub seed: i64,
    /// Counted in words, four to a counter; 0.
    pub offset: i64,
    /// `[N,num_samples]` or `[num_samples]`
    pub out: B::ViewMut<'a, i64>,
}

impl<'a, B: Backend, T> Multinomial<'a, B, T> {
    /// One sample, seed and offset 0.
    pub fn new(probs: B::View<'a, T>, out: B::ViewMut<'a, i64>) -> Self {
        Multinomial { probs, num_samples: 1, replacement: true, seed: 0, offset: 0, out }
    }

    /// Validates, for a query or with data for a run, and returns the sizes; none where there is nothing to do.
    pub(crate) fn check(&self, data: bool) -> Result<Option<Draws>, Error> {
        let (shape, out) = (self.probs.dims().shape(), self.out.dims().shape());
        let (rows, categories) = match *shape {
            [categories] => (1, categories),
            [rows, categories] => (rows, categories),
            _ => return Err(Error::invalid("probs", "a rank of 1 or 2", Value::shape(shape))),
        };
        check::attribute("out", out.len() == shape.len(), "the rank of probs", Value::shape(out))?;
        let wanted = usize::try_from(self.num_samples).ok();
        let samples = out[out.len() - 1];
        check::attribute("out", wanted == Some(samples), self.num_samples, Value::shape(out))?;
        check::attribute("out", out.len() == 1 || out[0] == rows, rows, Value::shape(out))?;
        check::attribute("num_samples", samples > 0, "at least 1", samples)?;
        check::attribute("num_samples", self.replacement || samples <= categories, "at most C without replacement", samples)?;
        check::attribute("probs", categories <= MAX_CATEGORIES, "at most 2^24 columns", categories)?;
        let some = rows * categories > 0;
        check::memory(data && some, &[("out", self.out.location())], &[("probs", self.probs.location())])?;
        Ok(some.then_some(Draws { rows, categories, samples }))
    }
}
