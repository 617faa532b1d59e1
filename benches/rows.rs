//! The row operations of the decoder: one token of a small model and of a large one, and a prompt of the large one.
//!
//! `cargo bench --bench rows`. Ids: `{op}/{dtypes}/{isa}/{tokens}x{heads}x{D}x{F}`; throughput in bytes read and written.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilekern::kernels::reference;
use tilekern::ops::*;
use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut};

/// Tokens, heads, D and F.
type Size = [usize; 4];

struct Bench<'c> {
    criterion: &'c mut Criterion,
    host: Host,
    size: Size,
    scratch: Scratch,
}

impl Bench<'_> {
    /// Runs `call` once, lets `check` look at what it wrote, and measures it.
    fn op<O>(&mut self, name: &str, bytes: usize, mut out: O, call: impl Fn(&Host, &mut O, &mut [u8]), check: impl Fn(&O)) {
        call(&self.host, &mut out, &mut self.scratch);
        check(&out);
        let mut group = self.criterion.benchmark_group(format!("{name}/{}", self.host.isa().name()));
        group.throughput(Throughput::Bytes(bytes as u64));
        let id = BenchmarkId::from_parameter(self.size.map(|n| n.to_string()).join("x"));
        group.bench_function(id, |b| b.iter(|| call(&self.host, &mut out, &mut self.scratch)));
    }
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 37 % 101) as f32 / 64.0 - 0.75).collect()
}

fn sums(n: usize) -> Vec<i32> {
    (0..n).map(|i| (i * 7919 % 10_007) as i32 - 5_000).collect()
}

