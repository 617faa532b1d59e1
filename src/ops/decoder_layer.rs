//! One layer of the decoder.

use super::{Heads, WeightSizes, check};
use crate::backend::Backend;
use crate::error::{Error, Value};
use crate::tensor::Describe;

/// The weights of a [`DecoderLayer`]: int8 matrices `[in,out]` with a scale for each output channel, and two norms. A matrix of
/// these sizes is given in the format that the layer names: by default as the bytes that [`PackWeight`](super::PackWeight) makes of
/// it.
#[derive(Debug)]
pub struct LayerWeights<'a, B: Backend, T: 'a> {
    /// `[H]`
    pub attention_norm: B::View<'a, T>,
    /// `[H, heads * D]`
    pub wq: B::View<'a, i8>,
    /// `[heads * D]`
    pub wq_scale: B::View<'a, f32>,
    /// `[H, kv_heads * D]`
    pub wk: B::View<'a, i8>,
    /// `[kv_heads * D]`
    pub wk_scale: B::View<'a, f32>,
    /// `[H, kv_heads * D]`
    pub wv: B::View<'a, i8>,
    /// `[kv_heads * D]`
    pub wv_scale: B::View<'a, f32>,
    /// `[heads * D, H]`
    pub wo: B::View<'a, i8>,
    /// `[H]`
    pub wo_scale: B::View<'a, f32>,
    /// `[H]`
    pub ffn_norm: B::View<'a, T>,
    /// `[H, F]`
    pub w1: B::View<'a, i8>,
    /// `[F]`
    pub w1_scale: B::View<'a, f32>,
    /// `[H, F]`
    pub w3: B::View<'a, i8>,
    /// `[F]`
    pub w3_scale: B::View<'a, f32>,
    /// `[F, H]`
    pub w2: B::View<'a, i8>,
    /// `[H]`
    pub w2_scale: B::View<'a, f32>,
}

impl<'a, B: Backend, T: 'a> Clone for LayerWeights<'a, B, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, B: Backend, T: 'a> Copy for LayerWeights<'a, B, T> {}

/// Sizes of a layer.
#[derive(Clone, Copy)]
pub(crate) struct LayerSizes {
    pub batch: usize,
    pub tokens: usize,
    pub hidden: usize,
    pub inner: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// Of a head.
    pub width: usize,
    pub positions: usize,
    /// `batch * tokens`
    pub rows: usize,
}

impl LayerSizes {
    /// Columns of the queries.
    pub fn query(&self) -> usize {
        self.heads * self.width
    }

    /// Of the attention.
    pub fn attention(&self) -> Heads {
        let LayerSizes { batch, heads, kv_heads, tokens, width, positions, .. } = *self;
        Heads { batch, heads, kv_heads, tokens, width, positions }
    }

    /// Columns of the keys, and of the values.
    pub fn key(&self) -> usize {
        self.kv_heads * self.width
    }
}

