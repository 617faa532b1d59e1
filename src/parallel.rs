//! Work over the threads of whoever calls: a fixed number of tasks, each task its own rows.
//!
//! The cut into tasks depends on shapes and, where more tasks would cost, on the number of workers. No result depends on the cut.

use crate::scratch::PerWorker;
use crate::tensor::{Describe, RowMut, TensorMut};
use bytemuck::Pod;
use core::ops::Range;
use tilekern_kernels::tiles::Bands;

#[cfg(all(test, feature = "std"))]
mod tests;

/// A pool of threads.
///
/// # Safety
///
/// `run` calls `task(index, worker)` once for each `index < tasks`, with `worker < self.workers()`, never two at the same time with
/// one `worker`, and returns, or unwinds, after the last has returned. `workers` is at least 1, and the same every time. What a task
/// wrote, later tasks of the same worker and the caller of `run` see. Tasks do not call `run` themselves: where threads take up other
/// tasks while they wait, as rayon's do, two would run with one worker.
///
/// ```
/// use tilekern::{ParallelFor, Serial};
/// use core::sync::atomic::{AtomicUsize, Ordering};
///
/// let sum = AtomicUsize::new(0);
/// Serial.run(5, &|index, worker| {
///     assert_eq!(worker, 0);
///     sum.fetch_add(index, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 10);
/// ```
pub unsafe trait ParallelFor: Sync {
    /// Workers that `run` may name.
    fn workers(&self) -> usize;
    /// Runs the tasks.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync));
}

/// The calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

// SAFETY: one task after the other, all with worker 0.
unsafe impl ParallelFor for Serial {
    fn workers(&self) -> usize {
        1
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        for index in 0..tasks {
            task(index, 0);
        }
    }
}

// SAFETY: the trait's contract is that of the pool behind the reference.
unsafe impl<P: ParallelFor + ?Sized> ParallelFor for &P {
    fn workers(&self) -> usize {
        (**self).workers()
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        (**self).run(tasks, task);
    }
}

/// A rayon thread pool of its own.
///
/// Calls made inside the pool ([`Rayon::install`]) allocate nothing; a call from outside enters the pool through rayon's queue,
/// which allocates one block about every 63 times.
///
/// ```
/// use tilekern::{Host, Isa, Rayon};
///
/// let host = Host::with(Isa::detect(), Rayon::new(2)?)?;
/// # let _ = host;
/// # Ok::<(), tilekern::Error>(())
/// ```
#[cfg(feature = "rayon")]
#[derive(Debug)]
pub struct Rayon {
    pool: rayon::ThreadPool,
}

#[cfg(feature = "rayon")]
impl Rayon {
    /// A pool of `threads` threads, at least one; an error (-2) where the system gives no thread.
    pub fn new(threads: usize) -> Result<Rayon, crate::Error> {
        let build = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
        let failed = |_| crate::Error::new(crate::Status::Unsupported, "threads", "a pool of threads", threads);
        Ok(Rayon { pool: build.map_err(failed)? })
    }

    /// Runs `f` on a thread of the pool.
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.pool.install(f)
    }
}

// SAFETY: `split` reaches each index once, and a thread of the pool runs one task at a time, since no task enters the pool.
#[cfg(feature = "rayon")]
unsafe impl ParallelFor for Rayon {
    fn workers(&self) -> usize {
        self.pool.current_num_threads()
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        fn split(from: usize, to: usize, task: &(dyn Fn(usize, usize) + Sync)) {
            if to - from > 1 {
                let middle = from + (to - from) / 2;
                rayon::join(|| split(from, middle, task), || split(middle, to, task));
            } else if from < to {
                task(from, rayon::current_thread_index().unwrap_or(0));
            }
        }
        match tasks {
            0 => {}
            _ => self.pool.install(|| split(0, tasks, task)),
        }
    }
}

/// Something of which every row, or every worker, has a part of its own.
///
/// # Safety
///
/// Parts of different rows with different workers do not overlap.
pub(crate) unsafe trait Split: Sync {
    /// What one task gets, for the time of the task.
    type Part<'t>;

    /// The part of a row and a worker.
    ///
    /// # Safety
    ///
    /// No other part of this row, and none of this worker, lives, and the part does not outlive the task.
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t>;
}

// SAFETY: rows of a tensor that does not overlap itself are disjoint; validation refuses others.
unsafe impl<T: Send + Sync + 'static> Split for TensorMut<'_, T> {
    type Part<'t> = RowMut<'t, T>;
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> RowMut<'t, T> {
        // SAFETY: no other part of the row lives.
        unsafe { self.row(row) }
    }
}

// SAFETY: workers' slices are disjoint.
unsafe impl<T: Pod + Send> Split for PerWorker<'_, T> {
    type Part<'t> = &'t mut [T];
    unsafe fn part<'t>(&self, _row: usize, worker: usize) -> &'t mut [T] {
        // SAFETY: no other part of the worker lives.
        unsafe { self.worker(worker) }
    }
}

