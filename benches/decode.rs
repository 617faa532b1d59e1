//! Tokens a second of the decoding loop: the default model and, where it is, the trained one beside the repository.
//!
//! Ids: `decode` or `prefill` / activations and weights / instruction set / batch / model. And what choosing costs: `choose` / how, a
//! token of a model of next to nothing but a vocabulary of 128 256, from flat logits.

mod llama2c;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use llama2c::llama2c;
use std::hint::black_box;
use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
use tilekern::{Host, Isa, Scratch, Serial, Tensor, TensorMut};

const TOKENS: usize = 64;

/// The tokens of a batch of rows that begin with token 1.
fn decode(host: &Host, decoding: &mut Decoding<'_>, batch: usize, ids: &mut [i32]) {
    let ones = [1; 16];
    let ones = || Tensor::new([batch, 1], &ones).unwrap();
    decoding.prompt(host, ones(), Tensor::new([batch], &[1; 16]).unwrap()).unwrap();
    for ids in ids.chunks_exact_mut(batch) {
        decoding.step(host, TensorMut::new([batch], ids).unwrap()).unwrap();
    }
}

fn bench(criterion: &mut Criterion, name: &str, file: &[u8]) {
    let options = ModelOptions::default();
    let mut memory = Scratch::new(Model::<f32>::layout(&options, file).unwrap());
    let model = Model::<f32>::load(&options, file, &mut memory).unwrap();
    let mut expected: Option<Vec<i32>> = None;
    for host in Isa::ALL.into_iter().filter_map(|isa| Host::with(isa, Serial).ok()) {
        let isa = host.isa().name();
        for batch in [1, 16] {
            let config = DecodingConfig { batch, ..DecodingConfig::new(TOKENS + 1, TOKENS, -1) };
            let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, &model).unwrap());
            let mut decoding = Decoding::<f32>::new(&host, &config, &model, &mut memory).unwrap();
            let greedy = RowSampling { temperature: 0.0, ..Default::default() };
            (0..batch).for_each(|row| decoding.set_row(row, &greedy).unwrap());
            let mut ids = vec![0; TOKENS * batch];
            decode(&host, &mut decoding, batch, &mut ids);
            let first: Vec<i32> = ids.iter().copied().step_by(batch).collect();
            assert_eq!(expected.get_or_insert(first.clone()), &first);

            let mut group = criterion.benchmark_group("decode");
            group.throughput(Throughput::Elements((TOKENS * batch) as u64));
            group.bench_function(format!("f32-int8/{isa}/{batch}/{name}"), |b| {
                b.iter(|| decode(&host, &mut decoding, batch, black_box(&mut ids)));
            });
            group.finish();
            if batch == 1 {
                let prompt = [&[1], &first[..]].concat();
                let mut group = criterion.benchmark_group("prefill");
                group.throughput(Throughput::Elements(TOKENS as u64));
                group.bench_function(format!("f32-int8/{isa}/{batch}/{name}"), |b| {
                    b.iter(|| decoding.replace_row(&host, 0, Tensor::new([TOKENS + 1], black_box(&prompt)).unwrap()));
                });
                group.finish();
            }
        }
    }
}

/// A step of a small model with a large vocabulary, by ways of choosing.
fn choose(criterion: &mut Criterion) {
    let (file, options, host) = (llama2c([64, 128, 1, 128_256]), ModelOptions::default(), Host::new());
    let mut memory = Scratch::new(Model::<f32>::layout(&options, &file).unwrap());
    let model = Model::<f32>::load(&options, &file, &mut memory).unwrap();
    let config = DecodingConfig::new(TOKENS + 1, TOKENS, -1);
    let all = RowSampling::default();
    for (name, sampling) in [
        ("greedy", RowSampling { temperature: 0.0, ..all }),
        ("multinomial", all),
        ("top-k 50", RowSampling { top_k: 50, ..all }),
        ("top-k 50, top-p 0.9", RowSampling { top_k: 50, top_p: 0.9, ..all }),
        ("top-k 2000", RowSampling { top_k: 2000, ..all }),
        ("top-p 0.9", RowSampling { top_p: 0.9, ..all }),
        ("min-p 0.05", RowSampling { min_p: 0.05, ..all }),
    ] {
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, &model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, &model, &mut memory).unwrap();
        decoding.set_row(0, &sampling).unwrap();
        let mut ids = [-1; TOKENS];
        decode(&host, &mut decoding, 1, &mut ids);
        assert!(ids.iter().all(|id| (0..128_256).contains(id)));
        let mut group = criterion.benchmark_group("choose");
        group.throughput(Throughput::Elements(TOKENS as u64));
        group.bench_function(name, |b| b.iter(|| decode(&host, &mut decoding, 1, black_box(&mut ids))));
        group.finish();
    }
}

fn benches(criterion: &mut Criterion) {
    choose(criterion);
    let root = env!("CARGO_MANIFEST_DIR");
    for (name, path) in [("default", "assets/default.tkm"), ("stories260K", "../shared/data/stories260K.bin")] {
        match std::fs::read(format!("{root}/{path}")) {
            Ok(file) => bench(criterion, name, &file),
            Err(_) => println!("skipped: there is no {path}"),
        }
    }
}

criterion_group!(group, benches);
criterion_main!(group);
