//! TopKTopPSampleV1 on the host: rows over the pool, each with a workspace of its worker.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::TopKTopPSampleV1;
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::Describe;
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{List, MAX_K, Noise, SampleV1, Workspace, list_len, workspace_maxima};

/// What a worker works in: the lists, and room for rows that are not contiguous.
struct Slots<T> {
    values: WorkerSlot<f32>,
    indices: WorkerSlot<i32>,
    maxima: WorkerSlot<f32>,
    keys: WorkerSlot<u64>,
    logits: WorkerSlot<T>,
    q: WorkerSlot<f32>,
    select: WorkerSlot<f32>,
}

impl<P: ParallelFor> Host<P> {
    fn plan_sample_v1<T: Element>(&self, call: &TopKTopPSampleV1<'_, Self, T>, v: usize) -> Result<(Plan, Slots<T>), Error> {
        let workers = self.pool.workers();
        let mut plan = Plan::new();
        let slots = Slots {
            values: plan.each(workers, list_len(v))?,
            indices: plan.each(workers, list_len(v))?,
            maxima: plan.each(workers, workspace_maxima(v))?,
            keys: plan.each(workers, v)?,
            logits: plan.each(workers, call.logits.dims().staged())?,
            q: plan.each(workers, call.q.map_or(0, |q| q.dims().staged()))?,
            select: plan.each(workers, if call.is_need_logits { v } else { 0 })?,
        };
        Ok((plan, slots))
    }
}

impl<T: Element, P: ParallelFor> Run<TopKTopPSampleV1<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &TopKTopPSampleV1<'_, Self, T>) -> Result<Layout, Error> {
        let [_, columns] = call.check(false)?;
        Ok(self.plan_sample_v1(call, columns)?.0.layout())
    }

    fn run_mut(&self, call: &mut TopKTopPSampleV1<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let [rows, v] = call.check(true)?;
        let (plan, slots) = self.plan_sample_v1(call, v)?;
        let space = plan.carve(scratch)?;
        let (eps, logits) = (call.eps as f32, &call.logits);
        let nan = call.row_status.is_some();
        let outputs = (
            Column(&call.logits_select_idx),
            call.row_status.as_ref().map(Column),
            call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits),
        );
        let lists = (space.take_each(slots.values), space.take_each(slots.indices), space.take_each(slots.maxima));
        let stages = (space.take_each(slots.logits), space.take_each(slots.q), space.take_each(slots.select));
        let parts = (outputs, lists, space.take_each(slots.keys), stages);
        parallel::rows(&self.pool, rows, parallel::grain(v * size_of::<T>()), parts, |row, parts| {
            let ((chosen, status, mut select), (values, indices, maxima), keys, (x, noise, filtered)) = parts;
            let k = usize::try_from(call.top_k.get(row)).unwrap_or(0);
            let choice = self.level.run(SampleV1::<T> {
                row: logits.row(row).gather(x),
                k: if k <= v.min(MAX_K) { k } else { 0 },
                p: call.top_p.get(row).as_(),
                noise: call.q.as_ref().map_or(Noise::None, |q| Noise::Given { q: q.row(row).gather(noise), eps }),
                nan,
                filtered: select.as_mut().map(|select| select.borrow(filtered)),
                work: Workspace { list: List { values, indices }, maxima },
                keys,
            });
            if let Some(mut select) = select {
                select.give_back(filtered);
            }
            *chosen = choice.token as i64;
            if let Some(status) = status {
                *status = choice.status;
            }
        });
        Ok(())
    }
}
