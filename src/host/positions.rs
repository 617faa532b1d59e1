//! Positions that a call finds in memory.

use crate::error::{Error, Value};
use crate::tensor::{Describe, Tensor};

/// Each batch row's `tokens` positions from `start_pos[b]` on lie below `limit`.
pub(super) fn check(start_pos: &Tensor<'_, i64>, tokens: usize, limit: usize) -> Result<(), Error> {
    let most = limit as i64 - tokens as i64;
    let rows = start_pos.dims().elements();
    match (0..rows).map(|b| start_pos.get(b)).find(|start| !(0..=most).contains(start)) {
        Some(start) if most < 0 => Err(Error::invalid("start_pos", "a position for each token", start)),
        Some(start) => Err(Error::invalid("start_pos", Value::Range { least: 0, most }, start)),
        None => Ok(()),
    }
}
