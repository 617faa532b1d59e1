//! The sampling operators beside TopKTopPSample as multiples of the floor, the maximum of a row and nothing else.
//!
//! `cargo bench --bench operators [-- --isa NAME] [--v V] [--only TEXT]`. Rows, floor and ratio are those of `ratios`. Without `--bench`,
//! as `cargo test` runs it, short rows once.

mod arguments;
mod floor_of_row;
mod fresh;
mod logits;
mod median;
mod ranks;

use arguments::Arguments;
use floor_of_row::floor_of_row;
use logits::normal;
use median::{median, ratio};
use std::hint::black_box;
use std::time::Instant;
use tilekern::kernels::dispatch::Level;
use tilekern::ops::{ApplyTopKTopP, ApplyTopKTopPMinP, Exponential, Multinomial, TopKTopPSampleV1};
use tilekern::{Backend, Error, Host, Run, Scratch, Serial, Tensor, TensorMut};

/// A row, where results go, and what changes from call to call.
struct Bench {
    host: Host,
    scratch: Scratch,
    row: aligned_vec::AVec<f32>,
    out: Vec<f32>,
    indices: Vec<i64>,
    q: Vec<f32>,
    turn: i64,
}

/// Seconds of a run, with its workspace at hand.
fn time<O>(host: &Host, scratch: &mut Scratch, mut op: O) -> Result<f64, Error>
where
    Host: for<'s> Backend<Scratch<'s> = &'s mut [u8]> + Run<O>,
{
    let scratch = scratch.reserve(host.workspace(&op)?)?;
    let start = Instant::now();
    host.run_mut(black_box(&mut op), scratch)?;
    Ok(start.elapsed().as_secs_f64())
}

impl Bench {
    fn multinomial(&mut self, samples: usize, replacement: bool) -> Result<f64, Error> {
        let out = TensorMut::new([1, samples], &mut self.indices[..samples])?;
        let mut op = Multinomial::new(Tensor::new([1, self.row.len()], &self.row)?, out);
        (op.num_samples, op.replacement, op.seed, op.offset) = (samples as i64, replacement, 7, 4 * self.turn);
        time(&self.host, &mut self.scratch, op)
    }

    fn exponential(&mut self) -> Result<f64, Error> {
        let mut op = Exponential::new(TensorMut::new([1, self.row.len()], &mut self.out)?);
        (op.seed, op.offset) = (7, 4 * self.turn);
        time(&self.host, &mut self.scratch, op)
    }

    fn sample(&mut self, k: i32, p: f32) -> Result<f64, Error> {
        let shape = [1, self.row.len()];
        let (k, p) = ([k], [p]);
        let token = TensorMut::new([1], &mut self.indices[..1])?;
        let mut op = TopKTopPSampleV1::new(Tensor::new(shape, &self.row)?, Tensor::new([1], &k)?, Tensor::new([1], &p)?, token);
        op.q = Some(Tensor::new(shape, &self.q)?);
        time(&self.host, &mut self.scratch, op)
    }

    fn apply(&mut self, k: Option<i32>, p: Option<f32>) -> Result<f64, Error> {
        let shape = [1, self.row.len()];
        let (k, p) = (k.map(|k| [k]), p.map(|p| [p]));
        let mut op = ApplyTopKTopP::new(Tensor::new(shape, &self.row)?, TensorMut::new(shape, &mut self.out)?);
        op.k = k.as_ref().map(|k| Tensor::new([1], k)).transpose()?;
        op.p = p.as_ref().map(|p| Tensor::new([1], p)).transpose()?;
        time(&self.host, &mut self.scratch, op)
    }

    fn apply_min_p(&mut self) -> Result<f64, Error> {
        let shape = [1, self.row.len()];
        let (k, p, min_p) = ([-1], [0.9], [1e-4]);
        let probs = Tensor::new(shape, &self.row)?;
        let kept = TensorMut::new(shape, &mut self.out)?;
        let mut op = ApplyTopKTopPMinP::new(probs, Tensor::new([1], &k)?, Tensor::new([1], &p)?, kept);
        op.min_p = Some(Tensor::new([1], &min_p)?);
        time(&self.host, &mut self.scratch, op)
    }
}

