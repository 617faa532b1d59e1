//! The int8 products of the experts of a layer, with what follows them.

use super::check::{self, Arg, Arguments, Role};
use super::weight::{FORMAT_ND, FORMAT_PACKED, MAX_K, WeightSizes, nibbles, weight};
use super::{Bias, ChannelScale};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// The weights of the experts.
#[derive(Debug)]
pub enum GroupedWeight<'a, B: Backend> {
    /// Eight bits, or packed.
    I8(B::View<'a, i8>),
    /// Four bits, two columns to a byte, the low half first: the last dimension counts bytes.
    I4(B::View<'a, u8>),
}

/// The scales of the experts' channels.
#[derive(Debug)]
pub enum GroupedScale<'a, B: Backend> {
    /// `[E,N]`, of weights of eight bits.
    Channel(ChannelScale<'a, B>),
    /// `[E,N]` or `[E,G,N]`, of weights of four bits: the low 32 bits are those of an f32.
    Bits(B::View<'a, u64>),
    /// The same bits.
    SignedBits(B::View<'a, i64>),
}

impl<B: Backend> GroupedWeight<'_, B> {
    fn describe(&self) -> &dyn Describe {
        match self {
            GroupedWeight::I8(view) => view,
            GroupedWeight::I4(view) => view,
        }
    }
}

impl<B: Backend> GroupedScale<'_, B> {
    fn describe(&self) -> &dyn Describe {
        match self {
            GroupedScale::Channel(scale) => scale.describe(),
            GroupedScale::Bits(view) => view,
            GroupedScale::SignedBits(view) => view,
        }
    }
}

/// Sizes of a grouped product.
#[derive(Clone, Copy)]
pub(crate) struct GroupedSizes {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    pub experts: usize,
    /// Groups of K with a scale of their own; `None` for weights of eight bits.
    pub scales: Option<usize>,
}

impl GroupedSizes {
    /// The sizes of the weights.
    pub fn weight(self) -> WeightSizes {
        WeightSizes { experts: Some(self.experts), k: self.k, n: self.n }
    }
}

/// Rows sorted by expert, each times its expert's weights, then SwiGLU and quantisation, in one pass: with
/// `c = f32(sum over k of x[m][k] * weight[e][k][n] + bias[e][n]) * x_scale[m] * weight_scale[e][n] + offset[e][n]`,
/// `S[j] = c[j] / (1 + exp(-c[j])) * c[j + N/2]`, `output_scale = max |S| / 127`, `output = rne(S / output_scale)`.
///
/// * Shapes: `x` `[M,K]`, `weight_scale` `[E,N]`, `bias` and `offset` `[E,N]`, `x_scale` `[M]`, `group_list` `[L]` with L <= E,
///   `output` `[M,N/2]`, `output_scale` and `output_offset` `[M]`; `weight` `[E,K,N]` with any strides ([`FORMAT_ND`]),
///   `[E,N/32,K/16,16,32]` ([`FORMAT_NZ`](super::FORMAT_NZ)), or packed ([`FORMAT_PACKED`]). N is even, K at most 65 536. M = 0 or
///   L = 0 writes nothing, and what list and weights hold is not looked at; another dimension of 0 is refused.
/// * Dtypes: `x` i8, `weight` i8 (or i4, below), `weight_scale` f32, f16 or bf16, `bias` i32 or f32, `offset` and `x_scale` f32,
///   `group_list` i64, `output` i8, its scale and offset f32.
/// * `group_list`: the end of each expert's rows (`group_list_type` 0, not decreasing), or how many it has (1). Experts may be
///   empty; rows behind the last end are neither read nor written.
/// * `arithmetic` 1 multiplies the sum by `x_scale` first and quantises with `S * (1 / output_scale)`, rounded to half precision in
///   between where `fp16_rounding` is set; 2 multiplies by `weight_scale` first, `output_scale = max |S| * (1 / 127)`, and divides.
///   The sum is exact, an i32 bias is added to it in 64 bits and rounded once; an f32 bias is added after the scales, `offset`
///   last.
/// * With `output_offset` the output is asymmetric: `output_scale = (max S - min S) / 255`,
///   `output_offset = -128 - rne(min S / output_scale)`, `output = rne(S / output_scale + output_offset)`; read back as
///   `(output - output_offset) * output_scale`. A constant row S comes back exactly, with |S| as the scale and an
///   offset of 0; one whose max S - min S is infinite gives zeros.
/// * A row of zeros, with a scale of at most 2^-128, with an infinity or a NaN gives zeros; its scale is the value of the formula. Of an
///   asymmetric output a finite row with such a scale counts as constant.
/// * Weights of four bits: `weight` i4 (in a view of bytes, N / 2 long; NZ `[E,N/64,K/16,16,64]`), or packed from i4;
///   `weight_scale` u64 or i64 bits of f32, `[E,N]` or `[E,G,N]`, K a multiple of G; `bias` f32, the assist matrix
///   `8 * sum of weights * scale`, required. Each row is split as `x = 16 hi + lo + 8`; the sums of hi and of lo are scaled,
///   rounded to half precision and added in it, group by group; `c = (16 hi + lo + bias) * x_scale`. `arithmetic` 2, `offset` and
///   `output_offset` are refused.
/// * Workspace: the rows of a chunk (at most 256) in the form of the dot instruction and their sums; for each worker up to eight rows of
///   activations, 15 N bytes, and 96 KiB, or where the weight is not packed 577 KiB and room for 16 panels. With i4 weights the
///   two halves of the rows are brought into that form group by group, each with as many 64s of K as a group may lie in, and a
///   worker has 512 bytes more for each row of a chunk. A chunk has at least 64 rows; while N is at most some thousands
///   its sums are used before they leave the cache.
/// * Errors: 161001 a tensor without data, i4 weights without bias; 161002 a shape or dtype that does not fit, an odd N, K > 65
///   536, an unknown `weight_format`, `group_list_type` or `arithmetic`, `output_offset` with `fp16_rounding`, a packed weight of
///   another header or length, overlapping tensors, and, found by a run before anything is written, a `group_list` that decreases, is negative
///   or goes beyond M.
/// * Document 004.
///
/// ```
/// use tilekern::ops::{Bias, ChannelScale, GroupedMatmulSwigluQuant, GroupedScale, GroupedWeight};
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut};
///
/// // Two experts of one output channel: gate 40 (exp(-40) is lost beside 1), other 2 and -3. The third row belongs to nobody.
/// let (x, weight) = ([1i8, 1, 1], [40i8, 2, 40, -3]);
/// let (mut y, mut scale) = ([9i8; 3], [9.0f32; 3]);
/// let host = Host::new();
/// let call = GroupedMatmulSwigluQuant::new(
///     Tensor::new([3, 1], &x)?,
///     GroupedWeight::I8(Tensor::new([2, 1, 2], &weight)?),
///     GroupedScale::Channel(ChannelScale::F32(Tensor::new([2, 2], &[1.0; 4])?)),
///     Tensor::new([3], &[1.0; 3])?,
///     Tensor::new([2], &[1, 2])?,
///     TensorMut::new([3, 1], &mut y)?,
///     TensorMut::new([3], &mut scale)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((y, scale), ([127, -127, 9], [80.0 / 127.0, 120.0 / 127.0, 9.0]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct GroupedMatmulSwigluQuant<'a, B: Backend> {
    /// `[M,K]`
    pub x: B::View<'a, i8>,
    /// See `weight_format`.
    pub weight: GroupedWeight<'a, B>,
    /// `[E,N]`
    pub bias: Option<Bias<'a, B>>,
    /// `[E,N]`
    pub offset: Option<B::View<'a, f32>>,
    /// `[E,N]`, or `[E,G,N]`
    pub weight_scale: GroupedScale<'a, B>,
    /// `[M]`
    pub x_scale: B::View<'a, f32>,
    /// `[L]`
    pub group_list: B::View<'a, i64>,
    /// [`FORMAT_ND`], [`FORMAT_NZ`](super::FORMAT_NZ) or [`FORMAT_PACKED`].
    pub weight_format: i32,
    /// 0 ends, 1 counts.
    pub group_list_type: i32,
    /// 1 or 2: the order of the scales, and the quantiser.
    pub arithmetic: i32,
    /// Whether the symmetric quantiser of `arithmetic` 1 rounds to half precision before it rounds to an integer.
    pub fp16_rounding: bool,
    /// `[M,N/2]`
    pub output: B::ViewMut<'a, i8>,
    /// `[M]`
    pub output_scale: B::ViewMut<'a, f32>,
    /// `[M]`
    pub output_offset: Option<B::ViewMut<'a, f32>>,
}

