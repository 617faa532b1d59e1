//! Attention on the host: heads of queries over the pool.

use super::{Host, positions};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{Attention, Heads};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::{Describe, Tensor};
use core::alloc::Layout;
use core::ops::Range;
use tilekern_kernels::element::Element;
use tilekern_kernels::tiles;

pub(super) struct Slots<K> {
    scores: WorkerSlot<f32>,
    /// Four chains, a query and an output.
    rows: WorkerSlot<f32>,
    mask: WorkerSlot<f32>,
    caches: WorkerSlot<K>,
}

pub(super) fn plan<K: Element>(workers: usize, d: Heads) -> Result<(Plan, Slots<K>), Error> {
    let too_large = || Error::invalid("key_cache", "a size that fits in memory", "an overflow");
    let mut plan = Plan::new();
    let slots = Slots {
        scores: plan.each(workers, d.positions)?,
        rows: plan.each(workers, d.width.checked_mul(6).ok_or_else(too_large)?)?,
        mask: plan.each(workers, d.positions)?,
        caches: plan.each(workers, d.positions.checked_mul(d.width).and_then(|n| n.checked_mul(2)).ok_or_else(too_large)?)?,
    };
    Ok((plan, slots))
}

/// The first `positions` rows of one head of a cache: where they lie, or gathered into `stage`.
fn head<'a, K: Copy>(
    cache: &Tensor<'a, K>,
    output: &Range<usize>,
    (head, positions): (usize, usize),
    stage: &'a mut [K],
) -> (&'a [K], usize) {
    let (shape, strides) = (cache.dims().shape(), cache.dims().strides());
    if cache.dims().has_contiguous_rows()
        && let Some(memory) = cache.memory_beside(core::slice::from_ref(output))
    {
        let start = head / shape[1] * strides[0] + head % shape[1] * strides[1];
        return (&memory[start..], strides[2]);
    }
    let width = shape[3];
    for (j, to) in stage.chunks_exact_mut(width).take(positions).enumerate() {
        let row = cache.row(head * shape[2] + j);
        to.iter_mut().enumerate().for_each(|(i, to)| *to = row.get(i));
    }
    (stage, width)
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn attention<K: Element>(&self, call: &Attention<'_, Self, K>, d: Heads, scratch: &mut [u8]) -> Result<(), Error> {
        let (plan, slots) = plan::<K>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        let scale = call.factor(d.width);
        let group = d.heads / d.kv_heads;
        let written = call.output.bytes();
        let parts = (
            &call.output,
            space.take_each(slots.scores),
            space.take_each(slots.rows),
            space.take_each(slots.mask),
            space.take_each(slots.caches),
        );
        let rows = d.batch * d.heads * d.tokens;
        let grain = parallel::grain(d.positions.saturating_mul(d.width), 4);
        parallel::rows(&self.pool, rows, grain, parts, |row, (mut output, scores, stage, mask, caches)| {
            let (batch, token) = (row / d.tokens / d.heads, row % d.tokens);
            let cache = batch * d.kv_heads + row / d.tokens % d.heads / group;
            // `positions::check` found it inside the cache.
            let positions = call.start_pos.get(batch) as usize + token + 1;
            let (keys, values) = caches.split_at_mut(d.positions * d.width);
            let (keys, stride) = head(&call.key_cache, &written, (cache, positions), keys);
            let (values, value_stride) = head(&call.value_cache, &written, (cache, positions), values);
            let (chains, stage) = stage.split_at_mut(4 * d.width);
            let (query, stage) = stage.split_at_mut(d.width);
            let query = call.query.row(row).gather(query);
            let mask = call.mask.as_ref().map(|m| m.row(token).gather(mask));
            output.scatter(stage, |output| {
                self.level.run(tiles::Attention {
                    query,
                    keys,
                    values,
                    strides: [stride, value_stride],
                    positions,
                    scale,
                    mask,
                    scores,
                    chains,
                    output,
                })
            });
        });
        Ok(())
    }
}

impl<K: Element, P: ParallelFor> Run<Attention<'_, Self, K>> for Host<P> {
    fn workspace(&self, call: &Attention<'_, Self, K>) -> Result<Layout, Error> {
        Ok(plan::<K>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut Attention<'_, Self, K>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        positions::check(&call.start_pos, d.tokens, d.positions)?;
        self.attention(call, d, scratch)
    }
}
