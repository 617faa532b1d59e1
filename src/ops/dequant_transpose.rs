//! Query, key and value out of their products: dequantised, rotated where a position counts, and laid out by heads.

use super::check;
use super::heads::{HeadSizes, even};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// `output[b][h][s] = input[b][s][h] * input_scale[b][s] * weight_scale[h]`: dequantised, one row a head.
///
/// * Shapes: `input` `[B,S,heads*D]`, `input_scale` `[B,S]`, `weight_scale` `[heads*D]`, `output` `[B,heads,S,D]`, any number and
///   size of heads; B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `input` i32, the others f32. A value is `(f32(input) * input_scale) * weight_scale`, each step rounded.
/// * A NaN or an infinity among the scales spreads as in these products.
/// * Workspace: the weight scales and two rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, overlapping tensors.
/// * Document 003, `dequantizedVTranspose`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::DequantTranspose};
///
/// // Two tokens of two heads of two.
/// let (sums, scale, weights) = ([1, 2, 3, 4, 5, 6, 7, 8], [1.0f32, 10.0], [0.5f32; 4]);
/// let mut value = [0.0f32; 8];
/// let host = Host::new();
/// let call = DequantTranspose::new(
///     Tensor::new([1, 2, 4], &sums)?,
///     Tensor::new([1, 2], &scale)?,
///     Tensor::new([4], &weights)?,
///     TensorMut::new([1, 2, 2, 2], &mut value)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(value, [0.5, 1.0, 25.0, 30.0, 1.5, 2.0, 35.0, 40.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct DequantTranspose<'a, B: Backend> {
    /// `[B,S,heads*D]`
    pub input: B::View<'a, i32>,
    /// `[B,S]`
    pub input_scale: B::View<'a, f32>,
    /// `[heads*D]`
    pub weight_scale: B::View<'a, f32>,
    /// `[B,heads,S,D]`
    pub output: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend> DequantTranspose<'a, B> {
    /// All fields.
    pub fn new(
        input: B::View<'a, i32>,
        input_scale: B::View<'a, f32>,
        weight_scale: B::View<'a, f32>,
        output: B::ViewMut<'a, f32>,
    ) -> Self {
        DequantTranspose { input, input_scale, weight_scale, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<HeadSizes, Error> {
        let d = HeadSizes::of("output", &self.output)?;
        check::shape("input", &self.input, &[d.batch, d.tokens, d.columns])?;
        check::shape("input_scale", &self.input_scale, &[d.batch, d.tokens])?;
        check::shape("weight_scale", &self.weight_scale, &[d.columns])?;
        check::memory(
            data,
            &[("output", self.output.location())],
            &[
                ("input", self.input.location()),
                ("input_scale", self.input_scale.location()),
                ("weight_scale", self.weight_scale.location()),
            ],
        )?;
        Ok(d)
    }
}

/// [`DequantTranspose`] with rotary position embedding: pair i of a head, (a, b) = (v\[2i\], v\[2i+1\]), turns into
/// `(a cos - b sin, b cos + a sin)` with the cos and sin of pair i in row `start_pos[b] + s` of `freqs`.
///
/// * Shapes: `input` `[B,S,heads*D]`, `input_scale` `[B,S]`, `weight_scale` `[heads*D]`, `freqs` `[T,D]` as
///   [`RopeTable`](super::RopeTable) writes it, `start_pos` `[B]` or `[B,1]`, `output` `[B,heads,S,D]`, any number of heads of any
///   even size; B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `input` i32, `start_pos` i64, the others f32. Each product and sum is rounded.
/// * A NaN or an infinity among scales or table spreads as in these products.
/// * Workspace: the weight scales and three rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, an odd D, overlapping tensors, a position outside the
///   table.
/// * Document 003, the query and key RoPE kernels; there a generated token was rotated as if at position 0.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::DequantRopeTranspose};
///
/// // A quarter turn at position 1.
/// let (sums, freqs, mut query) = ([3, 4], [1.0f32, 0.0, 0.0, 1.0], [0.0f32; 2]);
/// let host = Host::new();
/// let call = DequantRopeTranspose::new(
///     Tensor::new([1, 1, 2], &sums)?,
///     Tensor::new([1, 1], &[1.0])?,
///     Tensor::new([2], &[1.0, 1.0])?,
///     Tensor::new([2, 2], &freqs)?,
///     Tensor::new([1], &[1i64])?,
///     TensorMut::new([1, 1, 1, 2], &mut query)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(query, [-4.0, 3.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct DequantRopeTranspose<'a, B: Backend> {
    /// `[B,S,heads*D]`
    pub input: B::View<'a, i32>,
    /// `[B,S]`
    pub input_scale: B::View<'a, f32>,
    /// `[heads*D]`
    pub weight_scale: B::View<'a, f32>,
    /// `[T,D]`, cos and sin interleaved
    pub freqs: B::View<'a, f32>,
    /// `[B]`, the position of the first token
    pub start_pos: B::View<'a, i64>,
    /// `[B,heads,S,D]`
    pub output: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend> DequantRopeTranspose<'a, B> {
    /// All fields.
    pub fn new(
        input: B::View<'a, i32>,
        input_scale: B::View<'a, f32>,
        weight_scale: B::View<'a, f32>,
        freqs: B::View<'a, f32>,
        start_pos: B::View<'a, i64>,
        output: B::ViewMut<'a, f32>,
    ) -> Self {
        DequantRopeTranspose { input, input_scale, weight_scale, freqs, start_pos, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<HeadSizes, Error> {
        let d = HeadSizes::of("output", &self.output)?;
        even("output", d.size)?;
        check::shape("input", &self.input, &[d.batch, d.tokens, d.columns])?;
        check::shape("input_scale", &self.input_scale, &[d.batch, d.tokens])?;
        check::shape("weight_scale", &self.weight_scale, &[d.columns])?;
        let [positions, _] = check::filled("freqs", &self.freqs)?;
        check::shape("freqs", &self.freqs, &[positions, d.size])?;
        check::column("start_pos", &self.start_pos, d.batch)?;
        check::memory(
            data,
            &[("output", self.output.location())],
            &[
                ("input", self.input.location()),
                ("input_scale", self.input_scale.location()),
                ("weight_scale", self.weight_scale.location()),
                ("freqs", self.freqs.location()),
                ("start_pos", self.start_pos.location()),
            ],
        )?;
        Ok(d)
    }

    /// Rows of the table.
    pub(crate) fn positions(&self) -> usize {
        self.freqs.dims().shape()[0]
    }
}
