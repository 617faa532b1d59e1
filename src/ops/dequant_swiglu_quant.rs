//! The middle of the feed-forward network.

use super::check;
use super::rms_norm::Rows;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// SwiGLU of two products, each row quantised to int8: with `a = w1 * input_scale * w1_scale` and `b = w3 * input_scale * w3_scale`,
/// `y = a / (1 + exp(-a)) * b`, `output_scale = max |y| / 127`, `output = rne(y / output_scale)`.
///
/// * Shapes: `w1`, `w3` and `output` `[M,F]`, `input_scale` and `output_scale` `[M]`, `w1_scale` and `w3_scale` `[F]`; M = 0 writes
///   nothing, F = 0 is refused. F has no upper limit.
/// * Dtypes: `w1` and `w3` i32, the scales f32, `output` i8. A product is `(f32(w) * input_scale) * scale`; arithmetic in f32.
/// * A row whose scale has no finite reciprocal (zeros; at most 2^-128), or with an infinity or a NaN, gives zeros; its scale is the
///   value of `max |y| / 127`.
/// * Workspace: a row of f32 a worker; the two scales and three more rows a worker for tensors whose last dimension is not
///   contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, overlapping tensors.
/// * Document 003, `dequantizedSiluMultiplyQuantized`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::DequantSwigluQuant};
///
/// // exp(-40) is lost beside 1: the gate is the identity.
/// let (gate, other, ones) = ([40, 40], [127, -63], [1.0f32; 2]);
/// let (mut y, mut scale) = ([0i8; 2], [0.0f32; 1]);
/// let host = Host::new();
/// let call = DequantSwigluQuant::new(
///     Tensor::new([1, 2], &gate)?,
///     Tensor::new([1, 2], &other)?,
///     Tensor::new([1], &[1.0])?,
///     Tensor::new([2], &ones)?,
///     Tensor::new([2], &ones)?,
///     TensorMut::new([1, 2], &mut y)?,
///     TensorMut::new([1], &mut scale)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((y, scale), ([127, -63], [40.0]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct DequantSwigluQuant<'a, B: Backend> {
    /// `[M,F]`, the gate
    pub w1: B::View<'a, i32>,
    /// `[M,F]`
    pub w3: B::View<'a, i32>,
    /// `[M]`
    pub input_scale: B::View<'a, f32>,
    /// `[F]`
    pub w1_scale: B::View<'a, f32>,
    /// `[F]`
    pub w3_scale: B::View<'a, f32>,
    /// `[M,F]`
    pub output: B::ViewMut<'a, i8>,
    /// `[M]`
    pub output_scale: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend> DequantSwigluQuant<'a, B> {
    /// All fields.
    pub fn new(
        w1: B::View<'a, i32>,
        w3: B::View<'a, i32>,
        input_scale: B::View<'a, f32>,
        w1_scale: B::View<'a, f32>,
        w3_scale: B::View<'a, f32>,
        output: B::ViewMut<'a, i8>,
        output_scale: B::ViewMut<'a, f32>,
    ) -> Self {
        DequantSwigluQuant { w1, w3, input_scale, w1_scale, w3_scale, output, output_scale }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Rows, Error> {
        let [rows, columns] = check::sizes("w1", &self.w1)?;
        check::shape("w3", &self.w3, &[rows, columns])?;
        check::shape("input_scale", &self.input_scale, &[rows])?;
        check::shape("w1_scale", &self.w1_scale, &[columns])?;
        check::shape("w3_scale", &self.w3_scale, &[columns])?;
        check::shape("output", &self.output, &[rows, columns])?;
        check::shape("output_scale", &self.output_scale, &[rows])?;
        check::memory(
            data,
            &[("output", self.output.location()), ("output_scale", self.output_scale.location())],
            &[
                ("w1", self.w1.location()),
                ("w3", self.w3.location()),
                ("input_scale", self.input_scale.location()),
                ("w1_scale", self.w1_scale.location()),
                ("w3_scale", self.w3_scale.location()),
            ],
        )?;
        Ok(Rows { rows, columns })
    }
}
