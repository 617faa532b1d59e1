//! Attention of one query over a cache, for several KV_TILE.
//!
//! `cargo bench --bench attention`. Ids: `attention/f32/{isa}/{KV_TILE}/{D}x{positions}`; throughput is the cache that is read.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern::kernels::dispatch::{Isa, Level};
use tilekern::kernels::reference;
use tilekern::kernels::tiles::{Attention, KvTiled};

const SHAPES: [[usize; 2]; 3] = [[8, 256], [64, 1024], [128, 4096]];

fn numbers(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

fn tile<const KV_TILE: usize>(c: &mut Criterion, level: Level) {
    let mut group = c.benchmark_group(format!("attention/f32/{}/{KV_TILE}", level.isa().name()));
    for [width, positions] in SHAPES {
        let (query, keys, values) = (numbers(width, 0.7), numbers(width * positions, 0.3), numbers(width * positions, 0.9));
        let (mut scores, mut chains) = (vec![0.0; positions], vec![0.0; 4 * width]);
        let (mut output, mut expected) = (vec![0.0; width], vec![0.0; width]);
        reference::attention(&query, &keys, &values, 0.25, None, &mut scores, &mut expected);
        let mut run = |output: &mut [f32]| {
            level.run(KvTiled::<f32, KV_TILE>(Attention {
                query: &query,
                keys: &keys,
                values: &values,
                strides: [width; 2],
                positions,
                scale: 0.25,
                mask: None,
                scores: &mut scores,
                chains: &mut chains,
                output,
            }));
        };
        run(&mut output);
        assert_eq!(output, expected);
        group.throughput(Throughput::Bytes(8 * (width * positions) as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{width}x{positions}")), |b| b.iter(|| run(&mut output)));
    }
}

fn bench(c: &mut Criterion) {
    for level in Isa::ALL.into_iter().filter_map(Level::new) {
        tile::<16>(c, level);
        tile::<32>(c, level);
        tile::<128>(c, level);
        tile::<512>(c, level);
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = bench }
criterion_main!(benches);