fn rows(c: &mut Criterion, isa: Isa, size: Size) {
    let [tokens, heads, d, f] = size;
    let h = heads * d;
    let (n, positions) = (tokens * h, tokens + 3);
    let Ok(host) = Host::with(isa, Serial) else { return };
    let layout = core::alloc::Layout::from_size_align(64 * (h + f) + 4096, 64).unwrap();
    let mut bench = Bench { criterion: c, host, size, scratch: Scratch::new(layout) };
    let (x, acc, gate, other) = (numbers(n), sums(n), sums(tokens * f), sums(tokens * f + 1));
    let (row_scale, scale, ffn_scale) = (vec![1e-3f32; tokens], vec![1e-2f32; h], vec![1e-2f32; f]);
    let (gamma, freqs, start) = (numbers(h), numbers(positions * d), [3i64]);
    // All of one row: the last.
    let last = tokens - 1;
    let v = |i: usize| reference::dequant(acc[last * h + i], 1e-3, 1e-2);

    let input = Tensor::new([tokens, h], &x).unwrap();
    let gammas = Tensor::new([h], &gamma).unwrap();
    let scales = Tensor::new([h], &scale).unwrap();
    let row_scales = Tensor::new([tokens], &row_scale).unwrap();
    let products = Tensor::new([tokens, h], &acc).unwrap();
    let (head_products, head_scales) =
        (Tensor::new([1, tokens, h], &acc).unwrap(), Tensor::new([1, tokens], &row_scale).unwrap());
    let by_heads = Tensor::new([1, heads, tokens, d], &x).unwrap();
    let start = Tensor::new([1], &start).unwrap();

    bench.op(
        "rms_norm_quant/f32",
        5 * n,
        (vec![0i8; n], vec![0f32; tokens]),
        |host, (y, s), scratch| {
            let (y, s) = (TensorMut::new([tokens, h], y).unwrap(), TensorMut::new([tokens], s).unwrap());
            host.run(RmsNormQuant::new(input, gammas, y, s), scratch).unwrap();
        },
        |(y, s)| {
            let mut expected = vec![0; h];
            assert_eq!(s[last], reference::rms_norm_quant(&x[last * h..], &gamma, 1e-5, &mut expected));
            assert_eq!(y[last * h..], expected);
        },
    );
    bench.op(
        "quantize_rows/f32",
        5 * n,
        (vec![0i8; n], vec![0f32; tokens]),
        |host, (y, s), scratch| {
            let (y, s) = (TensorMut::new([1, tokens, h], y).unwrap(), TensorMut::new([tokens], s).unwrap());
            host.run(QuantizeRows::new(by_heads, y, s), scratch).unwrap();
        },
        |(y, s)| {
            let value = |i: usize| x[(i / d * tokens + last) * d + i % d];
            let mut expected = vec![0; h];
            assert_eq!(s[last], reference::quantize_row(h, value, &mut expected));
            assert_eq!(y[last * h..], expected);
        },
    );
    bench.op(
        "dequant_residual_rms_norm_quant/f32",
        13 * n,
        (vec![0i8; n], vec![0f32; tokens], vec![0f32; n]),
        |host, (y, s, hidden), scratch| {
            let (y, s) = (TensorMut::new([tokens, h], y).unwrap(), TensorMut::new([tokens], s).unwrap());
            let hidden = TensorMut::new([tokens, h], hidden).unwrap();
            let call = DequantResidualRmsNormQuant::new(products, row_scales, scales, input, gammas, y, s, hidden);
            host.run(call, scratch).unwrap();
        },
        |(_, s, hidden)| {
            assert_eq!(hidden[last * h], v(0) + x[last * h]);
            assert_eq!(s[last], reference::rms_norm_quant(&hidden[last * h..], &gamma, 1e-5, &mut vec![0; h]));
        },
    );
    bench.op(
        "dequant_residual/f32",
        12 * n,
        vec![0f32; n],
        |host, y, scratch| {
            let y = TensorMut::new([tokens, h], y).unwrap();
            host.run(DequantResidual::new(products, row_scales, scales, input, y), scratch).unwrap();
        },
        |y| assert!((0..h).all(|i| y[last * h + i] == v(i) + x[last * h + i])),
    );
    bench.op(
        "dequant_swiglu_quant/i32i8",
        9 * tokens * f,
        (vec![0i8; tokens * f], vec![0f32; tokens]),
        |host, (y, s), scratch| {
            let (w1, w3) = (Tensor::new([tokens, f], &gate).unwrap(), Tensor::new([tokens, f], &other[1..]).unwrap());
            let (y, s) = (TensorMut::new([tokens, f], y).unwrap(), TensorMut::new([tokens], s).unwrap());
            let scale = Tensor::new([f], &ffn_scale).unwrap();
            host.run(DequantSwigluQuant::new(w1, w3, row_scales, scale, scale, y, s), scratch).unwrap();
        },
        |(y, s)| {
            let value = |i: usize| {
                let i = last * f + i;
                reference::swiglu(reference::dequant(gate[i], 1e-3, 1e-2), reference::dequant(other[i + 1], 1e-3, 1e-2))
            };
            let mut expected = vec![0; f];
            assert_eq!(s[last], reference::quantize_row(f, value, &mut expected));
            assert_eq!(y[last * f..], expected);
        },
    );
    bench.op(
        "dequant_transpose/i32f32",
        8 * n,
        vec![0f32; n],
        |host, y, scratch| {
            let y = TensorMut::new([1, heads, tokens, d], y).unwrap();
            host.run(DequantTranspose::new(head_products, head_scales, scales, y), scratch).unwrap();
        },
        |y| assert!((0..h).all(|i| y[(i / d * tokens + last) * d + i % d] == v(i))),
    );
    bench.op(
        "dequant_rope_transpose/i32f32",
        8 * n,
        vec![0f32; n],
        |host, y, scratch| {
            let y = TensorMut::new([1, heads, tokens, d], y).unwrap();
            let freqs = Tensor::new([positions, d], &freqs).unwrap();
            host.run(DequantRopeTranspose::new(head_products, head_scales, scales, freqs, start, y), scratch).unwrap();
        },
        |y| {
            let turn = &freqs[(last + 3) * d..];
            assert_eq!(y[last * d], v(0) * turn[0] - v(1) * turn[1]);
            assert_eq!(y[last * d + 1], v(1) * turn[0] + v(0) * turn[1]);
        },
    );
    bench.op(
        "store_kv_cache/f32",
        16 * n,
        (vec![0f32; heads * positions * d], vec![0f32; heads * positions * d]),
        |host, (keys, values), scratch| {
            let cache = [1, heads, positions, d];
            let (keys, values) = (TensorMut::new(cache, keys).unwrap(), TensorMut::new(cache, values).unwrap());
            host.run(StoreKvCache::new(by_heads, by_heads, start, keys, values), scratch).unwrap();
        },
        |(keys, _)| assert_eq!(keys[3 * d..positions * d], x[..tokens * d]),
    );
}

fn bench(c: &mut Criterion) {
    for isa in Isa::ALL {
        for size in [[1, 8, 8, 172], [1, 32, 128, 11_008], [64, 32, 128, 11_008]] {
            rows(c, isa, size);
        }
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = bench }
criterion_main!(benches);
