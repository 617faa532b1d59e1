//! TopKTopPSample on the host: rows over the pool, each with a workspace of its worker.

use super::Host;
use super::stages::Stages;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Batch, Draw, TopKTopPSample};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Pieces, Plan, WorkerSlot};
use crate::tensor::{Describe, Row, Staged};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::philox::Exponential;
use tilekern_kernels::rows::{self, List, Middle, Noise, Sample, Workspace, list_len, workspace_maxima};

/// The lengths of what the kernel of a row works in.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    list: usize,
    maxima: usize,
}

impl Lists {
    /// Of a row of `v` elements.
    #[inline]
    pub fn of(v: usize) -> Lists {
        Lists { list: list_len(v), maxima: workspace_maxima(v) }
    }

    /// Bytes of what [`Lists::take`] takes.
    #[inline]
    pub fn bytes(self) -> usize {
        2 * Pieces::bytes::<f32>(self.list) + Pieces::bytes::<f32>(self.maxima)
    }

    /// What the kernel works in.
    #[inline]
    pub fn take<'a>(self, memory: &mut Pieces<'a>) -> Workspace<'a> {
        let list = List { values: memory.take(self.list), indices: memory.take(self.list) };
        Workspace { list, maxima: memory.take(self.maxima) }
    }
}

impl<P: ParallelFor> Host<P> {
    /// The lists, and room for rows that are not contiguous.
    #[inline(always)]
    fn plan_sample<T: Element>(&self, call: &TopKTopPSample<'_, Self, T>, lists: Lists) -> Result<(Plan, WorkerSlot<u8>), Error> {
        let q = if let Draw::Exponential(q) = call.draw() { Some(q) } else { None };
        let stages = Stages::default()
            .of::<T>(Some(&call.logits))
            .of::<f32>(q)
            .of::<f32>(call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits))
            .of::<i64>(call.logits_idx.as_ref())
            .of::<f32>(call.logits_sort_masked.as_ref());
        let mut plan = Plan::new();
        let slot = plan.each(self.pool.workers(), stages.beside(lists.bytes()))?;
        Ok((plan, slot))
    }

    /// What is kept of a row.
    #[inline(always)]
    fn stages<T: Element>(call: &TopKTopPSample<'_, Self, T>, batch: Batch, row: usize) -> rows::Stages {
        let k = usize::try_from(call.top_k.first_of(row)).unwrap_or(0);
        rows::Stages {
            k: if k <= batch.max_k.min(batch.vocabulary) { k } else { 0 },
            p: call.top_p.first_of(row).as_(),
            min_p: call.min_ps.as_ref().map_or(0.0, |m| m.first_of(row).as_()),
            is_logits: call.input_is_logits,
        }
    }

    /// What a row draws with.
    #[inline(always)]
    fn noise<'m, T>(call: &'m TopKTopPSample<'_, Self, T>, batch: Batch, row: usize, memory: &mut Pieces<'m>) -> Noise<'m> {
        let (count, v) = (batch.rows, batch.vocabulary);
        match call.draw() {
            Draw::Argmax => Noise::None,
            Draw::Exponential(q) => Noise::Given { q: q.row(row).staged(memory), eps: call.eps as f32 },
            Draw::Seeds(q) => drawn(q.row(row.min(q.dims().shape()[0] - 1)), v, 0),
            Draw::Generator(pair) => drawn(pair.row(0), count * v, row * v),
        }
    }
}

/// Numbers of a (seed, offset) pair for so many elements, from the `first` of them on.
fn drawn(pair: Row<'_, i64>, elements: usize, first: usize) -> Noise<'static> {
    let numbers = Exponential::new(pair.get(0) as u64, pair.get(1) as u64, elements as u64);
    Noise::Drawn { numbers, first: first as u64 }
}

impl<T: Element, P: ParallelFor> Run<TopKTopPSample<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &TopKTopPSample<'_, Self, T>) -> Result<Layout, Error> {
        Ok(self.plan_sample(call, Lists::of(call.check(false)?.vocabulary))?.0.layout())
    }

    fn run_mut(&self, call: &mut TopKTopPSample<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let batch = call.check(true)?;
        let lists = Lists::of(batch.vocabulary);
        let (plan, memory) = self.plan_sample(call, lists)?;
        let memory = plan.carve(scratch)?.take_each(memory);
        let call = &*call;
        let outputs = (
            call.logits_select_idx.as_ref().map(Column),
            call.row_status.as_ref().map(Column),
            call.logits_top_kp_select.as_ref().filter(|_| call.is_need_logits),
            call.logits_idx.as_ref(),
            call.logits_sort_masked.as_ref(),
        );
        let grain = parallel::grain(batch.vocabulary, size_of::<T>());
        parallel::rows(&self.pool, batch.rows, grain, (outputs, memory), |row, (outputs, memory)| {
            let mut memory = Pieces::of(memory);
            let work = lists.take(&mut memory);
            let (chosen, status, select, idx, sorted) = outputs;
            let mut select = select.map(|select| select.staged(&mut memory));
            let mut middle = idx.zip(sorted).map(|(idx, sorted)| (idx.staged(&mut memory), sorted.staged(&mut memory)));
            let choice = self.level.run(&mut Sample::<T> {
                row: call.logits.row(row).staged(&mut memory),
                stages: Self::stages(call, batch, row),
                noise: Self::noise(call, batch, row, &mut memory),
                nan: status.is_some(),
                filtered: select.as_mut().map(Staged::as_slice),
                middle: middle.as_mut().map(|(idx, sorted)| Middle { tokens: idx.as_slice(), probabilities: sorted.as_slice() }),
                work,
            });
            if let Some(select) = select {
                select.give_back();
            }
            if let Some((idx, sorted)) = middle {
                idx.give_back();
                sorted.give_back();
            }
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
