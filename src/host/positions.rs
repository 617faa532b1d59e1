//! Positions that a call finds in memory.

use crate::error::Error;
use crate::tensor::{Describe, Tensor};

/// Each batch row's `tokens` positions from `start_pos[b]` on lie below `limit`.
pub(super) fn check(start_pos: &Tensor<'_, i64>, tokens: usize, limit: usize) -> Result<(), Error> {
    let fits = |start: i64| usize::try_from(start).is_ok_and(|n| n <= limit && tokens <= limit - n);
    let rows = start_pos.dims().elements();
    match (0..rows).map(|b| start_pos.get(b)).find(|&start| !fits(start)) {
        Some(start) => Err(Error::invalid("start_pos", "positions inside the table", start)),
        None => Ok(()),
    }
}
