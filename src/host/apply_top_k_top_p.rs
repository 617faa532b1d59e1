//! Filters of logits on the host: rows over the pool.

use super::Host;
use super::stages::Stages;
use super::top_k_top_p_sample::Lists;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::ApplyTopKTopP;
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Pieces, Plan, WorkerSlot};
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// What a worker works in, and room for rows that are not contiguous.
fn plan<T: Element, P: ParallelFor>(
    host: &Host<P>,
    call: &ApplyTopKTopP<'_, Host<P>, T>,
    columns: usize,
) -> Result<(Plan, WorkerSlot<u8>), Error> {
    let stages = Stages::default().of::<T>(Some(&call.logits)).of::<T>(Some(&call.out));
    let mut plan = Plan::new();
    let slot = plan.each(host.pool.workers(), stages.beside(Lists::of(columns).bytes()))?;
    Ok((plan, slot))
}

impl<T: Element, P: ParallelFor> Run<ApplyTopKTopP<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &ApplyTopKTopP<'_, Self, T>) -> Result<Layout, Error> {
        match call.check(false)? {
            Some([_, columns]) => Ok(plan(self, call, columns)?.0.layout()),
            None => Ok(Plan::new().layout()),
        }
    }

    fn run_mut(&self, call: &mut ApplyTopKTopP<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let Some([rows, columns]) = call.check(true)? else { return Ok(()) };
        let (plan, memory) = plan(self, call, columns)?;
        let parts = (&call.out, plan.carve(scratch)?.take_each(memory));
        parallel::rows(&self.pool, rows, parallel::grain(columns, 2 * size_of::<T>()), parts, |row, (out, memory)| {
            let mut memory = Pieces::of(memory);
            let work = Lists::of(columns).take(&mut memory);
            let logits = call.logits.row(row).staged(&mut memory);
            let mut out = out.staged(&mut memory);
            let k = call.k.map_or(0, |k| usize::try_from(k.first_of(row)).unwrap_or(0));
            let k = if k == 0 { columns } else { k };
            let p = call.p.map_or(f32::NAN, |p| p.first_of(row).as_());
            self.level.run(rows::ApplyTopKTopP { row: logits, k, p, output: out.as_slice(), work });
            out.give_back();
        });
        Ok(())
    }
}
