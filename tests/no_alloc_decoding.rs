//! Steps of a decoding allocate nothing, in the calling thread and inside a pool. Alone in its binary: the test harness allocates.

mod common;
#[path = "common/models.rs"]
mod models;
use models::{Weights, memory, rounds};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
use tilekern::{Host, Isa, ParallelFor, Rayon, Scratch, Serial, Tensor, TensorMut};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations in so many steps.
fn allocations<P: ParallelFor>(host: &Host<P>, file: &[u8], steps: usize) -> usize {
    const BATCH: usize = 3;
    let options = ModelOptions::default();
    let mut memory = memory::<f32>(&options, file);
    let model = Model::<f32>::load(&options, file, &mut memory).unwrap();
    let config = DecodingConfig { batch: BATCH, ..DecodingConfig::new(10, 30, 2) };
    let mut memory = Scratch::new(Decoding::<f32>::layout(host, &config, &model).unwrap());
    let mut decoding = Decoding::<f32>::new(host, &config, &model, &mut memory).unwrap();
    let (tokens, lengths, mut ids) = ([5i32; 10 * BATCH], [1, 10, 4], [0; BATCH]);
    // A thread of a pool sets up its own queue with its first task: each takes one before the count begins.
    let together = Barrier::new(host.pool().workers());
    for _ in 0..100 {
        host.pool().run(host.pool().workers(), &|_, _| {
            together.wait();
        });
    }
    let all = || Tensor::new([BATCH, 10], &tokens).unwrap();
    for _ in 0..50 {
        decoding.prompt(host, all(), Tensor::new([BATCH], &lengths).unwrap()).unwrap();
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    decoding.set_row(0, &RowSampling { temperature: 0.0, ..Default::default() }).unwrap();
    decoding.set_row(1, &RowSampling { top_k: 50, top_p: 0.9, min_p: 0.01, ..Default::default() }).unwrap();
    for step in 0..steps {
        if decoding.finished() {
            decoding.prompt(host, all(), Tensor::new([BATCH], &lengths).unwrap()).unwrap();
        }
        if step % 50 == 25 {
            decoding.replace_row(host, 1, Tensor::new([7], &tokens).unwrap()).unwrap();
        }
        decoding.step(host, TensorMut::new([BATCH], &mut ids).unwrap()).unwrap();
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

fn main() {
    let file = Weights::tiny(1, false).version_0();
    let steps = rounds(10_000);
    let serial = allocations(&Host::with(Isa::detect(), Serial).unwrap(), &file, steps);
    let host = Host::with(Isa::detect(), Rayon::new(2).unwrap()).unwrap();
    let pooled = host.pool().install(|| allocations(&host, &file, steps));
    println!("allocations in {steps} steps: {serial} serial, {pooled} inside a pool");
    assert_eq!((serial, pooled), (0, 0));
}
