//! How an int8 product is cut into tasks: columns, all of K.

use super::Host;
use super::weight::Weight;
use crate::ops::WeightSizes;
use crate::parallel::ParallelFor;
use tilekern_kernels::dispatch::Isa;
use tilekern_kernels::tiles::few_rows;

/// Multiplications of a task, about: 5 us of work at the rate of a dot unit.
const WORK: usize = 1 << 21;

/// Rows whose multiplications take as long as reading their weights, about.
const READS: usize = 8;

/// Multiplications that are left to the calling thread, at most: of up to [`READS`] rows those of a MiB of weights.
const SHARED: usize = READS << 20;

/// Tasks for each worker, at least, before they are made longer.
const TASKS: usize = 4;

/// Tasks for each of several workers, at most, where weights are packed.
const MOST_TASKS: usize = 16;

/// Rows that compute so little that tasks are as few as can be.
const FEW: usize = 32;

/// Columns of a task, at least, where weights are packed on the way.
const LEAST: usize = 512;

impl<P: ParallelFor> Host<P> {
    /// Columns of a task over `rows` rows.
    pub(super) fn task_columns(&self, rows: usize, d: WeightSizes, weight: &Weight<'_>) -> usize {
        let workers = self.pool.workers().max(1);
        let Weight::Packed(_) = weight else {
            let most = weight.task_columns(self.level, rows, d);
            return match workers {
                // The longer the rows of weights that a few rows read, the better: as few tasks as can be, of one length.
                _ if rows <= few_rows(self.level.isa(), weight.lie()).min(FEW) => {
                    d.n.div_ceil(d.n.div_ceil(most).next_multiple_of(workers)).next_multiple_of(64)
                }
                1 => most,
                _ => most.min((d.n / TASKS / workers).next_multiple_of(LEAST).max(LEAST)),
            };
        };
        let has_unit = Isa::Avx512Amx.is_available();
        let least = match self.level.isa() == Isa::Avx512Amx || has_unit && weight.suits_bands(self.level, rows) {
            // All of K at once, 64 columns are done sooner than their sums are written, for which a task waits at its end.
            true => (d.n / TASKS / workers / 64 * 64).clamp(64, 256),
            // Each task starts anew, and ends by waiting for what it wrote. One worker has nobody to share with; of one task alone a pool
            // is not told.
            false if workers == 1 => d.n.div_ceil(2).next_multiple_of(64),
            false => d.n.div_ceil(MOST_TASKS * workers).next_multiple_of(64),
        };
        (WORK / (d.k * rows.max(1))).next_multiple_of(64).max(least)
    }

    /// The same where the product has all workers for itself: of one length, about, so that nobody waits for the last.
    pub(super) fn shared_columns(&self, rows: usize, d: WeightSizes, weight: &Weight<'_>) -> usize {
        let workers = self.pool.workers();
        if workers <= 1 || !matches!(weight, Weight::Packed(_)) {
            return self.task_columns(rows, d, weight);
        }
        let tasks = d.n.div_ceil(self.task_columns(rows.max(READS), d, weight));
        let tasks = if tasks < workers { tasks } else { tasks.next_multiple_of(workers) };
        d.n.div_ceil(tasks).next_multiple_of(64)
    }

    /// What `body` gives, which multiplies so many rows by so many weights, in several steps: [inside the pool](ParallelFor::enter) where
    /// that is shared.
    pub(crate) fn inside<R: Send>(&self, rows: usize, weights: usize, body: impl FnOnce() -> R + Send) -> R {
        if !is_shared(rows, weights) {
            return body();
        }
        let (mut body, mut given) = (Some(body), None);
        self.pool.enter(&mut || given = body.take().map(|body| body()));
        given.expect("a pool calls what enters it")
    }
}

/// Whether so many rows by so many weights take long enough to wake threads for.
pub(super) fn is_shared(rows: usize, weights: usize) -> bool {
    rows.max(READS).saturating_mul(weights) > SHARED
}
