//! A decoder layer is the operations that it names, one after the other, bit for bit: for every dtype of activations and of caches, with
//! heads that share keys and heads that do not, for every format of weights.

use crate::common::{Random, hosts, run};
use crate::quant_matmul::blocks;
use tilekern::kernels::pack::{pack_i8, packed_bytes};
use tilekern::ops::{
    Attention, DecoderLayer, DequantResidual, DequantResidualRmsNormQuant, DequantRopeTranspose, DequantSwigluQuant,
    DequantTranspose, FORMAT_ND, FORMAT_NZ, FORMAT_PACKED, LayerWeights, Product, QuantMatmul, QuantizeRows, RmsNormQuant,
    RopeTable, StoreKvCache,
};
use tilekern::{Element, Error, Host, Tensor, TensorMut, bf16, f16};

const BATCH: usize = 2;
const TOKENS: usize = 3;
const ROWS: usize = BATCH * TOKENS;
const HIDDEN: usize = 64;
const INNER: usize = 96;
const WIDTH: usize = 16;
const POSITIONS: usize = 9;
/// Positions of the first tokens.
const START: [i64; BATCH] = [0, 5];
/// So large that a step which forgets it shows.
const EPS: f64 = 0.37;

struct Matrix {
    k: usize,
    n: usize,
    plain: Vec<i8>,
    blocks: Vec<i8>,
    packed: Vec<i8>,
    scale: Vec<f32>,
}

impl Matrix {
    fn new(random: &mut Random, k: usize, n: usize) -> Matrix {
        let plain: Vec<i8> = (0..k * n).map(|_| random.int8()).collect();
        let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
        pack_i8(&mut packed, k, n, |i, j| plain[i * n + j]);
        let scale = (0..n).map(|_| 0.01 + 0.01 * random.unit().abs()).collect();
        Matrix { k, n, blocks: blocks(&plain, k, n), plain, packed, scale }
    }

    fn weight(&self, format: i32) -> Result<Tensor<'_, i8>, Error> {
        match format {
            FORMAT_ND => Tensor::new([self.k, self.n], &self.plain),
            FORMAT_NZ => Tensor::new([self.n / 32, self.k / 16, 16, 32], &self.blocks),
            _ => Tensor::new([self.packed.len()], &self.packed),
        }
    }

    fn scale(&self) -> Result<Tensor<'_, f32>, Error> {
        Tensor::new([self.n], &self.scale)
    }

    /// The sums of all rows.
    fn product(&self, host: &Host, x: &[i8]) -> Result<Vec<i32>, Error> {
        let mut sums = vec![0; ROWS * self.n];
        let out = Product::I32(TensorMut::new([ROWS, self.n], &mut sums)?);
        run(host, QuantMatmul::new(Tensor::new([ROWS, self.k], x)?, self.weight(FORMAT_ND)?, out))?;
        Ok(sums)
    }
}

struct Case<T> {
    heads: usize,
    kv_heads: usize,
    norms: [Vec<T>; 2],
    /// q, k, v, o, w1, w3, w2
    matrices: Vec<Matrix>,
    freqs: Vec<f32>,
    input: Vec<T>,
    mask: Vec<f32>,
}

/// The output, and the caches of keys and values.
type Answer<T, K> = (Vec<T>, [Vec<K>; 2]);

impl<T: Element> Case<T> {
    fn new(heads: usize, kv_heads: usize) -> Result<Case<T>, Error> {
        let mut random = Random(77);
        let (query, key) = (heads * WIDTH, kv_heads * WIDTH);
        let sizes =
            [(HIDDEN, query), (HIDDEN, key), (HIDDEN, key), (query, HIDDEN), (HIDDEN, INNER), (HIDDEN, INNER), (INNER, HIDDEN)];
        let matrices = sizes.map(|(k, n)| Matrix::new(&mut random, k, n)).into();
        let mut numbers = |n: usize, middle: f32| (0..n).map(|_| T::narrow(middle + random.unit())).collect::<Vec<T>>();
        let (norms, input) = ([numbers(HIDDEN, 1.5), numbers(HIDDEN, 1.5)], numbers(ROWS * HIDDEN, 0.0));
        let mut freqs = vec![0.0; POSITIONS * WIDTH];
        run(&Host::new(), RopeTable::new(TensorMut::new([POSITIONS, WIDTH], &mut freqs)?))?;
        let mask = (0..TOKENS * POSITIONS).map(|at| -0.1 * (at % 4) as f32).collect();
        Ok(Case { heads, kv_heads, norms, matrices, freqs, input, mask })
    }

