//! TopKTopPSample on the host: rows over the pool, each with a workspace of its worker.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Batch, Draw, TopKTopPSample};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::{Describe, RowMut, Tensor};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::rows::{List, Middle, Noise, Sample, Stages, Workspace, list_len, workspace_maxima};

/// What a worker works in: the lists, and room for rows that are not contiguous.
struct Slots<T> {
    values: WorkerSlot<f32>,
    indices: WorkerSlot<i32>,
    maxima: WorkerSlot<f32>,
    logits: WorkerSlot<T>,
    q: WorkerSlot<f32>,
    select: WorkerSlot<f32>,
    idx: WorkerSlot<i64>,
    sorted: WorkerSlot<f32>,
}

impl<P: ParallelFor> Host<P> {
    fn plan_sample<T: Element>(&self, call: &TopKTopPSample<'_, Self, T>, v: usize) -> Result<(Plan, Slots<T>), Error> {
        let workers = self.pool.workers();
        let q = if let Draw::Exponential(q) = call.draw() { q.dims().staged() } else { 0 };
        let mut plan = Plan::new();
        let slots = Slots {
            values: plan.each(workers, list_len(v))?,
            indices: plan.each(workers, list_len(v))?,
            maxima: plan.each(workers, workspace_maxima(v))?,
            logits: plan.each(workers, call.logits.dims().staged())?,
            q: plan.each(workers, q)?,
            select: plan.each(workers, call.logits_top_kp_select.as_ref().map_or(0, |out| out.dims().staged()))?,
            idx: plan.each(workers, call.logits_idx.as_ref().map_or(0, |out| out.dims().staged()))?,
            sorted: plan.each(workers, call.logits_sort_masked.as_ref().map_or(0, |out| out.dims().staged()))?,
        };
        Ok((plan, slots))
    }
}

/// The parameters of the rows.
struct Parameters<'a, T> {
    batch: Batch,
    top_k: &'a Tensor<'a, i32>,
    top_p: &'a Tensor<'a, T>,
    min_ps: Option<&'a Tensor<'a, T>>,
    is_logits: bool,
}

impl<T: Element> Parameters<'_, T> {
    fn stages(&self, row: usize) -> Stages {
        let largest = self.batch.max_k.min(self.batch.vocabulary);
        let k = usize::try_from(self.top_k.get(row)).unwrap_or(0);
        Stages {
            k: if k <= largest { k } else { 0 },
            p: self.top_p.get(row).as_(),
            min_p: self.min_ps.map_or(0.0, |m| m.get(row).as_()),
            is_logits: self.is_logits,
        }
    }
}

/// The noise of a row, if it is drawn: the numbers of a (seed, offset) pair, and the one that belongs to the row's first place.
fn drawn(pairs: &Tensor<'_, i64>, line: usize, elements: usize, first: usize) -> Noise<'static> {
    let pair = |i| pairs.get(2 * line + i) as u64;
    Noise::Drawn { numbers: Exponential::new(pair(0), pair(1), elements as u64), first: first as u64 }
}

impl<T: Element, P: ParallelFor> Run<TopKTopPSample<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &TopKTopPSample<'_, Self, T>) -> Result<Layout, Error> {
        Ok(self.plan_sample(call, call.check(false)?.vocabulary)?.0.layout())
    }

    fn run_mut(&self, call: &mut TopKTopPSample<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let batch = call.check(true)?;
        let (plan, slots) = self.plan_sample(call, batch.vocabulary)?;
        let space = plan.carve(scratch)?;
        let (draw, eps, logits) = (call.draw(), call.eps as f32, &call.logits);
        let parameters = Parameters {
            batch,
            top_k: &call.top_k,
            top_p: &call.top_p,
            min_ps: call.min_ps.as_ref(),
            is_logits: call.input_is_logits,
        };
        let (rows, v) = (batch.rows, batch.vocabulary);
        let outputs = (
            call.logits_select_idx.as_ref().map(Column),
            call.row_status.as_ref().map(Column),
            call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits),
            call.logits_idx.as_ref(),
            call.logits_sort_masked.as_ref(),
        );
        let lists = (space.take_each(slots.values), space.take_each(slots.indices), space.take_each(slots.maxima));
        let stages_in = (space.take_each(slots.logits), space.take_each(slots.q));
        let stages_out = (space.take_each(slots.select), space.take_each(slots.idx), space.take_each(slots.sorted));
        let parts = (outputs, lists, stages_in, stages_out);
        parallel::rows(&self.pool, rows, parallel::grain(v * size_of::<T>()), parts, |row, parts| {
            let ((chosen, status, mut select, mut idx, mut sorted), (values, indices, maxima), stage_in, stage_out) = parts;
            let noise = match draw {
                Draw::Argmax => Noise::None,
                Draw::Exponential(q) => Noise::Given { q: q.row(row).gather(stage_in.1), eps },
                Draw::Seeds(q) => drawn(q, row.min(q.dims().shape()[0] - 1), v, 0),
                Draw::Generator(pair) => drawn(pair, 0, rows * v, row * v),
            };
            let middle = match (&mut idx, &mut sorted) {
                (Some(idx), Some(sorted)) => {
                    Some(Middle { tokens: idx.borrow(stage_out.1), probabilities: sorted.borrow(stage_out.2) })
                }
                _ => None,
            };
            let choice = self.level.run(Sample::<T> {
                row: logits.row(row).gather(stage_in.0),
                stages: parameters.stages(row),
                noise,
                nan: status.is_some(),
                filtered: select.as_mut().map(|select| select.borrow(stage_out.0)),
                middle,
                work: Workspace { list: List { values, indices }, maxima },
            });
            give_back(select, stage_out.0);
            give_back(idx, stage_out.1);
            give_back(sorted, stage_out.2);
            if let Some(chosen) = chosen {
                *chosen = choice.token as i64;
            }
            if let Some(status) = status {
                *status = choice.status;
            }
        });
        Ok(())
    }
}

/// Scatters what was written to the stage of a row.
fn give_back<T: Copy>(row: Option<RowMut<'_, T>>, stage: &[T]) {
    if let Some(mut row) = row {
        row.give_back(stage);
    }
}
