//! The steps of a batch: the logits of the last token, and choices by one number, peaked and flat.
//!
//! `cargo bench --bench choices`. Ids: `{op}/f32/{isa}/{case}/{V}`; throughput in bytes of the row. Every call gets another row and
//! another number, the row copied into the cache before the clock starts.

mod fresh;
mod logits;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fresh::fill;
use logits::{Floor, normal};
use std::time::{Duration, Instant};
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::reference;
use tilekern::ops::{TopKSampling, TopPSampling, UpdateLogits};
use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut};

/// How many rows and numbers take turns.
const ROWS: usize = 40;

struct Bench<'c> {
    criterion: &'c mut Criterion,
    host: Host,
    columns: usize,
    scratch: Scratch,
}

/// The number of a row, away from both ends.
fn random(row: usize) -> [f32; 1] {
    [(row * 17 % ROWS) as f32 / ROWS as f32 + 0.01]
}

impl Bench<'_> {
    /// Runs `call` on the first row, lets `check` look at what it wrote, and measures it on all.
    fn op<O>(
        &mut self,
        op: &str,
        case: &str,
        rows: &[f32],
        mut out: O,
        call: impl Fn(&Host, &[f32], &[f32; 1], &mut O, &mut [u8]),
        check: impl Fn(&[f32], f32, &O),
    ) {
        let (n, mut next, mut row) = (self.columns, 0, rows[..self.columns].to_vec());
        call(&self.host, &row, &random(0), &mut out, &mut self.scratch);
        check(&row, random(0)[0], &out);
        let mut group = self.criterion.benchmark_group(format!("{op}/f32/{}", self.host.isa().name()));
        group.throughput(Throughput::Bytes(4 * n as u64));
        group.bench_function(BenchmarkId::new(case, n), |b| {
            b.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    next = (next + 1) % ROWS;
                    fill(&mut row, rows[next * n..][..n].iter().copied());
                    let start = Instant::now();
                    call(&self.host, &row, &random(next), &mut out, &mut self.scratch);
                    spent += start.elapsed();
                }
                spent
            });
        });
    }

    /// What reading the row costs.
    fn floor(&mut self, logits: &[f32]) {
        let level = Level::new(self.host.isa()).unwrap();
        let call = |_: &Host, row: &[f32], _: &[f32; 1], top: &mut f32, _: &mut [u8]| *top = level.run(Floor(row));
        // Rows of whole accumulators, both lengths.
        let check = |row: &[f32], _, top: &f32| assert_eq!(*top, row.iter().fold(f32::NEG_INFINITY, |top, &x| top.max(x)));
        self.op("floor", "max", logits, 0.0, call, check);
    }

    fn update(&mut self, logits: &[f32], softmax: bool) {
        let n = self.columns;
        self.op(
            "update_logits",
            if softmax { "softmax" } else { "copy" },
            logits,
            vec![0f32; n],
            |host, row, _, y, scratch| {
                let rows = Tensor::new([1, 1, n], row).unwrap();
                let call = UpdateLogits::new(rows, TensorMut::new([1, n], y).unwrap());
                host.run(UpdateLogits { softmax, ..call }, scratch).unwrap();
            },
            |row, _, y| {
                let mut expected = row.to_vec();
                if softmax {
                    reference::probabilities(row, &mut expected);
                }
                assert_eq!(*y, expected);
            },
        );
    }

    fn top_k(&mut self, logits: &[f32], k: usize) {
        let n = self.columns;
        self.op(
            "top_k_sampling",
            &format!("k{k}"),
            logits,
            [0],
            |host, row, random, id, scratch| {
                let (rows, random) = (Tensor::new([1, n], row).unwrap(), Tensor::new([1], random).unwrap());
                host.run(TopKSampling::new(rows, random, k as i64, TensorMut::new([1], id).unwrap()), scratch).unwrap();
            },
            |row, random, id| assert_eq!(id[0] as usize, reference::top_k_choice(row, k, 0.0, random, &mut vec![0; n])),
        );
    }

    fn top_p(&mut self, case: &str, logits: &[f32], p: f64) {
        let n = self.columns;
        let mut probs = vec![0.0; logits.len()];
        for (logits, probs) in logits.chunks_exact(n).zip(probs.chunks_exact_mut(n)) {
            reference::probabilities(logits, probs);
        }
        self.op(
            "top_p_sampling",
            case,
            &probs,
            [0],
            |host, row, random, id, scratch| {
                let (rows, random) = (Tensor::new([1, n], row).unwrap(), Tensor::new([1], random).unwrap());
                host.run(TopPSampling::new(rows, random, p, TensorMut::new([1], id).unwrap()), scratch).unwrap();
            },
            |row, random, id| assert_eq!(id[0] as usize, reference::top_p_choice(row, p, random, &mut vec![0; n])),
        );
    }
}

fn bench(c: &mut Criterion) {
    for columns in [32_000, 128_256] {
        let mut state = 1;
        let flat: Vec<f32> = (0..ROWS * columns).map(|_| normal(&mut state)).collect();
        // A hundred tokens are likely, the others e^-12 as much.
        let likely = |i: usize| i % columns % (columns / 100) == 7;
        let peaked: Vec<f32> = flat.iter().enumerate().map(|(i, x)| if likely(i) { x + 12.0 } else { *x }).collect();
        for isa in Isa::ALL {
            let Ok(host) = Host::with(isa, Serial) else { continue };
            let layout = core::alloc::Layout::from_size_align(8 * columns + 256 * 1024, 64).unwrap();
            let mut bench = Bench { criterion: c, host, columns, scratch: Scratch::new(layout) };
            bench.floor(&flat);
            bench.update(&flat, false);
            bench.update(&flat, true);
            bench.top_k(&flat, 50);
            bench.top_k(&flat, 1024);
            bench.top_p("peaked", &peaked, 0.9);
            bench.top_p("flat", &flat, 0.9);
        }
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = bench }
criterion_main!(benches);
