//! Token ids into rows of the embedding table.

use super::check;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// The sizes of a lookup.
#[derive(Clone, Copy)]
pub(crate) struct LookupSizes {
    pub rows: usize,
    pub vocabulary: usize,
    pub columns: usize,
}

/// `output[b][s] = table[ids[b][s]] * scale`.
///
/// * Shapes: `ids` `[B,S]`, `table` `[V,H]`, `output` `[B,S,H]`; B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `ids` i32, `table` and `output` f32, f16 or bf16, one for both. `scale` is rounded to f32, and the product to the
///   dtype; a scale of 1 copies the bits.
/// * LLaMA has no factor: leave `scale` at 1. Document 003 multiplies by sqrt(H).
/// * Workspace: two rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, a `scale` that is not finite, overlapping tensors, an id
///   outside 0..V.
/// * Document 003, `embeddingLookup`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::EmbeddingLookup};
///
/// let (ids, table, mut rows) = ([2, 0], [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0f32; 4]);
/// let host = Host::new();
/// let call = EmbeddingLookup::new(
///     Tensor::new([1, 2], &ids)?,
///     Tensor::new([3, 2], &table)?,
///     TensorMut::new([1, 2, 2], &mut rows)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(rows, [5.0, 6.0, 1.0, 2.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct EmbeddingLookup<'a, B: Backend, T: 'a> {
    /// `[B,S]`
    pub ids: B::View<'a, i32>,
    /// `[V,H]`
    pub table: B::View<'a, T>,
    /// The factor; 1.
    pub scale: f64,
    /// `[B,S,H]`
    pub output: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> EmbeddingLookup<'a, B, T> {
    /// With scale 1.
    pub fn new(ids: B::View<'a, i32>, table: B::View<'a, T>, output: B::ViewMut<'a, T>) -> Self {
        EmbeddingLookup { ids, table, scale: 1.0, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<LookupSizes, Error> {
        let [batch, tokens] = check::sizes("ids", &self.ids)?;
        let [vocabulary, columns] = check::filled("table", &self.table)?;
        check::attribute("scale", (self.scale as f32).is_finite(), "a finite f32", self.scale)?;
        check::shape("output", &self.output, &[batch, tokens, columns])?;
        check::memory(
            data,
            &[("output", self.output.location())],
            &[("ids", self.ids.location()), ("table", self.table.location())],
        )?;
        Ok(LookupSizes { rows: batch * tokens, vocabulary, columns })
    }
}
