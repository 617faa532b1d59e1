//! Int8 weights as they may be given to a product.

use super::check;
use crate::error::{Error, Value};
use crate::tensor::{Describe, Tensor};
use tilekern_kernels::pack::{Packed, packed_bytes};

/// Weights `[K,N]` or `[E,K,N]`, strided as they may be.
pub const FORMAT_ND: i32 = 2;
/// Weights in blocks of 16 by 32 bytes, `[N/32,K/16,16,32]` or `[E,N/32,K/16,16,32]`, contiguous.
pub const FORMAT_NZ: i32 = 29;
/// Weights in this library's packed format.
pub const FORMAT_PACKED: i32 = 1000;

/// The largest K: up to it every sum of products of two int8 fits in an i32.
pub const MAX_K: usize = 65_536;

/// How many experts, and the sizes of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightSizes {
    /// `None` for a weight without that dimension.
    pub experts: Option<usize>,
    pub k: usize,
    pub n: usize,
}

/// A weight of these sizes in that format.
pub(crate) fn weight(name: &'static str, weight: &dyn Describe, format: i32, d: WeightSizes) -> Result<(), Error> {
    let experts = d.experts.unwrap_or(1);
    match format {
        FORMAT_PACKED => {
            let too_large = || Error::invalid(name, "a size that fits in memory", "an overflow");
            check::shape(name, weight, &[packed_bytes(experts, d.k, d.n).ok_or_else(too_large)?])?;
            check::attribute(name, weight.dims().is_contiguous(), "contiguous bytes", "strides")
        }
        FORMAT_ND => check::shape(name, weight, &[experts, d.k, d.n][usize::from(d.experts.is_none())..]),
        FORMAT_NZ => {
            check::attribute(name, d.n % 32 == 0, "a multiple of 32 columns", d.n)?;
            check::attribute(name, d.k % 16 == 0, "a multiple of 16 rows", d.k)?;
            check::shape(name, weight, &[experts, d.n / 32, d.k / 16, 16, 32][usize::from(d.experts.is_none())..])?;
            check::attribute(name, weight.dims().is_contiguous(), "contiguous blocks", "strides")
        }
        _ => Err(Error::invalid("weight_format", "2, 29 or 1000", i64::from(format))),
    }
}

/// A weight of four bits of these sizes in that format; a byte of the view holds two columns.
pub(crate) fn nibbles(name: &'static str, weight: &dyn Describe, format: i32, d: WeightSizes) -> Result<(), Error> {
    let (experts, first) = (d.experts.unwrap_or(1), usize::from(d.experts.is_none()));
    // The view is of bytes, but a caller in C told columns: so the error says what is counted.
    let bytes = |expected: &[usize], form| {
        let found = weight.dims().shape();
        if found == &expected[first..] { Ok(()) } else { Err(Error::invalid(name, form, Value::shape(found))) }
    };
    match format {
        FORMAT_ND => {
            check::attribute(name, d.n % 2 == 0, "an even number of columns", d.n)?;
            bytes(&[experts, d.k, d.n / 2], "K rows of N / 2 bytes, two columns each")
        }
        FORMAT_NZ => {
            check::attribute(name, d.n % 64 == 0, "a multiple of 64 columns", d.n)?;
            check::attribute(name, d.k % 16 == 0, "a multiple of 16 rows", d.k)?;
            bytes(&[experts, d.n / 64, d.k / 16, 16, 32], "N / 64 by K / 16 blocks of 16 rows of 32 bytes, two columns each")?;
            check::attribute(name, weight.dims().is_contiguous(), "contiguous blocks", "strides")
        }
        _ => Err(Error::invalid("weight_format", "2 or 29 for bytes of two columns", i64::from(format))),
    }
}

/// The packed weight in that memory: its header must say these sizes.
pub(crate) fn packed_header<'a>(name: &'static str, weight: &Tensor<'a, i8>, d: WeightSizes) -> Result<Packed<'a>, Error> {
    let packed = Packed::new(weight.row(0).gather(&mut []));
    let foreign = || Error::invalid(name, "a packed weight of these sizes", "a foreign or damaged header");
    packed.filter(|p| (p.experts(), p.k(), p.n()) == (d.experts.unwrap_or(1), d.k, d.n)).ok_or_else(foreign)
}
