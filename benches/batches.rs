//! TopKTopPSample of 64 rows by several threads against one.
//!
//! `cargo bench --bench batches [-- [--threads COUNT] [--v V]]`. One thread and the others, each on a core of its own, take turns over the
//! same batch; the medians of 25 rounds, of the times and of how much sooner the threads were done. The largest element of each row
//! is found the same way: what reads the rows and does nothing else can hardly be outrun where memory is what all wait for. Without
//! `--bench`, as `cargo test` runs it, short rows once.

mod arguments;
mod cores;
mod logits;
mod median;

use arguments::Arguments;
use logits::{Floor, normal};
use median::median;
use std::hint::black_box;
use std::time::Instant;
use tilekern::kernels::dispatch::Level;
use tilekern::ops::{Noise, TopKTopPSample};
use tilekern::{Host, Isa, ParallelFor, Run, Scratch, Serial, Tensor, TensorMut};

const ROWS: usize = 64;

/// What takes turns.
#[derive(Clone, Copy)]
enum Work {
    /// The largest element of each row.
    Floor,
    /// With q.
    Sample { k: i32, p: f32 },
}

struct Batch {
    v: usize,
    logits: Vec<f32>,
    q: Vec<f32>,
}

impl Batch {
    /// Seconds, and the chosen tokens.
    fn time<P: ParallelFor>(&self, host: &Host<P>, work: Work, scratch: &mut Scratch) -> (f64, [i64; ROWS]) {
        let (v, mut tokens) = (self.v, [0; ROWS]);
        let Work::Sample { k, p } = work else {
            let level = Level::new(host.isa()).unwrap();
            let start = Instant::now();
            host.pool().run(ROWS, &|row, _| {
                black_box(level.run(Floor(black_box(&self.logits[row * v..][..v]))));
            });
            return (start.elapsed().as_secs_f64(), tokens);
        };
        let (k, p) = ([k; ROWS], [p; ROWS]);
        let mut call = TopKTopPSample::new(
            Tensor::new([ROWS, v], &self.logits).unwrap(),
            Tensor::new([ROWS], &k).unwrap(),
            Tensor::new([ROWS], &p).unwrap(),
            TensorMut::new([ROWS], &mut tokens).unwrap(),
        );
        call.q = Some(Noise::Exponential(Tensor::new([ROWS, v], &self.q).unwrap()));
        let scratch = scratch.reserve(host.workspace(&call).unwrap()).unwrap();
        let start = Instant::now();
        host.run(black_box(call), scratch).unwrap();
        (start.elapsed().as_secs_f64(), tokens)
    }
}

fn main() {
    let arguments = Arguments::new();
    let (v, rounds, threads) = (arguments.v(), if arguments.full() { 25 } else { 1 }, arguments.number("--threads").unwrap_or(2));
    let mut state = 1;
    let logits = (0..ROWS * v).map(|_| 4.0 * normal(&mut state)).collect();
    let q = (0..ROWS * v).map(|_| normal(&mut state).powi(2) * 0.5 + 1e-3).collect();
    let batch = Batch { v, logits, q };
    let (one, many) = (Host::with(Isa::detect(), Serial).unwrap(), Host::with(Isa::detect(), cores::pool(threads)).unwrap());
    let mut scratch = Scratch::default();
    println!("{}, {ROWS} rows of {v}, {threads} threads against one", one.isa().name());
    for (name, work) in [
        ("the largest element", Work::Floor),
        ("top-k 50 with q", Work::Sample { k: 50, p: 1.0 }),
        ("top-p 0.9 with q", Work::Sample { k: 0, p: 0.9 }),
    ] {
        let (mut alone, mut together, mut gains) = (vec![], vec![], vec![]);
        for _ in 0..rounds {
            let (time, tokens) = batch.time(&one, work, &mut scratch);
            let (shared, same) = batch.time(&many, work, &mut scratch);
            assert_eq!(tokens, same);
            alone.push(time);
            together.push(shared);
            gains.push(time / shared);
        }
        let [alone, together] = [alone, together].map(|mut times| 1e6 * median(&mut times));
        println!("  {name:<20} {alone:8.0} us, {together:8.0} us, {:.2} times as fast", median(&mut gains));
    }
}
