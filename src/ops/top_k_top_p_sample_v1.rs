//! The first version of TopKTopPSample.

use super::check::{self, Arg, Arguments, Role};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// Keeps of every row of logits what top-k and top-p leave, and chooses one token of it, as the first version of the operator does.
///
/// It differs from [`TopKTopPSample`](super::TopKTopPSample) in this:
///
/// * Top-p with 0 < p < 1 keeps entry j iff the probability before it is **at most** p: the entry that exceeds p is the last. Any
///   other p switches the stage off, also p <= 0.
/// * What is kept is **normalised again**. With top-k by a softmax over its logits. With top-p alone by a softmax over its
///   probabilities: `pr_j = exp(s_j - s_0) / sum exp(s - s_0)`, where s are the probabilities of the row; so no two of them differ
///   by more than e.
/// * k counts from 1 to min(V, 1024). There is no min-p, and nothing is drawn here.
///
/// The order of the list, ties, the exact sums, the choice, NaN and infinities are those of the second version: without `q` the
/// first maximum of the logits, with `q` the first maximum of `pr_j / (|q_j| + f32(eps))` over places j of the list.
///
/// * Shapes: `logits`, `q` and `logits_top_kp_select` `[B,V]`; the others `[B]` or `[B,1]`. B >= 1, 1 <= V <= 2^20.
/// * Dtypes: `logits` and `top_p` f32, f16 or bf16, one for both; arithmetic in f32.
/// * `top_k_guess` changes no result: the host does not look at it, and an NPU is given what it takes of it.
/// * Workspace: for each worker at most 192 KiB, whatever V is, and a row of each tensor of V columns: of all of them where both take no
///   more than 256 KiB, so that the answer does not depend on strides, else of those whose rows are not contiguous.
/// * Errors: 161001 a tensor without data, `logits_top_kp_select` missing with `is_need_logits`; 561002 V > 2^20; 161002 any other
///   shape, B or V of 0, an eps that is negative or no finite f32, overlapping tensors.
/// * Document 001, `aclnnTopKTopPSample`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::TopKTopPSampleV1};
///
/// const LOW: f32 = f32::NEG_INFINITY;
/// let (logits, mut chosen, mut kept) = ([0.0f32; 4], [0], [1.0f32; 4]);
/// let mut call = TopKTopPSampleV1::new(
///     Tensor::new([1, 4], &logits)?,
///     Tensor::new([1], &[4000])?,
///     Tensor::new([1], &[0.5])?,
///     TensorMut::new([1], &mut chosen)?,
/// );
/// call.is_need_logits = true;
/// call.logits_top_kp_select = Some(TensorMut::new([1, 4], &mut kept)?);
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((chosen, kept), ([0], [0.0, 0.0, 0.0, LOW]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct TopKTopPSampleV1<'a, B: Backend, T: 'a> {
    /// `[B,V]`
    pub logits: B::View<'a, T>,
    /// `[B]`: tokens that top-k keeps; outside 1 ..= min(V, 1024) the row skips the stage.
    pub top_k: B::View<'a, i32>,
    /// `[B]`: what top-p keeps; outside (0,1) the row skips the stage.
    pub top_p: B::View<'a, T>,
    /// `[B,V]`: noise, by place in the list. None.
    pub q: Option<B::View<'a, f32>>,
    /// Added to the noise; 1e-8. Taken as f32.
    pub eps: f64,
    /// Whether to write `logits_top_kp_select`; false.
    pub is_need_logits: bool,
    /// 32; without effect.
    pub top_k_guess: i64,
    /// `[B]`: the chosen tokens.
    pub logits_select_idx: B::ViewMut<'a, i64>,
    /// `[B,V]`: the logits of the kept tokens, each in its place; -inf elsewhere. Only with `is_need_logits` written, or even validated.
    pub logits_top_kp_select: Option<B::ViewMut<'a, f32>>,
    /// `[B]`, bits: 1 a NaN was seen, 2 a +inf was seen, 4 nothing to choose from.
    pub row_status: Option<B::ViewMut<'a, u8>>,
}

impl<'a, B: Backend, T> TopKTopPSampleV1<'a, B, T> {
    /// With everything else at its default: no noise, no other output.
    pub fn new(
        logits: B::View<'a, T>,
        top_k: B::View<'a, i32>,
        top_p: B::View<'a, T>,
        logits_select_idx: B::ViewMut<'a, i64>,
    ) -> Self {
        TopKTopPSampleV1 {
            logits,
            top_k,
            top_p,
            q: None,
            eps: 1e-8,
            is_need_logits: false,
            top_k_guess: 32,
            logits_select_idx,
            logits_top_kp_select: None,
            row_status: None,
        }
    }

    /// Validates, for a query or with data for a run, and returns B and V.
    pub(crate) fn check(&self, data: bool) -> Result<[usize; 2], Error> {
        if self.is_need_logits && self.logits_top_kp_select.is_none() {
            return Err(Error::null("logits_top_kp_select"));
        }
        let [rows, columns] = check::filled("logits", &self.logits)?;
        check::vocabulary("logits", columns)?;
        check::column("top_k", &self.top_k, rows)?;
        check::column("top_p", &self.top_p, rows)?;
        if let Some(q) = &self.q {
            check::shape("q", q, &[rows, columns])?;
        }
        check::eps(self.eps)?;
        check::column("logits_select_idx", &self.logits_select_idx, rows)?;
        if let Some(select) = self.logits_top_kp_select.as_ref().filter(|_| self.is_need_logits) {
            check::shape("logits_top_kp_select", select, &[rows, columns])?;
        }
        if let Some(status) = &self.row_status {
            check::column("row_status", status, rows)?;
        }
        check::arguments(data, self)?;
        Ok([rows, columns])
    }
}

impl<B: Backend, T> Arguments for TopKTopPSampleV1<'_, B, T> {
    fn each<'s>(&'s self, mut see: impl FnMut(Role, Arg<'s>)) {
        see(Role::Output, ("logits_select_idx", self.logits_select_idx.location()));
        if let Some(select) = self.logits_top_kp_select.as_ref().filter(|_| self.is_need_logits) {
            see(Role::Output, ("logits_top_kp_select", select.location()));
        }
        if let Some(status) = &self.row_status {
            see(Role::Output, ("row_status", status.location()));
        }
        see(Role::Input, ("logits", self.logits.location()));
        see(Role::Input, ("top_k", self.top_k.location()));
        see(Role::Input, ("top_p", self.top_p.location()));
        if let Some(q) = &self.q {
            see(Role::Input, ("q", q.location()));
        }
    }
}
