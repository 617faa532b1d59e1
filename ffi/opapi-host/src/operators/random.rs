//! Multinomial and StatelessExponential, with seed and offset as numbers or in tensors.

use super::per_float;
use crate::arguments::Arguments;
use crate::executor::{Job, Operator};
use crate::failure::Failure;
use crate::operand::{Dtype, Operand};
use tilekern::Element;
use tilekern::ops::{self, Weight};
use tilekern_acl::{ACL_BF16, ACL_DOUBLE, ACL_FLOAT, ACL_FLOAT16, ACL_INT64};

/// The key and the counter, once the tensors of a call may be read.
#[derive(Clone, Copy)]
pub(crate) enum Seed {
    Numbers(i64, i64),
    /// In tensors `seed` and `offset`; the number is added to the latter.
    Tensors(i64),
}

impl Seed {
    /// For an operator that writes `out`.
    fn resolve(self, a: &Arguments, out: &str, job: &Job<'_>) -> Result<(i64, i64), Failure> {
        let added = match self {
            Seed::Numbers(seed, offset) => return Ok((seed, offset)),
            Seed::Tensors(added) => added,
        };
        let (seed, offset) = (a.get("seed")?, a.get("offset")?);
        [seed, offset].into_iter().try_for_each(one_number)?;
        a.get(out)?.apart_from(&[seed, offset])?;
        Ok(match job {
            Job::Query(_) => (0, 0),
            Job::Run(_) => (seed.number()?, offset.number()?.wrapping_add(added)),
        })
    }
}

fn one_number(operand: &Operand) -> Result<(), Failure> {
    operand.dtype(&[ACL_INT64])?;
    if operand.spec.elements() == Some(1) { Ok(()) } else { Err(operand.wrong("one number", &operand.spec.dims)) }
}

/// The attributes of Multinomial.
pub(crate) struct Multinomial {
    pub num_samples: i64,
    pub replacement: bool,
    pub seed: Seed,
}

impl Multinomial {
    fn call<T: Weight + Dtype>(&self, a: &Arguments, (seed, offset): (i64, i64), job: Job<'_>) -> Result<(), Failure> {
        job.answer(ops::Multinomial {
            probs: a.get("self")?.view::<T>()?,
            num_samples: self.num_samples,
            replacement: self.replacement,
            seed,
            offset,
            out: a.get("out")?.view_mut()?,
        })
    }
}

impl Operator for Multinomial {
    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        let weights = a.get("self")?;
        weights.dtype(&[ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE])?;
        let seed = self.seed.resolve(a, "out", &job)?;
        match weights.spec.dtype {
            ACL_DOUBLE => self.call::<f64>(a, seed, job),
            _ => per_float!(weights, self.call(a, seed, job)),
        }
    }
}

/// The attributes of StatelessExponential.
pub(crate) struct Exponential {
    pub rate: f64,
    pub seed: Seed,
}

impl Exponential {
    fn call<T: Element + Dtype>(&self, a: &Arguments, (seed, offset): (i64, i64), job: Job<'_>) -> Result<(), Failure> {
        job.answer(ops::Exponential { rate: self.rate, seed, offset, out: a.get("self")?.view_mut::<T>()? })
    }
}

impl Operator for Exponential {
    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        let out = a.get("self")?;
        let seed = self.seed.resolve(a, "self", &job)?;
        if out.spec.elements() == Some(0) && self.rate > 0.0 {
            return out.dtype(&super::FLOATS);
        }
        per_float!(out, self.call(a, seed, job))
    }
}
