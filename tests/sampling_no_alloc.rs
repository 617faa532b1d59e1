//! Ten thousand calls of TopKTopPSample, every set of stages with every way of choosing, and of each other sampling operation on short
//! rows, with some on long ones: not one allocation.
//!
//! Alone in its binary and without the test harness, which allocates itself.

mod common;
#[path = "common/counting.rs"]
mod counting;
use common::rounds;
use counting::{allocations, begin};
use std::alloc::Layout;
use tilekern::ops::{
    ApplyTopKTopP, ApplyTopKTopPMinP, Exponential, Multinomial, Noise, PostSample, RemovePromptTokens, TopKSampling,
    TopKTopPSample, TopKTopPSampleV1, TopPSampling, UpdateLogits,
};
use tilekern::{Error, Host, Isa, ParallelFor, Rayon, Run, Scratch, Tensor, TensorMut};

const V: usize = 1500;
/// A short row.
const SHORT: usize = 60;

/// Four rows, all outputs; `number` says which stages and which noise.
fn call(
    number: usize,
    host: &Host<impl ParallelFor>,
    logits: &[f32],
    q: &[f32],
    out: (&mut [i64], &mut [f32], &mut [i64], &mut [f32], &mut [u8]),
    scratch: &mut [u8],
) -> Result<(), Error> {
    let on = |bit: usize| number >> bit & 1 == 1;
    let top_k = [if on(0) { 1 + (number % 1024) as i32 } else { 0 }; 4];
    let top_p = [if on(1) { (number % 100) as f32 / 99.0 } else { 1.0 }; 4];
    let min_ps = [if on(2) { (number % 50) as f32 / 49.0 } else { 0.0 }; 4];
    let seeds = [number as i64, 12];
    let mut call = TopKTopPSample::new(
        // Every other call gathers its rows.
        if on(5) { Tensor::strided([4, V], [1, 4], logits)? } else { Tensor::new([4, V], logits)? },
        Tensor::new([4], &top_k)?,
        Tensor::new([4], &top_p)?,
        TensorMut::new([4], out.0)?,
    );
    call.min_ps = Some(Tensor::new([4], &min_ps)?);
    call.post_sample = [PostSample::None, PostSample::QSample, PostSample::MultiNomial, PostSample::MultiNomial][number >> 3 & 3];
    call.generator = Some(Tensor::new([2], &seeds)?);
    if call.post_sample == PostSample::QSample {
        call.q = Some(Noise::Exponential(Tensor::new([4, V], q)?));
    }
    if number % 3 > 0 {
        call.is_need_logits = true;
        call.logits_top_kp_select = Some(TensorMut::new([4, V], out.1)?);
        call.logits_idx = Some(TensorMut::new([4, V], out.2)?);
        call.logits_sort_masked = Some(TensorMut::new([4, V], out.3)?);
        call.row_status = Some(TensorMut::new([4], out.4)?);
    }
    assert!(host.workspace(&call)?.size() <= scratch.len());
    host.run(call, scratch)
}

/// Exponential numbers, and draws from them as weights.
fn draw(
    [number, v]: [usize; 2],
    host: &Host<impl ParallelFor>,
    weights: &mut [f32],
    out: &mut [i64],
    scratch: &mut [u8],
) -> Result<(), Error> {
    let mut call = Exponential::new(TensorMut::new([4, v], weights)?);
    call.offset = 4 * number as i64;
    host.run(call, scratch)?;
    let mut call = Multinomial::new(Tensor::new([4, v], weights)?, TensorMut::new([4, v], out)?);
    (call.num_samples, call.replacement) = (v as i64, number % 2 == 0);
    assert!(host.workspace(&call)?.size() <= scratch.len());
    host.run(call, scratch)
}

/// The first version of the choice.
fn choose(
    [number, v]: [usize; 2],
    host: &Host<impl ParallelFor>,
    logits: &[f32],
    q: &[f32],
    chosen: &mut [i64],
    scratch: &mut [u8],
) -> Result<(), Error> {
    let (top_k, top_p) = ([0, 3, (number % 100) as i32, -1], [(number % 100) as f32 / 99.0; 4]);
    let mut call = TopKTopPSampleV1::new(
        Tensor::new([4, v], logits)?,
        Tensor::new([4], &top_k)?,
        Tensor::new([4], &top_p)?,
        TensorMut::new([4], chosen)?,
    );
    call.q = (number % 3 > 0).then_some(Tensor::new([4, v], q)?);
    host.run(call, scratch)
}

/// The filters that write rows.
fn filter(
    [number, v]: [usize; 2],
    host: &Host<impl ParallelFor>,
    rows: &[f32],
    out: &mut [f32],
    scratch: &mut [u8],
) -> Result<(), Error> {
    let (k, p) = ([-1, 0, 3, (number % 100) as i32], [(number % 100) as f32 / 100.0; 4]);
    let (k, p) = (Tensor::new([4], &k)?, Tensor::new([4], &p)?);
    let mut call = ApplyTopKTopP::new(Tensor::new([4, v], rows)?, TensorMut::new([4, v], &mut *out)?);
    (call.k, call.p) = (Some(k), Some(p));
    host.run(call, scratch)?;
    let mut call = ApplyTopKTopPMinP::new(Tensor::new([4, v], rows)?, k, p, TensorMut::new([4, v], out)?);
    call.min_p = (number % 2 == 0).then_some(p);
    host.run(call, scratch)
}

