//! Tokens through the model: the embedding, the layers and the head.

use super::Decoding;
use crate::backend::Run;
use crate::error::Error;
use crate::host::Host;
use crate::llama::model::Head;
use crate::llama::plan::{Flow, project};
use crate::ops::{RmsNorm, RmsNormQuant};
use crate::parallel::ParallelFor;
use crate::tensor::{Tensor, TensorMut};
use tilekern_kernels::element::Element;

impl<T: Element, K: Element> Decoding<'_, T, K> {
    /// Puts a token into a place of `hidden[0]`.
    pub(super) fn embed(&mut self, place: usize, id: i32) {
        let dim = self.sizes.dim;
        self.hidden[0][place * dim..][..dim].copy_from_slice(&self.model.embedding()[id as usize * dim..][..dim]);
    }

    /// Runs `tokens` tokens of a row through all layers.
    pub(super) fn fill<P: ParallelFor>(&mut self, host: &Host<P>, row: usize, tokens: usize) -> Result<(), Error> {
        host.inside(tokens, self.model.shape().products(), || self.layers(host, row, 1, tokens))
    }

    /// The logits of one token of each row.
    pub(super) fn forward<P: ParallelFor>(&mut self, host: &Host<P>) -> Result<(), Error> {
        let batch = self.sizes.batch;
        host.inside(batch, self.model.shape().products(), || {
            self.layers(host, 0, batch, 1)?;
            self.head(host)
        })
    }

    /// Runs `tokens` tokens of each of `rows` rows from `first` on through all layers, from `hidden[0]` to `hidden[0]`.
    fn layers<P: ParallelFor>(&mut self, host: &Host<P>, first: usize, rows: usize, tokens: usize) -> Result<(), Error> {
        let s = self.sizes;
        // The caches were planned, so their sizes are sound.
        let (cache, all) = (s.cache(rows).unwrap_or(0), s.cache(s.batch).unwrap_or(0));
        let skip = s.cache(first).unwrap_or(0);
        for layer in 0..s.layers {
            let [input, output] = &mut self.hidden;
            let at = layer * all + skip;
            let shape = [rows, s.kv_heads, s.length, s.head_dim];
            let flow = Flow {
                input: Tensor::new([rows, tokens, s.dim], input)?,
                start: Tensor::new([rows], &self.position[first..])?,
                freqs: Tensor::new([s.length, s.head_dim], self.freqs)?,
                keys: TensorMut::new(shape, &mut self.keys[at..][..cache])?,
                values: TensorMut::new(shape, &mut self.values[at..][..cache])?,
                output: TensorMut::new([rows, tokens, s.dim], output)?,
            };
            host.run(flow.through(self.model, layer)?, self.scratch)?;
            self.hidden.swap(0, 1);
        }
        Ok(())
    }

    /// The logits of what the layers gave, one token for each row.
    fn head<P: ParallelFor>(&mut self, host: &Host<P>) -> Result<(), Error> {
        let s = self.sizes;
        let [input, normed] = &mut self.hidden;
        let input = Tensor::new([s.batch, s.dim], input)?;
        let gamma = Tensor::new([s.dim], self.model.final_norm())?;
        match self.model.head() {
            Head::Int8(weight) => {
                let output = TensorMut::new([s.batch, s.dim], self.quantised)?;
                let mut norm = RmsNormQuant::new(input, gamma, output, TensorMut::new([s.batch], self.scale)?);
                norm.eps = self.model.eps();
                host.run(norm, self.scratch)?;
                let (x, x_scale) = (Tensor::new([s.batch, s.dim], self.quantised)?, Tensor::new([s.batch], self.scale)?);
                host.run(project(*weight, x, x_scale, TensorMut::new([s.batch, s.vocab], self.logits)?)?, self.scratch)
            }
            Head::Float(weight) => {
                let mut norm = RmsNorm::new(input, gamma, TensorMut::new([s.batch, s.dim], normed)?);
                norm.eps = self.model.eps();
                host.run(norm, self.scratch)?;
                host.project(normed, weight, &TensorMut::new([s.batch, s.vocab], self.logits)?)
            }
        }
    }
}
