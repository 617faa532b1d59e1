//! Attention over the cache.

use super::check;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// Sizes of an attention call.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub batch: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub tokens: usize,
    pub width: usize,
    pub positions: usize,
}

/// `output = softmax(scale * query key_cache^T + mask) value_cache`: query i of row b sees the positions `0 ..= start_pos[b] + i`.
///
/// * Shapes: `query` and `output` `[B,heads,S,D]`, `key_cache` and `value_cache` `[B,KV,T,D]` with heads a multiple of KV (head h
///   reads cache head `h / (heads / KV)`), `start_pos` `[B]` or `[B,1]`, `mask` `[S,T]`: entry `[i,j]` is added to the score of
///   query i with position j. B = 0 writes nothing; every other dimension of 0 is refused.
/// * Dtypes: `query`, `mask` and `output` f32, `start_pos` i64, the caches f32, f16 or bf16, both alike.
/// * Causality is a loop bound: later positions are never read. A query whose every score is -inf gets zeros; a NaN spreads over its
///   head.
/// * Numbers: a score is a fused dot product in 16 lanes, times `scale`, plus the mask; one maximum; exp; the weighted values are added
///   in four chains (position modulo 4) and divided by the sum of the exponentials, so values beyond the largest f32 over T may add
///   up to an infinity.
/// * Workspace: for each worker the scores of T positions and their mask, six rows of D, and room for the keys and values of one
///   head, which is used where their last dimension is not contiguous, or `output` lies in gaps of theirs.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, more tokens than positions, a `scale` that is not finite, a
///   `start_pos` outside `0 ..= T - S`, overlapping tensors.
/// * Document 003, `QK`, `blockSoftmax` and `PV`, with the causal mask, the positions and the strides corrected.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::Attention};
///
/// let query = [1.0f32, 0.0];
/// let (keys, values) = ([0.0f32; 4], [1.0f32, 2.0, 3.0, 6.0]);
/// let mut output = [0.0f32; 2];
/// let host = Host::new();
/// let call = Attention::new(
///     Tensor::new([1, 1, 1, 2], &query)?,
///     Tensor::new([1, 1, 2, 2], &keys)?,
///     Tensor::new([1, 1, 2, 2], &values)?,
///     Tensor::new([1], &[1])?,
///     TensorMut::new([1, 1, 1, 2], &mut output)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(output, [2.0, 4.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct Attention<'a, B: Backend, K: 'a> {
    /// `[B,heads,S,D]`
    pub query: B::View<'a, f32>,
    /// `[B,KV,T,D]`
    pub key_cache: B::View<'a, K>,
    /// `[B,KV,T,D]`
    pub value_cache: B::View<'a, K>,
    /// `[B]`: the position of the first query.
    pub start_pos: B::View<'a, i64>,
    /// `[S,T]`
    pub mask: Option<B::View<'a, f32>>,
    /// Multiplies the dot products; 0 stands for `1 / sqrt(D)`.
    pub scale: f64,
    /// `[B,heads,S,D]`
    pub output: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend, K> Attention<'a, B, K> {
    /// Without a mask, and with the scale `1 / sqrt(D)`.
    pub fn new(
        query: B::View<'a, f32>,
        key_cache: B::View<'a, K>,
        value_cache: B::View<'a, K>,
        start_pos: B::View<'a, i64>,
        output: B::ViewMut<'a, f32>,
    ) -> Self {
        Attention { query, key_cache, value_cache, start_pos, mask: None, scale: 0.0, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Heads, Error> {
        let [batch, heads, tokens, width] = check::sizes("query", &self.query)?;
        let [_, kv_heads, positions, _] = check::sizes("key_cache", &self.key_cache)?;
        check::shape("key_cache", &self.key_cache, &[batch, kv_heads, positions, width])?;
        check::attribute("key_cache", heads % kv_heads == 0, "a divisor of the heads of query", kv_heads)?;
        check::shape("value_cache", &self.value_cache, &[batch, kv_heads, positions, width])?;
        check::column("start_pos", &self.start_pos, batch)?;
        check::shape("output", &self.output, &[batch, heads, tokens, width])?;
        check::attribute("query", tokens <= positions, "at most as many tokens as the cache has positions", tokens)?;
        check::attribute("scale", (self.scale as f32).is_finite(), "a finite f32", self.scale)?;
        let (output, query) = (("output", self.output.location()), ("query", self.query.location()));
        let caches = [("key_cache", self.key_cache.location()), ("value_cache", self.value_cache.location())];
        let start = ("start_pos", self.start_pos.location());
        match &self.mask {
            None => check::memory(data, &[output], &[query, caches[0], caches[1], start])?,
            Some(mask) => {
                check::shape("mask", mask, &[tokens, positions])?;
                check::memory(data, &[output], &[query, caches[0], caches[1], start, ("mask", mask.location())])?;
            }
        }
        Ok(Heads { batch, heads, kv_heads, tokens, width, positions })
    }

    /// The factor of the dot products.
    pub(crate) fn factor(&self, width: usize) -> f32 {
        if self.scale == 0.0 { (1.0 / libm::sqrt(width as f64)) as f32 } else { self.scale as f32 }
    }
}