/// One step of a batch, from the logits to the tokens without their prompts.
fn step(
    [number, v]: [usize; 2],
    host: &Host<impl ParallelFor>,
    logits: &[f32],
    last: &mut [f32],
    scratch: &mut [u8],
) -> Result<i64, Error> {
    let (mut finished, mut lengths, mut ids, mut generated) = ([0, 1, 0, 0], [0; 4], [0; 4], [0; 4]);
    let (tokens, mask, random) = ([7; 8], [1, 0, 0, 0, 0, 1, 0, 0], [0.0, 0.3, 0.6, (number % 100) as f32 / 100.0]);
    let mut call = UpdateLogits::new(Tensor::new([4, 1, v], logits)?, TensorMut::new([4, v], last)?);
    (call.finished, call.softmax) = (Some(Tensor::new([4], &finished)?), number % 2 == 0);
    host.run(call, scratch)?;
    let k = 1 + (number * 37 % v) as i64;
    let (rows, random) = (Tensor::new([4, v], last)?, Tensor::new([4], &random)?);
    let mut call = TopKSampling::new(rows, random, k, TensorMut::new([4], &mut ids)?);
    (call.prompt_tokens, call.prompt_mask) = (Some(Tensor::new([4, 2], &tokens)?), Some(Tensor::new([4, 2], &mask)?));
    (call.finished, call.sequence_length) = (Some(TensorMut::new([4], &mut finished)?), Some(TensorMut::new([4], &mut lengths)?));
    assert!(host.workspace(&call)?.size() <= scratch.len());
    host.run(call, scratch)?;
    let mut call = TopPSampling::new(rows, random, (number % 100) as f64 / 100.0, TensorMut::new([4], &mut ids)?);
    (call.finished, call.sequence_length) = (Some(TensorMut::new([4], &mut finished)?), Some(TensorMut::new([4], &mut lengths)?));
    assert!(host.workspace(&call)?.size() <= scratch.len());
    host.run(call, scratch)?;
    let (ids, ones) = (Tensor::new([1, 4], &ids)?, Tensor::new([4], &[1; 4])?);
    host.run(RemovePromptTokens::new(ids, ones, ones, 1, TensorMut::new([4, 1], &mut generated)?), &mut [])?;
    Ok(generated.iter().map(|&id| i64::from(id)).sum())
}

/// Not one allocation in so many calls.
fn none(host: &Host<impl ParallelFor>, count: usize) {
    let logits: Vec<f32> = (0..4 * V).map(|i| (i * 7919 % 1000) as f32 / 100.0).collect();
    let q: Vec<f32> = (0..4 * V).map(|i| (i * 104_729 % 997) as f32 / 300.0 + 0.01).collect();
    let (mut chosen, mut select, mut idx, mut sorted, mut status) =
        ([0; 4], vec![0.0; 4 * V], vec![0; 4 * V], vec![0.0; 4 * V], [0; 4]);
    let mut weights = vec![0.0; 4 * V];
    let mut scratch = Scratch::new(Layout::from_size_align(1 << 20, 64).unwrap());
    begin(host);
    let before = allocations();
    let mut sum = 0;
    for number in 0..count {
        let out = (&mut chosen[..], &mut select[..], &mut idx[..], &mut sorted[..], &mut status[..]);
        call(number, host, &logits, &q, out, &mut scratch).unwrap();
        sum += chosen.iter().sum::<i64>();
    }
    for (count, v) in [(count, SHORT), (count.div_ceil(100), V)] {
        let (logits, q, weights, idx, select) =
            (&logits[..4 * v], &q[..4 * v], &mut weights[..4 * v], &mut idx[..4 * v], &mut select[..4 * v]);
        for number in (0..count).map(|number| [number, v]) {
            draw(number, host, weights, idx, &mut scratch).unwrap();
            choose(number, host, logits, q, &mut chosen, &mut scratch).unwrap();
            filter(number, host, weights, select, &mut scratch).unwrap();
            sum += idx.iter().sum::<i64>();
            sum += step(number, host, logits, select, &mut scratch).unwrap();
        }
    }
    assert_eq!(allocations() - before, 0, "allocations in {count} calls");
    assert!(sum > 0);
}

fn main() {
    let count = rounds(10_000);
    none(&Host::new(), count);
    let pool = Rayon::new(2).unwrap();
    let host = Host::with(Isa::detect(), &pool).unwrap();
    pool.install(|| none(&host, count));
    println!("sampling operations: {count} calls each, serial and in a pool, no allocation");
}
