//! Steps of a decoding allocate nothing, in the calling thread and inside a pool. Alone in its binary: the test harness allocates.

mod common;
#[path = "common/counting.rs"]
mod counting;
use counting::{allocations, begin};
#[path = "common/models.rs"]
mod models;
use common::rounds;
use models::{Weights, memory};
use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
use tilekern::{Host, Isa, ParallelFor, Rayon, Scratch, Serial, Tensor, TensorMut};

/// Allocations in so many steps.
fn counted<P: ParallelFor>(host: &Host<P>, file: &[u8], steps: usize) -> usize {
    const BATCH: usize = 3;
    let options = ModelOptions::default();
    let mut memory = memory::<f32>(&options, file);
    let model = Model::<f32>::load(&options, file, &mut memory).unwrap();
    let config = DecodingConfig { batch: BATCH, ..DecodingConfig::new(10, 30, 2) };
    let mut memory = Scratch::new(Decoding::<f32>::layout(host, &config, &model).unwrap());
    let mut decoding = Decoding::<f32>::new(host, &config, &model, &mut memory).unwrap();
    let (tokens, lengths, mut ids) = ([5i32; 10 * BATCH], [1, 10, 4], [0; BATCH]);
    begin(host);
    let all = || Tensor::new([BATCH, 10], &tokens).unwrap();
    for _ in 0..50 {
        decoding.prompt(host, all(), Tensor::new([BATCH], &lengths).unwrap()).unwrap();
    }
    let before = allocations();
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
    allocations() - before
}

fn main() {
    let file = Weights::tiny(1, false).version_0();
    let steps = rounds(10_000);
    let serial = counted(&Host::with(Isa::detect(), Serial).unwrap(), &file, steps);
    let host = Host::with(Isa::detect(), Rayon::new(2).unwrap()).unwrap();
    let pooled = host.pool().install(|| counted(&host, &file, steps));
    println!("allocations in {steps} steps: {serial} serial, {pooled} inside a pool");
    assert_eq!((serial, pooled), (0, 0));
}
