//! The table of rotary position embedding.

use super::check;
use super::heads::even;
use super::rms_norm::Rows;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// `output[t][2i] = cos(a)`, `output[t][2i+1] = sin(a)` with the angle `a = (start + t) * theta^(-2i/D)`.
///
/// * Shapes: `output` `[T,D]`, D even; T = 0 writes nothing, D = 0 is refused.
/// * Dtypes: f32; computed in f64 and rounded once, so that position 100 000 is as exact as position 1. The functions are those of the
///   `libm` crate: the same bits on every platform.
/// * Workspace: D/2 numbers of f64, and a row a worker for an output whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 an odd D, a negative `start`, positions up to 2^63 or beyond, a `theta` that is not
///   finite or below 1e-280, where angles are too large for numbers, elements that overlap.
/// * Document 003, `precomputeFreqsCis`; there with fast intrinsics. Computed once for all layers and calls.
///
/// ```
/// use tilekern::{Host, Run, Scratch, TensorMut, ops::RopeTable};
///
/// let mut table = [0.0f32; 8];
/// let host = Host::new();
/// let call = RopeTable::new(TensorMut::new([2, 4], &mut table)?);
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(table[..4], [1.0, 0.0, 1.0, 0.0]);
/// assert_eq!(table[4..], [1.0f64.cos() as f32, 1.0f64.sin() as f32, 0.01f64.cos() as f32, 0.01f64.sin() as f32]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct RopeTable<'a, B: Backend> {
    /// The position of the first row; 0.
    pub start: i64,
    /// The base of the frequencies; 10 000.
    pub theta: f64,
    /// `[T,D]`
    pub output: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend> RopeTable<'a, B> {
    /// From position 0, with theta 10 000.
    pub fn new(output: B::ViewMut<'a, f32>) -> Self {
        RopeTable { start: 0, theta: 10_000.0, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Rows, Error> {
        let [rows, columns] = check::sizes("output", &self.output)?;
        even("output", columns)?;
        let last = i64::try_from(rows).ok().and_then(|rows| self.start.checked_add(rows));
        check::attribute("start", self.start >= 0 && last.is_some(), "positions from 0 to 2^63", self.start)?;
        check::attribute("theta", (1e-280..f64::INFINITY).contains(&self.theta), "1e-280 <= theta < inf", self.theta)?;
        check::memory(data, &[("output", self.output.location())], &[])?;
        Ok(Rows { rows, columns })
    }
}
