//! A decoder layer: near an `f64` layer of the same weights; the same bits token by token, in a batch, on every instruction set, thread
//! count and stride; refusals.

use crate::common::{Random, hosts, run};
use tilekern::kernels::pack::{pack_floats, packed_bytes};
use tilekern::ops::{DecoderLayer, FORMAT_ND, LayerWeights, RopeTable};
use tilekern::{Error, Host, Isa, ParallelFor, Status, Tensor, TensorMut};

mod weight_formats;

const HIDDEN: usize = 44;
const INNER: usize = 70;
const HEADS: usize = 6;
const KV: usize = 2;
const WIDTH: usize = 10;
const POSITIONS: usize = 24;

/// Columns of queries and of keys.
const QUERY: usize = HEADS * WIDTH;
const KEY: usize = KV * WIDTH;

struct Matrix {
    exact: Vec<f32>,
    columns: usize,
    packed: Vec<i8>,
    scale: Vec<f32>,
}

impl Matrix {
    fn new(random: &mut Random, k: usize, n: usize) -> Matrix {
        let exact: Vec<f32> = (0..k * n).map(|_| random.unit() / (k as f32).sqrt() * 1.7).collect();
        let (mut packed, mut scale) = (vec![0; packed_bytes(1, k, n).unwrap()], vec![0.0; n]);
        pack_floats(&mut packed, k, n, |i, j| exact[i * n + j], &mut scale);
        Matrix { exact, columns: n, packed, scale }
    }

    fn product(&self, x: &[f64]) -> Vec<f64> {
        let column = |j| x.iter().enumerate().map(|(i, x)| x * f64::from(self.exact[i * self.columns + j])).sum();
        (0..self.columns).map(column).collect()
    }
}

struct Layer {
    norms: [Vec<f32>; 2],
    /// q, k, v, o, w1, w3, w2
    matrices: Vec<Matrix>,
    freqs: Vec<f32>,
}

impl Layer {
    fn new() -> Layer {
        let mut random = Random(31);
        let sizes =
            [(HIDDEN, QUERY), (HIDDEN, KEY), (HIDDEN, KEY), (QUERY, HIDDEN), (HIDDEN, INNER), (HIDDEN, INNER), (INNER, HIDDEN)];
        let matrices = sizes.into_iter().map(|(k, n)| Matrix::new(&mut random, k, n)).collect();
        let norms = [0, 1].map(|_| (0..HIDDEN).map(|_| 1.0 + 0.3 * random.unit()).collect());
        let mut freqs = vec![0.0; POSITIONS * WIDTH];
        run(&Host::new(), RopeTable::new(TensorMut::new([POSITIONS, WIDTH], &mut freqs).unwrap())).unwrap();
        Layer { norms, matrices, freqs }
    }

