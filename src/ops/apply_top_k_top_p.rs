//! Top-k and top-p on logits.

use super::check::{self, Arg, Arguments, Role};
use crate::backend::Backend;
use crate::error::{Error, Value};
use crate::tensor::Describe;

/// Makes every logit -inf that top-k or top-p drops, and copies the others.
///
/// Of a row x, sorted with smaller ones first and of equal ones the lower index first:
///
/// 1. **Top-k** with 0 < k < V keeps all entries that are at least the k-th largest, **all equals of it** included.
/// 2. **Top-p.** `pr = exp(x - max) / sum exp(x - max)` over what top-k kept. From the front, entries are dropped while the sum of
///    their masses `round(pr * 2^52)`, exact and then rounded to f32, is at most `f32(1) - p`. So of equals at the cut those of
///    **higher** index stay. The last entry always stays; p <= 0 leaves it alone. With p = 1 what has probability 0 is dropped:
///    entries more than 87.336 below the maximum, and those whose quotient underflows; p > 1 drops nothing. A row whose maximum is
///    infinite skips this stage.
///
/// * Shapes: `logits` and `out` `[B,V]`, `p` and `k` `[B]` or `[B,1]`; one of the two may be absent, not both. V is not
///   limited. An empty `logits` writes nothing.
/// * Dtypes: `logits`, `p` and `out` f32, f16 or bf16, one for all; arithmetic in f32.
/// * k <= 0, k >= V and a NaN in `p` switch the stage off. A NaN logit counts as -inf, and is copied where it is kept; -0 equals +0.
///   A row of one entry is copied.
/// * Workspace: for each worker about 128 KiB and V / 4 bytes at most, of more than 2^18 columns V / 16; and two rows where all takes no
///   more than 256 KiB, so that the answer does not depend on strides, else a row of each tensor whose rows are not contiguous.
/// * Errors: 161001 neither `p` nor `k`, a tensor without data; 161002 a shape that does not fit, overlapping tensors.
/// * `aclnnApplyTopKTopP`, `npu_top_k_top_p`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::ApplyTopKTopP};
///
/// const LOW: f32 = f32::NEG_INFINITY;
/// let logits = [1.0f32, 3.0, 3.0, 2.0, 3.0];
/// let mut out = [0.0f32; 5];
/// let mut call = ApplyTopKTopP::new(Tensor::new([1, 5], &logits)?, TensorMut::new([1, 5], &mut out)?);
/// call.k = Some(Tensor::new([1], &[2])?);
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!(out, [LOW, 3.0, 3.0, LOW, 3.0]);
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct ApplyTopKTopP<'a, B: Backend, T: 'a> {
    /// `[B,V]`
    pub logits: B::View<'a, T>,
    /// `[B]`: what top-p keeps. None.
    pub p: Option<B::View<'a, T>>,
    /// `[B]`: how many top-k keeps. None.
    pub k: Option<B::View<'a, i32>>,
    /// `[B,V]`: the logits that stay, and -inf.
    pub out: B::ViewMut<'a, T>,
}

impl<'a, B: Backend, T> ApplyTopKTopP<'a, B, T> {
    /// Without stages: at least one must be set.
    pub fn new(logits: B::View<'a, T>, out: B::ViewMut<'a, T>) -> Self {
        ApplyTopKTopP { logits, p: None, k: None, out }
    }

    /// Validates, for a query or with data for a run, and returns B and V; none where there is nothing to do.
    pub(crate) fn check(&self, data: bool) -> Result<Option<[usize; 2]>, Error> {
        if self.p.is_none() && self.k.is_none() {
            return Err(Error::null("p"));
        }
        let shape = self.logits.dims().shape();
        let &[rows, columns] = shape else { return Err(Error::invalid("logits", "a rank of 2", Value::shape(shape))) };
        check::shape("out", &self.out, shape)?;
        if let Some(p) = &self.p {
            check::column("p", p, rows)?;
        }
        if let Some(k) = &self.k {
            check::column("k", k, rows)?;
        }
        let some = rows * columns > 0;
        check::arguments(data && some, self)?;
        Ok(some.then_some([rows, columns]))
    }
}

impl<B: Backend, T> Arguments for ApplyTopKTopP<'_, B, T> {
    fn each<'s>(&'s self, mut see: impl FnMut(Role, Arg<'s>)) {
        see(Role::Output, ("out", self.out.location()));
        see(Role::Input, ("logits", self.logits.location()));
        if let Some(p) = &self.p {
            see(Role::Input, ("p", p.location()));
        }
        if let Some(k) = &self.k {
            see(Role::Input, ("k", k.location()));
        }
    }
}
