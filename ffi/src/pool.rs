//! A C callback as a pool of threads.

use crate::environment::Environment;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use tilekern::{Error, ParallelFor, Status};

/// One task, as the callback calls it.
pub(crate) type Task = extern "C" fn(arg: *mut c_void, index: usize, worker: usize);

/// The callback of a context.
pub(crate) type Callback = unsafe extern "C" fn(user: *mut c_void, tasks: usize, task: Task, arg: *mut c_void);

/// The threads behind a context: a callback, or none but the caller's.
#[derive(Clone, Copy)]
pub(crate) enum Pool {
    Serial,
    Threads { callback: Callback, user: *mut c_void, workers: usize },
}

// SAFETY: only the thread that made the call gives `user` to `callback`.
unsafe impl Sync for Pool {}

// SAFETY: a C program promises what the trait does (header, `parallel_for`). A worker out of range runs nothing.
unsafe impl ParallelFor for Pool {
    fn workers(&self) -> usize {
        match *self {
            Pool::Serial => 1,
            Pool::Threads { workers, .. } => workers,
        }
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        match *self {
            Pool::Serial => (0..tasks).for_each(|index| task(index, 0)),
            Pool::Threads { callback, user, workers } => {
                let region = Region { task, tasks, workers, finished: AtomicUsize::new(0), failure: OnceLock::new() };
                // SAFETY: the callback is the caller's, and `region` outlives it.
                unsafe { callback(user, tasks, run_task, (&raw const region).cast_mut().cast()) };
                if let Err(error) = region.result() {
                    // What the tasks left is incomplete: nothing may work on with it. `enter` catches.
                    resume_unwind(Box::new(error));
                }
            }
        }
    }
}

/// What the tasks of one `parallel_for` share.
struct Region<'a> {
    task: &'a (dyn Fn(usize, usize) + Sync),
    tasks: usize,
    workers: usize,
    /// The sum of the squares of the tasks that are done, each counted from 1.
    finished: AtomicUsize,
    failure: OnceLock<Error>,
}

impl Region<'_> {
    fn run(&self, index: usize, worker: usize) -> Result<(), Error> {
        let wrong = |what, found: usize| Error::new(Status::Internal, "parallel_for", what, found);
        if worker >= self.workers {
            return Err(wrong("a worker below parallel_threads", worker));
        }
        if index >= self.tasks {
            return Err(wrong("an index below tasks", index));
        }
        // Unwinding out of a function of C's would abort.
        let panicked = |_| Error::new(Status::Internal, "task", "no panic", index);
        catch_unwind(AssertUnwindSafe(|| (self.task)(index, worker))).map_err(panicked)
    }

    fn result(self) -> Result<(), Error> {
        match (self.failure.into_inner(), self.finished.into_inner()) {
            (Some(error), _) => Err(error),
            (None, sum) if sum == squares(self.tasks) => Ok(()),
            _ => Err(Error::new(Status::Internal, "parallel_for", "each index below tasks once", "others")),
        }
    }
}

/// The sum of the squares of 1 to `tasks`, as a counter wraps.
fn squares(tasks: usize) -> usize {
    let n = tasks as u128;
    (n * (n + 1) / 2 * (2 * n + 1) / 3) as usize
}

extern "C" fn run_task(arg: *mut c_void, index: usize, worker: usize) {
    let _environment = Environment::enter();
    // SAFETY: `arg` is the region of a `parallel_for` that has not returned.
    let region = unsafe { &*arg.cast::<Region<'_>>() };
    match region.run(index, worker) {
        Ok(()) => _ = region.finished.fetch_add((index + 1).wrapping_mul(index + 1), Ordering::Release),
        Err(error) => _ = region.failure.set(error),
    }
}
