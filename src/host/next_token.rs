//! The next token of each row on the host: rows over the pool, each chosen from in memory of its worker.

use super::Host;
use crate::error::Error;
use crate::ops::{NextToken, check};
use crate::parallel::{self, Column, ParallelFor};
use crate::scratch::{Pieces, Plan, WorkerSlot};
use crate::tensor::{Describe, Tensor};
use tilekern_kernels::rows::{List, workspace_maxima};

/// What a choice reads, and works in.
pub(super) struct Choice<'a> {
    pub row: &'a [f32],
    pub random: f32,
    pub maxima: &'a mut [f32],
    pub list: List<'a>,
}

/// The workspace of choices among `columns`, with a list of `room` entries.
pub(super) fn plan(workers: usize, columns: usize, room: usize) -> Result<(Plan, WorkerSlot<u8>), Error> {
    let mut plan = Plan::new();
    let pieces = [Pieces::bytes::<f32>(columns), Pieces::bytes::<f32>(workspace_maxima(columns))];
    let list = [Pieces::bytes::<f32>(room), Pieces::bytes::<i32>(room)];
    let memory = plan.each(workers, pieces.into_iter().chain(list).fold(0, usize::saturating_add))?;
    Ok((plan, memory))
}

/// The prompts of a call, where they have a column for its position.
struct Forced<'a> {
    tokens: Tensor<'a, i32>,
    mask: Tensor<'a, u8>,
    column: usize,
}

impl Forced<'_> {
    /// The token that the prompt of a row has there.
    fn token(&self, row: usize) -> Option<i32> {
        (self.mask.row(row).get(self.column) != 0).then(|| self.tokens.row(row).get(self.column))
    }
}

impl<P: ParallelFor> Host<P> {
    /// The tokens of a call that was found valid, of which `choose` makes those that are sampled.
    pub(super) fn next_tokens(
        &self,
        call: &NextToken<'_, '_, Self>,
        [batch, columns]: [usize; 2],
        room: usize,
        scratch: &mut [u8],
        choose: impl Fn(Choice<'_>) -> usize + Sync,
    ) -> Result<(), Error> {
        let column = usize::try_from(call.cur_pos).unwrap_or(usize::MAX);
        let forced = match (call.prompt_tokens, call.prompt_mask) {
            (Some(&tokens), Some(&mask)) if column < tokens.dims().shape()[1] => Some(Forced { tokens, mask, column }),
            _ => None,
        };
        let token = |row| forced.as_ref().and_then(|forced| forced.token(row));
        (0..batch).filter_map(token).try_for_each(|id| check::id("prompt_tokens", id, columns))?;
        let (plan, memory) = plan(self.pool().workers(), columns, room)?;
        let memory = plan.carve(scratch)?.take_each(memory);
        let (lengths, finished) = (call.sequence_length.map(Column), call.finished.map(Column));
        let parts = (Column(call.ids), lengths, finished, memory);
        parallel::rows(self.pool(), batch, parallel::grain(columns, 16), parts, |row, (id, length, finished, memory)| {
            if let Some(token) = token(row) {
                *id = token;
                return;
            }
            if finished.as_ref().is_some_and(|finished| **finished != 0) {
                *id = call.end_id;
                return;
            }
            let mut memory = Pieces::of(memory);
            *id = choose(Choice {
                row: call.rows.row(row).staged(&mut memory),
                random: call.random.first_of(row),
                maxima: memory.take(workspace_maxima(columns)),
                list: List { values: memory.take(room), indices: memory.take(room) },
            }) as i32;
            if let Some(length) = length {
                *length = length.saturating_add(1);
            }
            if let Some(finished) = finished {
                *finished = u8::from(*id == call.end_id);
            }
        });
        Ok(())
    }
}
