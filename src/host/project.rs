//! Rows times a float matrix on the host: blocks of its rows over the pool.

use super::Host;
use crate::error::Error;
use crate::parallel::{self, Cut, ParallelFor};
use crate::scratch::Plan;
use crate::tensor::{Describe, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::rows;

/// Bytes of weights of a block: they stay in the second cache while the rows of the batch pass over them.
const BLOCK: usize = 64 * 1024;

impl<P: ParallelFor> Host<P> {
    /// `output[m][n] = sum over k of input[m][k] * weight[n][k]`
    pub(crate) fn project<T: Element>(&self, input: &[T], weight: &[T], output: &TensorMut<'_, f32>) -> Result<(), Error> {
        let [rows, columns] = [output.dims().shape()[0], output.dims().shape()[1]];
        let k = weight.len() / columns;
        let mut plan = Plan::new();
        let scratch = plan.each::<u8>(self.pool.workers(), 0)?;
        let scratch = plan.carve(&mut [])?.take_each(scratch);
        let cut = Cut { rows, columns: (BLOCK / (k * size_of::<T>())).next_multiple_of(16).max(16) };
        parallel::blocks(&self.pool, cut, output, &scratch, |mut block, _| {
            let weight = &weight[block.columns.start * k..block.columns.end * k];
            for row in block.rows.clone() {
                if let Some(output) = block.row(row).as_slice() {
                    self.level.run(rows::Project { input: &input[row * k..][..k], weight, output });
                }
            }
        });
        Ok(())
    }
}
