//! What choosing the next token of each row has in common, whatever it is chosen by: the prompt and the end.

use super::check::{self, Arg, Arguments, Role};
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
}

impl<B: Backend> Arguments for NextToken<'_, '_, B> {
    fn each<'s>(&'s self, mut see: impl FnMut(Role, Arg<'s>)) {
        see(Role::Output, ("ids", self.ids.location()));
        if let Some(length) = self.sequence_length {
            see(Role::Output, ("sequence_length", length.location()));
        }
        if let Some(finished) = self.finished {
            see(Role::Output, ("finished", finished.location()));
        }
        see(Role::Input, (self.name, self.rows.location()));
        see(Role::Input, ("random", self.random.location()));
        if let (Some(tokens), Some(mask)) = (self.prompt_tokens, self.prompt_mask) {
            see(Role::Input, ("prompt_tokens", tokens.location()));
            see(Role::Input, ("prompt_mask", mask.location()));
        }
    }
}
