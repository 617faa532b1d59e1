//! A pool with each thread on a core of its own.

use core::sync::atomic::{AtomicUsize, Ordering};
use tilekern::{ParallelFor, Rayon};

/// Each thread stays on its core: some schedulers wake a thread on the core of the one that wakes it, and leave another idle for as
/// long as a call takes.
pub fn pool(threads: usize) -> Rayon {
    let pool = Rayon::new(threads).unwrap();
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let arrived = AtomicUsize::new(0);
    pool.run(threads, &|_, worker| {
        if let Some(&core) = cores.get(worker) {
            core_affinity::set_for_current(core);
        }
        // No thread takes the task of another.
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < threads {
            core::hint::spin_loop();
        }
    });
    pool
}
