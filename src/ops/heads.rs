//! The sizes of a tensor of heads.

use super::check;
use crate::error::{Error, Value};
use crate::tensor::Describe;

/// `[B,heads,S,D]`
#[derive(Clone, Copy)]
pub(crate) struct HeadSizes {
    pub batch: usize,
    pub heads: usize,
    pub tokens: usize,
    pub size: usize,
    /// `heads * D`
    pub columns: usize,
}

impl HeadSizes {
    pub fn of(name: &'static str, tensor: &impl Describe) -> Result<HeadSizes, Error> {
        let [batch, heads, tokens, size] = check::sizes(name, tensor)?;
        let too_large = || Error::invalid(name, "heads that fit in memory", Value::shape(tensor.dims().shape()));
        let columns = heads.checked_mul(size).ok_or_else(too_large)?;
        Ok(HeadSizes { batch, heads, tokens, size, columns })
    }

    /// Tokens of all batch rows.
    pub fn rows(&self) -> usize {
        self.batch * self.tokens
    }
}

/// Pairs need an even size.
pub(crate) fn even(name: &'static str, size: usize) -> Result<(), Error> {
    check::attribute(name, size % 2 == 0, "an even head size", size)
}