impl<'a, B: Backend> GroupedMatmulSwigluQuant<'a, B> {
    /// Plain weights, ends, `arithmetic` 1, symmetric.
    pub fn new(
        x: B::View<'a, i8>,
        weight: GroupedWeight<'a, B>,
        weight_scale: GroupedScale<'a, B>,
        x_scale: B::View<'a, f32>,
        group_list: B::View<'a, i64>,
        output: B::ViewMut<'a, i8>,
        output_scale: B::ViewMut<'a, f32>,
    ) -> Self {
        GroupedMatmulSwigluQuant {
            x,
            weight,
            bias: None,
            offset: None,
            weight_scale,
            x_scale,
            group_list,
            weight_format: FORMAT_ND,
            group_list_type: 0,
            arithmetic: 1,
            fp16_rounding: false,
            output,
            output_scale,
            output_offset: None,
        }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<GroupedSizes, Error> {
        let four = !matches!(self.weight_scale, GroupedScale::Channel(_));
        let bias = self.bias.as_ref().map(Bias::describe);
        // What packed weights are made of only their scale tells here.
        let four_bits = match self.weight {
            GroupedWeight::I4(_) => true,
            GroupedWeight::I8(_) => four && self.weight_format == FORMAT_PACKED,
        };
        if four_bits && bias.is_none() {
            return Err(Error::null("bias"));
        }
        let [m, k] = check::sizes("x", &self.x)?;
        let scale = self.weight_scale.describe();
        let [experts, n, scales] = match scale.dims().rank() {
            3 if four => {
                let [experts, scales, n] = check::filled("weight_scale", scale)?;
                [experts, n, scales]
            }
            _ => {
                let [experts, n] = check::filled("weight_scale", scale)?;
                [experts, n, 1]
            }
        };
        let d = GroupedSizes { m, k, n, experts, scales: four.then_some(scales) };
        check::attribute("x", k <= MAX_K, "at most 65536 columns", k)?;
        check::attribute("weight_scale", n % 2 == 0, "an even N", n)?;
        check::attribute("weight_scale", k % scales == 0, "groups that divide K", scales)?;
        match &self.weight {
            GroupedWeight::I8(view) => {
                let fits = !four || self.weight_format == FORMAT_PACKED;
                check::attribute("weight_scale", fits, "f32, f16 or bf16 for int8 weights", "u64 or i64")?;
                weight("weight", view, self.weight_format, d.weight())?;
            }
            GroupedWeight::I4(view) => {
                check::attribute("weight_scale", four, "u64 or i64 for int4 weights", "a float dtype")?;
                nibbles("weight", view, self.weight_format, d.weight())?;
            }
        }
        let [list] = *self.group_list.dims().shape() else {
            return Err(Error::invalid("group_list", "a rank of 1", self.group_list.dims().rank()));
        };
        check::attribute("group_list", list <= experts, "at most E experts", list)?;
        check::shape("x_scale", &self.x_scale, &[m])?;
        check::shape("output", &self.output, &[m, n / 2])?;
        check::shape("output_scale", &self.output_scale, &[m])?;
        if let Some(bias) = bias {
            check::shape("bias", bias, &[experts, n])?;
        }
        if let Some(offset) = &self.offset {
            check::shape("offset", offset, &[experts, n])?;
        }
        if let Some(offset) = &self.output_offset {
            check::shape("output_offset", offset, &[m])?;
        }
        self.check_attributes(four)?;
        check::arguments(data, self)?;
        Ok(d)
    }

    fn check_attributes(&self, four: bool) -> Result<(), Error> {
        let (list, arithmetic) = (self.group_list_type, self.arithmetic);
        check::attribute("group_list_type", matches!(list, 0 | 1), "0 or 1", i64::from(list))?;
        check::attribute("arithmetic", matches!(arithmetic, 1 | 2), "1 or 2", i64::from(arithmetic))?;
        let symmetric = self.output_offset.is_none();
        check::attribute("fp16_rounding", symmetric || !self.fp16_rounding, "false with output_offset", "true")?;
        if four {
            check::attribute("arithmetic", arithmetic == 1, "1 with int4 weights", i64::from(arithmetic))?;
            check::attribute("offset", self.offset.is_none(), "none with int4 weights", "a tensor")?;
            check::attribute("output_offset", symmetric, "none with int4 weights", "a tensor")?;
            check::attribute("bias", matches!(self.bias, Some(Bias::F32(_))), "f32 with int4 weights", "i32")?;
        }
        Ok(())
    }
}

impl<B: Backend> Arguments for GroupedMatmulSwigluQuant<'_, B> {
    fn each<'s>(&'s self, mut see: impl FnMut(Role, Arg<'s>)) {
        see(Role::Output, ("output", self.output.location()));
        see(Role::Output, ("output_scale", self.output_scale.location()));
        if let Some(offset) = &self.output_offset {
            see(Role::Output, ("output_offset", offset.location()));
        }
        see(Role::Input, ("x", self.x.location()));
        see(Role::Input, ("weight", self.weight.describe().location()));
        see(Role::Input, ("weight_scale", self.weight_scale.describe().location()));
        see(Role::Input, ("x_scale", self.x_scale.location()));
        see(Role::Input, ("group_list", self.group_list.location()));
        if let Some(bias) = &self.bias {
            see(Role::Input, ("bias", bias.describe().location()));
        }
        if let Some(offset) = &self.offset {
            see(Role::Input, ("offset", offset.location()));
        }
    }
}
