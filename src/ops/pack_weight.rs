//! Weights into the packed format.

use super::check;
use super::weight::{FORMAT_ND, MAX_K, WeightSizes, nibbles, weight};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;
use half::{bf16, f16};
use tilekern_kernels::pack::packed_bytes;

/// Weights to be packed, in one of five dtypes.
#[derive(Debug)]
pub enum UnpackedWeight<'a, B: Backend> {
    /// Eight bits.
    I8(B::View<'a, i8>),
    /// Four bits, two columns to a byte, the low half first: the last dimension counts bytes.
    I4(B::View<'a, u8>),
    /// To be quantised.
    F32(B::View<'a, f32>),
    /// To be quantised.
    F16(B::View<'a, f16>),
    /// To be quantised.
    BF16(B::View<'a, bf16>),
}

impl<B: Backend> UnpackedWeight<'_, B> {
    pub(crate) fn describe(&self) -> &dyn Describe {
        match self {
            UnpackedWeight::I8(view) => view,
            UnpackedWeight::I4(view) => view,
            UnpackedWeight::F32(view) => view,
            UnpackedWeight::F16(view) => view,
            UnpackedWeight::BF16(view) => view,
        }
    }

    fn is_float(&self) -> bool {
        !matches!(self, UnpackedWeight::I8(_) | UnpackedWeight::I4(_))
    }
}

/// Packs weights for [`QuantMatmul`](super::QuantMatmul), [`DecoderLayer`](super::DecoderLayer) and
/// [`GroupedMatmulSwigluQuant`](super::GroupedMatmulSwigluQuant): once, for every call and every machine.
///
/// * Shapes: `weight` `[E,K,N]` or `[K,N]` with any strides ([`FORMAT_ND`], the default), or `[E,N/32,K/16,16,32]` or
///   `[N/32,K/16,16,32]` ([`FORMAT_NZ`](super::FORMAT_NZ); i4: `[E,N/64,K/16,16,64]`); `packed` `[bytes]`, exactly as long as
///   [`packed_bytes`](tilekern_kernels::pack::packed_bytes) says, contiguous; `weight_scale` `[E,N]`, of one matrix also `[N]`. No
///   dimension is 0; K is at most 65 536.
/// * Dtypes: `weight` i8, i4 (two columns to a byte, N even, so the last dimension of the view is half as long), or f32, f16 or
///   bf16 in ND. `weight_scale` f32: required, and written, where the weight is a float; else not looked at.
/// * A float weight is quantised column by column as [`QuantizeRows`](super::QuantizeRows) does rows: `scale = max |w| / 127`,
///   `q = rne(w * (1 / scale))`; a column whose scale has no finite reciprocal becomes zeros.
/// * The format is described in `tilekern_kernels::pack`. It has a versioned header, may be stored in a file, and is checked when
///   it is used.
/// * Workspace: none.
/// * Errors: 161001 a tensor without data, a missing `weight_scale`; 161002 a shape that does not fit, K > 65 536, an unknown format,
///   floats in another than the plain one, overlapping tensors.
/// * Documents 003 and 004.
///
/// ```
/// use tilekern::kernels::pack::packed_bytes;
/// use tilekern::ops::{PackWeight, UnpackedWeight};
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut};
///
/// let weight = [1.0f32, -3.0, 127.0, 1.5];
/// let (mut packed, mut scale) = (vec![0i8; packed_bytes(1, 2, 2).unwrap()], [0.0f32; 2]);
/// let bytes = packed.len();
/// let host = Host::new();
/// let mut call = PackWeight::new(UnpackedWeight::F32(Tensor::new([2, 2], &weight)?), TensorMut::new([bytes], &mut packed)?);
/// call.weight_scale = Some(TensorMut::new([2], &mut scale)?);
/// host.run(call, &mut [])?;
/// assert_eq!(scale, [1.0, 3.0 / 127.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct PackWeight<'a, B: Backend> {
    /// See `weight_format`.
    pub weight: UnpackedWeight<'a, B>,
    /// [`FORMAT_ND`] or [`FORMAT_NZ`](super::FORMAT_NZ): how `weight` lies.
    pub weight_format: i32,
    /// `[bytes]`
    pub packed: B::ViewMut<'a, i8>,
    /// `[E,N]` or `[N]`
    pub weight_scale: Option<B::ViewMut<'a, f32>>,
}

impl<'a, B: Backend> PackWeight<'a, B> {
    /// A plain weight, without a place for scales.
    pub fn new(weight: UnpackedWeight<'a, B>, packed: B::ViewMut<'a, i8>) -> Self {
        PackWeight { weight, weight_format: FORMAT_ND, packed, weight_scale: None }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<WeightSizes, Error> {
        let view = self.weight.describe();
        check::attribute("weight_format", matches!(self.weight_format, FORMAT_ND | super::FORMAT_NZ), "2 or 29", {
            i64::from(self.weight_format)
        })?;
        let wide = if matches!(self.weight, UnpackedWeight::I4(_)) { 2 } else { 1 };
        let sizes = |[k, n]: [usize; 2], experts| WeightSizes { experts, k, n: n.saturating_mul(wide) };
        let blocked = |[columns, rows, _, _]: [usize; 4]| [rows.saturating_mul(16), columns.saturating_mul(32)];
        let d = match (self.weight_format, view.dims().rank()) {
            (FORMAT_ND, 2) => sizes(check::filled("weight", view)?, None),
            (FORMAT_ND, _) => {
                let [experts, k, n] = check::filled("weight", view)?;
                sizes([k, n], Some(experts))
            }
            (_, 4) => sizes(blocked(check::filled("weight", view)?), None),
            _ => {
                let [experts, a, b, c, d] = check::filled("weight", view)?;
                sizes(blocked([a, b, c, d]), Some(experts))
            }
        };
        check::attribute("weight", d.k <= MAX_K, "a K of at most 65536", d.k)?;
        let plain = self.weight_format == FORMAT_ND || !self.weight.is_float();
        check::attribute("weight_format", plain, "plain floats (2)", i64::from(self.weight_format))?;
        match &self.weight {
            UnpackedWeight::I4(view) => nibbles("weight", view, self.weight_format, d)?,
            _ => weight("weight", view, self.weight_format, d)?,
        }
        let too_large = || Error::invalid("weight", "a size that fits in memory", "an overflow");
        check::shape("packed", &self.packed, &[packed_bytes(d.experts.unwrap_or(1), d.k, d.n).ok_or_else(too_large)?])?;
        check::attribute("packed", self.packed.dims().is_contiguous(), "contiguous bytes", "strides")?;
        match &self.weight_scale {
            Some(scale) if self.weight.is_float() => {
                // One matrix: a row of scales with a dimension of experts or without.
                let experts = d.experts.unwrap_or(1);
                let row = usize::from(experts == 1 && scale.dims().rank() == 1);
                check::shape("weight_scale", scale, &[experts, d.n][row..])?;
                check::memory(
                    data,
                    &[("packed", self.packed.location()), ("weight_scale", scale.location())],
                    &[("weight", view.location())],
                )?;
            }
            None if self.weight.is_float() => return Err(Error::null("weight_scale")),
            _ => check::memory(data, &[("packed", self.packed.location())], &[("weight", view.location())])?,
        }
        Ok(d)
    }
}