    fn weights(&self) -> Result<LayerWeights<'_, Host, f32>, Error> {
        self.weights_of()
    }

    fn weights_of<P: ParallelFor>(&self) -> Result<LayerWeights<'_, Host<P>, f32>, Error> {
        let w = |i: usize| Tensor::new([self.matrices[i].packed.len()], &self.matrices[i].packed);
        let s = |i: usize| Tensor::new([self.matrices[i].scale.len()], &self.matrices[i].scale);
        let norm = |i: usize| Tensor::new([HIDDEN], &self.norms[i]);
        Ok(LayerWeights {
            attention_norm: norm(0)?,
            wq: w(0)?,
            wq_scale: s(0)?,
            wk: w(1)?,
            wk_scale: s(1)?,
            wv: w(2)?,
            wv_scale: s(2)?,
            wo: w(3)?,
            wo_scale: s(3)?,
            ffn_norm: norm(1)?,
            w1: w(4)?,
            w1_scale: s(4)?,
            w3: w(5)?,
            w3_scale: s(5)?,
            w2: w(6)?,
            w2_scale: s(6)?,
        })
    }

    /// One row, all tokens from position 0 on, in `f64` and with the weights before quantisation; `mask` is added to the scores.
    fn exact(&self, input: &[f32], mask: impl Fn(usize, usize) -> f32) -> Vec<f64> {
        let norm = |x: &[f64], g: &[f32]| -> Vec<f64> {
            let r = 1.0 / (x.iter().map(|v| v * v).sum::<f64>() / HIDDEN as f64 + 1e-5).sqrt();
            x.iter().zip(g).map(|(x, g)| f64::from(*g) * r * x).collect()
        };
        let rope = |v: &mut [f64], position: usize| {
            for (i, pair) in v.chunks_exact_mut(2).enumerate() {
                let angle = position as f64 * 10000f64.powf(-2.0 * (i % (WIDTH / 2)) as f64 / WIDTH as f64);
                let (a, b) = (pair[0], pair[1]);
                (pair[0], pair[1]) = (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin());
            }
        };
        let (mut keys, mut values, mut output) = (vec![], vec![], vec![]);
        for (position, token) in input.chunks_exact(HIDDEN).enumerate() {
            let x: Vec<f64> = token.iter().map(|&v| v.into()).collect();
            let n = norm(&x, &self.norms[0]);
            let (mut q, mut k) = (self.matrices[0].product(&n), self.matrices[1].product(&n));
            rope(&mut q, position);
            rope(&mut k, position);
            keys.push(k);
            values.push(self.matrices[2].product(&n));
            let mut attended = vec![0.0; QUERY];
            for head in 0..HEADS {
                let (q, at) = (&q[head * WIDTH..(head + 1) * WIDTH], head / (HEADS / KV) * WIDTH);
                let score = |k: &Vec<f64>| q.iter().zip(&k[at..]).map(|(a, b)| a * b).sum::<f64>() / (WIDTH as f64).sqrt();
                let masked = |(t, k): (usize, &Vec<f64>)| (score(k) + f64::from(mask(position, t))).exp();
                let weights: Vec<f64> = keys.iter().enumerate().map(masked).collect();
                let sum: f64 = weights.iter().sum();
                for (weight, value) in weights.iter().zip(&values) {
                    for d in 0..WIDTH {
                        attended[head * WIDTH + d] += weight / sum * value[at + d];
                    }
                }
            }
            let h: Vec<f64> = self.matrices[3].product(&attended).iter().zip(&x).map(|(a, b)| a + b).collect();
            let n = norm(&h, &self.norms[1]);
            let gate = self.matrices[4].product(&n);
            let y: Vec<f64> = gate.iter().zip(self.matrices[5].product(&n)).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
            output.extend(self.matrices[6].product(&y).iter().zip(&h).map(|(a, b)| a + b));
        }
        output
    }
}

