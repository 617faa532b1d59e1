//! The caches on the host: tokens over the pool.

use super::{Host, positions};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{HeadSizes, StoreKvCache};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::Tokens;
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// Room for rows that are not contiguous.
pub(super) struct Staging<K> {
    input: WorkerSlot<f32>,
    output: WorkerSlot<K>,
}

pub(super) fn plan<K: Element>(workers: usize, d: HeadSizes) -> Result<(Plan, Staging<K>), Error> {
    let mut plan = Plan::new();
    let input = plan.each(workers, d.size)?;
    let output = plan.each(workers, d.size)?;
    Ok((plan, Staging { input, output }))
}

impl<P: ParallelFor> Host<P> {
    /// A call that was found valid.
    pub(super) fn store_kv_cache<K: Element>(
        &self,
        call: &StoreKvCache<'_, Self, K>,
        d: HeadSizes,
        scratch: &mut [u8],
    ) -> Result<(), Error> {
        let (plan, stage) = plan::<K>(self.pool.workers(), d)?;
        let space = plan.carve(scratch)?;
        if d.rows() == 0 {
            return Ok(());
        }
        let rows_of = |tensor| Tokens { tensor, tokens: d.tokens, start: Some(&call.start_pos) };
        let (keys, values) = (rows_of(&call.key_cache), rows_of(&call.value_cache));
        let parts = (keys, values, space.take_each(stage.input), space.take_each(stage.output));
        parallel::rows(&self.pool, d.rows(), parallel::grain(d.columns, 16), parts, |row, (keys, values, x, y)| {
            for (input, mut cache) in [(&call.key, keys), (&call.value, values)] {
                let input = input.heads(row / d.tokens, row % d.tokens);
                for head in 0..d.heads {
                    let input = input.head(head).gather(x);
                    cache.head(head).scatter(y, |output| self.level.run(rows::Narrow { input, output }));
                }
            }
        });
        Ok(())
    }
}

impl<K: Element, P: ParallelFor> Run<StoreKvCache<'_, Self, K>> for Host<P> {
    fn workspace(&self, call: &StoreKvCache<'_, Self, K>) -> Result<Layout, Error> {
        Ok(plan::<K>(self.pool.workers(), call.check(false)?)?.0.layout())
    }

    fn run_mut(&self, call: &mut StoreKvCache<'_, Self, K>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        positions::check(&call.start_pos, d.tokens, call.positions())?;
        self.store_kv_cache(call, d, scratch)
    }
}
