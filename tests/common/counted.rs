//! A pool that counts.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use tilekern::ParallelFor;

/// Two workers on one thread, which count how often somebody enters who is not inside, and what runs outside.
#[derive(Default)]
pub struct Counted {
    inside: AtomicBool,
    entered: AtomicUsize,
    outside: AtomicUsize,
}

// SAFETY: one task after the other, each once, and `body` once.
unsafe impl ParallelFor for Counted {
    fn workers(&self) -> usize {
        2
    }
    fn run(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        self.outside.fetch_add(usize::from(!self.inside.load(Relaxed)), Relaxed);
        (0..tasks).for_each(|index| task(index, index % 2));
    }
    fn enter(&self, body: &mut (dyn FnMut() + Send)) {
        let inside = self.inside.swap(true, Relaxed);
        self.entered.fetch_add(usize::from(!inside), Relaxed);
        body();
        self.inside.store(inside, Relaxed);
    }
}

impl Counted {
    /// Both counts since the last time: of who entered, and of runs outside.
    pub fn counts(&self) -> [usize; 2] {
        [&self.entered, &self.outside].map(|count| count.swap(0, Relaxed))
    }
}
