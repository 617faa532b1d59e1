//! ApplyTopKTopP.

use super::per_float;
use crate::arguments::Arguments;
use crate::executor::{Job, Operator};
use crate::failure::Failure;
use crate::operand::Dtype;
use tilekern::Element;
use tilekern_acl::ACL_FORMAT_ND;

/// It has no attributes.
pub(crate) struct ApplyTopKTopP;

impl ApplyTopKTopP {
    fn call<T: Element + Dtype>(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        job.answer(tilekern::ops::ApplyTopKTopP {
            logits: a.get("logits")?.view::<T>()?,
            p: a.optional_view("p")?,
            k: a.optional_view("k")?,
            out: a.get("out")?.view_mut()?,
        })
    }
}

impl Operator for ApplyTopKTopP {
    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        for operand in ["logits", "p", "k", "out"].into_iter().filter_map(|name| a.find(name)) {
            if operand.spec.format != ACL_FORMAT_ND {
                return Err(operand.wrong("the format ND", operand.spec.format.0));
            }
        }
        // The host takes columns too.
        ["p", "k"].into_iter().filter_map(|name| a.find(name)).try_for_each(|operand| operand.rank(1))?;
        per_float!(a.get("logits")?, self.call(a, job))
    }
}
