//! The next token, drawn among the most probable.

use super::check;
use super::next_token::NextToken;
use crate::backend::Backend;
use crate::error::Error;

/// Draws the next token of each row among its most probable ones.
///
/// Kept is the smallest prefix of the descending probabilities (of equal ones the lower index first) whose sum exceeds `p`, at
/// least one entry, and all where no sum does. The first whose running sum reaches `random` times the kept sum is chosen. Sums are
/// those of the exact masses `round(pr * 2^52)`, and comparisons are exact.
///
/// A row whose `prompt_mask` is true in column `cur_pos` takes its token from `prompt_tokens`, and its length and end stay as they are;
/// there is no such column from P on. Else a finished row yields `end_id`, keeps its length and stays finished. Any other row is
/// sampled: its length grows by 1, and it is finished if the token is `end_id`.
///
/// * Shapes: `probs` `[B,V]`; `random`, `ids`, `sequence_length` and `finished` `[B]` or `[B,1]`; `prompt_tokens` and `prompt_mask`
///   `[B,P]`, both or neither. B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `probs` and `random` f32; `prompt_tokens`, `ids` and `sequence_length` i32; `prompt_mask` and `finished` bytes, 0 is false.
/// * The order is that of the numbers, a NaN as -inf, +inf as the largest finite number. In the sums a NaN counts as 0, and a
///   number outside `0..=1` as the nearest inside. Rows need not be normalised. A row without mass yields its first largest.
/// * A random number counts as the nearest of `0..=1`, a NaN as 0.
/// * Workspace: a row, its block maxima and a list a worker.
/// * Errors: 161001 a tensor without data, one of `prompt_tokens` and `prompt_mask` without the other; 161002 a shape that does not
///   fit, V > 2^31 - 1, a negative `cur_pos`, a `p` that is a NaN, an `end_id` outside 0..V where `finished` is given, overlapping
///   tensors, a token outside 0..V that a prompt forces.
/// * Document 003, `topPSampling`, with the draw from the kept sum instead of p.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::TopPSampling};
///
/// // Kept are 0.5, 0.25 and 0.125: the sum 0.75 does not exceed 0.75.
/// let probs = [0.125f32, 0.5, 0.125, 0.25, 0.125, 0.5, 0.125, 0.25];
/// let mut ids = [0; 2];
/// let call = TopPSampling::new(
///     Tensor::new([2, 4], &probs)?,
///     Tensor::new([2], &[0.5, 0.99])?,
///     0.75,
///     TensorMut::new([2], &mut ids)?,
/// );
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(ids, [1, 0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct TopPSampling<'a, B: Backend> {
    /// `[B,V]`
    pub probs: B::View<'a, f32>,
    /// `[B]`, in [0,1): what each row is drawn by.
    pub random: B::View<'a, f32>,
    /// `[B,P]`. None.
    pub prompt_tokens: Option<B::View<'a, i32>>,
    /// `[B,P]`: which of them are tokens of a prompt. None.
    pub prompt_mask: Option<B::View<'a, u8>>,
    /// The position that is chosen for; 0.
    pub cur_pos: i64,
    /// What the kept probabilities exceed: below 0 one entry is kept, from the row's sum on all.
    pub p: f64,
    /// The token that ends a row; 0.
    pub end_id: i32,
    /// `[B]`
    pub ids: B::ViewMut<'a, i32>,
    /// `[B]`, read and written: how many tokens each row has. None.
    pub sequence_length: Option<B::ViewMut<'a, i32>>,
    /// `[B]`, read and written: which rows have ended. None: no row has.
    pub finished: Option<B::ViewMut<'a, u8>>,
}

impl<'a, B: Backend> TopPSampling<'a, B> {
    /// No prompt, nothing finished, end id 0.
    pub fn new(probs: B::View<'a, f32>, random: B::View<'a, f32>, p: f64, ids: B::ViewMut<'a, i32>) -> Self {
        TopPSampling {
            probs,
            random,
            prompt_tokens: None,
            prompt_mask: None,
            cur_pos: 0,
            p,
            end_id: 0,
            ids,
            sequence_length: None,
            finished: None,
        }
    }

    /// What it has in common with other ways of choosing.
    pub(crate) fn next_token(&self) -> NextToken<'_, 'a, B> {
        NextToken {
            name: "probs",
            rows: &self.probs,
            random: &self.random,
            prompt_tokens: self.prompt_tokens.as_ref(),
            prompt_mask: self.prompt_mask.as_ref(),
            cur_pos: self.cur_pos,
            end_id: self.end_id,
            ids: &self.ids,
            sequence_length: self.sequence_length.as_ref(),
            finished: self.finished.as_ref(),
        }
    }

    /// Validates, for a query or with data for a run, and returns B and V.
    pub(crate) fn check(&self, data: bool) -> Result<[usize; 2], Error> {
        let call = self.next_token();
        let sizes = call.shapes()?;
        check::attribute("p", !self.p.is_nan(), "a number", self.p)?;
        check::arguments(data, &call)?;
        Ok(sizes)
    }
}
