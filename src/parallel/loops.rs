//! Loops over rows and blocks, cut into tasks.

use super::pool::ParallelFor;
use super::split::Split;
use crate::scratch::PerWorker;
use crate::tensor::{Describe, RowMut, TensorMut};
use bytemuck::Pod;
use core::ops::Range;

/// Calls `body(row, part)` for every row, `grain` rows to a task.
pub(crate) fn rows<P: ParallelFor, O: Split>(
    pool: &P,
    rows: usize,
    grain: usize,
    output: O,
    body: impl for<'t> Fn(usize, O::Part<'t>) + Sync,
) {
    let grain = grain.max(1);
    let task = |index: usize, worker: usize| {
        for row in index * grain..rows.min((index + 1) * grain) {
            // SAFETY: every row is in one task, tasks of one worker follow each other, and the part ends with the call.
            body(row, unsafe { output.part(row, worker) });
        }
    };
    if rows <= grain { task(0, 0) } else { pool.run(rows.div_ceil(grain), &task) }
}

/// Some rows and columns of a matrix, to write.
pub(crate) struct Block<'a, T> {
    matrix: &'a TensorMut<'a, T>,
    /// The rows.
    pub rows: Range<usize>,
    /// The columns.
    pub columns: Range<usize>,
}

impl<T: Copy> Block<'_, T> {
    /// The columns of one of the rows.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> RowMut<'_, T> {
        debug_assert!(self.rows.contains(&row));
        // SAFETY: the block owns these columns of its rows, and lends them once at a time.
        unsafe { self.matrix.row(row) }.columns(self.columns.clone())
    }
}

/// How a matrix is cut into blocks.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// Rows of a block.
    pub rows: usize,
    /// Columns of a block.
    pub columns: usize,
}

/// Calls `body` for every block of a matrix, with a scratch of the worker. Of a tensor of another rank the last dimension are the
/// columns, the others the rows.
pub(crate) fn blocks<P: ParallelFor, T: Send + Sync + Copy, W: Pod + Send>(
    pool: &P,
    cut: Cut,
    matrix: &TensorMut<'_, T>,
    scratch: &PerWorker<'_, W>,
    body: impl Fn(Block<'_, T>, &mut [W]) + Sync,
) {
    let (columns, _) = matrix.dims().last();
    let rows = matrix.dims().elements() / columns.max(1);
    let across = columns.div_ceil(cut.columns);
    let task = |index: usize, worker: usize| {
        let (row, column) = (index / across * cut.rows, index % across * cut.columns);
        let block = Block { matrix, rows: row..rows.min(row + cut.rows), columns: column..columns.min(column + cut.columns) };
        // SAFETY: tasks of one worker follow each other, and the slice ends with the task.
        body(block, unsafe { scratch.worker(worker) });
    };
    match rows.div_ceil(cut.rows) * across {
        0 => {}
        1 => task(0, 0),
        tasks => pool.run(tasks, &task),
    }
}

/// Calls `body(i, block, part)` for some rows of each of the matrices, as many columns at a time as stand beside it, with a part of the
/// worker.
pub(crate) fn strips<P: ParallelFor, T: Send + Sync + Copy, S: Split>(
    pool: &P,
    rows: Range<usize>,
    matrices: &[(&TensorMut<'_, T>, usize)],
    parts: &S,
    body: impl for<'t> Fn(usize, Block<'t, T>, S::Part<'t>) + Sync,
) {
    let across = |(matrix, columns): &(&TensorMut<'_, T>, usize)| matrix.dims().last().0.div_ceil(*columns);
    let task = |index: usize, worker: usize| {
        let (mut i, mut strip) = (0, index);
        while strip >= across(&matrices[i]) {
            strip -= across(&matrices[i]);
            i += 1;
        }
        let ((matrix, columns), column) = (matrices[i], strip * matrices[i].1);
        let (all, _) = matrix.dims().last();
        let block = Block { matrix, rows: rows.clone(), columns: column..all.min(column + columns) };
        // SAFETY: tasks of one worker follow each other, and the part, which is the worker's, ends with the task.
        body(i, block, unsafe { parts.part(index, worker) });
    };
    match matrices.iter().map(across).sum() {
        0 => {}
        1 => task(0, 0),
        tasks => pool.run(tasks, &task),
    }
}

/// Calls `body(segments[i][0], block, part)` for the rows `segments[i][1]..segments[i][2]` of a matrix, which ascend, so many
/// columns at a time as `columns` says for their count, with a part of the worker.
pub(crate) fn tiles<P: ParallelFor, T: Send + Sync + Copy, S: Split>(
    pool: &P,
    segments: &[[usize; 3]],
    columns: impl Fn(usize) -> usize + Sync,
    matrix: &TensorMut<'_, T>,
    parts: &S,
    body: impl for<'t> Fn(usize, Block<'t, T>, S::Part<'t>) + Sync,
) {
    assert!(segments.is_sorted_by(|[_, _, end], [_, first, _]| end <= first));
    let (all, _) = matrix.dims().last();
    // Segments that need fewer tasks than others leave some empty.
    let across = segments.iter().map(|[_, first, end]| all.div_ceil(columns(end - first))).max().unwrap_or(0);
    let task = |index: usize, worker: usize| {
        let [key, first, end] = segments[index / across];
        let columns = columns(end - first);
        let column = index % across * columns;
        if column < all {
            let block = Block { matrix, rows: first..end, columns: column..all.min(column + columns) };
            // SAFETY: tasks of one worker follow each other, and the part, which is the worker's, ends with the task.
            body(key, block, unsafe { parts.part(index, worker) });
        }
    };
    match segments.len() * across {
        0 => {}
        1 => task(0, 0),
        tasks => pool.run(tasks, &task),
    }
}

/// Rows to a task so that a task touches about 32 KiB: less costs more to hand over than to do. A row of so many elements touches
/// so many bytes with each; rows that there are none of may be longer than any memory.
#[inline]
pub(crate) fn grain(elements: usize, bytes: usize) -> usize {
    const TOUCHED: usize = 32 * 1024;
    let row = elements.saturating_mul(bytes).max(1);
    // A long row is spared the division.
    if row > TOUCHED / 2 { 1 } else { TOUCHED / row }
}
