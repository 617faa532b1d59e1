//! A decoder layer on the host: the operations of the layer, one after the other, between buffers of the workspace.
//!
//! The layer's check has named what is wrong in the caller's terms, and the steps are calls that follow from it: they are not validated
//! again. Each buffer has one purpose; `x8` and `scale` hold whatever was quantised last.

use super::quant_matmul::Matrix;
use super::weight::Weight;
use super::{
    Host, attention, dequant_residual, dequant_swiglu_quant, dequant_transpose, positions, quant_matmul, quantize_rows, rms_norm,
    store_kv_cache,
};
use crate::backend::Run;
use crate::error::Error;
use crate::ops::{
    Attention, DecoderLayer, DequantResidual, DequantResidualRmsNormQuant, DequantRopeTranspose, DequantSwigluQuant,
    DequantTranspose, HeadSizes, LayerSizes, Product3, QuantizeRows, QuantizeSizes, RmsNormQuant, Rows, StoreKvCache,
    WeightSizes,
};
use crate::parallel::ParallelFor;
use crate::scratch::{Plan, Slot, Space};
use crate::tensor::{Describe, Tensor, TensorMut};
use core::alloc::Layout;
use tilekern_kernels::element::Element;

struct Slots<T> {
    x8: Slot<i8>,
    scale: Slot<f32>,
    norm_scale: Slot<f32>,
    query_sums: Slot<i32>,
    key_sums: Slot<i32>,
    value_sums: Slot<i32>,
    query: Slot<f32>,
    key: Slot<f32>,
    value: Slot<f32>,
    attended: Slot<f32>,
    hidden: Slot<T>,
    gate_sums: Slot<i32>,
    up_sums: Slot<i32>,
    sums: Slot<i32>,
    step: Slot<u8>,
}

/// The slots, taken.
struct Buffers<'s, T> {
    x8: &'s mut [i8],
    scale: &'s mut [f32],
    norm_scale: &'s mut [f32],
    query_sums: &'s mut [i32],
    key_sums: &'s mut [i32],
    value_sums: &'s mut [i32],
    query: &'s mut [f32],
    key: &'s mut [f32],
    value: &'s mut [f32],
    attended: &'s mut [f32],
    hidden: &'s mut [T],
    gate_sums: &'s mut [i32],
    up_sums: &'s mut [i32],
    sums: &'s mut [i32],
    step: &'s mut [u8],
}

impl<T: Element> Slots<T> {
    fn take<'s>(self, space: &Space<'s>) -> Buffers<'s, T> {
        Buffers {
            x8: space.take(self.x8),
            scale: space.take(self.scale),
            norm_scale: space.take(self.norm_scale),
            query_sums: space.take(self.query_sums),
            key_sums: space.take(self.key_sums),
            value_sums: space.take(self.value_sums),
            query: space.take(self.query),
            key: space.take(self.key),
            value: space.take(self.value),
            attended: space.take(self.attended),
            hidden: space.take(self.hidden),
            gate_sums: space.take(self.gate_sums),
            up_sums: space.take(self.up_sums),
            sums: space.take(self.sums),
            step: space.take(self.step),
        }
    }
}

impl<P: ParallelFor> Host<P> {
    /// The largest workspace of the steps.
    fn widest_step<T: Element, K: Element>(&self, d: LayerSizes, format: i32) -> Result<usize, Error> {
        let workers = self.pool.workers();
        let (hidden, inner) = (Rows { rows: d.rows, columns: d.hidden }, Rows { rows: d.rows, columns: d.inner });
        let query = HeadSizes { batch: d.batch, heads: d.heads, tokens: d.tokens, size: d.width, columns: d.query() };
        let product = |k, n| Ok::<_, Error>(quant_matmul::plan(workers, Product3 { m: d.rows, k, n }, format)?.0.bytes());
        let steps = [
            product(d.hidden, d.query())?,
            product(d.query(), d.hidden)?,
            product(d.hidden, d.inner)?,
            product(d.inner, d.hidden)?,
            rms_norm::plan::<T, i8>(workers, hidden)?.0.bytes(),
            dequant_transpose::plan(workers, query, d.width)?.0.bytes(),
            store_kv_cache::plan::<K>(workers, query)?.0.bytes(),
            attention::plan::<K>(workers, d.attention())?.0.bytes(),
            quantize_rows::plan::<f32>(workers, QuantizeSizes { rows: d.rows, columns: d.query(), tokens: Some(d.tokens) })?
                .0
                .bytes(),
            dequant_residual::plan_norm::<T>(workers, hidden)?.0.bytes(),
            dequant_swiglu_quant::plan(workers, inner)?.0.bytes(),
        ];
        Ok(steps.into_iter().max().unwrap_or(0))
    }

