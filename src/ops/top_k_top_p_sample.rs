//! Top-k, top-p and min-p filtering of logits, and the choice of the next token.

use super::check::{self, Arg, Arguments, Role};
use crate::backend::Backend;
use crate::error::{Error, Status, Value};
use crate::tensor::Describe;
use core::fmt;

/// How a token is chosen among those that the stages kept. The numbers are those of the C structs.
///
/// ```
/// use tilekern::ops::PostSample;
///
/// assert_eq!(PostSample::default(), PostSample::QSample);
/// assert_eq!(PostSample::from_code(2), Some(PostSample::MultiNomial));
/// assert_eq!(PostSample::from_code(3), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum PostSample {
    /// The largest logit; `q` is ignored, and not validated either.
    None = 0,
    /// The largest probability divided by the caller's noise; the largest logit without a `q`.
    #[default]
    QSample = 1,
    /// The largest probability divided by exponential noise drawn here; the largest logit without seeds.
    MultiNomial = 2,
}

impl PostSample {
    /// The way of choosing with that number.
    pub const fn from_code(code: i32) -> Option<PostSample> {
        match code {
            0 => Some(PostSample::None),
            1 => Some(PostSample::QSample),
            2 => Some(PostSample::MultiNomial),
            _ => None,
        }
    }
}

/// What `q` holds: its dtype follows from [`PostSample`].
pub enum Noise<'a, B: Backend> {
    /// `[B,V]`, for [`PostSample::QSample`]: noise, whose sign is ignored. Row b reads the first n of its columns, by place in the
    /// list of the n tokens that its stages kept.
    Exponential(B::View<'a, f32>),
    /// `[r,2]` with r >= 1, for [`PostSample::MultiNomial`]: line b is (seed, offset) of row b; the last line serves the rows beyond,
    /// lines beyond B are ignored. Rows of one line share their noise, and offsets from 4n + 1 to 4n + 4 are one: the next token of a
    /// row takes an offset 4 higher, 8 where V is above 638 976.
    Seeds(B::View<'a, i64>),
}

impl<B: Backend> Clone for Noise<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Noise<'_, B> {}

impl<B: Backend> fmt::Debug for Noise<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Noise::Exponential(q) => f.debug_tuple("Exponential").field(q.dims()).finish(),
            Noise::Seeds(q) => f.debug_tuple("Seeds").field(q.dims()).finish(),
        }
    }
}

/// The noise that a call draws with, once `post_sample`, `q` and `generator` have been weighed against each other.
pub(crate) enum Draw<'t, 'a, B: Backend> {
    /// The largest logit.
    Argmax,
    /// Against the rows of `q`.
    Exponential(&'t B::View<'a, f32>),
    /// A (seed, offset) of its own for each row.
    Seeds(&'t B::View<'a, i64>),
    /// One (seed, offset) for the batch.
    Generator(&'t B::View<'a, i64>),
}

/// What [`TopKTopPSample::check`] found.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pub rows: usize,
    pub vocabulary: usize,
    /// The largest k that switches top-k on; 0 for none.
    pub max_k: usize,
}