/// A hundred fresh rows a case, copied to the same cache lines before the clock starts.
fn measure(
    bench: &mut Bench,
    level: Level,
    name: &str,
    rows: &[f32],
    turns: usize,
    call: impl Fn(&mut Bench) -> Result<f64, Error>,
) {
    let v = bench.row.len();
    let (mut floors, mut times) = (vec![], vec![]);
    for next in rows.chunks_exact(v).cycle().take(turns) {
        bench.turn += 1;
        ranks::turn(&mut bench.q);
        floors.push(floor_of_row(level, &mut bench.row, next).0);
        times.push(call(bench).expect("a valid call"));
    }
    let (floor, time) = (median(&mut floors), median(&mut times));
    println!("  {name:<48} {:9.2} us {:7.2} of {:.2} us", time * 1e6, ratio(time, floor, v), floor * 1e6);
}

/// Probabilities of rows of logits.
fn softmax(logits: &[f32], v: usize) -> Vec<f32> {
    let mut probs = logits.to_vec();
    for row in probs.chunks_exact_mut(v) {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|x| *x = (*x - max).exp());
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
    probs
}

fn main() {
    let arguments = Arguments::new();
    let (full, v) = (arguments.full(), arguments.v());
    let count = if full { 100 } else { 2 };
    let turns = if full { 3 * count } else { count };
    let mut state = 1;
    let logits: Vec<f32> = (0..count * v).map(|_| 4.0 * normal(&mut state)).collect();
    let flat: Vec<f32> = logits.iter().map(|x| x * 0.05).collect();
    let (probs, flat_probs) = (softmax(&logits, v), softmax(&flat, v));
    let mut sorted = probs.clone();
    sorted.chunks_exact_mut(v).for_each(|row| row.sort_by(|a, b| b.total_cmp(a)));
    let q: Vec<f32> = (0..v).map(|_| 0.5 * (normal(&mut state).powi(2) + normal(&mut state).powi(2))).collect();
    type Call = Box<dyn Fn(&mut Bench) -> Result<f64, Error>>;
    let cases: [(&str, &[f32], Call); 17] = [
        ("Multinomial, 1 sample", &probs, Box::new(|b| b.multinomial(1, true))),
        ("Multinomial, 1 sample, flat", &flat_probs, Box::new(|b| b.multinomial(1, true))),
        ("Multinomial, 8 without replacement", &probs, Box::new(|b| b.multinomial(8, false))),
        ("Multinomial, 8 without replacement, flat", &flat_probs, Box::new(|b| b.multinomial(8, false))),
        ("Multinomial, 8 with replacement", &probs, Box::new(|b| b.multinomial(8, true))),
        ("Exponential", &probs, Box::new(|b| b.exponential())),
        ("TopKTopPSampleV1, top-k 50 with q", &logits, Box::new(|b| b.sample(50, 1.0))),
        ("TopKTopPSampleV1, top-k 50, top-p 0.9 with q", &logits, Box::new(|b| b.sample(50, 0.9))),
        ("TopKTopPSampleV1, top-p 0.9 with q", &logits, Box::new(|b| b.sample(0, 0.9))),
        ("TopKTopPSampleV1, top-p 0.9 with q, flat", &flat, Box::new(|b| b.sample(0, 0.9))),
        ("ApplyTopKTopP, top-k 50", &logits, Box::new(|b| b.apply(Some(50), None))),
        ("ApplyTopKTopP, top-k 20 000", &logits, Box::new(|b| b.apply(Some(20_000), None))),
        ("ApplyTopKTopP, top-k 50, top-p 0.9", &logits, Box::new(|b| b.apply(Some(50), Some(0.9)))),
        ("ApplyTopKTopP, top-p 0.9", &logits, Box::new(|b| b.apply(None, Some(0.9)))),
        ("ApplyTopKTopP, top-p 0.9, flat", &flat, Box::new(|b| b.apply(None, Some(0.9)))),
        ("ApplyTopKTopPMinP", &sorted, Box::new(|b| b.apply_min_p())),
        ("ApplyTopKTopPMinP, of any order", &probs, Box::new(|b| b.apply_min_p())),
    ];
    for isa in arguments.isas() {
        let (Ok(host), Some(level)) = (Host::with(isa, Serial), Level::new(isa)) else { continue };
        let (row, out) = (aligned_vec::avec![0.0; v], vec![0.0; v]);
        let mut bench = Bench { host, scratch: Scratch::default(), row, out, indices: vec![0; 8], q: q.clone(), turn: 0 };
        println!("{}, V = {v}", isa.name());
        for (name, rows, call) in cases.iter().filter(|case| case.0.contains(arguments.only())) {
            measure(&mut bench, level, name, rows, turns, call);
        }
    }
}
