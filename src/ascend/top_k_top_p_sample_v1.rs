//! `aclnnTopKTopPSample`.

use super::description::{Description, DeviceType};
use super::executor::{Job, SLACK, phases};
use super::{Ascend, Dispatch, supports};
use crate::error::Error;
use crate::ops::TopKTopPSampleV1;
use crate::scratch::Plan;
use tilekern_acl::ACL_FLOAT;
use tilekern_kernels::element::Element;

impl<'t, T: Element + DeviceType> Dispatch<TopKTopPSampleV1<'_, Self, T>> for Ascend<'t> {
    fn dispatch(&self, call: &TopKTopPSampleV1<'_, Self, T>, job: Job<'_>) -> Result<(), Error> {
        let [rows, columns] = call.check(job.runs())?;
        supports("logits", T::TYPE != ACL_FLOAT, "f16 or bf16 on the NPU", "f32")?;
        supports("row_status", call.row_status.is_none(), "none on the NPU", "a tensor")?;
        let operator = self.operator("aclnnTopKTopPSample", self.table.operators.aclnnTopKTopPSample)?;
        let q = call.q.map(|q| self.describe::<f32>("q", &q)).transpose()?;
        // Its shape and address are checked even where it is not written: there it is the beginning of the workspace.
        let mut plan = Plan::new();
        let select = match call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits) {
            Some(select) => self.describe::<f32>("logits_top_kp_select", select)?,
            None => {
                plan.slot::<u8>(4 * rows * columns + SLACK)?;
                Description::contiguous::<f32>(&[rows, columns], job.address())
            }
        };
        let descriptors = [
            self.tensor(self.describe::<T>("logits", &call.logits)?)?,
            self.tensor(self.describe::<i32>("top_k", &call.top_k)?.flat())?,
            self.tensor(self.describe::<T>("top_p", &call.top_p)?.flat())?,
            self.optional(q)?,
            self.tensor(self.describe::<i64>("logits_select_idx", &call.logits_select_idx)?.flat())?,
            self.tensor(select)?,
        ];
        // No guess changes the result. The operator takes 32 bits of it, which must be above 0.
        let (eps, need, guess) = (call.eps, call.is_need_logits, i64::from(call.top_k_guess as i32).max(1));
        // SAFETY: phase one of the operator, as its prototype has it.
        let prepared = unsafe {
            self.prepare(phases!(aclnnTopKTopPSample), operator.run, descriptors, |d, bytes, executor| {
                let [logits, k, p, q, chosen, select] = d.each_ref().map(|descriptor| descriptor.tensor());
                (operator.workspace)(logits, k, p, q, eps, need, guess, chosen, select, bytes, executor)
            })
        }?;
        job.finish_behind(plan.bytes(), prepared)
    }
}
