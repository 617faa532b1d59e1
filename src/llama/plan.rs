//! What a decoding is made for, its memory, and the operations of its loop.

use super::model::{Head, Model, Weight};
use super::sampling::{self, SamplingSlots};
use crate::backend::Run;
use crate::error::Error;
use crate::host::Host;
use crate::ops::{ChannelScale, DecoderLayer, FORMAT_PACKED, Product, QuantMatmul, RmsNorm, RmsNormQuant, RopeTable, check};
use crate::parallel::ParallelFor;
use crate::scratch::{Plan, Slot};
use crate::tensor::{Dims, Tensor, TensorMut};
use tilekern_kernels::element::Element;

/// Prompt tokens that run together: the weights are read once for all of them, and beyond this the activations leave the cache.
const CHUNK: usize = 64;

/// What a decoding is made for.
///
/// ```
/// use tilekern::llama::DecodingConfig;
///
/// let config = DecodingConfig { batch: 4, max_prompt: 100, max_new: 50, end_id: 2 };
/// assert_eq!(config, DecodingConfig { batch: 4, ..DecodingConfig::new(100, 50, 2) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodingConfig {
    /// Number of rows.
    pub batch: usize,
    /// The longest prompt, in tokens.
    pub max_prompt: usize,
    /// The most tokens that a row generates, unless the context of the model ends before.
    pub max_new: usize,
    /// The token that ends a row; -1 for none.
    pub end_id: i32,
}

impl DecodingConfig {
    /// One row.
    pub const fn new(max_prompt: usize, max_new: usize, end_id: i32) -> DecodingConfig {
        DecodingConfig { batch: 1, max_prompt, max_new, end_id }
    }
}

/// Sizes that follow from a model and a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub batch: usize,
    pub dim: usize,
    pub vocab: usize,
    pub layers: usize,
    pub head_dim: usize,
    pub kv_heads: usize,
    /// Positions in the caches.
    pub length: usize,
    pub max_prompt: usize,
    pub max_new: usize,
    /// The most tokens that a row can come to generate.
    pub most_new: usize,
    /// Tokens of a prompt that run together.
    pub chunk: usize,
}

impl Sizes {
    pub fn new<T>(config: &DecodingConfig, model: &Model<'_, T>) -> Result<Sizes, Error> {
        let DecodingConfig { batch, max_prompt, max_new, end_id } = *config;
        let shape = model.shape();
        for (name, n) in [("batch", batch), ("max_prompt", max_prompt), ("max_new", max_new)] {
            check::attribute(name, n >= 1, "at least 1", n)?;
        }
        check::vocabulary("model", shape.vocab)?;
        check::within("end_id", -1, shape.vocab as i64 - 1, end_id.into())?;
        let (dim, vocab, layers) = (shape.dim, shape.vocab, shape.layers);
        let (head_dim, kv_heads) = (shape.head_dim(), shape.kv_heads);
        let length = shape.context.min(max_prompt.saturating_add(max_new));
        let chunk = CHUNK.min(max_prompt).min(length);
        let most_new = max_new.min(length);
        Ok(Sizes { batch, dim, vocab, layers, head_dim, kv_heads, length, max_prompt, max_new, most_new, chunk })
    }

    /// Cache elements of `rows` rows of one layer.
    pub fn cache(&self, rows: usize) -> Option<usize> {
        rows.checked_mul(self.kv_heads)?.checked_mul(self.length)?.checked_mul(self.head_dim)
    }
}

/// Where everything will lie.
pub(super) struct Slots<T, K> {
    pub keys: Slot<K>,
    pub values: Slot<K>,
    pub freqs: Slot<f32>,
    pub hidden: [Slot<T>; 2],
    pub quantised: Slot<i8>,
    pub scale: Slot<f32>,
    pub logits: Slot<f32>,
    pub pending: Slot<i32>,
    pub position: Slot<i64>,
    pub count: Slot<usize>,
    pub active: Slot<u8>,
    pub stepped: Slot<u8>,
    pub generated: Slot<i32>,
    pub sampling: SamplingSlots,
}

/// The tensors of a layer that are not its weights.
pub(super) struct Flow<'a, T, K> {
    pub input: Tensor<'a, T>,
    pub start: Tensor<'a, i64>,
    pub freqs: Tensor<'a, f32>,
    pub keys: TensorMut<'a, K>,
    pub values: TensorMut<'a, K>,
    pub output: TensorMut<'a, T>,
}

impl<'a, T: Element, K: Element> Flow<'a, T, K> {
    /// Without data, for a query.
    fn shapes(s: &Sizes, rows: usize, tokens: usize) -> Result<Self, Error> {
        let tokens = Dims::contiguous(&[rows, tokens, s.dim])?;
        let cache = Dims::contiguous(&[rows, s.kv_heads, s.length, s.head_dim])?;
        Ok(Flow {
            input: Tensor::shape_only(tokens),
            start: Tensor::shape_only(Dims::contiguous(&[rows])?),
            freqs: Tensor::shape_only(Dims::contiguous(&[s.length, s.head_dim])?),
            keys: TensorMut::shape_only(cache),
            values: TensorMut::shape_only(cache),
            output: TensorMut::shape_only(tokens),
        })
    }

