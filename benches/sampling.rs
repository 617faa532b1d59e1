//! Choosing a token from a row of logits, against the floor: the maximum of the row and nothing else.
//!
//! `cargo bench --bench sampling`. Ids: `{op}/{dtypes}/{isa}/{tile}/{size}`; the size is the vocabulary. Every call gets a fresh
//! row, copied into the cache before the clock starts as the head of a model would leave it: the same row again and again trains
//! the branch predictor.

mod fresh;
mod logits;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fresh::fill;
use half::bf16;
use logits::{Floor, normal};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tilekern::kernels::dispatch::Level;
use tilekern::kernels::element::Element;
use tilekern::kernels::rows::{FirstMax, List, TopK, list_len, maxima_len};
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut};

const ROWS: usize = 100;

struct Bench<'c> {
    criterion: &'c mut Criterion,
    level: Level,
    v: usize,
}

impl Bench<'_> {
    /// Measures `call`, each time on the next row, which is in the cache.
    fn rows<T: Element>(&mut self, op: &str, tile: &str, rows: &[T], mut call: impl FnMut(&[T])) {
        let dtype = if size_of::<T>() == 4 { "f32" } else { "bf16" };
        let group = format!("{op}/{dtype}/{}/{tile}", self.level.isa().name());
        let (v, mut next, mut row) = (self.v, 0, vec![T::default(); self.v]);
        let mut group = self.criterion.benchmark_group(group);
        group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(400));
        group.throughput(Throughput::Bytes((v * size_of::<T>()) as u64));
        group.bench_function(BenchmarkId::from_parameter(v), |b| {
            b.iter_custom(|n| {
                let mut spent = Duration::ZERO;
                for _ in 0..n {
                    fill(&mut row, rows[next * v..(next + 1) * v].iter().copied());
                    next = (next + 1) % ROWS;
                    let row = black_box(&row);
                    let start = Instant::now();
                    call(row);
                    spent += start.elapsed();
                }
                spent
            });
        });
    }

    /// Measures a call of the operator on one row; `kept` is how many tokens its first row must keep.
    fn op<T: Element>(&mut self, name: &str, rows: &[T], kept: usize, stages: (i32, f32, f32), post: PostSample) {
        let v = self.v;
        let host = Host::with(self.level.isa(), Serial).unwrap();
        let (k, p, m) = ([stages.0], [T::narrow(stages.1)], [T::narrow(stages.2)]);
        let (mut state, seeds) = (2, [1i64, 0]);
        // Half the sum of two squares is exponential.
        let q: Vec<f32> = (0..v).map(|_| (normal(&mut state).powi(2) + normal(&mut state).powi(2)) / 2.0).collect();
        let (mut chosen, mut idx, mut sorted) = ([0i64], vec![0i64; v], vec![0.0f32; v]);
        let mut scratch = Scratch::new(core::alloc::Layout::from_size_align(64 * v + 4096, 64).unwrap());
        let mut run = |row: &[T], middle: Option<(&mut [i64], &mut [f32])>| {
            let mut call = TopKTopPSample::new(
                Tensor::new([1, v], row).unwrap(),
                Tensor::new([1], &k).unwrap(),
                Tensor::new([1], &p).unwrap(),
                TensorMut::new([1], &mut chosen).unwrap(),
            );
            call.min_ps = Some(Tensor::new([1], &m).unwrap());
            call.post_sample = post;
            call.q = (post == PostSample::QSample).then(|| Noise::Exponential(Tensor::new([1, v], &q).unwrap()));
            call.generator = (post == PostSample::MultiNomial).then(|| Tensor::new([2], &seeds).unwrap());
            if let Some((idx, sorted)) = middle {
                call.logits_idx = Some(TensorMut::new([1, v], idx).unwrap());
                call.logits_sort_masked = Some(TensorMut::new([1, v], sorted).unwrap());
            }
            host.run(call, &mut scratch).unwrap();
            chosen[0]
        };
        run(&rows[..v], Some((&mut idx, &mut sorted)));
        let found = sorted.iter().filter(|&&pr| pr > 0.0).count();
        assert!(found == kept || kept == 0, "{name}: {found} kept");
        assert!(idx[..found].contains(&run(&rows[..v], None)), "{name}: none of those kept");
        if kept == 0 {
            println!("{name}/{v}: {found} kept");
        }
        self.rows(name, "default", rows, |row| {
            black_box(run(row, None));
        });
    }

    fn top_k<const BLOCK: usize>(&mut self, rows: &[f32], k: usize) {
        let (v, level) = (self.v, self.level);
        let (mut values, mut indices) = (vec![0.0; list_len(v)], vec![0; list_len(v)]);
        let mut maxima = vec![0.0; maxima_len(v, BLOCK)];
        let mut run = |row: &[f32]| {
            let list = List { values: &mut values, indices: &mut indices };
            level.run(TopK::<f32, BLOCK> { row, k, maxima: &mut maxima, list });
            indices[0]
        };
        let row = &rows[..v];
        assert_eq!(run(row) as usize, level.run(FirstMax { row }).0);
        self.rows(&format!("top_k_{k}"), &format!("block{BLOCK}"), rows, |row| {
            black_box(run(row));
        });
    }
}

