//! TopKTopPSampleV1 on the host: rows over the pool, each with a workspace of its worker.

use super::Host;
use super::stages::Stages;
use super::top_k_top_p_sample::Lists;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::TopKTopPSampleV1;
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Pieces, Plan, WorkerSlot};
use crate::tensor::Staged;
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{MAX_K, Noise, SampleV1};

impl<P: ParallelFor> Host<P> {
    /// The lists, and room for rows that are not contiguous.
    fn plan_sample_v1<T: Element>(
        &self,
        call: &TopKTopPSampleV1<'_, Self, T>,
        lists: Lists,
    ) -> Result<(Plan, WorkerSlot<u8>), Error> {
        let stages = Stages::default()
            .of::<T>(Some(&call.logits))
            .of::<f32>(call.q.as_ref())
            .of::<f32>(call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits));
        let mut plan = Plan::new();
        let slot = plan.each(self.pool.workers(), stages.beside(lists.bytes()))?;
        Ok((plan, slot))
    }
}

impl<T: Element, P: ParallelFor> Run<TopKTopPSampleV1<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &TopKTopPSampleV1<'_, Self, T>) -> Result<Layout, Error> {
        let [_, columns] = call.check(false)?;
        Ok(self.plan_sample_v1(call, Lists::of(columns))?.0.layout())
    }

    fn run_mut(&self, call: &mut TopKTopPSampleV1<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let [rows, v] = call.check(true)?;
        let lists = Lists::of(v);
        let (plan, memory) = self.plan_sample_v1(call, lists)?;
        let memory = plan.carve(scratch)?.take_each(memory);
        let (eps, logits) = (call.eps as f32, &call.logits);
        let nan = call.row_status.is_some();
        let outputs = (
            Column(&call.logits_select_idx),
            call.row_status.as_ref().map(Column),
            call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits),
        );
        parallel::rows(&self.pool, rows, parallel::grain(v, size_of::<T>()), (outputs, memory), |row, (outputs, memory)| {
            let mut memory = Pieces::of(memory);
            let work = lists.take(&mut memory);
            let (chosen, status, select) = outputs;
            let mut select = select.map(|select| select.staged(&mut memory));
            let k = usize::try_from(call.top_k.first_of(row)).unwrap_or(0);
            let choice = self.level.run(SampleV1::<T> {
                row: logits.row(row).staged(&mut memory),
                k: if k <= v.min(MAX_K) { k } else { 0 },
                p: call.top_p.first_of(row).as_(),
                noise: call.q.as_ref().map_or(Noise::None, |q| Noise::Given { q: q.row(row).staged(&mut memory), eps }),
                nan,
                filtered: select.as_mut().map(Staged::as_slice),
                work,
            });
            if let Some(select) = select {
                select.give_back();
            }
            *chosen = choice.token as i64;
            if let Some(status) = status {
                *status = choice.status;
            }
        });
        Ok(())
    }
}
