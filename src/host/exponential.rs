//! Exponential numbers on the host: pieces of rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::Exponential;
use crate::parallel::{self, Cut, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::Describe;
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::{philox, rows};

/// Numbers of a task: some ten microseconds.
const PIECE: usize = 4096;

fn plan<T: Element>(workers: usize) -> Result<(Plan, WorkerSlot<T>), Error> {
    let mut plan = Plan::new();
    let stage = plan.each(workers, PIECE)?;
    Ok((plan, stage))
}

impl<T: Element, P: ParallelFor> Run<Exponential<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &Exponential<'_, Self, T>) -> Result<Layout, Error> {
        call.check(false)?;
        Ok(plan::<T>(self.pool.workers())?.0.layout())
    }

    fn run_mut(&self, call: &mut Exponential<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        call.check(true)?;
        let (plan, stage) = plan::<T>(self.pool.workers())?;
        let stage = plan.carve(scratch)?.take_each(stage);
        let factor = 1.0 / call.rate as f32;
        let numbers = philox::Exponential::new(call.seed as u64, call.offset as u64, call.out.dims().elements() as u64);
        let out = call.out.reborrow().flattened();
        let (columns, _) = out.dims().last();
        let cut = Cut { rows: (PIECE / columns.max(1)).max(1), columns: PIECE };
        parallel::blocks(&self.pool, cut, &out, &stage, |mut block, stage| {
            let at = block.columns.clone();
            for row in block.rows.clone() {
                let first = (row * columns + at.start) as u64;
                block.row(row).scatter(&mut stage[..at.len()], |output| {
                    self.level.run(rows::Exponentials { numbers, first, factor, output });
                });
            }
        });
        Ok(())
    }
}
