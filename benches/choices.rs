//! The steps of a batch: the logits of the last token, and choices by one number, peaked and flat.
//!
//! `cargo bench --bench choices`. Ids: `{op}/f32/{isa}/{case}/{V}`; throughput in bytes of the row.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern::kernels::reference;
use tilekern::ops::{TopKSampling, TopPSampling, UpdateLogits};
use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut};

/// Draws from the middle of what is kept.
const RANDOM: [f32; 1] = [0.5];

struct Bench<'c> {
    criterion: &'c mut Criterion,
    host: Host,
    columns: usize,
    scratch: Scratch,
}

impl Bench<'_> {
    /// Runs `call` once, lets `check` look at what it wrote, and measures it.
    fn op<O>(&mut self, op: &str, case: &str, mut out: O, call: impl Fn(&Host, &mut O, &mut [u8]), check: impl Fn(&O)) {
        call(&self.host, &mut out, &mut self.scratch);
        check(&out);
        let mut group = self.criterion.benchmark_group(format!("{op}/f32/{}", self.host.isa().name()));
        group.throughput(Throughput::Bytes(4 * self.columns as u64));
        group.bench_function(BenchmarkId::new(case, self.columns), |b| b.iter(|| call(&self.host, &mut out, &mut self.scratch)));
    }

    fn update(&mut self, logits: &[f32], softmax: bool) {
        let n = self.columns;
        let rows = Tensor::new([1, 1, n], logits).unwrap();
        let mut expected = logits.to_vec();
        if softmax {
            reference::probabilities(logits, &mut expected);
        }
        self.op(
            "update_logits",
            if softmax { "softmax" } else { "copy" },
            vec![0f32; n],
            |host, y, scratch| {
                let call = UpdateLogits::new(rows, TensorMut::new([1, n], y).unwrap());
                host.run(UpdateLogits { softmax, ..call }, scratch).unwrap();
            },
            |y| assert_eq!(*y, expected),
        );
    }

    fn top_k(&mut self, logits: &[f32], k: usize) {
        let n = self.columns;
        let (rows, random) = (Tensor::new([1, n], logits).unwrap(), Tensor::new([1], &RANDOM).unwrap());
        let expected = reference::top_k_choice(logits, k, 0.0, RANDOM[0], &mut vec![0; n]);
        self.op(
            "top_k_sampling",
            &format!("k{k}"),
            [0],
            |host, id, scratch| {
                host.run(TopKSampling::new(rows, random, k as i64, TensorMut::new([1], id).unwrap()), scratch).unwrap();
            },
            |id| assert_eq!(id[0] as usize, expected),
        );
    }

    fn top_p(&mut self, case: &str, logits: &[f32], p: f64) {
        let n = self.columns;
        let mut probs = vec![0.0; n];
        reference::probabilities(logits, &mut probs);
        let (rows, random) = (Tensor::new([1, n], &probs).unwrap(), Tensor::new([1], &RANDOM).unwrap());
        let expected = reference::top_p_choice(&probs, p, RANDOM[0], &mut vec![0; n]);
        self.op(
            "top_p_sampling",
            case,
            [0],
            |host, id, scratch| {
                host.run(TopPSampling::new(rows, random, p, TensorMut::new([1], id).unwrap()), scratch).unwrap();
            },
            |id| assert_eq!(id[0] as usize, expected),
        );
    }
}

fn bench(c: &mut Criterion) {
    for isa in Isa::ALL {
        for columns in [32_000, 128_256] {
            let Ok(host) = Host::with(isa, Serial) else { continue };
            let layout = core::alloc::Layout::from_size_align(8 * columns + 256 * 1024, 64).unwrap();
            let mut bench = Bench { criterion: c, host, columns, scratch: Scratch::new(layout) };
            let flat: Vec<f32> = (0..columns).map(|i| (i * 7919 % 10_007) as f32 / 10_007.0).collect();
            // A hundred tokens are likely, the others e^-12 as much.
            let peaked: Vec<f32> =
                flat.iter().enumerate().map(|(i, x)| if i % (columns / 100) == 7 { x + 12.0 } else { *x }).collect();
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
