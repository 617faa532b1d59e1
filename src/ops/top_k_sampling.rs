//! The next token, drawn among the k best.

use super::check;
use super::next_token::NextToken;
use crate::backend::Backend;
use crate::error::Error;

/// Draws the next token of each row among its `k` largest logits.
///
/// The k largest are taken (of equal ones the lower index first), the logit x of rank i (0 for the best) becomes
/// `x_i + f32(diversity_rate) * i`, and `w_i = exp(x_i - their maximum)`: the first rank whose running sum `w_0 + .. + w_i` reaches
/// `random * sum` is chosen. The sums are added in f64, by rank.
///
/// A row whose `prompt_mask` is true in column `cur_pos` takes its token from `prompt_tokens`, and its length and end stay as they are;
/// there is no such column from P on. Else a finished row yields `end_id`, keeps its length and stays finished. Any other row is
/// sampled: its length grows by 1, and it is finished if the token is `end_id`.
///
/// * Shapes: `logits` `[B,V]`; `random`, `ids`, `sequence_length` and `finished` `[B]` or `[B,1]`; `prompt_tokens` and `prompt_mask`
///   `[B,P]`, both or neither. B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `logits` and `random` f32; `prompt_tokens`, `ids` and `sequence_length` i32; `prompt_mask` and `finished` bytes, 0 is
///   false.
/// * A NaN logit counts as -inf and a +inf as the largest finite number, also after `diversity_rate` was added. A row of nothing
///   else than NaN and -inf yields index 0.
/// * A random number counts as the nearest of `0..=1`, a NaN as 0.
/// * Workspace: a row, its block maxima and a list a worker.
/// * Errors: 161001 a tensor without data, one of `prompt_tokens` and `prompt_mask` without the other; 161002 a shape that does not
///   fit, V > 2^31 - 1, a negative `cur_pos`, a `k` outside 1..=V, a `diversity_rate` that is not a finite f32, an `end_id` outside
///   0..V where `finished` is given, overlapping tensors, a token outside 0..V that a prompt forces.
/// * Document 003, `topKSampling`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::TopKSampling};
///
/// // The two best have 0.73 and 0.27 of the weight.
/// let logits = [1.0f32, 0.0, 2.0, 1.0, 0.0, 2.0];
/// let mut ids = [0; 2];
/// let call = TopKSampling::new(
///     Tensor::new([2, 3], &logits)?,
///     Tensor::new([2], &[0.7, 0.75])?,
///     2,
///     TensorMut::new([2], &mut ids)?,
/// );
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(ids, [2, 0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct TopKSampling<'a, B: Backend> {
    /// `[B,V]`
    pub logits: B::View<'a, f32>,
    /// `[B]`, in [0,1): what each row is drawn by.
    pub random: B::View<'a, f32>,
    /// `[B,P]`. None.
    pub prompt_tokens: Option<B::View<'a, i32>>,
    /// `[B,P]`: which of them are tokens of a prompt. None.
    pub prompt_mask: Option<B::View<'a, u8>>,
    /// The position that is chosen for; 0.
    pub cur_pos: i64,
    /// How many logits count, 1 to V.
    pub k: i64,
    /// What each rank adds to its logit; 0.
    pub diversity_rate: f64,
    /// The token that ends a row; 0.
    pub end_id: i32,
    /// `[B]`
    pub ids: B::ViewMut<'a, i32>,
    /// `[B]`, read and written: how many tokens each row has. None.
    pub sequence_length: Option<B::ViewMut<'a, i32>>,
    /// `[B]`, read and written: which rows have ended. None: no row has.
    pub finished: Option<B::ViewMut<'a, u8>>,
}

impl<'a, B: Backend> TopKSampling<'a, B> {
    /// No prompt, nothing finished, end id 0.
    pub fn new(logits: B::View<'a, f32>, random: B::View<'a, f32>, k: i64, ids: B::ViewMut<'a, i32>) -> Self {
        TopKSampling {
            logits,
            random,
            prompt_tokens: None,
            prompt_mask: None,
            cur_pos: 0,
            k,
            diversity_rate: 0.0,
            end_id: 0,
            ids,
            sequence_length: None,
            finished: None,
        }
    }

    /// What it has in common with other ways of choosing.
    pub(crate) fn next_token(&self) -> NextToken<'_, 'a, B> {
        NextToken {
            name: "logits",
            rows: &self.logits,
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

    /// Validates, for a query or with data for a run, and returns B and V, and k.
    pub(crate) fn check(&self, data: bool) -> Result<([usize; 2], usize), Error> {
        let call = self.next_token();
        let sizes = call.shapes()?;
        check::within("k", 1, sizes[1] as i64, self.k)?;
        let rate = self.diversity_rate;
        check::attribute("diversity_rate", (rate as f32).is_finite(), "a finite f32", rate)?;
        check::arguments(data, &call)?;
        Ok((sizes, self.k as usize))
    }
}
