//! Filters of sorted probabilities on the host: rows over the pool, each in one pass.

use super::Host;
use crate::backend::Run;
use crate::error::Error;
use crate::ops::ApplyTopKTopPMinP;
use crate::parallel::{self, ParallelFor};
use crate::scratch::{Plan, WorkerSlot};
use crate::tensor::{Row, RowMut};
use core::alloc::Layout;
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::element::Element;
use tilekern_kernels::rows::{KeepPrefix, Prefix};

/// Columns at a time of rows that are not contiguous.
const PIECE: usize = 2048;

fn plan<T: Element>(workers: usize) -> Result<(Plan, [WorkerSlot<T>; 2]), Error> {
    let mut plan = Plan::new();
    let slots = [plan.each(workers, PIECE)?, plan.each(workers, PIECE)?];
    Ok((plan, slots))
}

/// What is asked of a row.
struct Filter {
    level: Level,
    k: usize,
    p: f32,
    least: f32,
}

impl Filter {
    /// One walk over a row; whether it was as `prefix` relies on.
    fn walk<T: Element>(&self, row: Row<'_, T>, out: &mut RowMut<'_, T>, stages: [&mut [T]; 2], mut prefix: Prefix) -> bool {
        let [x, y] = stages;
        let level = self.level;
        if let (Some(row), Some(output)) = (row.as_slice(), out.as_slice()) {
            let (output, behind) = output.split_at_mut(self.k);
            behind.fill(T::default());
            return level.run(KeepPrefix { row: &row[..self.k], prefix: &mut prefix, p: self.p, least: self.least, output });
        }
        let columns = out.len();
        (0..columns).step_by(PIECE).all(|at| {
            let piece = at..columns.min(at + PIECE);
            let inside = self.k.clamp(piece.start, piece.end) - at;
            out.part(piece.clone()).scatter(y, |output| {
                let (output, behind) = output.split_at_mut(inside);
                behind.fill(T::default());
                let row = row.part(at..at + inside).gather(x);
                level.run(KeepPrefix { row, prefix: &mut prefix, p: self.p, least: self.least, output })
            })
        })
    }
}

impl<T: Element, P: ParallelFor> Run<ApplyTopKTopPMinP<'_, Self, T>> for Host<P> {
    fn workspace(&self, call: &ApplyTopKTopPMinP<'_, Self, T>) -> Result<Layout, Error> {
        call.check(false)?;
        Ok(plan::<T>(self.pool.workers())?.0.layout())
    }

    fn run_mut(&self, call: &mut ApplyTopKTopPMinP<'_, Self, T>, scratch: &mut [u8]) -> Result<(), Error> {
        let [rows, columns] = call.check(true)?;
        let (plan, [input, output]) = plan::<T>(self.pool.workers())?;
        let space = plan.carve(scratch)?;
        let parts = (&call.sampled_res, space.take_each(input), space.take_each(output));
        parallel::rows(&self.pool, rows, parallel::grain(columns, 2 * size_of::<T>()), parts, |row, (mut out, x, y)| {
            let probs = call.probs.row(row);
            let first: f32 = probs.get(0).as_();
            let filter = Filter {
                level: self.level,
                k: usize::try_from(call.k.first_of(row)).map_or(columns, |k| k.min(columns)),
                p: call.p.first_of(row).as_(),
                least: call.min_p.map_or(f32::NAN, |min_p| first * min_p.first_of(row).as_()),
            };
            if !filter.walk(probs, &mut out, [&mut *x, &mut *y], Prefix::new(true)) {
                filter.walk(probs, &mut out, [x, y], Prefix::new(false));
            }
        });
        Ok(())
    }
}
