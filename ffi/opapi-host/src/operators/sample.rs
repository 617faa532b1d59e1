//! TopKTopPSample, both versions.

use super::per_float;
use crate::arguments::Arguments;
use crate::executor::{Job, Operator};
use crate::failure::Failure;
use crate::operand::Dtype;
use tilekern::Element;
use tilekern::ops::{Noise, PostSample, TopKTopPSample, TopKTopPSampleV1};
use tilekern_acl::codes;

/// The attributes of the second version.
pub(crate) struct SampleV2 {
    pub eps: f64,
    pub is_need_logits: bool,
    pub top_k_guess: i64,
    pub ks_max: i64,
    pub input_is_logits: bool,
    pub is_need_sample_result: bool,
}

impl SampleV2 {
    /// The outputs that this call does not write: nothing but their presence is looked at.
    pub fn unused(&self) -> Vec<&'static str> {
        let mut unused = Vec::new();
        if self.is_need_sample_result {
            unused.push("logits_select_idx");
        } else {
            unused.extend(["logits_idx", "logits_sort_masked"]);
        }
        if !self.is_need_logits {
            unused.push("logits_top_kp_select");
        }
        unused
    }

    fn call<T: Element + Dtype>(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        let write = |name| a.find(name);
        job.answer(TopKTopPSample {
            logits: a.get("logits")?.view::<T>()?,
            top_k: a.get("top_k")?.view()?,
            top_p: a.get("top_p")?.view()?,
            q: a.optional_view("q")?.map(Noise::Exponential),
            min_ps: a.optional_view("min_ps")?,
            eps: self.eps,
            is_need_logits: self.is_need_logits,
            top_k_guess: self.top_k_guess,
            ks_max: self.ks_max,
            input_is_logits: self.input_is_logits,
            post_sample: PostSample::QSample,
            logits_select_idx: write("logits_select_idx").map(|operand| operand.view_mut()).transpose()?,
            logits_top_kp_select: write("logits_top_kp_select").map(|operand| operand.view_mut()).transpose()?,
            row_status: None,
            logits_idx: write("logits_idx").map(|operand| operand.view_mut()).transpose()?,
            logits_sort_masked: write("logits_sort_masked").map(|operand| operand.view_mut()).transpose()?,
            generator: None,
        })
    }
}

impl Operator for SampleV2 {
    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        vectors(a)?;
        per_float!(a.get("logits")?, self.call(a, job))?;
        // Asked last, by the query: such a call never comes to run.
        match self.is_need_sample_result && a.find("q").is_some() {
            true => Err(Failure::new(codes::ACLNN_ERR_INNER_TILING_ERROR, "q: expected none with isNeedSampleResult")),
            false => Ok(()),
        }
    }
}

/// What the host takes as columns too.
fn vectors(a: &Arguments) -> Result<(), Failure> {
    let names = ["top_k", "top_p", "min_ps", "logits_select_idx"];
    names.into_iter().filter_map(|name| a.find(name)).try_for_each(|operand| operand.rank(1))
}

/// The attributes of the first version.
pub(crate) struct SampleV1 {
    pub eps: f64,
    pub is_need_logits: bool,
    pub top_k_guess: i64,
}

impl SampleV1 {
    fn call<T: Element + Dtype>(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        job.answer(TopKTopPSampleV1 {
            logits: a.get("logits")?.view::<T>()?,
            top_k: a.get("top_k")?.view()?,
            top_p: a.get("top_p")?.view()?,
            q: a.optional_view("q")?,
            eps: self.eps,
            is_need_logits: self.is_need_logits,
            top_k_guess: self.top_k_guess,
            logits_select_idx: a.get("logits_select_idx")?.view_mut()?,
            logits_top_kp_select: Some(a.get("logits_top_kp_select")?.view_mut()?),
            row_status: None,
        })
    }
}

impl Operator for SampleV1 {
    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        use tilekern_acl::{ACL_BF16, ACL_FLOAT16};
        vectors(a)?;
        let logits = a.get("logits")?;
        // The device has no f32 here; the host's own operator does.
        logits.dtype(&[ACL_FLOAT16, ACL_BF16])?;
        // Both outputs are looked at, also the one that is not written.
        let select = a.get("logits_top_kp_select")?;
        select.dtype(&[tilekern_acl::ACL_FLOAT])?;
        if select.spec.dims != logits.spec.dims {
            return Err(select.wrong("the shape of logits", &select.spec.dims));
        }
        per_float!(logits, self.call(a, job))
    }
}