/// A batch with its caches.
struct Rows {
    batch: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Rows {
    fn new(batch: usize) -> Rows {
        let cache = vec![0.0; batch * KV * POSITIONS * WIDTH];
        Rows { batch, keys: cache.clone(), values: cache }
    }

    fn step<P: ParallelFor>(&mut self, host: &Host<P>, layer: &Layer, start: &[i64], input: &[f32]) -> Result<Vec<f32>, Error> {
        let tokens = input.len() / HIDDEN / self.batch;
        let mut output = vec![0.0; input.len()];
        let cache = [self.batch, KV, POSITIONS, WIDTH];
        let call = DecoderLayer::new(
            Tensor::new([self.batch, tokens, HIDDEN], input)?,
            Tensor::new([self.batch], start)?,
            Tensor::new([POSITIONS, WIDTH], &layer.freqs)?,
            layer.weights_of()?,
            [HEADS as i64, KV as i64],
            [TensorMut::new(cache, &mut self.keys)?, TensorMut::new(cache, &mut self.values)?],
            TensorMut::new([self.batch, tokens, HIDDEN], &mut output)?,
        );
        run(host, call)?;
        Ok(output)
    }
}

fn stream(seed: u64, tokens: usize) -> Vec<f32> {
    let mut random = Random(seed);
    (0..tokens * HIDDEN).map(|_| random.unit() * 2.0).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn near_the_layer_in_f64() -> Result<(), Error> {
    let (layer, input) = (Layer::new(), stream(1, 12));
    let exact = layer.exact(&input, |_, _| 0.0);
    for host in hosts() {
        let found = Rows::new(1).step(&host, &layer, &[0], &input)?;
        assert!(cosine(&found, &exact) > 0.9998, "{}", host.isa().name());
    }
    Ok(())
}

fn cosine(found: &[f32], exact: &[f64]) -> f64 {
    let found: Vec<f64> = found.iter().map(|&v| v.into()).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&found, exact) / (dot(&found, &found) * dot(exact, exact)).sqrt()
}

/// Every token sees itself and what lies an even number of places before it; positions are a column.
#[test]
fn a_mask_is_added_to_the_scores() -> Result<(), Error> {
    let (layer, input) = (Layer::new(), stream(9, 12));
    let mask = |s: usize, t: usize| if (s + t).is_multiple_of(2) { 0.25 * t as f32 } else { f32::NEG_INFINITY };
    let (exact, plain) = (layer.exact(&input, mask), layer.exact(&input, |_, _| 0.0));
    let table: Vec<f32> = (0..12 * POSITIONS).map(|at| mask(at / POSITIONS, at % POSITIONS)).collect();
    for host in hosts() {
        let (mut rows, mut output) = (Rows::new(1), vec![0.0; input.len()]);
        let cache = [1, KV, POSITIONS, WIDTH];
        let mut call = DecoderLayer::new(
            Tensor::new([1, 12, HIDDEN], &input)?,
            Tensor::new([1, 1], &[0])?,
            Tensor::new([POSITIONS, WIDTH], &layer.freqs)?,
            layer.weights()?,
            [HEADS as i64, KV as i64],
            [TensorMut::new(cache, &mut rows.keys)?, TensorMut::new(cache, &mut rows.values)?],
            TensorMut::new([1, 12, HIDDEN], &mut output)?,
        );
        call.mask = Some(Tensor::new([12, POSITIONS], &table)?);
        run(&host, call)?;
        assert!(cosine(&output, &exact) > 0.9998, "{}", host.isa().name());
        assert!(cosine(&output, &plain) < 0.99, "{}", host.isa().name());
    }
    Ok(())
}

#[test]
fn tokens_together_equal_tokens_one_by_one_on_every_isa() -> Result<(), Error> {
    let (layer, input) = (Layer::new(), stream(2, 11));
    let expected = bits(&Rows::new(1).step(&Host::with(Isa::Portable, tilekern::Serial)?, &layer, &[0], &input)?);
    for host in hosts() {
        for chunk in [1, 4, 11] {
            let (mut rows, mut found) = (Rows::new(1), vec![]);
            for (i, part) in input.chunks(chunk * HIDDEN).enumerate() {
                found.extend(rows.step(&host, &layer, &[(i * chunk) as i64], part)?);
            }
            assert_eq!(bits(&found), expected, "{} in chunks of {chunk}", host.isa().name());
        }
    }
    Ok(())
}

#[test]
fn a_row_of_a_batch_equals_the_row_alone() -> Result<(), Error> {
    let (layer, host) = (Layer::new(), Host::new());
    let prompts = [stream(3, 3), stream(4, 7), stream(5, 1)];
    let next = stream(6, 3);
    let mut batch = Rows::new(3);
    let (mut alone, size) = (vec![], KV * POSITIONS * WIDTH);
    for (b, prompt) in prompts.iter().enumerate() {
        let mut row = Rows::new(1);
        row.step(&host, &layer, &[0], prompt)?;
        batch.keys[b * size..(b + 1) * size].copy_from_slice(&row.keys);
        batch.values[b * size..(b + 1) * size].copy_from_slice(&row.values);
        alone.extend(row.step(&host, &layer, &[(prompt.len() / HIDDEN) as i64], &next[b * HIDDEN..(b + 1) * HIDDEN])?);
    }
    let start: Vec<i64> = prompts.iter().map(|p| (p.len() / HIDDEN) as i64).collect();
    assert_eq!(bits(&batch.step(&host, &layer, &start, &next)?), bits(&alone));
    Ok(())
}

#[cfg(feature = "rayon")]
#[test]
fn threads_do_not_matter() -> Result<(), Error> {
    let (layer, input) = (Layer::new(), stream(7, 20));
    let expected = bits(&Rows::new(2).step(&Host::new(), &layer, &[0, 5], &input)?);
    for threads in [1, 2, 3] {
        let host = Host::with(Isa::detect(), tilekern::Rayon::new(threads)?)?;
        assert_eq!(bits(&Rows::new(2).step(&host, &layer, &[0, 5], &input)?), expected, "{threads} threads");
    }
    Ok(())
}

#[test]
fn strides_do_not_matter() -> Result<(), Error> {
    let (layer, input, host) = (Layer::new(), stream(8, 6), Host::new());
    let expected = bits(&Rows::new(2).step(&host, &layer, &[0, 0], &input)?);
    // Token outermost: batch rows are not one pitch apart.
    let turned: Vec<f32> = (0..6).flat_map(|r| input[(r % 2 * 3 + r / 2) * HIDDEN..][..HIDDEN].to_vec()).collect();
    let mut rows = Rows::new(2);
    let mut output = vec![0.0; 6 * HIDDEN];
    let cache = [2, KV, POSITIONS, WIDTH];
    let strides = [HIDDEN, 2 * HIDDEN, 1];
    let call = DecoderLayer::new(
        Tensor::strided([2, 3, HIDDEN], strides, &turned)?,
        Tensor::new([2], &[0, 0])?,
        Tensor::new([POSITIONS, WIDTH], &layer.freqs)?,
        layer.weights()?,
        [HEADS as i64, KV as i64],
        [TensorMut::new(cache, &mut rows.keys)?, TensorMut::new(cache, &mut rows.values)?],
        TensorMut::strided([2, 3, HIDDEN], strides, &mut output)?,
    );
    run(&host, call)?;
    let back: Vec<f32> = (0..6).flat_map(|r| output[(r % 3 * 2 + r / 3) * HIDDEN..][..HIDDEN].to_vec()).collect();
    assert_eq!(bits(&back), expected);
    Ok(())
}

#[test]
fn bad_calls_are_refused() -> Result<(), Error> {
    let (layer, input, host) = (Layer::new(), stream(9, 2), Host::new());
    type Call<'a> = DecoderLayer<'a, Host, f32, f32>;
    let mut damaged = layer.matrices[6].packed.clone();
    damaged[9] ^= 1;
    let zeros: &'static [f32] = &[0.0; 4000];
    let shape = tilekern::Dims::contiguous(&[HIDDEN])?;
    let changes: [(&dyn Fn(&mut Call<'_>), &str, Status); 14] = [
        (&|c| c.heads = 0, "heads", Status::Invalid),
        (&|c| c.heads = -6, "heads", Status::Invalid),
        (&|c| c.kv_heads = 4, "kv_heads", Status::Invalid),
        (&|c| c.eps = f64::NAN, "eps", Status::Invalid),
        (&|c| c.weight_format = FORMAT_ND, "wq", Status::Invalid),
        (&|c| c.weight_format = 7, "weight_format", Status::Invalid),
        (&|c| c.freqs = Tensor::new([POSITIONS, 9], zeros).unwrap(), "freqs", Status::Invalid),
        (&|c| c.freqs = Tensor::new([1, WIDTH], zeros).unwrap(), "freqs", Status::Invalid),
        (&|c| c.wq_scale = Tensor::new([QUERY + 1], zeros).unwrap(), "wq_scale", Status::Invalid),
        (&|c| c.ffn_norm = Tensor::new([HIDDEN - 1], zeros).unwrap(), "ffn_norm", Status::Invalid),
        (&|c| c.mask = Some(Tensor::new([2, 3], zeros).unwrap()), "mask", Status::Invalid),
        (&|c| c.start_pos = Tensor::new([1], &[23]).unwrap(), "start_pos", Status::Invalid),
        (&|c| c.start_pos = Tensor::new([1], &[-1]).unwrap(), "start_pos", Status::Invalid),
        (&|c| c.attention_norm = Tensor::shape_only(shape), "attention_norm", Status::Null),
    ];
    let mut rows = Rows::new(1);
    let mut output = vec![5.0; 2 * HIDDEN];
    let cache = [1, KV, POSITIONS, WIDTH];
    for at in 0..=changes.len() {
        let mut call = DecoderLayer::new(
            Tensor::new([1, 2, HIDDEN], &input)?,
            Tensor::new([1], &[0])?,
            Tensor::new([POSITIONS, WIDTH], &layer.freqs)?,
            layer.weights()?,
            [HEADS as i64, KV as i64],
            [TensorMut::new(cache, &mut rows.keys)?, TensorMut::new(cache, &mut rows.values)?],
            TensorMut::new([1, 2, HIDDEN], &mut output)?,
        );
        let (argument, status) = match changes.get(at) {
            Some((change, argument, status)) => {
                change(&mut call);
                (*argument, *status)
            }
            None => {
                call.w2 = Tensor::new([damaged.len()], &damaged)?;
                ("w2", Status::Invalid)
            }
        };
        let error = run(&host, call).unwrap_err();
        assert_eq!((error.argument(), error.status()), (argument, status));
        assert!(output.iter().all(|&v| v == 5.0) && rows.keys.iter().all(|&v| v == 0.0), "nothing is written");
    }
    Ok(())
}

#[test]
fn no_rows_do_not_look_at_the_weights() -> Result<(), Error> {
    let (layer, rubbish) = (Layer::new(), vec![0x5A; packed_bytes(1, HIDDEN, QUERY).unwrap()]);
    let cache = [0, KV, POSITIONS, WIDTH];
    let call = DecoderLayer::<_, f32, f32>::new(
        Tensor::new([0, 2, HIDDEN], &[])?,
        Tensor::new([0], &[])?,
        Tensor::new([POSITIONS, WIDTH], &layer.freqs)?,
        LayerWeights { wq: Tensor::new([rubbish.len()], &rubbish)?, ..layer.weights()? },
        [HEADS as i64, KV as i64],
        [TensorMut::new(cache, &mut [])?, TensorMut::new(cache, &mut [])?],
        TensorMut::new([0, 2, HIDDEN], &mut [])?,
    );
    run(&Host::new(), call)
}
