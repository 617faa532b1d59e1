//! New keys and values into their caches.

use super::check;
use super::heads::HeadSizes;
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// `key_cache[b][h][start_pos[b] + s] = key[b][h][s]`, and the same for `value`: each number the nearest of the cache's type.
///
/// * Shapes: `key` and `value` `[B,KV,S,D]`, `start_pos` `[B]` or `[B,1]`, `key_cache` and `value_cache` `[B,KV,T,D]`; B = 0 writes
///   nothing, another dimension of 0 is refused. Only the new rows of the caches are written.
/// * Dtypes: `key` and `value` f32, `start_pos` i64, the caches f32, f16 or bf16.
/// * Beyond the range of f16 the cache holds an infinity; a NaN stays one.
/// * Workspace: two heads a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, overlapping tensors, a position outside the cache.
/// * Document 003, `storeKVcache`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::StoreKvCache};
///
/// let (key, value) = ([1.0f32, 2.0], [3.0f32, 4.0]);
/// let (mut keys, mut values) = ([0.0f32; 6], [0.0f32; 6]);
/// let host = Host::new();
/// let call = StoreKvCache::new(
///     Tensor::new([1, 1, 1, 2], &key)?,
///     Tensor::new([1, 1, 1, 2], &value)?,
///     Tensor::new([1], &[2i64])?,
///     TensorMut::new([1, 1, 3, 2], &mut keys)?,
///     TensorMut::new([1, 1, 3, 2], &mut values)?,
/// );
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((keys, values), ([0.0, 0.0, 0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0, 3.0, 4.0]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct StoreKvCache<'a, B: Backend, K: 'a> {
    /// `[B,KV,S,D]`
    pub key: B::View<'a, f32>,
    /// `[B,KV,S,D]`
    pub value: B::View<'a, f32>,
    /// `[B]`, the position of the first token
    pub start_pos: B::View<'a, i64>,
    /// `[B,KV,T,D]`
    pub key_cache: B::ViewMut<'a, K>,
    /// `[B,KV,T,D]`
    pub value_cache: B::ViewMut<'a, K>,
}

impl<'a, B: Backend, K> StoreKvCache<'a, B, K> {
    /// All fields.
    pub fn new(
        key: B::View<'a, f32>,
        value: B::View<'a, f32>,
        start_pos: B::View<'a, i64>,
        key_cache: B::ViewMut<'a, K>,
        value_cache: B::ViewMut<'a, K>,
    ) -> Self {
        StoreKvCache { key, value, start_pos, key_cache, value_cache }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<HeadSizes, Error> {
        let d = HeadSizes::of("key", &self.key)?;
        check::shape("value", &self.value, &[d.batch, d.heads, d.tokens, d.size])?;
        check::column("start_pos", &self.start_pos, d.batch)?;
        let [_, _, positions, _] = check::sizes("key_cache", &self.key_cache)?;
        check::shape("key_cache", &self.key_cache, &[d.batch, d.heads, positions, d.size])?;
        check::shape("value_cache", &self.value_cache, &[d.batch, d.heads, positions, d.size])?;
        check::memory(
            data,
            &[("key_cache", self.key_cache.location()), ("value_cache", self.value_cache.location())],
            &[("key", self.key.location()), ("value", self.value.location()), ("start_pos", self.start_pos.location())],
        )?;
        Ok(d)
    }

    /// Rows of a cache.
    pub(crate) fn positions(&self) -> usize {
        self.key_cache.dims().shape()[2]
    }
}
