//! Top-k, top-p and min-p on sorted probabilities.

use super::check::{self, Arg, Arguments, Role};
use crate::backend::Backend;
use crate::error::Error;
use crate::tensor::Describe;

/// Keeps of every row of descending probabilities what top-k, top-p and min-p leave, and makes the others 0.
///
/// Entry j of a row v stays iff j < k, `!(f32(sum_j) - v_j > p)`, where `sum_j = v_0 + .. + v_j` is added in f64 and rounded once, and
/// `!(v_j < v_0 * min_p)`. An entry with exactly p before it stays; kept entries are copied bit for bit and not normalised again.
///
/// * Shapes: `probs` and `sampled_res` `[B,V]`; `k`, `p` and `min_p` `[B]` or `[B,1]`. B = 0 writes nothing, V = 0 is refused, and V
///   is not limited.
/// * Dtypes: `probs`, `p`, `min_p` and `sampled_res` f32, f16 or bf16, one for all; arithmetic in f32.
/// * k < 0 or k > V keeps all columns, k = 0 none: the row is 0.
/// * Comparisons with a NaN are false, so a NaN is kept, and with a NaN in `p` or `min_p` the stage keeps all. That the row
///   descends is not checked: each entry is judged by the formula whatever the others are.
/// * Workspace: 16 KiB a worker, used where rows are not contiguous.
/// * Errors: 161001 a tensor without data; 161002 a shape that does not fit, overlapping tensors.
/// * Document 002, `apply_top_k_top_p_min_p`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::ApplyTopKTopPMinP};
///
/// let probs = [0.5f32, 0.25, 0.125, 0.125];
/// let mut kept = [9.0f32; 4];
/// let call = ApplyTopKTopPMinP::new(
///     Tensor::new([1, 4], &probs)?,
///     Tensor::new([1], &[-1])?,
///     Tensor::new([1], &[0.75])?,
///     TensorMut::new([1, 4], &mut kept)?,
/// );
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(kept, [0.5, 0.25, 0.125, 0.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct ApplyTopKTopPMinP<'a, B: Backend, T: 'a> {
    /// `[B,V]`: probabilities, each row descending.
    pub probs: B::View<'a, T>,
    /// `[B]`: how many columns count; all for k < 0 or k > V.
    pub k: B::View<'a, i32>,
    /// `[B]`: the probability that an entry may have before it.
    pub p: B::View<'a, T>,
    /// `[B]`: the least probability, relative to the first of the row. None.
    pub min_p: Option<B::View<'a, T>>,
    /// `[B,V]`: what is kept, and 0.
    pub sampled_res: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> ApplyTopKTopPMinP<'a, B, T> {
    /// Without min-p.
    pub fn new(probs: B::View<'a, T>, k: B::View<'a, i32>, p: B::View<'a, T>, sampled_res: B::ViewMut<'a, T>) -> Self {
        ApplyTopKTopPMinP { probs, k, p, min_p: None, sampled_res }
    }

    /// Validates, for a query or with data for a run, and returns B and V.
    pub(crate) fn check(&self, data: bool) -> Result<[usize; 2], Error> {
        let [rows, columns] = check::sizes("probs", &self.probs)?;
        check::column("k", &self.k, rows)?;
        check::column("p", &self.p, rows)?;
        if let Some(min_p) = &self.min_p {
            check::column("min_p", min_p, rows)?;
        }
        check::shape("sampled_res", &self.sampled_res, &[rows, columns])?;
        check::arguments(data, self)?;
        Ok([rows, columns])
    }
}

impl<B: Backend, T> Arguments for ApplyTopKTopPMinP<'_, B, T> {
    fn each<'s>(&'s self, mut see: impl FnMut(Role, Arg<'s>)) {
        see(Role::Output, ("sampled_res", self.sampled_res.location()));
        see(Role::Input, ("probs", self.probs.location()));
        see(Role::Input, ("k", self.k.location()));
        see(Role::Input, ("p", self.p.location()));
        if let Some(min_p) = &self.min_p {
            see(Role::Input, ("min_p", min_p.location()));
        }
    }
}