    fn plan_layer<T: Element, K: Element>(&self, d: LayerSizes, format: i32) -> Result<(Plan, Slots<T>), Error> {
        let mut plan = Plan::new();
        let rows =
            |n: usize| d.rows.checked_mul(n).ok_or_else(|| Error::invalid("input", "a size that fits in memory", "an overflow"));
        let (query, key) = (d.query(), d.key());
        let slots = Slots {
            x8: plan.slot(rows(d.hidden.max(d.inner).max(query))?)?,
            scale: plan.slot(d.rows)?,
            norm_scale: plan.slot(d.rows)?,
            query_sums: plan.slot(rows(query)?)?,
            key_sums: plan.slot(rows(key)?)?,
            value_sums: plan.slot(rows(key)?)?,
            query: plan.slot(rows(query)?)?,
            key: plan.slot(rows(key)?)?,
            value: plan.slot(rows(key)?)?,
            attended: plan.slot(rows(query)?)?,
            hidden: plan.slot(rows(d.hidden)?)?,
            gate_sums: plan.slot(rows(d.inner)?)?,
            up_sums: plan.slot(rows(d.inner)?)?,
            sums: plan.slot(rows(d.hidden)?)?,
            step: plan.slot(self.widest_step::<T, K>(d, format)?)?,
        };
        Ok((plan, slots))
    }

