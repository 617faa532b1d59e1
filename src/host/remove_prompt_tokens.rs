//! Generated tokens on the host: rows over the pool.

use super::Host;
use crate::backend::Run;
use crate::error::{Error, Value};
use crate::ops::{RemovalSizes, RemovePromptTokens};
use crate::parallel::{self, ParallelFor};
use crate::scratch::Plan;
use core::alloc::Layout;

/// The first step of a row that is not its prompt's, and how many are its own.
fn span<P: ParallelFor>(call: &RemovePromptTokens<'_, Host<P>>, d: RemovalSizes, row: usize) -> Result<(usize, usize), Error> {
    let outside = |name, expected, found: i32| Error::invalid(name, expected, Value::Int(found.into()));
    let (length, prompt) = (call.sequence_length.get(row), call.prompt_lengths.get(row));
    let own = usize::try_from(length).ok().filter(|&own| own <= d.columns.min(d.steps));
    let own = own.ok_or_else(|| outside("sequence_length", "a length inside the output and the steps", length))?;
    let first = i64::from(prompt).checked_sub(call.min_prompt).and_then(|first| usize::try_from(first).ok());
    let first = first.ok_or_else(|| outside("prompt_lengths", "at least min_prompt", prompt))?;
    if first > d.steps - own {
        return Err(outside("prompt_lengths", "a length that leaves room for the row's own tokens in the steps", prompt));
    }
    Ok((first, own))
}

impl<P: ParallelFor> Run<RemovePromptTokens<'_, Self>> for Host<P> {
    fn workspace(&self, call: &RemovePromptTokens<'_, Self>) -> Result<Layout, Error> {
        call.check(false)?;
        Ok(Plan::new().layout())
    }

    fn run_mut(&self, call: &mut RemovePromptTokens<'_, Self>, _scratch: &mut [u8]) -> Result<(), Error> {
        let d = call.check(true)?;
        (0..d.batch).try_for_each(|row| span(call, d, row).map(|_| ()))?;
        // A token is fetched from a cache line of its own.
        let grain = parallel::grain(d.columns, 64);
        parallel::rows(&self.pool, d.batch, grain, &call.output, |row, mut output| {
            // Every row was found valid.
            let (first, own) = span(call, d, row).unwrap_or((0, 0));
            for t in 0..own {
                output.set(t, call.word_ids.row(first + t).get(row));
            }
        });
        Ok(())
    }
}