/// Keeps of every row of logits what top-k, top-p and min-p leave, and chooses one token of it.
///
/// The stages of row b, each switched by its own parameters; x are the logits in `f32`:
///
/// 1. **Order.** With 1 <= `top_k` <= min(V, K) (K is `ks_max` rounded up to 8, at most 1024) the list holds the k largest logits,
///    with `top_p` < 1 alone all of them, both sorted: larger first, of equal ones the lower index first, -0 = +0. A tie at the k-th
///    place is cut by index: exactly k stay. Otherwise the list is the row, in its own order.
/// 2. **Probabilities.** `pr = exp(x - max) / sum exp(x - max)` over the list (`pr = x` without `input_is_logits`). They are not
///    normalised again afterwards.
/// 3. **Top-p.** With 0 < p < 1 entry j stays iff the probability before it, in list order, is below p: the entry that reaches p is
///    the last, all stay if p is never reached. The sums are exact: the mass of an entry is the integer `round(pr * 2^52)`, a
///    prefix is rounded once to `f32`, and the test is `f32(prefix_j - pr_j) < p`; the first always stays. With p <= 0 the best one
///    stays whatever `top_k` says, with probability 1 (with its own without `input_is_logits`); p >= 1 and NaN switch the stage off.
/// 4. **Min-p.** With 0 < m < 1 entries with `pr >= f32(max pr * m)` stay, in order; with m >= 1 the best one; else the stage is off.
/// 5. **Choice.** Without noise the first maximum of the logits; no stage removes it. With noise the first maximum of
///    `pr_j / (|q_j| + f32(eps))` over places j of the list: `q` is read **by place, not by token**. Only where no stage is on are
///    these the same. A NaN among the quotients never wins; where all are NaN the list's first token is chosen.
///
/// `post_sample` says where the noise is from: [`Noise::Exponential`] for `QSample`; for `MultiNomial` exponential numbers of
/// Philox4x32-10 (eps 0), drawn with the row's line of [`Noise::Seeds`] (element number j) or else with `generator` = (seed,
/// offset), one pair for the batch (element number `b * V + j`), which is not advanced: the next call takes an offset 12 higher, or
/// `4 * ceil(B V / 638 976)` where that is more. A row of more than 638 976 takes 8 of its own line. With both, `q` wins; with
/// neither there is no noise.
///
/// * Shapes: `logits` `[B,V]`; `top_k`, `top_p`, `min_ps`, `logits_select_idx`, `row_status` `[B]` or `[B,1]`; `logits_top_kp_select`,
///   `logits_idx`, `logits_sort_masked` and exponential `q` `[B,V]`; `generator` `[2]`. B >= 1, 1 <= V <= 2^20.
/// * Dtypes: `logits`, `top_p` and `min_ps` f32, f16 or bf16, one for all; arithmetic in f32.
/// * Rows are independent: each may have stages of its own, and only draws from `generator` depend on the row's place and on B.
/// * NaN counts as -inf, +inf as the largest finite f32; -inf has probability 0, and is kept where a stage has nothing better.
///   Without `input_is_logits` a NaN or -inf comes last and has probability 0, where the largest is negative min-p keeps all, and
///   with `MultiNomial` what is below 0 counts as 0. A
///   row where every entry is -inf or NaN, or every probability 0, has nothing to choose from: index 0, no entry kept, probabilities
///   0. `row_status` reports all this, and changes nothing by being absent.
/// * **Limit** of `MultiNomial`, that of [`Exponential`](super::Exponential): a token whose logit is more than 19.77 below the best is
///   never drawn, one beyond about 16 too rarely. [`llama::Decoding`](crate::llama::Decoding) draws with 64 bits and has no such limit.
/// * `top_k_guess` changes no result: the host does not look at it, and an NPU is given what it takes of it.
/// * Workspace: for each worker at most 192 KiB, whatever V is, and a row of each tensor of V columns: of all of them where both take no
///   more than 256 KiB, so that the answer does not depend on strides, else of those whose rows are not contiguous.
/// * Errors: 161001 a tensor without data, one of `logits_idx` and `logits_sort_masked` without the other, `logits_select_idx`
///   missing without these two, `logits_top_kp_select` missing with `is_need_logits`; 561002 V > 2^20, or an exponential `q` of
///   another shape than `logits`; 161002 any other shape, B or V of 0, a `q` of the other kind, `q` without a line, an eps
///   that is negative or no finite f32, overlapping tensors.
/// * Document 000, `npu_top_k_top_p_sample`.
///
/// ```
/// use tilekern::{Host, Run, Scratch, Tensor, TensorMut, ops::TopKTopPSample};
///
/// let (logits, top_k, top_p) = ([0.5f32, 2.0, 1.0, 1.5], [2], [1.0f32]);
/// let (mut chosen, mut kept) = ([0i64], [0.0f32; 4]);
/// let mut call = TopKTopPSample::new(
///     Tensor::new([1, 4], &logits)?,
///     Tensor::new([1], &top_k)?,
///     Tensor::new([1], &top_p)?,
///     TensorMut::new([1], &mut chosen)?,
/// );
/// call.is_need_logits = true;
/// call.logits_top_kp_select = Some(TensorMut::new([1, 4], &mut kept)?);
/// let host = Host::new();
/// let mut scratch = Scratch::new(host.workspace(&call)?);
/// host.run(call, &mut scratch)?;
/// assert_eq!((chosen, kept), ([1], [f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY, 1.5]));
/// # Ok::<(), tilekern::Error>(())
/// ```
#[derive(Debug)]
pub struct TopKTopPSample<'a, B: Backend, T: 'a> {
    /// `[B,V]`: logits, or probabilities without `input_is_logits`.
    pub logits: B::View<'a, T>,
    /// `[B]`: tokens that top-k keeps; outside 1 ..= min(V, K) the row skips the stage, K being what `ks_max` comes to.
    pub top_k: B::View<'a, i32>,
    /// `[B]`: what top-p keeps; <= 0 keeps the best, >= 1 skips the stage.
    pub top_p: B::View<'a, T>,
    /// The noise, or its seeds; none.
    pub q: Option<Noise<'a, B>>,
    /// `[B]`: min-p relative to the largest probability; <= 0 skips the stage, >= 1 keeps the best. None.
    pub min_ps: Option<B::View<'a, T>>,
    /// Added to the noise of `q`; 1e-8. Taken as f32.
    pub eps: f64,
    /// Whether to write `logits_top_kp_select`; false.
    pub is_need_logits: bool,
    /// 32; without effect.
    pub top_k_guess: i64,
    /// Largest k, rounded up to a multiple of 8 and cut at 1024; 1024. The low 32 bits count, and 0 switches top-k off.
    pub ks_max: i64,
    /// Whether `logits` are logits; without, they are probabilities: no softmax, and 0 in place of -inf; true.
    pub input_is_logits: bool,
    /// How a token is chosen; `QSample`.
    pub post_sample: PostSample,
    /// `[B]`: the chosen tokens.
    pub logits_select_idx: Option<B::ViewMut<'a, i64>>,
    /// `[B,V]`: the logits of the kept tokens, bit for bit, each in its place; -inf, or 0 for probabilities, elsewhere. Only with
    /// `is_need_logits` written, or even validated.
    pub logits_top_kp_select: Option<B::ViewMut<'a, f32>>,
    /// `[B]`, bits: 1 a NaN was seen, 2 a +inf was seen, 4 nothing to choose from.
    pub row_status: Option<B::ViewMut<'a, u8>>,
    /// `[B,V]`: the kept tokens in list order, then 0. With `logits_sort_masked` the middle result of the operator.
    pub logits_idx: Option<B::ViewMut<'a, i64>>,
    /// `[B,V]`: their probabilities, then 0.
    pub logits_sort_masked: Option<B::ViewMut<'a, f32>>,
    /// `[2]`: the (seed, offset) of the batch, for `MultiNomial` without a `q`.
    pub generator: Option<B::View<'a, i64>>,
}

