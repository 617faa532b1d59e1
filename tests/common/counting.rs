//! An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilekern::{Host, ParallelFor};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How many there were.
pub fn allocations() -> usize {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Lets every thread of the host's pool take a task: with its first it sets up its own queue.
pub fn begin<P: ParallelFor>(host: &Host<P>) {
    let together = Barrier::new(host.pool().workers());
    for _ in 0..100 {
        host.pool().run(host.pool().workers(), &|_, _| {
            together.wait();
        });
    }
}