    /// What lies in a cache before.
    fn cache<K: Element>(&self) -> Vec<K> {
        (0..BATCH * self.kv_heads * POSITIONS * WIDTH).map(|at| K::narrow((at % 13) as f32 * 0.1 - 0.6)).collect()
    }

    fn weights(&self, format: i32) -> Result<LayerWeights<'_, Host, T>, Error> {
        let [q, k, v, o, w1, w3, w2] = self.matrices.as_slice() else { panic!("seven matrices") };
        Ok(LayerWeights {
            attention_norm: Tensor::new([HIDDEN], &self.norms[0])?,
            wq: q.weight(format)?,
            wq_scale: q.scale()?,
            wk: k.weight(format)?,
            wk_scale: k.scale()?,
            wv: v.weight(format)?,
            wv_scale: v.scale()?,
            wo: o.weight(format)?,
            wo_scale: o.scale()?,
            ffn_norm: Tensor::new([HIDDEN], &self.norms[1])?,
            w1: w1.weight(format)?,
            w1_scale: w1.scale()?,
            w3: w3.weight(format)?,
            w3_scale: w3.scale()?,
            w2: w2.weight(format)?,
            w2_scale: w2.scale()?,
        })
    }

    fn layer<K: Element>(&self, host: &Host, format: i32) -> Result<Answer<T, K>, Error> {
        let (mut keys, mut values) = (self.cache::<K>(), self.cache::<K>());
        let mut output = vec![T::narrow(9.0); ROWS * HIDDEN];
        let cache = [BATCH, self.kv_heads, POSITIONS, WIDTH];
        let mut call = DecoderLayer::new(
            Tensor::new([BATCH, TOKENS, HIDDEN], &self.input)?,
            Tensor::new([BATCH], &START)?,
            Tensor::new([POSITIONS, WIDTH], &self.freqs)?,
            self.weights(format)?,
            [self.heads as i64, self.kv_heads as i64],
            [TensorMut::new(cache, &mut keys)?, TensorMut::new(cache, &mut values)?],
            TensorMut::new([BATCH, TOKENS, HIDDEN], &mut output)?,
        );
        (call.weight_format, call.eps) = (format, EPS);
        call.mask = Some(Tensor::new([TOKENS, POSITIONS], &self.mask)?);
        run(host, call)?;
        Ok((output, [keys, values]))
    }

    fn steps<K: Element>(&self, host: &Host) -> Result<Answer<T, K>, Error> {
        let [q, k, v, o, w1, w3, w2] = self.matrices.as_slice() else { panic!("seven matrices") };
        let (start, freqs) = (Tensor::new([BATCH], &START)?, Tensor::new([POSITIONS, WIDTH], &self.freqs)?);
        let input = || Tensor::new([ROWS, HIDDEN], &self.input);
        let norm = |i: usize| Tensor::new([HIDDEN], &self.norms[i]);
        let (mut x8, mut scale) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS]);
        let to = (TensorMut::new([ROWS, HIDDEN], &mut x8)?, TensorMut::new([ROWS], &mut scale)?);
        let mut first = RmsNormQuant::new(input()?, norm(0)?, to.0, to.1);
        first.eps = EPS;
        run(host, first)?;

        let mut by_head = [self.heads, self.kv_heads, self.kv_heads].map(|heads| (heads, vec![0.0f32; ROWS * heads * WIDTH]));
        for ((heads, to), (matrix, turns)) in by_head.iter_mut().zip([(q, true), (k, true), (v, false)]) {
            let sums = matrix.product(host, &x8)?;
            let sums = Tensor::new([BATCH, TOKENS, *heads * WIDTH], &sums)?;
            let (scale, to) = (Tensor::new([BATCH, TOKENS], &scale)?, TensorMut::new([BATCH, *heads, TOKENS, WIDTH], to)?);
            match turns {
                true => run(host, DequantRopeTranspose::new(sums, scale, matrix.scale()?, freqs, start, to))?,
                false => run(host, DequantTranspose::new(sums, scale, matrix.scale()?, to))?,
            }
        }
        let [query, key, value] = &by_head;
        let (mut keys, mut values, cache) = (self.cache::<K>(), self.cache::<K>(), [BATCH, self.kv_heads, POSITIONS, WIDTH]);
        let shape = |heads: usize| [BATCH, heads, TOKENS, WIDTH];
        let (k, v) = (Tensor::new(shape(key.0), &key.1)?, Tensor::new(shape(value.0), &value.1)?);
        run(host, StoreKvCache::new(k, v, start, TensorMut::new(cache, &mut keys)?, TensorMut::new(cache, &mut values)?))?;
        let mut attended = vec![0.0; query.1.len()];
        let (q, to) = (Tensor::new(shape(query.0), &query.1)?, TensorMut::new(shape(query.0), &mut attended)?);
        let mut attention = Attention::new(q, Tensor::new(cache, &keys)?, Tensor::new(cache, &values)?, start, to);
        attention.mask = Some(Tensor::new([TOKENS, POSITIONS], &self.mask)?);
        run(host, attention)?;

        let mut x8 = vec![0; attended.len()];
        let to = (TensorMut::new([BATCH, TOKENS, self.heads * WIDTH], &mut x8)?, TensorMut::new([ROWS], &mut scale)?);
        run(host, QuantizeRows::new(Tensor::new(shape(self.heads), &attended)?, to.0, to.1))?;
        let sums = o.product(host, &x8)?;
        let (mut x8, mut norm_scale, mut hidden) = (vec![0; ROWS * HIDDEN], vec![0.0; ROWS], vec![T::default(); ROWS * HIDDEN]);
        let mut second = DequantResidualRmsNormQuant::new(
            Tensor::new([ROWS, HIDDEN], &sums)?,
            Tensor::new([ROWS], &scale)?,
            o.scale()?,
            input()?,
            norm(1)?,
            TensorMut::new([ROWS, HIDDEN], &mut x8)?,
            TensorMut::new([ROWS], &mut norm_scale)?,
            TensorMut::new([ROWS, HIDDEN], &mut hidden)?,
        );
        second.eps = EPS;
        run(host, second)?;

        let (gate, up) = (w1.product(host, &x8)?, w3.product(host, &x8)?);
        let mut inner = vec![0; ROWS * INNER];
        let swiglu = DequantSwigluQuant::new(
            Tensor::new([ROWS, INNER], &gate)?,
            Tensor::new([ROWS, INNER], &up)?,
            Tensor::new([ROWS], &norm_scale)?,
            w1.scale()?,
            w3.scale()?,
            TensorMut::new([ROWS, INNER], &mut inner)?,
            TensorMut::new([ROWS], &mut scale)?,
        );
        run(host, swiglu)?;
        let (sums, mut output) = (w2.product(host, &inner)?, vec![T::default(); ROWS * HIDDEN]);
        let residual = DequantResidual::new(
            Tensor::new([ROWS, HIDDEN], &sums)?,
            Tensor::new([ROWS], &scale)?,
            w2.scale()?,
            Tensor::new([ROWS, HIDDEN], &hidden)?,
            TensorMut::new([ROWS, HIDDEN], &mut output)?,
        );
        run(host, residual)?;
        Ok((output, [keys, values]))
    }

    fn check<K: Element>(&self, name: &str) -> Result<(), Error> {
        let host = Host::new();
        let (expected, caches) = self.steps::<K>(&host)?;
        let differs = |a: &[T], b: &[T]| bytemuck::cast_slice::<T, u8>(a) != bytemuck::cast_slice::<T, u8>(b);
        assert!(differs(&expected, &self.input), "the layer does something");
        for host in hosts() {
            for format in [FORMAT_PACKED, FORMAT_ND, FORMAT_NZ] {
                let (found, found_caches) = self.layer::<K>(&host, format)?;
                let about = format!("{name}, {} of {} heads, format {format}, {}", self.kv_heads, self.heads, host.isa().name());
                assert!(!differs(&found, &expected), "{about}");
                for (found, expected) in found_caches.iter().zip(&caches) {
                    assert!(bytemuck::cast_slice::<K, u8>(found) == bytemuck::cast_slice::<K, u8>(expected), "caches: {about}");
                }
            }
        }
        Ok(())
    }
}

fn every_cache<T: Element>(name: &str) -> Result<(), Error> {
    for (heads, kv_heads) in [(4, 2), (4, 4), (6, 2)] {
        let case = Case::<T>::new(heads, kv_heads)?;
        case.check::<f32>(name)?;
        case.check::<f16>(name)?;
        case.check::<bf16>(name)?;
    }
    Ok(())
}

#[test]
fn a_layer_is_its_operations() -> Result<(), Error> {
    every_cache::<f32>("f32")?;
    every_cache::<f16>("f16")?;
    every_cache::<bf16>("bf16")
}