impl<'a, B: Backend, T> TopKTopPSample<'a, B, T> {
    /// With everything else at its default: no noise, no min-p, no other output.
    #[inline]
    pub fn new(
        logits: B::View<'a, T>,
        top_k: B::View<'a, i32>,
        top_p: B::View<'a, T>,
        logits_select_idx: B::ViewMut<'a, i64>,
    ) -> Self {
        TopKTopPSample {
            logits,
            top_k,
            top_p,
            q: None,
            min_ps: None,
            eps: 1e-8,
            is_need_logits: false,
            top_k_guess: 32,
            ks_max: 1024,
            input_is_logits: true,
            post_sample: PostSample::default(),
            logits_select_idx: Some(logits_select_idx),
            logits_top_kp_select: None,
            row_status: None,
            logits_idx: None,
            logits_sort_masked: None,
            generator: None,
        }
    }

    /// Validates, for a query or with data for a run, and returns the sizes.
    pub(crate) fn check(&self, data: bool) -> Result<Batch, Error> {
        self.check_presence()?;
        let [rows, vocabulary] = check::sizes("logits", &self.logits)?;
        check::attribute("logits", rows > 0, "at least one row", rows)?;
        check::vocabulary("logits", vocabulary)?;
        check::column("top_k", &self.top_k, rows)?;
        check::column("top_p", &self.top_p, rows)?;
        if let Some(min_ps) = &self.min_ps {
            check::column("min_ps", min_ps, rows)?;
        }
        self.check_noise(rows, vocabulary)?;
        check::eps(self.eps)?;
        self.check_outputs(rows, vocabulary)?;
        check::arguments(data, self)?;
        // In 64 bits: the sum may exceed 32.
        let max_k = ((i64::from(self.ks_max as i32) + 7) / 8 * 8).clamp(0, 1024);
        Ok(Batch { rows, vocabulary, max_k: max_k as usize })
    }

