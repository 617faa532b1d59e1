//! Filters of logits on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::ApplyTopKTopP;
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::Describe;
use core::alloc::Layout;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{self, apply_len};

/// What a worker works in, and room for rows that are not contiguous.
struct Slots<T> {
    work: WorkerSlot<f32>,
    input: WorkerSlot<T>,
    output: WorkerSlot<T>,
}

fn plan<T: Element, P: ParallelFor>(
    host: &Host<P>,
    call: &ApplyTopKTopP<'_, Host<P>, T>,
    columns: usize,
) -> Result<(Plan, Slots<T>), Error> {
    let workers = host.pool.workers();
    let mut plan = Plan::new();
    let slots = Slots {
        work: plan.each(workers, apply_len(columns))?,
        input: plan.each(workers, call.logits.dims().staged())?,
        output: plan.each(workers, call.out.dims().staged())?,
    };
    Ok((plan, slots))
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
        let (plan, slots) = plan(self, call, columns)?;
        let space = plan.carve(scratch)?;
        let stages = (space.take_each(slots.work), space.take_each(slots.input), space.take_each(slots.output));
        let parts = (&call.out, stages);
        parallel::rows(&self.pool, rows, parallel::grain(2 * size_of::<T>() * columns), parts, |row, (mut out, stages)| {
            let (work, x, y) = stages;
            let logits = call.logits.row(row).gather(x);
            let k = call.k.map_or(0, |k| usize::try_from(k.first_of(row)).unwrap_or(0));
            let k = if k == 0 { columns } else { k };
            let p = call.p.map_or(f32::NAN, |p| p.first_of(row).as_());
            out.scatter(y, |output| self.level.run(rows::ApplyTopKTopP { row: logits, k, p, output, work }));
        });
        Ok(())
    }
}
