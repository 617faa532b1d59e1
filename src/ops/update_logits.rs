//! The logits that the next token is chosen from.

use super::check::{self, Arg};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// The sizes of an update.
#[derive(Clone, Copy)]
pub(crate) struct LogitSizes {
    pub batch: usize,
    pub tokens: usize,
    pub vocabulary: usize,
}

/// `output[b] = logits[b][S - 1]`; of a finished row +max at `end_id` and -max elsewhere, max being the largest finite f32. With
/// `softmax` the probabilities of that row: `exp(x - its maximum) / sum`.
///
/// * Shapes: `logits` `[B,S,V]`, `finished` `[B]` or `[B,1]`, `output` `[B,V]`; B = 0 writes nothing, another dimension of 0 is refused.
/// * Dtypes: `logits` and `output` f32; `finished` bytes, 0 is false.
/// * Without `softmax` the bits are copied. With it a NaN counts as -inf and a +inf as the largest finite number; where every logit is
///   one or the other of NaN and -inf the probabilities are 0. Of a finished row they are 1 at `end_id` and 0 elsewhere, whatever its
///   logits are.
/// * Workspace: two rows a worker, used only by tensors whose last dimension is not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, an `end_id` outside 0..V where `finished` is given,
///   overlapping tensors.
/// * Document 003, `updateLogitsWithoutSoftmax` and `updateLogitsKernelWithoutLog`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::UpdateLogits};
///
/// // Two rows of two tokens; the second row has ended.
/// let (logits, mut output) = ([9.0f32, 9.0, 1.0, 2.0, 9.0, 9.0, 3.0, 4.0], [0.0f32; 4]);
/// let mut call = UpdateLogits::new(Tensor::new([2, 2, 2], &logits)?, TensorMut::new([2, 2], &mut output)?);
/// call.finished = Some(Tensor::new([2], &[0, 1])?);
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(output, [1.0, 2.0, f32::MAX, -f32::MAX]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct UpdateLogits<'a, B: Backend> {
    /// `[B,S,V]`
    pub logits: B::View<'a, f32>,
    /// `[B]`: which rows have ended. None.
    pub finished: Option<B::View<'a, u8>>,
    /// What finished rows yield; 0.
    pub end_id: i32,
    /// Whether the output are probabilities; false.
    pub softmax: bool,
    /// `[B,V]`
    pub output: B::ViewMut<'a, f32>,
}

impl<'a, B: Backend> UpdateLogits<'a, B> {
    /// Logits, no row finished.
    pub fn new(logits: B::View<'a, f32>, output: B::ViewMut<'a, f32>) -> Self {
        UpdateLogits { logits, finished: None, end_id: 0, softmax: false, output }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<LogitSizes, Error> {
        let [batch, tokens, vocabulary] = check::sizes("logits", &self.logits)?;
        let outputs: [Arg<'_>; 1] = [("output", self.output.location())];
        let logits: Arg<'_> = ("logits", self.logits.location());
        if let Some(finished) = &self.finished {
            check::column("finished", finished, batch)?;
            check::id("end_id", self.end_id, vocabulary)?;
        }
        check::shape("output", &self.output, &[batch, vocabulary])?;
        match &self.finished {
            None => check::memory(data, &outputs, &[logits])?,
            Some(finished) => check::memory(data, &outputs, &[logits, ("finished", finished.location())])?,
        }
        Ok(LogitSizes { batch, tokens, vocabulary })
    }
}