    /// The operation.
    pub fn through<P: ParallelFor>(
        self,
        model: &'a Model<'_, T>,
        layer: usize,
    ) -> Result<DecoderLayer<'a, Host<P>, T, K>, Error> {
        let shape = model.shape();
        let heads = [shape.heads as i64, shape.kv_heads as i64];
        let Flow { input, start, freqs, keys, values, output } = self;
        let mut call = DecoderLayer::new(input, start, freqs, model.layer(layer)?, heads, [keys, values], output);
        call.eps = model.eps();
        Ok(call)
    }
}

/// The table of the rotary embedding.
pub(super) fn rope<'a, P: ParallelFor>(theta: f64, output: TensorMut<'a, f32>) -> RopeTable<'a, Host<P>> {
    let mut call = RopeTable::new(output);
    call.theta = theta;
    call
}

/// The most workspace that any operation of the loop asks for.
pub(super) fn workspace<T: Element, K: Element, P: ParallelFor>(
    host: &Host<P>,
    model: &Model<'_, T>,
    s: &Sizes,
) -> Result<usize, Error> {
    let layer = |rows, tokens| -> Result<usize, Error> {
        Ok(host.workspace(&Flow::<T, K>::shapes(s, rows, tokens)?.through(model, 0)?)?.size())
    };
    let (hidden, logits) = (Dims::contiguous(&[s.batch, s.dim])?, Dims::contiguous(&[s.batch, s.vocab])?);
    let (input, rows) = (Tensor::shape_only(hidden), Dims::contiguous(&[s.batch])?);
    let gamma = Tensor::new([s.dim], model.final_norm())?;
    let head = match model.head() {
        Head::Int8(weight) => {
            let quantised = (TensorMut::shape_only(hidden), TensorMut::shape_only(rows));
            let norm = RmsNormQuant::<Host<P>, T>::new(input, gamma, quantised.0, quantised.1);
            let quantised = (Tensor::shape_only(hidden), Tensor::shape_only(rows));
            let product = project(*weight, quantised.0, quantised.1, TensorMut::shape_only(logits))?;
            host.workspace(&norm)?.size().max(host.workspace(&product)?.size())
        }
        Head::Float(_) => host.workspace(&RmsNorm::<Host<P>, T>::new(input, gamma, TensorMut::shape_only(hidden)))?.size(),
    };
    let table = TensorMut::shape_only(Dims::contiguous(&[s.length, s.head_dim])?);
    let table = host.workspace(&rope::<P>(model.theta(), table))?.size();
    let sampling = sampling::workspace(host, s.vocab)?;
    Ok(layer(1, s.chunk)?.max(layer(s.batch, 1)?).max(head).max(table).max(sampling))
}

/// The product of the int8 head.
pub(super) fn project<'a, P: ParallelFor>(
    weight: Weight<'a>,
    x: Tensor<'a, i8>,
    x_scale: Tensor<'a, f32>,
    out: TensorMut<'a, f32>,
) -> Result<QuantMatmul<'a, Host<P>>, Error> {
    let mut call = QuantMatmul::new(x, Tensor::new([weight.packed.len()], weight.packed)?, Product::F32(out));
    call.weight_format = FORMAT_PACKED;
    call.weight_scale = Some(ChannelScale::F32(Tensor::new([weight.scale.len()], weight.scale)?));
    call.x_scale = Some(x_scale);
    Ok(call)
}

/// What a decoding keeps; behind it comes the [`workspace`] of its operations.
pub(super) fn plan<T: Element, K: Element>(s: &Sizes) -> Result<(Plan, Slots<T, K>), Error> {
    let too_large = || Error::invalid("batch", "sizes that fit in memory", "an overflow");
    let times = |a: usize, b: usize| a.checked_mul(b).ok_or_else(too_large);
    let cache = times(s.cache(s.batch).ok_or_else(too_large)?, s.layers)?;
    let hidden = times(s.batch.max(s.chunk), s.dim)?;
    let mut plan = Plan::new();
    let slots = Slots {
        keys: plan.slot(cache)?,
        values: plan.slot(cache)?,
        freqs: plan.slot(times(s.length, s.head_dim)?)?,
        hidden: [plan.slot(hidden)?, plan.slot(hidden)?],
        quantised: plan.slot(times(s.batch, s.dim)?)?,
        scale: plan.slot(s.batch)?,
        logits: plan.slot(times(s.batch, s.vocab)?)?,
        pending: plan.slot(s.batch)?,
        position: plan.slot(s.batch)?,
        count: plan.slot(s.batch)?,
        active: plan.slot(s.batch)?,
        stepped: plan.slot(s.batch)?,
        generated: plan.slot(times(s.batch, s.most_new)?)?,
        sampling: sampling::plan(&mut plan, s.batch)?,
    };
    Ok((plan, slots))
}

/// The same with the workspace.
pub(super) fn with_workspace<T: Element, K: Element, P: ParallelFor>(
    mut plan: Plan,
    host: &Host<P>,
    s: &Sizes,
    model: &Model<'_, T>,
) -> Result<Plan, Error> {
    plan.slot::<u8>(workspace::<T, K, P>(host, model, s)?)?;
    Ok(plan)
}
