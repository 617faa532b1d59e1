//! The rows of an int8 product on the host, a chunk at a time in the form of the dot instruction, for all workers.

use crate::error::Error;
use crate::parallel::{self, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, Space, WorkerSlot};
use crate::tensor::Tensor;
use core::ops::Range;
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::tiles::{Activations, PackRows, PackedRows, row_words};

/// Bytes of a chunk's activations, about: half of a second cache.
const CHUNK: usize = 1 << 20;

/// Rows of a chunk of `m` rows of length `k`: chunks are equal but for the last.
pub(super) fn chunk_rows(m: usize, k: usize) -> usize {
    let most = (CHUNK / k.next_multiple_of(64)).clamp(64, 256);
    m.div_ceil(m.div_ceil(most).max(1)).max(1)
}

/// Where packed rows will lie, and a row for each worker, for activations that are not contiguous.
pub(super) struct RowSlots {
    packed: Slot<u64>,
    gathered: WorkerSlot<i8>,
    rows: usize,
}

impl RowSlots {
    /// For at most `rows` rows.
    pub fn plan(plan: &mut Plan, workers: usize, rows: usize, k: usize) -> Result<RowSlots, Error> {
        let too_large = || Error::invalid("x", "a size that fits in memory", "an overflow");
        let words = row_words(k).and_then(|words| words.checked_mul(rows)).ok_or_else(too_large)?;
        Ok(RowSlots { packed: plan.slot(words)?, gathered: plan.each(workers, k)?, rows })
    }

    pub fn take<'s>(self, space: &Space<'s>, k: usize) -> PackedChunk<'s> {
        PackedChunk { words: space.take(self.packed), gathered: space.take_each(self.gathered), rows: self.rows, k }
    }
}

/// Room for a chunk of packed rows.
pub(super) struct PackedChunk<'s> {
    words: &'s mut [u64],
    gathered: PerWorker<'s, i8>,
    rows: usize,
    k: usize,
}

impl PackedChunk<'_> {
    /// Packs some rows of `x`.
    pub fn pack<P: ParallelFor>(&mut self, level: Level, pool: &P, x: &Tensor<'_, i8>, rows: Range<usize>) -> PackedRows<'_> {
        debug_assert!(rows.len() <= self.rows);
        let (k, first) = (self.k, rows.start);
        let words = PerWorker::over(self.words, self.words.len() / self.rows);
        let parts = (parallel::ByRow(words), &self.gathered);
        parallel::rows(pool, rows.len(), parallel::grain(k, 2), parts, |row, (words, gathered)| {
            let data = x.row(first + row).gather(gathered);
            level.run(PackRows { x: Activations { data, stride: k, rows: 1 }, k, words });
        });
        PackedRows::new(self.words, k, rows.len())
    }
}
