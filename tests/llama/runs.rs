//! What the tests of the decoding loop share.

use crate::common::Random;
use crate::models::memory;
use tilekern::llama::{Decoding, DecodingConfig, HeadKind, Model, ModelOptions, RowSampling};
use tilekern::{Error, Host, ParallelFor, Scratch, Tensor, TensorMut};
use tilekern_kernels::element::Element;

pub const CONFIG: DecodingConfig = DecodingConfig::new(30, 25, -1);

pub const GREEDY: RowSampling = RowSampling { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };

pub fn with_model<T: Element, R>(file: &[u8], head: HeadKind, then: impl FnOnce(&Model<'_, T>) -> R) -> R {
    let options = ModelOptions { head, tokenizer: None };
    let mut memory = memory::<T>(&options, file);
    then(&Model::load(&options, file, &mut memory).unwrap())
}

pub fn prompt<P: ParallelFor, T: Element, K: Element>(
    host: &Host<P>,
    decoding: &mut Decoding<'_, T, K>,
    prompts: &[Vec<i32>],
) -> Result<(), Error> {
    let columns = prompts.iter().map(Vec::len).max().unwrap().max(1);
    let tokens: Vec<i32> = prompts.iter().flat_map(|p| p.iter().copied().chain([-9; 99]).take(columns)).collect();
    let lengths: Vec<i32> = prompts.iter().map(|p| p.len() as i32).collect();
    let tokens = Tensor::new([prompts.len(), columns], &tokens)?;
    decoding.prompt(host, tokens, Tensor::new([prompts.len()], &lengths)?)
}

pub fn output<T: Element, K: Element>(decoding: &Decoding<'_, T, K>, batch: usize, max_new: usize) -> Vec<Vec<i32>> {
    let (mut ids, mut lengths) = (vec![-7; batch * max_new], vec![-7; batch]);
    let to = TensorMut::new([batch, max_new], &mut ids).unwrap();
    decoding.output(to, TensorMut::new([batch], &mut lengths).unwrap()).unwrap();
    let rows = ids.chunks(max_new).zip(lengths).map(|(row, length)| {
        assert!(row[length as usize..].iter().all(|&id| id == -1));
        row[..length as usize].to_vec()
    });
    rows.collect()
}

/// Runs rows to their end.
pub fn decode<P: ParallelFor, T: Element, K: Element>(
    host: &Host<P>,
    model: &Model<'_, T>,
    config: DecodingConfig,
    rows: &[(Vec<i32>, RowSampling)],
) -> Vec<Vec<i32>> {
    let config = DecodingConfig { batch: rows.len(), ..config };
    let mut memory = Scratch::new(Decoding::<T, K>::layout(host, &config, model).unwrap());
    memory.fill(0xA5);
    let mut decoding = Decoding::<T, K>::new(host, &config, model, &mut memory).unwrap();
    for (row, (_, sampling)) in rows.iter().enumerate() {
        decoding.set_row(row, sampling).unwrap();
    }
    let prompts: Vec<Vec<i32>> = rows.iter().map(|row| row.0.clone()).collect();
    prompt(host, &mut decoding, &prompts).unwrap();
    let mut seen = vec![Vec::new(); rows.len()];
    decoding
        .generate(host, |row, id| {
            seen[row].push(id);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(decoding.finished());
    assert_eq!(output(&decoding, rows.len(), config.max_new), seen);
    seen
}

/// Rows of all kinds: lengths, temperatures, stages and seeds.
pub fn some_rows(random: &mut Random, vocab: usize, count: usize, longest: usize) -> Vec<(Vec<i32>, RowSampling)> {
    let rows = (0..count).map(|i| {
        let prompt = (0..1 + random.below(longest)).map(|_| random.below(vocab) as i32).collect();
        let sampling = RowSampling {
            temperature: [0.0, 0.7, 1.0, 1.5][i % 4],
            top_k: [0, 5, 40, -1][random.below(4)],
            top_p: [1.0, 0.9, 0.0, 0.5][random.below(4)],
            min_p: [0.0, 0.05, -1.0][random.below(3)],
            seed: random.bits(),
        };
        (prompt, sampling)
    });
    rows.collect()
}
