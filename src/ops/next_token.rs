//! What choosing the next token of each row has in common, whatever it is chosen by: the prompt and the end.

use super::check::{self, Arg};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// The tensors of a call.
pub(crate) struct NextToken<'c, 'a, B: Backend> {
    /// The name of the rows that are chosen from.
    pub name: &'static str,
    /// `[B,V]`
    pub rows: &'c B::View<'a, f32>,
    /// `[B]`
    pub random: &'c B::View<'a, f32>,
    /// `[B,P]`
    pub prompt_tokens: Option<&'c B::View<'a, i32>>,
    /// `[B,P]`
    pub prompt_mask: Option<&'c B::View<'a, u8>>,
    pub cur_pos: i64,
    pub end_id: i32,
    /// `[B]`
    pub ids: &'c B::ViewMut<'a, i32>,
    /// `[B]`
    pub sequence_length: Option<&'c B::ViewMut<'a, i32>>,
    /// `[B]`
    pub finished: Option<&'c B::ViewMut<'a, u8>>,
}

impl<B: Backend> NextToken<'_, '_, B> {
    /// Validates shapes and attributes, and returns B and V.
    pub fn shapes(&self) -> Result<[usize; 2], Error> {
        let [batch, vocabulary] = check::sizes(self.name, self.rows)?;
        check::attribute(self.name, vocabulary <= i32::MAX as usize, "at most 2^31 - 1 columns", vocabulary)?;
        check::column("random", self.random, batch)?;
        match (self.prompt_tokens, self.prompt_mask) {
            (None, None) => {}
            (Some(_), None) => return Err(Error::null("prompt_mask")),
            (None, Some(_)) => return Err(Error::null("prompt_tokens")),
            (Some(tokens), Some(mask)) => {
                let [_, columns] = check::sizes("prompt_tokens", tokens)?;
                check::shape("prompt_tokens", tokens, &[batch, columns])?;
                check::shape("prompt_mask", mask, &[batch, columns])?;
            }
        }
        check::attribute("cur_pos", self.cur_pos >= 0, "at least 0", self.cur_pos)?;
        check::column("ids", self.ids, batch)?;
        if let Some(length) = self.sequence_length {
            check::column("sequence_length", length, batch)?;
        }
        if let Some(finished) = self.finished {
            check::id("end_id", self.end_id, vocabulary)?;
            check::column("finished", finished, batch)?;
        }
        Ok([batch, vocabulary])
    }

    /// Validates where the tensors lie, for a query or with data for a run.
    pub fn memory(&self, data: bool) -> Result<(), Error> {
        let (ids, rows): (Arg<'_>, Arg<'_>) = (("ids", self.ids.location()), (self.name, self.rows.location()));
        let (mut outputs, mut last) = ([ids; 3], 1);
        for other in [
            self.sequence_length.map(|length| ("sequence_length", length.location())),
            self.finished.map(|finished| ("finished", finished.location())),
        ]
        .into_iter()
        .flatten()
        {
            (outputs[last], last) = (other, last + 1);
        }
        // Inputs may overlap: the rows stand for what is not there.
        let inputs = [
            rows,
            ("random", self.random.location()),
            self.prompt_tokens.map_or(rows, |tokens| ("prompt_tokens", tokens.location())),
            self.prompt_mask.map_or(rows, |mask| ("prompt_mask", mask.location())),
        ];
        check::memory(data, &outputs[..last], &inputs)
    }
}
