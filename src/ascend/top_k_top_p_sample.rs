//! `aclnnTopKTopPSampleV2`; for multinomial draws its middle result, `aclnnMultinomialTensor` over it, and `aclnnGather` of the
//! token at the place that was drawn.
//!
//! Seeds lie on the device, which nobody but the device reads: hence the form of Multinomial that takes them in tensors. A (seed,
//! offset) for each row is a call for each row, of one row; the middle result and the places lie in the workspace in between.

use super::description::{Description, DeviceType};
use super::executor::{Job, Prepared, SLACK, phases, together};
use super::{Ascend, Dispatch, supports};
use crate::error::Error;
use crate::ops::{Batch, Draw, TopKTopPSample};
use crate::scratch::Plan;
use crate::tensor::Describe;
use tilekern_kernels::element::Element;

/// What the operator writes.
enum Outcome {
    /// `logits_select_idx`
    Chosen(Description),
    /// `logits_idx` and `logits_sort_masked`
    Middle([Description; 2]),
}

/// The lines of (seed, offset), and how many rows each draw takes.
struct Seeds {
    seeds: Description,
    lines: usize,
    each: usize,
}

impl<'t, T: Element + DeviceType> Dispatch<TopKTopPSample<'_, Self, T>> for Ascend<'t> {
    fn dispatch(&self, call: &TopKTopPSample<'_, Self, T>, job: Job<'_>) -> Result<(), Error> {
        let batch = call.check(job.runs())?;
        supports("row_status", call.row_status.is_none(), "none on the NPU", "a tensor")?;
        if let (Some(idx), Some(sorted)) = (&call.logits_idx, &call.logits_sort_masked) {
            supports("logits_select_idx", call.logits_select_idx.is_none(), "none with logits_idx on the NPU", "a tensor")?;
            let middle = [self.describe::<i64>("logits_idx", idx)?, self.describe::<f32>("logits_sort_masked", sorted)?];
            return job.finish(self.sample(call, batch, None, Outcome::Middle(middle))?);
        }
        let chosen = call.logits_select_idx.as_ref().ok_or(Error::null("logits_select_idx"))?;
        let chosen = self.describe::<i64>("logits_select_idx", chosen)?;
        match call.draw() {
            Draw::Argmax => job.finish(self.sample(call, batch, None, Outcome::Chosen(chosen.flat()))?),
            Draw::Exponential(q) => {
                let q = self.describe::<f32>("q", q)?;
                job.finish(self.sample(call, batch, Some(q), Outcome::Chosen(chosen.flat()))?)
            }
            Draw::Seeds(q) => {
                let lines = q.dims().shape()[0];
                let seeds = self.describe::<i64>("q", q)?;
                self.multinomial(call, batch, Seeds { seeds, lines, each: 1 }, chosen.column(), job)
            }
            Draw::Generator(generator) => {
                // As a matrix of one line.
                let seeds = self.describe::<i64>("generator", generator)?.line();
                self.multinomial(call, batch, Seeds { seeds, lines: 1, each: batch.rows }, chosen.column(), job)
            }
        }
    }
}

