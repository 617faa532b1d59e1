//! Pools of threads, the caller's.

/// A pool of threads.
///
/// # Safety
///
/// `run` calls `task(index, worker)` once for each `index < tasks`, with `worker < self.workers()`, never two at the same time with
/// one `worker`, and returns, or unwinds, after the last has returned. `workers` is at least 1, and the same every time. What a task
/// wrote, later tasks of the same worker and the caller of `run` see. Tasks do not call `run` themselves: where threads take up other
/// tasks while they wait, as rayon's do, two would run with one worker. `enter` calls `body` once, and returns, or unwinds, behind it.
///
/// A reference to a pool is one, and so are a `Box` and an `Arc` of it (feature `alloc`).
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
    /// Calls `body`, which calls `run` several times, and perhaps `enter` again: for a pool in which that costs less from a thread of its
    /// own, there. What a call does one step after the other goes this way, so that its threads are woken once. Several threads may be
    /// inside at a time, and what `body` wrote the caller sees. Here it is called where it stands.
    ///
    /// ```
    /// use tilekern::{ParallelFor, Serial};
    /// use core::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// let sum = AtomicUsize::new(0);
    /// Serial.enter(&mut || {
    ///     for step in 0..3 {
    ///         Serial.run(5, &|index, _| drop(sum.fetch_add(step * index, Ordering::Relaxed)));
    ///     }
    /// });
    /// assert_eq!(sum.into_inner(), (1 + 2) * 10);
    /// ```
    fn enter(&self, body: &mut (dyn FnMut() + Send)) {
        body();
    }
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
    fn enter(&self, body: &mut (dyn FnMut() + Send)) {
        (**self).enter(body);
    }
}

// SAFETY: as behind a reference.
#[cfg(feature = "alloc")]
unsafe impl<P: ParallelFor + ?Sized> ParallelFor for alloc::boxed::Box<P> {
    fn workers(&self) -> usize {
        (**self).workers()
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        (**self).run(tasks, task);
    }
    fn enter(&self, body: &mut (dyn FnMut() + Send)) {
        (**self).enter(body);
    }
}

// SAFETY: as behind a reference. Whichever owner is last drops the pool, on its own thread: so the pool is `Send`.
#[cfg(feature = "alloc")]
unsafe impl<P: ParallelFor + Send + ?Sized> ParallelFor for alloc::sync::Arc<P> {
    fn workers(&self) -> usize {
        (**self).workers()
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        (**self).run(tasks, task);
    }
    fn enter(&self, body: &mut (dyn FnMut() + Send)) {
        (**self).enter(body);
    }
}

/// A rayon thread pool: one of its own ([`Rayon::new`]), or one that a program has already.
///
/// Calls made inside the pool ([`Rayon::install`]) allocate nothing; a call from outside enters the pool through rayon's queue,
/// which allocates one block about every 63 times. Of several threads that call at a time one may wait for the call of another: what
/// waits in the pool takes up what else is there.
///
/// ```
/// use tilekern::{Host, Isa, Rayon};
///
/// let host = Host::with(Isa::detect(), Rayon::new(2)?)?;
/// # let _ = host;
/// # Ok::<(), tilekern::Error>(())
/// ```
///
/// Several hosts share one behind an `Arc`:
///
/// ```
/// use std::sync::Arc;
/// use tilekern::{Host, ParallelFor, Rayon};
///
/// let pool = Arc::new(Rayon::new(2)?);
/// let (one, other) = (Host::best(pool.clone()), Host::best(pool));
/// assert_eq!((one.pool().workers(), other.pool().workers()), (2, 2));
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

/// A pool that a program has already, with whatever else runs in it.
///
/// ```
/// use tilekern::{Host, ParallelFor, Rayon};
///
/// let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build()?;
/// let host = Host::best(Rayon::from(pool));
/// assert_eq!(host.pool().workers(), 3);
/// # Ok::<(), rayon::ThreadPoolBuildError>(())
/// ```
#[cfg(feature = "rayon")]
impl From<rayon::ThreadPool> for Rayon {
    fn from(pool: rayon::ThreadPool) -> Rayon {
        Rayon { pool }
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
    fn enter(&self, body: &mut (dyn FnMut() + Send)) {
        self.pool.install(body);
    }
}
