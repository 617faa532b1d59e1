//! The rows of an int8 product on the host, a chunk at a time in the form of the dot instruction, for all workers.

use crate::error::Error;
use crate::ops::{FORMAT_ND, FORMAT_PACKED};
use crate::parallel::{self, ParallelFor};
use crate::scratch::{PerWorker, Plan, Slot, Space, WorkerSlot};
use crate::tensor::Tensor;
use core::ops::Range;
use tilekern_kernels::dispatch::{Isa, Level};
use tilekern_kernels::tiles::{Activations, Bands, PackBand, PackRows, PackedRows, row_words};

/// Bytes of a chunk's activations, about: half of a second cache.
const CHUNK: usize = 1 << 20;

/// The same where packing the weights for each chunk takes longer than reading activations that do not stay there.
const LONG_CHUNK: usize = 3 << 20;

/// The most rows of a chunk of `m` rows of length `k` that fill so many bytes, about.
fn most_rows(m: usize, k: usize, bytes: usize) -> usize {
    (bytes / k.next_multiple_of(64)).clamp(64, 256).min(m.max(1))
}

/// The same of rows that meet weights of some format.
pub(super) fn most_chunk_rows(m: usize, k: usize, format: i32) -> usize {
    most_rows(m, k, if format == FORMAT_ND { LONG_CHUNK } else { CHUNK })
}

/// Rows of a chunk of `m` rows of length `k` that meet weights of some format: chunks are equal but for the last.
pub(super) fn chunk_rows(m: usize, k: usize, format: i32) -> usize {
    equal_parts(m, most_chunk_rows(m, k, format))
}

/// The same of packed weights on VNNI: fewer, so that the second cache has room for weights. Where these stay there while bands pass, rows
/// fill a quarter of 2 MiB, as processors with AMX have, of 1 MiB a little more, but where K is very long. They come in whole bands,
/// unless few would be left for the last chunk.
pub(super) fn vnni_chunk_rows(m: usize, k: usize, banded: bool) -> usize {
    let bytes = match banded {
        false => CHUNK,
        true if Isa::Avx512Amx.is_available() => CHUNK / 2,
        true => CHUNK / 16 * 5,
    };
    let rows = equal_parts(m, most_rows(m, k, bytes).min(128));
    whole(m, k, rows, Bands::MOST, Bands::FROM).unwrap_or(rows)
}

/// The same of packed weights on a unit for tiles: all rows where they leave most of the second cache to weights, else about a quarter of it
/// at a time, in whole blocks as far as there is room; as few chunks as can be, if else less than a block would be left for the last.
pub(super) fn unit_chunk_rows(m: usize, k: usize) -> usize {
    const BLOCK: usize = 32;
    match m <= most_rows(m, k, CHUNK / 4 * 3) {
        true => m.max(1),
        false => {
            let rows = equal_parts(m, most_rows(m, k, CHUNK / 2));
            whole(m, k, rows, BLOCK, BLOCK).unwrap_or(chunk_rows(m, k, FORMAT_PACKED))
        }
    }
}

/// Rows in whole blocks, where there is room, unless fewer than `least` of `m` would be left for the last chunk.
fn whole(m: usize, k: usize, rows: usize, block: usize, least: usize) -> Option<usize> {
    let whole = rows.next_multiple_of(block).min(chunk_rows(m, k, FORMAT_PACKED));
    ((m.max(1) - 1) % whole + 1 >= least).then_some(whole)
}

fn equal_parts(m: usize, most: usize) -> usize {
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
        let gathered = k.checked_mul(rows.min(Bands::MOST));
        Ok(RowSlots { packed: plan.slot(words)?, gathered: plan.each(workers, gathered.ok_or_else(too_large)?)?, rows })
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
    /// Packs some rows of `x`, from place `at` on, one behind the other or in bands.
    pub fn pack<P: ParallelFor>(
        &mut self,
        level: Level,
        pool: &P,
        (x, rows): (&Tensor<'_, i8>, Range<usize>),
        at: usize,
        banded: bool,
    ) {
        debug_assert!(at + rows.len() <= self.rows);
        let (k, pitch) = (self.k, self.words.len() / self.rows);
        let words = PerWorker::over(&mut self.words[at * pitch..][..rows.len() * pitch], pitch);
        if banded {
            let bands = Bands::of(rows.len());
            let (grain, parts) = (parallel::grain(k * Bands::MOST, 2), (parallel::ByBand(words, bands), &self.gathered));
            return parallel::rows(pool, bands.count(), grain, parts, |band, (words, gathered)| {
                let (some, mut data) = (bands.rows(band), [&[][..]; Bands::MOST]);
                for ((data, gathered), row) in data.iter_mut().zip(gathered.chunks_exact_mut(k)).zip(some.clone()) {
                    *data = x.row(rows.start + row).gather(gathered);
                }
                level.run(PackBand { rows: &data[..some.len()], words });
            });
        }
        let parts = (parallel::ByRow(words), &self.gathered);
        parallel::rows(pool, rows.len(), parallel::grain(k, 2), parts, |row, (words, gathered)| {
            let data = x.row(rows.start + row).gather(gathered);
            level.run(PackRows { x: Activations { data, stride: k, rows: 1 }, k, words });
        });
    }

    /// The first of the rows, as they were packed.
    pub fn rows(&self, rows: usize) -> PackedRows<'_> {
        PackedRows::new(self.words, self.k, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bands, FORMAT_PACKED, chunk_rows, unit_chunk_rows, vnni_chunk_rows};

    #[test]
    fn last_chunks_are_not_small_and_all_fit() {
        for k in [1, 64, 1000, 4096, 5000, 11008, 65536] {
            for (m, banded) in (1..1200).flat_map(|m| [false, true].map(|banded| (m, banded))) {
                let rows = vnni_chunk_rows(m, k, banded);
                let last = (m - 1) % rows + 1;
                assert!(rows <= chunk_rows(m, k, FORMAT_PACKED), "{m} x {k}: {rows}");
                assert!(last >= m.min(Bands::FROM), "{m} x {k}: {last} of {rows}");
            }
            for m in 1..1200 {
                let rows = unit_chunk_rows(m, k);
                let last = (m - 1) % rows + 1;
                assert!(rows <= chunk_rows(m, k, FORMAT_PACKED), "{m} x {k}: {rows}");
                assert!(last >= m.min(32), "{m} x {k}: {last} of {rows}");
            }
        }
    }
}
