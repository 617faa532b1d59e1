//! The int8 product.

use super::check;
use super::weight::{FORMAT_ND, MAX_K, WeightSizes, weight};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;
use half::{bf16, f16};

/// A scale for each output channel, in one of three dtypes.
#[derive(Debug)]
pub enum ChannelScale<'a, B: Backend> {
    /// f32
    F32(B::View<'a, f32>),
    /// f16
    F16(B::View<'a, f16>),
    /// bf16
    BF16(B::View<'a, bf16>),
}

/// A bias for each output channel.
#[derive(Debug)]
pub enum Bias<'a, B: Backend> {
    /// Added to the sum of products, in 64 bits, before it is rounded.
    I32(B::View<'a, i32>),
    /// Added after both scales.
    F32(B::View<'a, f32>),
}

/// Where a product goes.
#[derive(Debug)]
pub enum Product<'a, B: Backend> {
    /// The scaled sum.
    F32(B::ViewMut<'a, f32>),
    /// The scaled sum, rounded.
    F16(B::ViewMut<'a, f16>),
    /// The scaled sum, rounded.
    BF16(B::ViewMut<'a, bf16>),
    /// The sum itself, saturated where a bias moves it out of range.
    I32(B::ViewMut<'a, i32>),
}

impl<B: Backend> ChannelScale<'_, B> {
    pub(crate) fn describe(&self) -> &dyn Describe {
        match self {
            ChannelScale::F32(view) => view,
            ChannelScale::F16(view) => view,
            ChannelScale::BF16(view) => view,
        }
    }
}

impl<B: Backend> Bias<'_, B> {
    pub(crate) fn describe(&self) -> &dyn Describe {
        match self {
            Bias::I32(view) => view,
            Bias::F32(view) => view,
        }
    }
}

impl<B: Backend> Product<'_, B> {
    pub(crate) fn describe(&self) -> &dyn Describe {
        match self {
            Product::F32(view) => view,
            Product::F16(view) => view,
            Product::BF16(view) => view,
            Product::I32(view) => view,
        }
    }
}

/// Sizes of a product.
#[derive(Clone, Copy)]
pub(crate) struct Product3 {
    pub m: usize,
    pub k: usize,
    pub n: usize,
}

impl Product3 {
    /// The sizes of the weight.
    pub fn weight(self) -> WeightSizes {
        WeightSizes { experts: None, k: self.k, n: self.n }
    }
}

/// `out[m][n] = f32(sum over k of x[m][k] * weight[k][n] + bias[n]) * x_scale[m] * weight_scale[n]`, W8A8.
///
/// * Shapes: `x` `[M,K]`, `weight_scale` `[N]`, `x_scale` `[M]`, `bias` `[N]`, `out` `[M,N]`; `weight` is `[K,N]` with any strides
///   ([`FORMAT_ND`], the default), `[N/32,K/16,16,32]` ([`FORMAT_NZ`](super::FORMAT_NZ)), or packed
///   ([`FORMAT_PACKED`](super::FORMAT_PACKED), see [`PackWeight`](super::PackWeight)): rank 1, contiguous, one expert, from i8 or
///   from i4, whose numbers count the same. The first two are packed on the way, a few panels at a time; a weight that is used again
///   should be packed once. M = 0 writes nothing,
///   nor looks at what the weight holds; K or N of 0 is refused; K is at most 65 536.
/// * Dtypes: `x` and `weight` i8; `weight_scale` f32, f16 or bf16; `x_scale` f32; `bias` i32 or f32; `out` f32, f16, bf16 or i32.
/// * The sum is exact over the full range, -128 * -128 included. An i32 bias is added in 64 bits and the result rounded once; an f32
///   bias is added after both scales. A missing scale counts as 1. An i32 `out` takes the sum itself, without scales and without an
///   f32 bias; it saturates where an i32 bias moves it out of range.
/// * Workspace: at most 256 rows of activations in the form of the processor's dot instruction, scales and biases (12 N bytes); for each
///   worker up to eight rows of activations and 96 KiB, for a weight that is not packed 577 KiB and at most 16 of its panels.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, K > 65 536, an unknown format, a packed weight of another
///   header or length, an i32 `out` with a scale or an f32 bias, overlapping tensors.
/// * Document 003.
///
/// ```
/// use tilekern::ops::{Product, QuantMatmul};
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut};
///
/// let x = [1i8, 2, -128, 3];
/// let weight = [-128i8, 1, 1, 1, -128, 1];
/// let mut out = [0i32; 6];
/// let host = Host::new();
/// let call = QuantMatmul::new(
///     Tensor::new([2, 2], &x)?,
///     Tensor::new([2, 3], &weight)?,
///     Product::I32(TensorMut::new([2, 3], &mut out)?),
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(out, [-126, -255, 3, 16387, -512, -125]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct QuantMatmul<'a, B: Backend> {
    /// `[M,K]`
    pub x: B::View<'a, i8>,
    /// See `weight_format`.
    pub weight: B::View<'a, i8>,
    /// `[N]`
    pub weight_scale: Option<ChannelScale<'a, B>>,
    /// `[M]`
    pub x_scale: Option<B::View<'a, f32>>,
    /// `[N]`
    pub bias: Option<Bias<'a, B>>,
    /// [`FORMAT_ND`], [`FORMAT_NZ`](super::FORMAT_NZ) or [`FORMAT_PACKED`](super::FORMAT_PACKED).
    pub weight_format: i32,
    /// `[M,N]`
    pub out: Product<'a, B>,
}

impl<'a, B: Backend> QuantMatmul<'a, B> {
    /// A weight `[K,N]`, without scales and bias.
    pub fn new(x: B::View<'a, i8>, weight: B::View<'a, i8>, out: Product<'a, B>) -> Self {
        QuantMatmul { x, weight, weight_scale: None, x_scale: None, bias: None, weight_format: FORMAT_ND, out }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Product3, Error> {
        let [m, k] = check::sizes("x", &self.x)?;
        check::attribute("x", k <= MAX_K, "at most 65536 columns", k)?;
        let out = self.out.describe();
        let [rows, n] = check::sizes("out", out)?;
        check::attribute("out", rows == m, m, rows)?;
        weight("weight", &self.weight, self.weight_format, WeightSizes { experts: None, k, n })?;
        let raw = matches!(self.out, Product::I32(_));
        let mut inputs: [check::Arg<'_>; 5] = [("x", self.x.location()); 5];
        inputs[1] = ("weight", self.weight.location());
        if let Some(scale) = &self.weight_scale {
            check::shape("weight_scale", scale.describe(), &[n])?;
            inputs[2] = ("weight_scale", scale.describe().location());
        }
        if let Some(scale) = &self.x_scale {
            check::shape("x_scale", scale, &[m])?;
            inputs[3] = ("x_scale", scale.location());
        }
        if let Some(bias) = &self.bias {
            check::shape("bias", bias.describe(), &[n])?;
            inputs[4] = ("bias", bias.describe().location());
        }
        let scaled = self.weight_scale.is_some() || self.x_scale.is_some() || matches!(self.bias, Some(Bias::F32(_)));
        check::attribute("out", !(raw && scaled), "a float dtype with scales or an f32 bias", "i32")?;
        check::memory(data, &[("out", out.location())], &inputs)?;
        Ok(Product3 { m, k, n })
    }
}