    /// The noise of this call.
    pub(crate) fn draw(&self) -> Draw<'_, 'a, B> {
        match (self.post_sample, &self.q, &self.generator) {
            (PostSample::QSample, Some(Noise::Exponential(q)), _) => Draw::Exponential(q),
            (PostSample::MultiNomial, Some(Noise::Seeds(q)), _) => Draw::Seeds(q),
            (PostSample::MultiNomial, None, Some(generator)) => Draw::Generator(generator),
            _ => Draw::Argmax,
        }
    }

    #[inline(always)]
    fn check_noise(&self, rows: usize, vocabulary: usize) -> Result<(), Error> {
        match (self.post_sample, &self.q) {
            (PostSample::QSample, Some(Noise::Exponential(q))) => {
                let (expected, found) = ([rows, vocabulary], q.dims().shape());
                if !check::is_shape(found, &expected) {
                    return Err(Error::new(Status::Tiling, "q", Value::shape(&expected), Value::shape(found)));
                }
            }
            (PostSample::QSample, Some(Noise::Seeds(_))) => return Err(Error::invalid("q", "f32 for qSample", "i64")),
            (PostSample::MultiNomial, Some(Noise::Exponential(_))) => {
                return Err(Error::invalid("q", "i64 for multiNomial", "f32"));
            }
            (PostSample::MultiNomial, Some(Noise::Seeds(q))) => {
                let [lines, _] = check::sizes("q", q)?;
                check::attribute("q", lines > 0, "at least one line", lines)?;
                check::shape("q", q, &[lines, 2])?;
            }
            (PostSample::None, _) | (_, None) => {}
        }
        if let Some(generator) = &self.generator {
            check::shape("generator", generator, &[2])?;
        }
        Ok(())
    }

    /// An answer is asked for, and what is asked for has a place.
    #[inline(always)]
    fn check_presence(&self) -> Result<(), Error> {
        let missing = match (&self.logits_idx, &self.logits_sort_masked) {
            (Some(_), None) => "logits_sort_masked",
            (None, Some(_)) => "logits_idx",
            (None, None) if self.logits_select_idx.is_none() => "logits_select_idx",
            _ if self.is_need_logits && self.logits_top_kp_select.is_none() => "logits_top_kp_select",
            _ => return Ok(()),
        };
        Err(Error::null(missing))
    }

    #[inline(always)]
    fn check_outputs(&self, rows: usize, vocabulary: usize) -> Result<(), Error> {
        let whole = [rows, vocabulary];
        if let Some(idx) = &self.logits_idx {
            check::shape("logits_idx", idx, &whole)?;
        }
        if let Some(sorted) = &self.logits_sort_masked {
            check::shape("logits_sort_masked", sorted, &whole)?;
        }
        if let Some(chosen) = &self.logits_select_idx {
            check::column("logits_select_idx", chosen, rows)?;
        }
        if let Some(select) = self.logits_top_kp_select.as_ref().filter(|_| self.is_need_logits) {
            check::shape("logits_top_kp_select", select, &whole)?;
        }
        if let Some(status) = &self.row_status {
            check::column("row_status", status, rows)?;
        }
        Ok(())
    }
}

impl<B: Backend, T> Arguments for TopKTopPSample<'_, B, T> {
    #[inline(always)]
    fn each<'s>(&'s self, mut see: impl FnMut(Role, Arg<'s>)) {
        let select = self.logits_top_kp_select.as_ref().filter(|_| self.is_need_logits);
        macro_rules! see {
            ($role:ident: $($name:literal $tensor:expr),*) => {
                $(if let Some(tensor) = $tensor {
                    see(Role::$role, ($name, tensor.location()));
                })*
            };
        }
        see!(Output: "logits_select_idx" &self.logits_select_idx, "logits_top_kp_select" select,
            "row_status" &self.row_status, "logits_idx" &self.logits_idx, "logits_sort_masked" &self.logits_sort_masked);
        see!(Input: "logits" Some(&self.logits), "top_k" Some(&self.top_k), "top_p" Some(&self.top_p),
            "min_ps" &self.min_ps, "generator" &self.generator);
        match self.q.as_ref().filter(|_| self.post_sample != PostSample::None) {
            Some(Noise::Exponential(q)) => see!(Input: "q" Some(q)),
            Some(Noise::Seeds(q)) => see!(Input: "q" Some(q)),
            None => {}
        }
    }
}
