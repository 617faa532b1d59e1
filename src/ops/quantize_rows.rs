//! Rows of numbers into int8.

use super::check;
use super::heads::HeadSizes;
use crate::backend::Backend;
use crate::error::{Error, Value};
use crate::tensor::Describe;

/// The sizes of a quantisation; `tokens` of a batch row where the input has heads.
#[derive(Clone, Copy)]
pub(crate) struct QuantizeSizes {
    pub rows: usize,
    pub columns: usize,
    pub tokens: Option<usize>,
}

/// Each row quantised to int8 with a scale of its own, `scale = max |x| / 127`, `output = rne(x / scale)`; a row is a token with all
/// its heads where the input has four dimensions.
///
/// * Shapes: `input` `[M,N]`, `output` `[M,N]`, `output_scale` `[M]`; or `input` `[B,heads,S,D]`, `output` `[B,S,heads*D]`,
///   `output_scale` `[B*S]`. M = 0 or B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `input` f32, f16 or bf16, `output` i8, `output_scale` f32. The division is a product with `1 / scale`, all in f32.
/// * A row whose scale has no finite reciprocal (zeros; at most 2^-128), or with an infinity or a NaN, gives zeros; its scale is the
///   value of `max |x| / 127`.
/// * Workspace: two rows a worker, used by heads that do not lie side by side and by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, overlapping tensors.
/// * Document 003, `attnQuantizedTranspose`, `perChannelQuantized`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::QuantizeRows};
///
/// // Two tokens of two heads of two.
/// let x = [127.0f32, 1.0, 0.5, 0.0, 2.0, 3.0, -63.5, 1.0];
/// let (mut y, mut scale) = ([0i8; 8], [0.0f32; 2]);
/// let host = Host::new();
/// let call = QuantizeRows::new(
///     Tensor::new([1, 2, 2, 2], &x)?,
///     TensorMut::new([1, 2, 4], &mut y)?,
///     TensorMut::new([2], &mut scale)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((y, scale), ([127, 1, 2, 3, 1, 0, -127, 2], [1.0, 0.5]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct QuantizeRows<'a, B: Backend, T: 'a> {
    /// `[M,N]` or `[B,heads,S,D]`
    pub input: B::View<'a, T>,
    /// `[M,N]` or `[B,S,heads*D]`
    pub output: B::ViewMut<'a, i8>,
    /// `[M]` or `[B*S]`
    pub output_scale: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend, T> QuantizeRows<'a, B, T> {
    /// All fields.
    pub fn new(input: B::View<'a, T>, output: B::ViewMut<'a, i8>, output_scale: B::ViewMut<'a, f32>) -> Self {
        QuantizeRows { input, output, output_scale }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<QuantizeSizes, Error> {
        let shape = self.input.dims().shape();
        let sizes = match shape.len() {
            2 => {
                let [rows, columns] = check::sizes("input", &self.input)?;
                check::shape("output", &self.output, &[rows, columns])?;
                QuantizeSizes { rows, columns, tokens: None }
            }
            4 => {
                let d = HeadSizes::of("input", &self.input)?;
                check::shape("output", &self.output, &[d.batch, d.tokens, d.columns])?;
                QuantizeSizes { rows: d.rows(), columns: d.columns, tokens: Some(d.tokens) }
            }
            _ => return Err(Error::invalid("input", "a rank of 2 or 4", Value::shape(shape))),
        };
        check::shape("output_scale", &self.output_scale, &[sizes.rows])?;
        check::memory(
            data,
            &[("output", self.output.location()), ("output_scale", self.output_scale.location())],
            &[("input", self.input.location())],
        )?;
        Ok(sizes)
    }
}