    /// Queries, keys and values of the tokens; keys and values into the caches; what the heads attended to, in `b.attended`.
    fn attend<T: Element, K: Element>(
        &self,
        call: &mut DecoderLayer<'_, Self, T, K>,
        d: LayerSizes,
        weights: &[Matrix<'_>; 7],
        b: &mut Buffers<'_, T>,
    ) -> Result<(), Error> {
        let LayerSizes { batch, tokens, hidden, heads, kv_heads, width, rows, .. } = d;
        for (first, input) in call.input.row_runs() {
            let n = input.dims().shape()[0];
            let output = TensorMut::new([n, hidden], &mut b.x8[first * hidden..])?;
            let mut norm = RmsNormQuant::new(input, call.attention_norm, output, TensorMut::new([n], &mut b.scale[first..])?);
            norm.eps = call.eps;
            self.rms_norm_quant(&norm, Rows { rows: n, columns: hidden }, b.step)?;
        }
        let [wq, wk, wv, ..] = weights;
        let outputs = [
            TensorMut::new([rows, wq.d.n], b.query_sums)?,
            TensorMut::new([rows, wk.d.n], b.key_sums)?,
            TensorMut::new([rows, wv.d.n], b.value_sums)?,
        ];
        self.products(&Tensor::new([rows, hidden], b.x8)?, [wq, wk, wv], outputs, b.step)?;

        let of = |heads: usize| HeadSizes { batch, heads, tokens, size: width, columns: heads * width };
        let (query, key) = (of(heads), of(kv_heads));
        let scale = Tensor::new([batch, tokens], b.scale)?;
        let by_token = |sizes: HeadSizes| [batch, tokens, sizes.columns];
        let by_head = |sizes: HeadSizes| [batch, sizes.heads, tokens, width];
        for (sizes, sums, channels, to) in
            [(query, &*b.query_sums, call.wq_scale, &mut *b.query), (key, &*b.key_sums, call.wk_scale, &mut *b.key)]
        {
            let (input, output) = (Tensor::new(by_token(sizes), sums)?, TensorMut::new(by_head(sizes), to)?);
            let rope = DequantRopeTranspose::new(input, scale, channels, call.freqs, call.start_pos, output);
            self.dequant_rope_transpose(&rope, sizes, b.step)?;
        }
        let (input, output) = (Tensor::new(by_token(key), b.value_sums)?, TensorMut::new(by_head(key), b.value)?);
        self.dequant_transpose(&DequantTranspose::new(input, scale, call.wv_scale, output), key, b.step)?;

        let (keys, values) = (Tensor::new(by_head(key), b.key)?, Tensor::new(by_head(key), b.value)?);
        let caches = (call.key_cache.reborrow(), call.value_cache.reborrow());
        self.store_kv_cache(&StoreKvCache::new(keys, values, call.start_pos, caches.0, caches.1), key, b.step)?;

        let mut attention = Attention::new(
            Tensor::new(by_head(query), b.query)?,
            call.key_cache.as_view(),
            call.value_cache.as_view(),
            call.start_pos,
            TensorMut::new(by_head(query), b.attended)?,
        );
        attention.mask = call.mask;
        self.attention(&attention, d.attention(), b.step)
    }

    /// What the heads attended to and the residual stream through the feed-forward half, into the output.
    fn feed_forward<T: Element, K>(
        &self,
        call: &mut DecoderLayer<'_, Self, T, K>,
        d: LayerSizes,
        weights: &[Matrix<'_>; 7],
        b: &mut Buffers<'_, T>,
    ) -> Result<(), Error> {
        let LayerSizes { batch, tokens, hidden, inner, rows, .. } = d;
        let attended = Tensor::new([batch, d.heads, tokens, d.width], b.attended)?;
        let (x8, scale) = (TensorMut::new([batch, tokens, d.query()], b.x8)?, TensorMut::new([rows], b.scale)?);
        let sizes = QuantizeSizes { rows, columns: d.query(), tokens: Some(tokens) };
        self.quantize_rows(&QuantizeRows::new(attended, x8, scale), sizes, b.step)?;
        let [_, _, _, wo, w1, w3, w2] = weights;
        let outputs = [TensorMut::new([rows, hidden], b.sums)?];
        self.products(&Tensor::new([rows, d.query()], b.x8)?, [wo], outputs, b.step)?;
        for (first, input) in call.input.row_runs() {
            let n = input.dims().shape()[0];
            let mut norm = DequantResidualRmsNormQuant::new(
                Tensor::new([n, hidden], &b.sums[first * hidden..])?,
                Tensor::new([n], &b.scale[first..])?,
                call.wo_scale,
                input,
                call.ffn_norm,
                TensorMut::new([n, hidden], &mut b.x8[first * hidden..])?,
                TensorMut::new([n], &mut b.norm_scale[first..])?,
                TensorMut::new([n, hidden], &mut b.hidden[first * hidden..])?,
            );
            norm.eps = call.eps;
            self.dequant_residual_rms_norm_quant(&norm, Rows { rows: n, columns: hidden }, b.step)?;
        }

        let outputs = [TensorMut::new([rows, inner], b.gate_sums)?, TensorMut::new([rows, inner], b.up_sums)?];
        self.products(&Tensor::new([rows, hidden], b.x8)?, [w1, w3], outputs, b.step)?;
        let swiglu = DequantSwigluQuant::new(
            Tensor::new([rows, inner], b.gate_sums)?,
            Tensor::new([rows, inner], b.up_sums)?,
            Tensor::new([rows], b.norm_scale)?,
            call.w1_scale,
            call.w3_scale,
            TensorMut::new([rows, inner], b.x8)?,
            TensorMut::new([rows], b.scale)?,
        );
        self.dequant_swiglu_quant(&swiglu, Rows { rows, columns: inner }, b.step)?;
        let outputs = [TensorMut::new([rows, hidden], b.sums)?];
        self.products(&Tensor::new([rows, inner], b.x8)?, [w2], outputs, b.step)?;
        for (first, output) in call.output.reborrow().into_row_runs() {
            let n = output.dims().shape()[0];
            let residual = DequantResidual::new(
                Tensor::new([n, hidden], &b.sums[first * hidden..])?,
                Tensor::new([n], &b.scale[first..])?,
                call.w2_scale,
                Tensor::new([n, hidden], &b.hidden[first * hidden..])?,
                output,
            );
            self.dequant_residual(&residual, Rows { rows: n, columns: hidden }, b.step)?;
        }
        Ok(())
    }
}

impl<T: Element, K: Element, P: ParallelFor> Run<DecoderLayer<'_, Self, T, K>> for Host<P> {
    fn workspace(&self, call: &DecoderLayer<'_, Self, T, K>) -> Result<Layout, Error> {
        Ok(self.plan_layer::<T, K>(call.check(false)?, call.weight_format)?.0.layout())
    }

    fn run_mut(&self, call: &mut DecoderLayer<'_, Self, T, K>, scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        let (plan, slots) = self.plan_layer::<T, K>(d, call.weight_format)?;
        let space = plan.carve(scratch)?;
        positions::check(&call.start_pos, d.tokens, d.positions.min(call.freqs.dims().shape()[0]))?;
        // Nothing to write: what the weights hold is not looked at.
        if d.rows == 0 {
            return Ok(());
        }
        let outputs = [call.key_cache.bytes(), call.value_cache.bytes(), call.output.bytes()];
        let matrices = call.matrices(d);
        let bytes = matrices.iter().fold(0usize, |bytes, (_, _, k, n)| bytes.saturating_add(k.saturating_mul(*n)));
        let weights = matrices.map(|(name, view, k, n)| {
            let (d, format) = (WeightSizes { experts: None, k, n }, call.weight_format);
            Weight::new(name, view, format, d, &outputs).map(|weight| Matrix { weight: weight.among(bytes), format, d })
        });
        let [q, k, v, o, w1, w3, w2] = weights;
        let weights = [q?, k?, v?, o?, w1?, w3?, w2?];
        let mut buffers = slots.take(&space);
        self.inside(d.rows, bytes, || {
            self.attend(call, d, &weights, &mut buffers)?;
            self.feed_forward(call, d, &weights, &mut buffers)
        })
    }
}
