//! The int8 tile over a grid of sizes; `--bench roofline` has the rate of the dot instruction alone.
//!
//! `cargo bench --bench int8`. Ids: `quant_matmul/i8i8i32/{isa}/{MR}x{NR}x{KC}/{M}x{K}x{N}`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern::kernels::dispatch::{Isa, Level};
use tilekern::kernels::pack::{Packed, pack_i8, packed_bytes};
use tilekern::kernels::tiles::{Activations, MATMUL_WORDS, Matmul, PackRows, PackedRows, Sink, Tiled, row_words};

fn tiled<const MR: usize, const NV: usize, const KC: usize>(c: &mut Criterion, level: Level, shapes: &[[usize; 3]]) {
    let mut group = c.benchmark_group(format!("quant_matmul/i8i8i32/{}", level.isa().name()));
    for &[m, k, n] in shapes {
        let x: Vec<i8> = (0..m * k).map(|i| (i * 7 % 251) as i8).collect();
        let mut packed = aligned_vec::avec![[64] | 0i8; packed_bytes(1, k, n).unwrap()];
        pack_i8(&mut packed, k, n, |i, j| ((i * 31 + j * 17) % 253) as i8);
        let weights = Packed::new(&packed).unwrap().expert(0);
        let panels = weights.len();
        let mut out = vec![[0; 16]; m * panels];
        let mut rows = aligned_vec::avec![[64] | 0u64; m * row_words(k).unwrap()];
        let mut words = aligned_vec::avec![[64] | 0u64; MATMUL_WORDS];
        // Packing grows with k as the loop does: it is no part of it.
        level.run(PackRows { x: Activations { data: &x, stride: k, rows: m }, k, words: &mut rows });
        let mut run = || {
            let x = PackedRows::new(&rows, k, m);
            let sink: Sink<'_> = &mut |sums| sums.each(|row, panel, sums| out[row * panels + panel] = *sums);
            level.run(Tiled::<MR, NV, KC>(Matmul { x, weights, panels: 0..panels, words: &mut words, sink }));
            out[m * panels - 1][0]
        };
        let column = 16 * (panels - 1);
        let sum = |i: usize| i32::from(x[(m - 1) * k + i]) * i32::from(((i * 31 + column * 17) % 253) as i8);
        assert_eq!(run(), (0..k).map(sum).sum::<i32>());
        group.throughput(Throughput::Elements(2 * (m * k * 16 * panels) as u64));
        let id = BenchmarkId::new(format!("{MR}x{}x{KC}", 16 * NV), format!("{m}x{k}x{n}"));
        group.bench_function(id, |b| b.iter(&mut run));
    }
}

fn bench(c: &mut Criterion) {
    // The first two fit in a first cache, 16 and 32 KiB of weights: their difference is the inner loop alone, without what a call costs.
    let shapes = [[12, 256, 64], [12, 512, 64], [1, 64, 64], [1, 4096, 4096], [64, 4096, 4096]];
    for level in Isa::ALL.into_iter().filter_map(Level::new) {
        match level.isa() {
            Isa::Avx512 | Isa::Avx512Vnni => {
                tiled::<4, 4, 256>(c, level, &shapes);
                tiled::<4, 4, 384>(c, level, &shapes);
                tiled::<4, 4, 512>(c, level, &shapes);
                tiled::<8, 2, 512>(c, level, &shapes);
                tiled::<8, 2, 1024>(c, level, &shapes);
                tiled::<6, 2, 512>(c, level, &shapes);
                tiled::<6, 4, 256>(c, level, &shapes);
                tiled::<6, 4, 512>(c, level, &shapes);
            }
            _ => {
                tiled::<2, 1, 512>(c, level, &shapes);
                tiled::<3, 1, 512>(c, level, &shapes);
                tiled::<4, 1, 512>(c, level, &shapes);
                tiled::<4, 1, 1024>(c, level, &shapes);
            }
        }
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = bench }
criterion_main!(benches);