fn vocabulary(criterion: &mut Criterion, level: Level, v: usize) {
    let mut state = 1;
    let flat: Vec<f32> = (0..ROWS * v).map(|_| 4.0 * normal(&mut state)).collect();
    // A model's: most of the mass on a few tokens.
    let mut peaked: Vec<f32> = flat.iter().map(|x| 0.25 * x).collect();
    for row in 0..ROWS {
        for i in 0..30 {
            peaked[row * v + (i * 7919 + row * 31) % v] = 13.0 + 2.0 * normal(&mut state);
        }
    }
    let half: Vec<bf16> = flat.iter().map(|&x| bf16::from_f32(x)).collect();
    let mut bench = Bench { criterion, level, v };
    bench.rows("floor", "8x16", &flat, |row| {
        black_box(level.run(Floor(row)));
    });
    bench.rows("floor", "8x16", &half, |row| {
        black_box(level.run(Floor(row)));
    });
    bench.op("argmax", &flat, v, (0, 1.0, 0.0), PostSample::None);
    bench.op("argmax", &half, v, (0, 1.0, 0.0), PostSample::None);
    bench.op("top_k_50_q", &flat, 50, (50, 1.0, 0.0), PostSample::QSample);
    bench.op("top_k_50_q", &half, 50, (50, 1.0, 0.0), PostSample::QSample);
    bench.op("top_k_50_top_p_min_p_multinomial", &flat, 0, (50, 0.9, 0.05), PostSample::MultiNomial);
    bench.op("top_k_1024_q", &flat, 1024, (1024, 1.0, 0.0), PostSample::QSample);
    bench.op("min_p_q", &flat, 0, (0, 1.0, 0.05), PostSample::QSample);
    bench.op("top_p_q_flat", &flat, 0, (0, 0.9, 0.0), PostSample::QSample);
    bench.op("top_p_q_peaked", &peaked, 0, (0, 0.9, 0.0), PostSample::QSample);
    bench.op("q", &flat, 0, (0, 1.0, 0.0), PostSample::QSample);
    bench.op("multinomial", &flat, 0, (0, 1.0, 0.0), PostSample::MultiNomial);
    bench.top_k::<16>(&flat, 50);
    bench.top_k::<32>(&flat, 50);
    bench.top_k::<64>(&flat, 50);
    bench.top_k::<128>(&flat, 50);
    bench.top_k::<256>(&flat, 50);
    bench.top_k::<512>(&flat, 50);
    bench.top_k::<1024>(&flat, 50);
    bench.top_k::<16>(&flat, 1024);
    bench.top_k::<64>(&flat, 1024);
}

fn benches(criterion: &mut Criterion) {
    for isa in [Isa::detect(), Isa::Avx2] {
        let Some(level) = Level::new(isa) else { continue };
        for v in [32_000, 128_256] {
            vocabulary(criterion, level, v);
        }
    }
}

criterion_group!(sampling, benches);
criterion_main!(sampling);