/// Rows counted from a later one.
pub(crate) struct From<'a, S>(pub &'a S, pub usize);

// SAFETY: different rows are different rows of what is behind the reference.
unsafe impl<S: Split> Split for From<'_, S> {
    type Part<'t> = S::Part<'t>;
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> S::Part<'t> {
        // SAFETY: the caller's promise about `row` is one about `row + self.1`.
        unsafe { self.0.part(row + self.1, worker) }
    }
}

/// Slices of which every row, instead of every worker, has one.
pub(crate) struct ByRow<'a, T>(pub PerWorker<'a, T>);

// SAFETY: the slices are disjoint.
unsafe impl<T: Pod + Send> Split for ByRow<'_, T> {
    type Part<'t> = &'t mut [T];
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> &'t mut [T] {
        // SAFETY: no other part of the row lives.
        unsafe { self.0.worker(row) }
    }
}

/// Slices of which every band of rows has those of its rows, which are neighbours.
pub(crate) struct ByBand<'a, T>(pub PerWorker<'a, T>, pub Bands);

// SAFETY: bands are disjoint.
unsafe impl<T: Pod + Send> Split for ByBand<'_, T> {
    type Part<'t> = &'t mut [T];
    unsafe fn part<'t>(&self, band: usize, _worker: usize) -> &'t mut [T] {
        // SAFETY: no other part of the band lives.
        unsafe { self.0.neighbours(self.1.rows(band)) }
    }
}

// SAFETY: as what is behind the reference.
unsafe impl<S: Split> Split for &S {
    type Part<'t> = S::Part<'t>;
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t> {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).part(row, worker) }
    }
}

/// One row of a tensor, of which every task has some columns.
pub(crate) struct Columns<'a, T> {
    /// The tensor.
    pub matrix: &'a TensorMut<'a, T>,
    /// Which row.
    pub row: usize,
    /// Columns of a task.
    pub columns: usize,
}

// SAFETY: columns of a tensor that does not overlap itself are disjoint; validation refuses others.
unsafe impl<T: Send + Sync + Copy + 'static> Split for Columns<'_, T> {
    type Part<'t> = RowMut<'t, T>;
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> RowMut<'t, T> {
        let (all, _) = self.matrix.dims().last();
        let first = row * self.columns;
        // SAFETY: no other part of these columns lives.
        unsafe { self.matrix.row(self.row) }.columns(first..all.min(first + self.columns))
    }
}

/// A tensor `[n]` or `[n,1]` of which every row has one element.
pub(crate) struct Column<'t, 'a, T>(pub &'t TensorMut<'a, T>);

// SAFETY: elements of a tensor that does not overlap itself are disjoint; validation refuses others.
unsafe impl<T: Send + Sync + 'static> Split for Column<'_, '_, T> {
    type Part<'t> = &'t mut T;
    unsafe fn part<'t>(&self, row: usize, _worker: usize) -> &'t mut T {
        // SAFETY: no other part of the row lives.
        unsafe { self.0.first_of(row) }
    }
}

// SAFETY: as the tensor or slice, where there is one.
unsafe impl<S: Split> Split for Option<S> {
    type Part<'t> = Option<S::Part<'t>>;
    unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t> {
        // SAFETY: the caller's promise about parts of `self` is one about parts of what is in it.
        self.as_ref().map(|split| unsafe { split.part(row, worker) })
    }
}

macro_rules! tuple {
    ($($part:ident)*) => {
        // SAFETY: as each of the parts.
        unsafe impl<$($part: Split),*> Split for ($($part,)*) {
            type Part<'t> = ($($part::Part<'t>,)*);
            unsafe fn part<'t>(&self, row: usize, worker: usize) -> Self::Part<'t> {
                #[allow(non_snake_case)]
                let ($($part,)*) = self;
                // SAFETY: as each of the parts.
                unsafe { ($($part.part(row, worker),)*) }
            }
        }
    };
}
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);

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

/// Calls `body` for some rows of a matrix, `columns` columns at a time, with a part of the worker.
pub(crate) fn strips<P: ParallelFor, T: Send + Sync + Copy, S: Split>(
    pool: &P,
    rows: Range<usize>,
    columns: usize,
    matrix: &TensorMut<'_, T>,
    parts: &S,
    body: impl for<'t> Fn(Block<'t, T>, S::Part<'t>) + Sync,
) {
    let (all, _) = matrix.dims().last();
    let task = |index: usize, worker: usize| {
        let column = index * columns;
        let block = Block { matrix, rows: rows.clone(), columns: column..all.min(column + columns) };
        // SAFETY: tasks of one worker follow each other, and the part, which is the worker's, ends with the task.
        body(block, unsafe { parts.part(index, worker) });
    };
    match all.div_ceil(columns) {
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