impl<'t> Ascend<'t> {
    /// Phase one of the sampling itself.
    fn sample<T: Element + DeviceType>(
        &self,
        call: &TopKTopPSample<'_, Self, T>,
        batch: Batch,
        q: Option<Description>,
        outcome: Outcome,
    ) -> Result<Prepared<'t, 9>, Error> {
        let operator = self.operator("aclnnTopKTopPSampleV2", self.table.operators.aclnnTopKTopPSampleV2)?;
        let min_ps = call.min_ps.map(|min_ps| self.describe::<T>("min_ps", &min_ps)).transpose()?;
        let select = match call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits) {
            Some(select) => self.describe::<f32>("logits_top_kp_select", select)?,
            None => Description::unwritten::<f32>(),
        };
        let is_middle = matches!(outcome, Outcome::Middle(_));
        let (chosen, [idx, sorted]) = match outcome {
            Outcome::Chosen(chosen) => (chosen, [Description::unwritten::<i64>(), Description::unwritten::<f32>()]),
            Outcome::Middle(middle) => (Description::unwritten::<i64>(), middle),
        };
        let descriptors = [
            self.tensor(self.describe::<T>("logits", &call.logits)?)?,
            self.tensor(self.describe::<i32>("top_k", &call.top_k)?.flat())?,
            self.tensor(self.describe::<T>("top_p", &call.top_p)?.flat())?,
            self.optional(q)?,
            self.optional(min_ps.map(Description::flat))?,
            self.tensor(chosen)?,
            self.tensor(select)?,
            self.tensor(idx)?,
            self.tensor(sorted)?,
        ];
        let (eps, need, logits_in) = (call.eps, call.is_need_logits, call.input_is_logits);
        // What it comes to: the operator rounds it up in 32 bits, which some numbers exceed.
        let ks_max = batch.max_k as i64;
        // No guess changes the result. The operator takes 32 bits of it, and a negative one for a huge one.
        let guess = i64::from(call.top_k_guess as i32).max(0);
        // SAFETY: phase one of the operator, as its prototype has it.
        unsafe {
            self.prepare(phases!(aclnnTopKTopPSampleV2), operator.run, descriptors, |d, bytes, executor| {
                let [logits, k, p, q, min_ps, chosen, select, idx, sorted] = d.each_ref().map(|descriptor| descriptor.tensor());
                (operator.workspace)(
                    logits, k, p, q, min_ps, eps, need, guess, ks_max, logits_in, is_middle, chosen, select, idx, sorted, bytes,
                    executor,
                )
            })
        }
    }

    /// The choice by noise that is drawn on the device. `chosen` is a column.
    fn multinomial<T: Element + DeviceType>(
        &self,
        call: &TopKTopPSample<'_, Self, T>,
        batch: Batch,
        seeds: Seeds,
        chosen: Description,
        job: Job<'_>,
    ) -> Result<(), Error> {
        let Batch { rows, vocabulary, .. } = batch;
        let (mut plan, base) = (Plan::new(), job.address());
        let mut place = |elements: usize, bytes: usize| {
            let offset = plan.bytes();
            plan.slot::<u8>(elements * bytes + SLACK)?;
            Ok::<_, Error>(if base == 0 { 0 } else { base + offset })
        };
        let idx = Description::contiguous::<i64>(&[rows, vocabulary], place(rows * vocabulary, 8)?);
        let sorted = place(rows * vocabulary, 4)?;
        let drawn = place(rows, 8)?;
        let own = plan.bytes();

        let middle = [idx, Description::contiguous::<f32>(&[rows, vocabulary], sorted)];
        let sample = self.sample(call, batch, None, Outcome::Middle(middle))?;
        let gather = self.gather(idx, Description::contiguous::<i64>(&[rows, 1], drawn), chosen)?;
        let draw = |row: usize| {
            let at = |address: usize, bytes: usize| if base == 0 { 0 } else { address + row * bytes };
            let line = (row / seeds.each).min(seeds.lines - 1);
            let weights = Description::contiguous::<f32>(&[seeds.each, vocabulary], at(sorted, 4 * vocabulary));
            let out = Description::contiguous::<i64>(&[seeds.each, 1], at(drawn, 8));
            self.draw(weights, [0, 1].map(|column| seeds.seeds.element::<i64>([line, column])), out)
        };
        let first = draw(0)?;
        let room = sample.bytes.max(first.bytes).max(gather.bytes);
        match job {
            Job::Query(bytes) => *bytes = together(own, room)?,
            Job::Run(scratch) => {
                scratch.fits(together(own, room)?)?;
                let rest = scratch.address + own;
                sample.launch(rest)?;
                first.launch(rest)?;
                for row in (seeds.each..rows).step_by(seeds.each) {
                    let next = draw(row)?;
                    scratch.fits(together(own, next.bytes)?)?;
                    next.launch(rest)?;
                }
                gather.launch(rest)?;
            }
        }
        Ok(())
    }

    /// Phase one of one draw for each row of weights.
    fn draw(&self, weights: Description, [seed, offset]: [Description; 2], out: Description) -> Result<Prepared<'t, 4>, Error> {
        let operator = self.operator("aclnnMultinomialTensor", self.table.operators.aclnnMultinomialTensor)?;
        let descriptors = [self.tensor(weights)?, self.tensor(seed)?, self.tensor(offset)?, self.tensor(out)?];
        // SAFETY: phase one of the operator, as its prototype has it.
        unsafe {
            self.prepare(phases!(aclnnMultinomialTensor), operator.run, descriptors, |d, bytes, executor| {
                let [weights, seed, offset, out] = d.each_ref().map(|descriptor| descriptor.tensor());
                (operator.workspace)(weights, 1, true, seed, offset, 0, out, bytes, executor)
            })
        }
    }

    /// Phase one of `out[i][0] = from[i][index[i][0]]`.
    fn gather(&self, from: Description, index: Description, out: Description) -> Result<Prepared<'t, 3>, Error> {
        let operator = self.operator("aclnnGather", self.table.operators.aclnnGather)?;
        let descriptors = [self.tensor(from)?, self.tensor(index)?, self.tensor(out)?];
        // SAFETY: phase one of the operator, as its prototype has it.
        unsafe {
            self.prepare(phases!(aclnnGather), operator.run, descriptors, |[from, index, out], bytes, executor| {
                (operator.workspace)(from.tensor(), 1, index.tensor(), out.tensor(), bytes, executor)
            })
        }
    }
}
