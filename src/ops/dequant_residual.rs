//! The end of a branch: dequantised, the residual added, and where another branch follows, its norm.

use super::check;
use super::rms_norm::Rows;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// `output = input * input_scale * weight_scale + residual`.
///
/// * Shapes: `input`, `residual` and `output` `[M,H]`, `input_scale` `[M]`, `weight_scale` `[H]`; M = 0 writes nothing, H = 0 is
///   refused.
/// * Dtypes: `input` i32, the scales f32, `residual` and `output` f32, f16 or bf16, one for both. The value is
///   `(f32(input) * input_scale) * weight_scale + residual`, each step rounded to f32, then once to the dtype.
/// * A NaN or an infinity spreads as in this sum.
/// * Workspace: the weight scales and three rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, overlapping tensors.
/// * Document 003, `dequantizedResidual`; there f16 rounded the product before the sum.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::DequantResidual};
///
/// let (sums, weights, residual, mut y) = ([4, -6], [0.5f32, 0.25], [1.0f32, 1.0], [0.0f32; 2]);
/// let host = Host::new();
/// let call = DequantResidual::new(
///     Tensor::new([1, 2], &sums)?,
///     Tensor::new([1], &[2.0])?,
///     Tensor::new([2], &weights)?,
///     Tensor::new([1, 2], &residual)?,
///     TensorMut::new([1, 2], &mut y)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(y, [5.0, -2.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct DequantResidual<'a, B: Backend, T: 'a> {
    /// `[M,H]`
    pub input: B::View<'a, i32>,
    /// `[M]`
    pub input_scale: B::View<'a, f32>,
    /// `[H]`
    pub weight_scale: B::View<'a, f32>,
    /// `[M,H]`
    pub residual: B::View<'a, T>,
    /// `[M,H]`
    pub output: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> DequantResidual<'a, B, T> {
    /// All fields.
    pub fn new(
        input: B::View<'a, i32>,
        input_scale: B::View<'a, f32>,
        weight_scale: B::View<'a, f32>,
        residual: B::View<'a, T>,
        output: B::ViewMut<'a, T>,
    ) -> Self {
        DequantResidual { input, input_scale, weight_scale, residual, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Rows, Error> {
        let [rows, columns] = check::sizes("input", &self.input)?;
        check::shape("input_scale", &self.input_scale, &[rows])?;
        check::shape("weight_scale", &self.weight_scale, &[columns])?;
        check::shape("residual", &self.residual, &[rows, columns])?;
        check::shape("output", &self.output, &[rows, columns])?;
        check::memory(
            data,
            &[("output", self.output.location())],
            &[
                ("input", self.input.location()),
                ("input_scale", self.input_scale.location()),
                ("weight_scale", self.weight_scale.location()),
                ("residual", self.residual.location()),
            ],
        )?;
        Ok(Rows { rows, columns })
    }
}

/// [`DequantResidual`] into `hidden`, and [`RmsNormQuant`] of it: the same bits as the two calls, in one pass over memory.
///
/// * Shapes: `input`, `residual`, `output` and `hidden` `[M,H]`, `input_scale` and `output_scale` `[M]`, `weight_scale` and `gamma`
///   `[H]`; M = 0 writes nothing, H = 0 is refused.
/// * Dtypes: `input` i32, the scales f32, `output` i8, `residual`, `gamma` and `hidden` f32, f16 or bf16, one for all. The norm reads
///   what `hidden` holds, rounded to the dtype.
/// * A row that is zero, or holds an infinity or a NaN, quantises to zeros as in [`RmsNormQuant`].
/// * Workspace: the weight scales, `gamma` and four rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: as [`DequantResidual`]; 161002 too for a NaN or negative `eps`.
/// * Document 003, `dequantizedResidualResNormQuantized`, whose norm reads the numbers before they are rounded: with f16 and bf16
///   another.
///
/// [`RmsNormQuant`]: super::RmsNormQuant
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::DequantResidualRmsNormQuant};
///
/// let (sums, weights, residual, gamma) = ([4, -6], [0.5f32, 0.25], [-3.0f32, 4.0], [127.0f32, 63.0]);
/// let (mut y, mut scale, mut hidden) = ([0i8; 2], [0.0f32; 1], [0.0f32; 2]);
/// let host = Host::new();
/// let mut call = DequantResidualRmsNormQuant::new(
///     Tensor::new([1, 2], &sums)?,
///     Tensor::new([1], &[2.0])?,
///     Tensor::new([2], &weights)?,
///     Tensor::new([1, 2], &residual)?,
///     Tensor::new([2], &gamma)?,
///     TensorMut::new([1, 2], &mut y)?,
///     TensorMut::new([1], &mut scale)?,
///     TensorMut::new([1, 2], &mut hidden)?,
/// );
/// call.eps = 0.0;
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((hidden, y, scale), ([1.0, 1.0], [127, 63], [1.0]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct DequantResidualRmsNormQuant<'a, B: Backend, T: 'a> {
    /// `[M,H]`
    pub input: B::View<'a, i32>,
    /// `[M]`
    pub input_scale: B::View<'a, f32>,
    /// `[H]`
    pub weight_scale: B::View<'a, f32>,
    /// `[M,H]`
    pub residual: B::View<'a, T>,
    /// `[H]`
    pub gamma: B::View<'a, T>,
    /// Added to the mean of squares; 1e-5.
    pub eps: f64,
    /// `[M,H]`
    pub output: B::ViewMut<'a, i8>,
    /// `[M]`
    pub output_scale: B::ViewMut<'a, f32>,
    /// `[M,H]`
    pub hidden: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> DequantResidualRmsNormQuant<'a, B, T> {
    /// With eps 1e-5.
    #[expect(clippy::too_many_arguments, reason = "the tensors of the call")]
    pub fn new(
        input: B::View<'a, i32>,
        input_scale: B::View<'a, f32>,
        weight_scale: B::View<'a, f32>,
        residual: B::View<'a, T>,
        gamma: B::View<'a, T>,
        output: B::ViewMut<'a, i8>,
        output_scale: B::ViewMut<'a, f32>,
        hidden: B::ViewMut<'a, T>,
    ) -> Self {
        DequantResidualRmsNormQuant { input, input_scale, weight_scale, residual, gamma, eps: 1e-5, output, output_scale, hidden }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Rows, Error> {
        let [rows, columns] = check::sizes("input", &self.input)?;
        check::shape("input_scale", &self.input_scale, &[rows])?;
        check::shape("weight_scale", &self.weight_scale, &[columns])?;
        check::shape("residual", &self.residual, &[rows, columns])?;
        check::shape("gamma", &self.gamma, &[columns])?;
        check::attribute("eps", self.eps >= 0.0, "eps >= 0", self.eps)?;
        check::shape("output", &self.output, &[rows, columns])?;
        check::shape("output_scale", &self.output_scale, &[rows])?;
        check::shape("hidden", &self.hidden, &[rows, columns])?;
        check::memory(
            data,
            &[
                ("output", self.output.location()),
                ("output_scale", self.output_scale.location()),
                ("hidden", self.hidden.location()),
            ],
            &[
                ("input", self.input.location()),
                ("input_scale", self.input_scale.location()),
                ("weight_scale", self.weight_scale.location()),
                ("residual", self.residual.location()),
                ("gamma", self.gamma.location()),
            ],
        )?;
        Ok(Rows { rows, columns })
    }
}
