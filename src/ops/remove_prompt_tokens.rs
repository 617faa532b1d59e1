//! Generated tokens without the prompts before them.

use super::check;
use crate::backend::Backend;
use crate::error::{Error, Value};
use crate::tensor::Describe;

/// The sizes of a removal.
#[derive(Clone, Copy)]
pub(crate) struct RemovalSizes {
    pub steps: usize,
    pub batch: usize,
    pub columns: usize,
}

/// `output[b][t] = word_ids[prompt_lengths[b] - min_prompt + t][b]` for `t < sequence_length[b]`.
///
/// Row r of `word_ids` holds what stands at position `min_prompt + r`, `min_prompt` being the length of the shortest prompt: of a longer
/// prompt the first rows are its own tokens.
///
/// * Shapes: `word_ids` `[steps,B]`, `sequence_length` and `prompt_lengths` `[B]`, `output` `[B,T]`; B = 0 writes nothing, another
///   dimension of 0 is refused.
/// * Dtypes: i32.
/// * Columns from `sequence_length` on are not written.
/// * Workspace: none.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, a negative `min_prompt`, overlapping tensors, a
///   `sequence_length` outside 0..=T, a prompt shorter than `min_prompt`, or with its tokens longer than the steps.
/// * Document 003, `removePromptToken`.
///
/// ```
/// use tilekern::{Host, Run, Tensor, TensorMut, ops::RemovePromptTokens};
///
/// // Prompts of one and two tokens; steps 0, 1 and 2 hold positions 1, 2 and 3.
/// let (word_ids, mut output) = ([10, 7, 11, 20, 12, 21], [-1; 6]);
/// let call = RemovePromptTokens::new(
///     Tensor::new([3, 2], &word_ids)?,
///     Tensor::new([2], &[3, 2])?,
///     Tensor::new([2], &[1, 2])?,
///     1,
///     TensorMut::new([2, 3], &mut output)?,
/// );
/// Host::new().run(call, &mut [])?;
/// assert_eq!(output, [10, 11, 12, 20, 21, -1]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct RemovePromptTokens<'a, B: Backend> {
    /// `[steps,B]`
    pub word_ids: B::View<'a, i32>,
    /// `[B]`: how many tokens each row generated.
    pub sequence_length: B::View<'a, i32>,
    /// `[B]`
    pub prompt_lengths: B::View<'a, i32>,
    /// The shortest of them.
    pub min_prompt: i64,
    /// `[B,T]`
    pub output: B::ViewMut<'a, i32>,
}

impl<'a, B: Backend> RemovePromptTokens<'a, B> {
    /// All fields.
    pub fn new(
        word_ids: B::View<'a, i32>,
        sequence_length: B::View<'a, i32>,
        prompt_lengths: B::View<'a, i32>,
        min_prompt: i64,
        output: B::ViewMut<'a, i32>,
    ) -> Self {
        RemovePromptTokens { word_ids, sequence_length, prompt_lengths, min_prompt, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<RemovalSizes, Error> {
        let shape = self.word_ids.dims().shape();
        // The batch is the second dimension here, and may be 0.
        let &[steps, batch] = shape else { return Err(Error::invalid("word_ids", "a rank of 2", Value::shape(shape))) };
        check::attribute("word_ids", steps > 0, "at least one step", Value::shape(shape))?;
        check::shape("sequence_length", &self.sequence_length, &[batch])?;
        check::shape("prompt_lengths", &self.prompt_lengths, &[batch])?;
        check::attribute("min_prompt", self.min_prompt >= 0, "at least 0", self.min_prompt)?;
        let [_, columns] = check::sizes("output", &self.output)?;
        check::shape("output", &self.output, &[batch, columns])?;
        check::memory(
            data,
            &[("output", self.output.location())],
            &[
                ("word_ids", self.word_ids.location()),
                ("sequence_length", self.sequence_length.location()),
                ("prompt_lengths", self.prompt_lengths.location()),
            ],
        )?;
        Ok(RemovalSizes { steps, batch, columns })
    }
}