/// One LLaMA layer, W8A8: tokens `start_pos[b] .. start_pos[b] + S` of each row in, their keys and values into the caches, the residual
/// stream out.
///
/// ```text
/// x8, s  = RmsNormQuant(input)
/// q, k, v = x8 wq, x8 wk, x8 wv                       i32
/// q, k   = rope(dequantised q, k);  caches[start ..] = k, v
/// o      = Attention(q, caches)                       heads / kv_heads query heads share a cache head
/// h      = input + QuantizeRows(o) wo
/// output = h + quantised(silu(n w1) * (n w3)) w2,     n = RmsNormQuant(h)
/// ```
///
/// Each line is the operation of that name; the result is theirs bit for bit, so S tokens at once give what S calls of one token
/// give, and a row of a batch what it gives alone.
///
/// * Shapes: `input` and `output` `[B,S,H]`, `start_pos` `[B]` or `[B,1]`, `freqs` `[T',D]` (see `RopeTable`), `mask` `[S,T]`,
///   caches `[B,kv_heads,T,D]`; the weights as [`LayerWeights`] says, each as in [`QuantMatmul`](super::QuantMatmul). B = 0 writes
///   nothing, nor looks at what the weights hold; another dimension of 0 is refused. Any number of heads that is a multiple of
///   `kv_heads`, any even D, any H and F.
/// * Dtypes: `input`, `output` and norms f32, f16 or bf16, one for all; the caches f32, f16 or bf16; scales, `freqs`, `mask` f32.
/// * Workspace: the intermediate results of `B * S` rows, and the largest workspace of the operations above.
/// * A NaN or an infinity in the residual stream quantises its row to zeros, as [`RmsNormQuant`](super::RmsNormQuant) says, and
///   stays in it.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, `heads` or `kv_heads` below 1, `heads` that is no
///   multiple of `kv_heads`, a negative or NaN `eps`, a damaged packed weight, an unknown weight format, a product over more than
///   65 536, a `start_pos` outside a table or cache, overlapping tensors.
/// * Document 003, `OpenDecoder::forward`, with the corrections of its positions, strides, mask and sizes.
///
/// ```
/// use tilekern::kernels::pack::{pack_floats, packed_bytes};
/// use tilekern::ops::{DecoderLayer, LayerWeights};
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut};
///
/// // One head of size 2, hidden size 2: every matrix is 2 by 2.
/// let (mut matrix, mut scale) = (vec![0i8; packed_bytes(1, 2, 2).unwrap()], [0.0f32; 2]);
/// pack_floats(&mut matrix, 2, 2, |k, n| if k == n { 0.5 } else { 0.0 }, &mut scale);
/// let (w, s) = (Tensor::new([matrix.len()], &matrix)?, Tensor::new([2], &scale)?);
/// let ones = [1.0f32; 2];
/// let norm = Tensor::new([2], &ones)?;
/// let weights = LayerWeights {
///     attention_norm: norm, wq: w, wq_scale: s, wk: w, wk_scale: s, wv: w, wv_scale: s, wo: w, wo_scale: s,
///     ffn_norm: norm, w1: w, w1_scale: s, w3: w, w3_scale: s, w2: w, w2_scale: s,
/// };
/// let (input, freqs, mut output) = ([1.0f32, 1.0], [1.0f32, 0.0], [0.0f32; 2]);
/// let (mut keys, mut values) = ([0.0f32; 2], [0.0f32; 2]);
/// let host = Host::new();
/// let call = DecoderLayer::new(
///     Tensor::new([1, 1, 2], &input)?,
///     Tensor::new([1], &[0])?,
///     Tensor::new([1, 2], &freqs)?,
///     weights,
///     [1, 1],
///     [TensorMut::new([1, 1, 1, 2], &mut keys)?, TensorMut::new([1, 1, 1, 2], &mut values)?],
///     TensorMut::new([1, 1, 2], &mut output)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert!((output[0] - 1.3278).abs() < 1e-3 && output[0] == output[1]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct DecoderLayer<'a, B: Backend, T: 'a, K: 'a> {
    /// `[B,S,H]`
    pub input: B::View<'a, T>,
    /// `[B]`: the position of the first token.
    pub start_pos: B::View<'a, i64>,
    /// `[T',D]`: cosines and sines, see `RopeTable`.
    pub freqs: B::View<'a, f32>,
    /// `[H]`
    pub attention_norm: B::View<'a, T>,
    /// `[H, heads * D]`
    pub wq: B::View<'a, i8>,
    /// `[heads * D]`
    pub wq_scale: B::View<'a, f32>,
    /// `[H, kv_heads * D]`
    pub wk: B::View<'a, i8>,
    /// `[kv_heads * D]`
    pub wk_scale: B::View<'a, f32>,
    /// `[H, kv_heads * D]`
    pub wv: B::View<'a, i8>,
    /// `[kv_heads * D]`
    pub wv_scale: B::View<'a, f32>,
    /// `[heads * D, H]`
    pub wo: B::View<'a, i8>,
    /// `[H]`
    pub wo_scale: B::View<'a, f32>,
    /// `[H]`
    pub ffn_norm: B::View<'a, T>,
    /// `[H, F]`
    pub w1: B::View<'a, i8>,
    /// `[F]`
    pub w1_scale: B::View<'a, f32>,
    /// `[H, F]`
    pub w3: B::View<'a, i8>,
    /// `[F]`
    pub w3_scale: B::View<'a, f32>,
    /// `[F, H]`
    pub w2: B::View<'a, i8>,
    /// `[H]`
    pub w2_scale: B::View<'a, f32>,
    /// `FORMAT_PACKED`; other formats of [`QuantMatmul`](super::QuantMatmul) are packed on the way in every call.
    pub weight_format: i32,
    /// Query heads.
    pub heads: i64,
    /// Heads of the caches.
    pub kv_heads: i64,
    /// Of both norms; 1e-5.
    pub eps: f64,
    /// `[S,T]`: added to the scores, on top of causality.
    pub mask: Option<B::View<'a, f32>>,
    /// `[B,kv_heads,T,D]`, read and written.
    pub key_cache: B::ViewMut<'a, K>,
    /// `[B,kv_heads,T,D]`, read and written.
    pub value_cache: B::ViewMut<'a, K>,
    /// `[B,S,H]`
    pub output: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T, K> DecoderLayer<'a, B, T, K> {
    /// Packed weights, eps 1e-5, no mask; `heads` are those of the queries and of the caches, `caches` the keys and the values.
    pub fn new(
        input: B::View<'a, T>,
        start_pos: B::View<'a, i64>,
        freqs: B::View<'a, f32>,
        weights: LayerWeights<'a, B, T>,
        [heads, kv_heads]: [i64; 2],
        [key_cache, value_cache]: [B::ViewMut<'a, K>; 2],
        output: B::ViewMut<'a, T>,
    ) -> Self {
        DecoderLayer {
            input,
            start_pos,
            freqs,
            attention_norm: weights.attention_norm,
            wq: weights.wq,
            wq_scale: weights.wq_scale,
            wk: weights.wk,
            wk_scale: weights.wk_scale,
            wv: weights.wv,
            wv_scale: weights.wv_scale,
            wo: weights.wo,
            wo_scale: weights.wo_scale,
            ffn_norm: weights.ffn_norm,
            w1: weights.w1,
            w1_scale: weights.w1_scale,
            w3: weights.w3,
            w3_scale: weights.w3_scale,
            w2: weights.w2,
            w2_scale: weights.w2_scale,
            weight_format: super::FORMAT_PACKED,
            heads,
            kv_heads,
            eps: 1e-5,
            mask: None,
            key_cache,
            value_cache,
            output,
        }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<LayerSizes, Error> {
        let too_large = || Error::invalid("input", "a size that fits in memory", Value::shape(self.input.dims().shape()));
        let [batch, tokens, hidden] = check::sizes("input", &self.input)?;
        let [table, width] = check::sizes("freqs", &self.freqs)?;
        let count =
            |name, n: i64| usize::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| Error::invalid(name, "at least 1", n));
        let (heads, kv_heads) = (count("heads", self.heads)?, count("kv_heads", self.kv_heads)?);
        check::attribute("kv_heads", heads % kv_heads == 0, "a divisor of heads", kv_heads)?;
        check::attribute("freqs", width % 2 == 0, "an even head size", width)?;
        check::attribute("eps", self.eps >= 0.0, "eps >= 0", self.eps)?;
        let [_, _, positions, _] = check::sizes("key_cache", &self.key_cache)?;
        let [inner] = check::sizes("w1_scale", &self.w1_scale)?;
        check::attribute("w1_scale", inner > 0, "no dimension of 0", inner)?;
        let rows = batch.checked_mul(tokens).ok_or_else(too_large)?;
        let query = heads.checked_mul(width).ok_or_else(|| Error::invalid("heads", "a size that fits in memory", self.heads))?;
        let key = kv_heads * width;
        check::attribute("freqs", table >= tokens, "a position for each token", table)?;
        check::column("start_pos", &self.start_pos, batch)?;
        for (name, cache) in [("key_cache", &self.key_cache), ("value_cache", &self.value_cache)] {
            check::shape(name, cache, &[batch, kv_heads, positions, width])?;
        }
        check::attribute("key_cache", positions >= tokens, "a position for each token", positions)?;
        if let Some(mask) = &self.mask {
            check::shape("mask", mask, &[tokens, positions])?;
        }
        check::shape("output", &self.output, &[batch, tokens, hidden])?;
        check::shape("attention_norm", &self.attention_norm, &[hidden])?;
        check::shape("ffn_norm", &self.ffn_norm, &[hidden])?;
        let d = LayerSizes { batch, tokens, hidden, inner, heads, kv_heads, width, positions, rows };
        for (name, weight, k, n) in self.matrices(d) {
            check::attribute(name, k <= super::MAX_K, "at most 65536 inputs", k)?;
            super::weight(name, weight, self.weight_format, WeightSizes { experts: None, k, n })?;
        }
        for (name, scale, n) in [
            ("wq_scale", &self.wq_scale, query),
            ("wk_scale", &self.wk_scale, key),
            ("wv_scale", &self.wv_scale, key),
            ("wo_scale", &self.wo_scale, hidden),
            ("w3_scale", &self.w3_scale, inner),
            ("w2_scale", &self.w2_scale, hidden),
        ] {
            check::shape(name, scale, &[n])?;
        }
        self.with_arguments(|outputs, inputs| check::memory(data, outputs, inputs))?;
        Ok(d)
    }

    /// The matrices, in the order q, k, v, o, 1, 3, 2, with the sizes that their products have.
    pub(crate) fn matrices(&self, d: LayerSizes) -> [(&'static str, &B::View<'a, i8>, usize, usize); 7] {
        let LayerSizes { hidden, inner, .. } = d;
        let (query, key) = (d.query(), d.key());
        [
            ("wq", &self.wq, hidden, query),
            ("wk", &self.wk, hidden, key),
            ("wv", &self.wv, hidden, key),
            ("wo", &self.wo, query, hidden),
            ("w1", &self.w1, hidden, inner),
            ("w3", &self.w3, hidden, inner),
            ("w2", &self.w2, inner, hidden),
        ]
    }

    fn with_arguments(&self, test: impl FnOnce(&[check::Arg<'_>], &[check::Arg<'_>]) -> Result<(), Error>) -> Result<(), Error> {
        let mask: &dyn Describe = match &self.mask {
            Some(mask) => mask,
            None => &self.input,
        };
        test(
            &[
                ("key_cache", self.key_cache.location()),
                ("value_cache", self.value_cache.location()),
                ("output", self.output.location()),
            ],
            &[
                ("input", self.input.location()),
                ("start_pos", self.start_pos.location()),
                ("freqs", self.freqs.location()),
                ("mask", mask.location()),
                ("attention_norm", self.attention_norm.location()),
                ("wq", self.wq.location()),
                ("wq_scale", self.wq_scale.location()),
                ("wk", self.wk.location()),
                ("wk_scale", self.wk_scale.location()),
                ("wv", self.wv.location()),
                ("wv_scale", self.wv_scale.location()),
                ("wo", self.wo.location()),
                ("wo_scale", self.wo_scale.location()),
                ("ffn_norm", self.ffn_norm.location()),
                ("w1", self.w1.location()),
                ("w1_scale", self.w1_scale.location()),
                ("w3", self.w3.location()),
                ("w3_scale", self.w3_scale.location()),
                ("w2", self.w2.location()),
                ("w2_scale", self.w2_scale.location()),
            ],
        )
    }
}
