//! RMSNorm, plain and quantised.

use super::check;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// A matrix by its rows.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub rows: usize,
    pub columns: usize,
}

/// `output = gamma * (r * input)`, `r = 1 / sqrt(mean(input^2) + eps)`, row by row.
///
/// * Shapes: `input` `[M,H]`, `gamma` `[H]`, `output` `[M,H]`; M = 0 writes nothing, H = 0 is refused.
/// * Dtypes: f32, f16 or bf16, one for all; arithmetic in f32, the sum of squares in f64 by blocks of 256.
/// * A row of zeros gives zeros. A NaN, an infinity, or a block whose squares add up beyond f32 (a number from 1.8e19 on, 256 numbers
///   from 1.15e18 on) makes NaN of its whole row. A square below f32's numbers counts as 0, which only an `eps` of 0 lets be seen.
/// * Workspace: `gamma` and two rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, a NaN or negative `eps`, overlapping tensors.
/// * Document 003, `resNorm`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::RmsNorm};
///
/// let (x, gamma, mut y) = ([1.0f32, -1.0], [2.0f32, 2.0], [0.0f32; 2]);
/// let host = Host::new();
/// let mut call = RmsNorm::new(Tensor::new([1, 2], &x)?, Tensor::new([2], &gamma)?, TensorMut::new([1, 2], &mut y)?);
/// call.eps = 0.0;
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(y, [2.0, -2.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct RmsNorm<'a, B: Backend, T: 'a> {
    /// `[M,H]`
    pub input: B::View<'a, T>,
    /// `[H]`
    pub gamma: B::View<'a, T>,
    /// Added to the mean of squares; 1e-5.
    pub eps: f64,
    /// `[M,H]`
    pub output: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> RmsNorm<'a, B, T> {
    /// With eps 1e-5.
    pub fn new(input: B::View<'a, T>, gamma: B::View<'a, T>, output: B::ViewMut<'a, T>) -> Self {
        RmsNorm { input, gamma, eps: 1e-5, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Rows, Error> {
        let [rows, columns] = check::sizes("input", &self.input)?;
        check::shape("gamma", &self.gamma, &[columns])?;
        check::attribute("eps", self.eps >= 0.0, "eps >= 0", self.eps)?;
        check::shape("output", &self.output, &[rows, columns])?;
        check::memory(
            data,
            &[("output", self.output.location())],
            &[("input", self.input.location()), ("gamma", self.gamma.location())],
        )?;
        Ok(Rows { rows, columns })
    }
}

/// RMSNorm, then each row quantised to int8 with a scale of its own: `scale = max |y| / 127`, `output = rne(y / scale)`.
///
/// * Shapes: `input` `[M,H]`, `gamma` `[H]`, `output` `[M,H]`, `output_scale` `[M]`; M = 0 writes nothing, H = 0 is refused.
/// * Dtypes: `input` and `gamma` f32, f16 or bf16, one for both; `output` i8; `output_scale` f32.
/// * A row whose scale has no finite reciprocal (zeros; at most 2^-128), or with an infinity or a NaN, gives zeros; its scale is the
///   value of `max |y| / 127`.
/// * Workspace: `gamma` and two rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: as [`RmsNorm`].
/// * Document 003, `resNormQuantized`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::RmsNormQuant};
///
/// let (x, gamma) = ([1.0f32, -1.0], [127.0f32, 63.0]);
/// let (mut y, mut scale) = ([0i8; 2], [0.0f32; 1]);
/// let host = Host::new();
/// let mut call = RmsNormQuant::new(
///     Tensor::new([1, 2], &x)?,
///     Tensor::new([2], &gamma)?,
///     TensorMut::new([1, 2], &mut y)?,
///     TensorMut::new([1], &mut scale)?,
/// );
/// call.eps = 0.0;
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((y, scale), ([127, -63], [1.0]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct RmsNormQuant<'a, B: Backend, T: 'a> {
    /// `[M,H]`
    pub input: B::View<'a, T>,
    /// `[H]`
    pub gamma: B::View<'a, T>,
    /// Added to the mean of squares; 1e-5.
    pub eps: f64,
    /// `[M,H]`
    pub output: B::ViewMut<'a, i8>,
    /// `[M]`
    pub output_scale: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend, T> RmsNormQuant<'a, B, T> {
    /// With eps 1e-5.
    pub fn new(
        input: B::View<'a, T>,
        gamma: B::View<'a, T>,
        output: B::ViewMut<'a, i8>,
        output_scale: B::ViewMut<'a, f32>,
    ) -> Self {
        RmsNormQuant { input, gamma, eps: 1e-5, output, output_scale }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Rows, Error> {
        let [rows, columns] = check::sizes("input", &self.input)?;
        check::shape("gamma", &self.gamma, &[columns])?;
        check::attribute("eps", self.eps >= 0.0, "eps >= 0", self.eps)?;
        check::shape("output", &self.output, &[rows, columns])?;
        check::shape("output_scale", &self.output_scale, &[rows])?;
        check::memory(
            data,
            &[("output", self.output.location()), ("output_scale", self.output_scale.location())],
            &[("input", self.input.location()), ("gamma", self.gamma.location())],
        )?;
        Ok(Rows { rows, columns })
    }
}
