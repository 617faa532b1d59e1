//! `tk_decoding`: the decoding loop in the caller's memory.

use crate::args::{self, Args};
use crate::context::tk_context;
use crate::enter::enter;
use crate::memory::{answer, split, with_head};
use crate::model::{loaded, tk_model, with_model};
use crate::pool::Pool;
use crate::tensor::{self, TK_F32, per_dtype, tk_tensor};
use core::ffi::c_void;
use core::ops::Range;
use core::ptr::null_mut;
use tilekern::llama::{Decoding, DecodingConfig, Model, RowSampling};
use tilekern::{Element, Error, Host, Status, Tensor, TensorMut};

/// What a decoding is made for.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_decoding_config {
    /// sizeof(tk_decoding_config)
    struct_size: usize,
    /// 1: rows
    batch: i64,
    /// The longest prompt, in tokens
    max_prompt: i64,
    /// The most tokens that a row generates, unless the context of the model ends before
    max_new: i64,
    /// TK_F32: what the caches hold; or TK_F16 or TK_BF16.
    kv_dtype: i32,
    /// The token that ends a row; -1: none.
    end_id: i32,
}

// SAFETY: `struct_size` comes first, this is the first size, and any bytes are numbers.
unsafe impl Args for tk_decoding_config {
    const INIT: Self = Self { struct_size: size_of::<Self>(), batch: 1, max_prompt: 0, max_new: 0, kv_dtype: TK_F32, end_id: -1 };
}

impl tk_decoding_config {
    fn config(&self) -> Result<DecodingConfig, Error> {
        let count = |name, n| usize::try_from(n).map_err(|_| Error::new(Status::Invalid, name, "a count", n));
        Ok(DecodingConfig {
            batch: count("batch", self.batch)?,
            max_prompt: count("max_prompt", self.max_prompt)?,
            max_new: count("max_new", self.max_new)?,
            end_id: self.end_id,
        })
    }
}

/// How a row chooses its tokens.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_row_sampling {
    /// sizeof(tk_row_sampling)
    struct_size: usize,
    /// 1: divides the logits; 0 takes the largest.
    temperature: f64,
    /// 0: off; the k largest logits.
    top_k: i64,
    /// 1: off, as everything outside (0,1); the smallest set of that probability.
    top_p: f64,
    /// 0: off, as everything below; tokens with that fraction of the largest probability.
    min_p: f64,
    /// 0: what the draws follow from, together with the place in the row.
    seed: u64,
}

// SAFETY: `struct_size` comes first, this is the first size, and any bytes are numbers.
unsafe impl Args for tk_row_sampling {
    const INIT: Self = Self { struct_size: size_of::<Self>(), temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
}

/// A batch of rows that a model continues. It lies in the memory that it was made in; used by one thread at a time.
pub struct tk_decoding {
    rows: *mut dyn Rows,
}

/// A decoding of any dtypes.
trait Rows {
    fn reset(&mut self);
    fn stop_row(&mut self, row: usize) -> Result<(), Error>;
    fn set_row(&mut self, row: usize, sampling: &RowSampling) -> Result<(), Error>;
    fn replace_row(&mut self, host: &Host<Pool>, row: usize, tokens: Tensor<'_, i32>) -> Result<(), Error>;
    fn prompt(&mut self, host: &Host<Pool>, tokens: Tensor<'_, i32>, lengths: Tensor<'_, i32>) -> Result<(), Error>;
    fn step(&mut self, host: &Host<Pool>, ids: TensorMut<'_, i32>, edit: &mut dyn FnMut(usize, &mut [f32])) -> Result<(), Error>;
    fn logits(&self, row: usize) -> Result<&[f32], Error>;
    fn finished(&self) -> bool;
    fn output(&self, ids: TensorMut<'_, i32>, lengths: TensorMut<'_, i32>) -> Result<(), Error>;
}

impl<T: Element, K: Element> Rows for Decoding<'static, T, K> {
    fn reset(&mut self) {
        Decoding::reset(self);
    }
    fn stop_row(&mut self, row: usize) -> Result<(), Error> {
        Decoding::stop_row(self, row)
    }
    fn set_row(&mut self, row: usize, sampling: &RowSampling) -> Result<(), Error> {
        Decoding::set_row(self, row, sampling)
    }
    fn replace_row(&mut self, host: &Host<Pool>, row: usize, tokens: Tensor<'_, i32>) -> Result<(), Error> {
        Decoding::replace_row(self, host, row, tokens)
    }
    fn prompt(&mut self, host: &Host<Pool>, tokens: Tensor<'_, i32>, lengths: Tensor<'_, i32>) -> Result<(), Error> {
        Decoding::prompt(self, host, tokens, lengths)
    }
    fn step(&mut self, host: &Host<Pool>, ids: TensorMut<'_, i32>, edit: &mut dyn FnMut(usize, &mut [f32])) -> Result<(), Error> {
        Decoding::step_with(self, host, ids, edit)
    }
    fn logits(&self, row: usize) -> Result<&[f32], Error> {
        Decoding::logits(self, row)
    }
    fn finished(&self) -> bool {
        Decoding::finished(self)
    }
    fn output(&self, ids: TensorMut<'_, i32>, lengths: TensorMut<'_, i32>) -> Result<(), Error> {
        Decoding::output(self, ids, lengths)
    }
}

/// Where a decoding is to be made, and where its model lies.
struct Place {
    memory: *mut c_void,
    bytes: usize,
    model: Range<usize>,
}

/// Bytes of a decoding, and the decoding, if there is a place to make it in.
///
/// # Safety
///
/// The place's memory is null, or its bytes are a decoding's for as long as it is used.
unsafe fn with_dtypes<T: Element, K: Element>(
    host: &Host<Pool>,
    config: &DecodingConfig,
    model: &'static Model<'static, T>,
    place: Option<Place>,
) -> Result<(usize, *mut tk_decoding), Error> {
    let layout = Decoding::<T, K>::layout(host, config, model)?;
    let needed = with_head::<tk_decoding>(with_head::<Decoding<'_, T, K>>(layout.size())?)?;
    let Some(Place { memory, bytes, model: read }) = place else { return Ok((needed, null_mut())) };
    // SAFETY: as promised by the caller; `needed` counts both heads.
    unsafe {
        let (place, rest) = split::<tk_decoding>(memory, bytes, needed, &[("model", read)])?;
        let (rows, rest) = split::<Decoding<'static, T, K>>(rest.as_mut_ptr().cast(), rest.len(), rest.len(), &[])?;
        rows.write(Decoding::new(host, config, model, rest)?);
        place.write(tk_decoding { rows });
        Ok((needed, place))
    }
}

/// # Safety
///
/// As `with_dtypes`.
unsafe fn with_activations<T: Element>(
    host: &Host<Pool>,
    raw: &tk_decoding_config,
    model: &'static Model<'static, T>,
    place: Option<Place>,
) -> Result<(usize, *mut tk_decoding), Error> {
    let config = raw.config()?;
    // SAFETY: as promised by the caller.
    unsafe { per_dtype!("kv_dtype", raw.kv_dtype, with_dtypes::<T>(host, &config, model, place)) }
}

/// How much memory a decoding takes, for contexts of up to as many threads as this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_bytes(
    context: *mut tk_context,
    config: *const tk_decoding_config,
    model: *const tk_model,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |host| unsafe {
        let (config, model, bytes) = (args::read("config", config)?, loaded(model)?, answer("bytes", bytes)?);
        (*bytes, _) = with_model!(model, model => with_activations(&host, &config, model, None)?);
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// Makes a decoding in `memory`, which is aligned to 64 bytes and has no byte of the model (161002). Its rows have no prompts yet: they
/// are finished. Each has TK_ROW_SAMPLING_INIT, so that rows of one prompt draw the same until tk_decoding_set_row gives each a seed of
/// its own. The model must outlive it. A row whose logits are all NaN or -inf, as numbers beyond the activations' dtype make them,
/// takes token 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_init(
    context: *mut tk_context,
    config: *const tk_decoding_config,
    model: *const tk_model,
    memory: *mut c_void,
    bytes: usize,
    decoding: *mut *mut tk_decoding,
) -> i32 {
    // SAFETY: as promised by the caller: model and memory live for as long as the decoding is used.
    let body = |host| unsafe {
        let (config, model, decoding) = (args::read("config", config)?, loaded(model)?, answer("decoding", decoding)?);
        let place = Place { memory, bytes, model: model.memory.clone() };
        (_, *decoding) = with_model!(model, model => with_activations(&host, &config, model, Some(place))?);
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

fn null() -> Error {
    Error::new(Status::Null, "decoding", "a decoding", "null")
}

/// # Safety
///
/// `decoding` is null, or was made, lives during `'a`, and nobody else uses it.
unsafe fn rows_mut<'a>(decoding: *mut tk_decoding) -> Result<&'a mut (dyn Rows + 'static), Error> {
    // SAFETY: as promised by the caller; the rows lie behind the head.
    unsafe { decoding.as_ref().map(|decoding| &mut *decoding.rows) }.ok_or_else(null)
}

/// # Safety
///
/// `decoding` is null, or was made, lives during `'a`, and nobody changes it.
unsafe fn rows<'a>(decoding: *const tk_decoding) -> Result<&'a dyn Rows, Error> {
    // SAFETY: as promised by the caller; the rows lie behind the head.
    unsafe { decoding.as_ref().map(|decoding| &*decoding.rows) }.ok_or_else(null)
}

fn row_number(row: i64) -> Result<usize, Error> {
    usize::try_from(row).map_err(|_| Error::new(Status::Invalid, "row", "a row of the batch", row))
}

/// How a row chooses its tokens, from the next one on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_set_row(decoding: *mut tk_decoding, row: i64, sampling: *const tk_row_sampling) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |_| unsafe {
        let (rows, s) = (rows_mut(decoding)?, args::read("sampling", sampling)?);
        let sampling = RowSampling { temperature: s.temperature, top_k: s.top_k, top_p: s.top_p, min_p: s.min_p, seed: s.seed };
        rows.set_row(row_number(row)?, &sampling)
    };
    // SAFETY: no context.
    unsafe { enter(null_mut(), body) }
}

/// A new prompt, i32[P], for a row that has none, has ended or is given up; the other rows do not notice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_replace_row(
    context: *mut tk_context,
    decoding: *mut tk_decoding,
    row: i64,
    tokens: *const tk_tensor,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body =
        |host| unsafe { rows_mut(decoding)?.replace_row(&host, row_number(row)?, tensor::read("tokens", tokens.as_ref())?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// Ends a row: a text or a token to stop at was found, or nobody waits for it any more. It gives end_id from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_stop_row(decoding: *mut tk_decoding, row: i64) -> i32 {
    // SAFETY: as promised by the caller; no context.
    unsafe { enter(null_mut(), |_| rows_mut(decoding)?.stop_row(row_number(row)?)) }
}

/// Takes all prompts away; the sampling of the rows stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_reset(decoding: *mut tk_decoding) -> i32 {
    // SAFETY: as promised by the caller; no context.
    unsafe {
        enter(null_mut(), |_| {
            rows_mut(decoding)?.reset();
            Ok(())
        })
    }
}

/// Gives every row its prompt: tokens i32[B,P], of which row b has the first lengths[b], at least one; lengths i32[B].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_prompt(
    context: *mut tk_context,
    decoding: *mut tk_decoding,
    tokens: *const tk_tensor,
    lengths: *const tk_tensor,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |host| unsafe {
        let tokens = tensor::read("tokens", tokens.as_ref())?;
        rows_mut(decoding)?.prompt(&host, tokens, tensor::read("lengths", lengths.as_ref())?)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// Gives every row its next token, i32[B]; a row that has ended gives end_id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_step(context: *mut tk_context, decoding: *mut tk_decoding, ids: *const tk_tensor) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |host| unsafe { rows_mut(decoding)?.step(&host, tensor::write("ids", ids.as_ref())?, &mut |_, _| ()) };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// A logits processor: a grammar, penalties, biases. `logits` are the `count` logits of `row` as the model gave them, and the row
/// chooses from what is left there; -INFINITY and NaN bar a token. It returns, and calls nothing with this decoding.
pub type tk_edit_logits = Option<unsafe extern "C" fn(user: *mut c_void, row: i64, logits: *mut f32, count: usize)>;

/// tk_decoding_step that lets `edit` change the logits of each row that has not ended, in the order of rows, in the calling thread. A row
/// of which nothing is left takes token 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_step_with(
    context: *mut tk_context,
    decoding: *mut tk_decoding,
    ids: *const tk_tensor,
    edit: tk_edit_logits,
    user: *mut c_void,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |host| unsafe {
        let edit = edit.ok_or_else(|| Error::new(Status::Null, "edit", "a function", "null"))?;
        let ids = tensor::write("ids", ids.as_ref())?;
        rows_mut(decoding)?.step(&host, ids, &mut |row, logits| edit(user, row as i64, logits.as_mut_ptr(), logits.len()))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// The logits that a row's last token was chosen from: of a greedy row as the model, or who edited them, gave them, of another divided by
/// the temperature, and -INFINITY where a `top_k` above 1024 cut. They stay until the next step or a new prompt; a row that took no part
/// in the last step has none: 161002.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_logits(
    decoding: *const tk_decoding,
    row: i64,
    logits: *mut *const f32,
    count: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |_| unsafe {
        let found = rows(decoding)?.logits(row_number(row)?)?;
        let (logits, count) = (answer("logits", logits)?, answer("count", count)?);
        (*logits, *count) = (found.as_ptr(), found.len());
        Ok(())
    };
    // SAFETY: no context.
    unsafe { enter(null_mut(), body) }
}

/// 1 when no row has a token to come, since it has ended or has no prompt, else 0; 161001 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_finished(decoding: *const tk_decoding) -> i32 {
    // SAFETY: as promised by the caller.
    match unsafe { rows(decoding) } {
        Ok(rows) => i32::from(rows.finished()),
        Err(error) => error.status().code(),
    }
}

/// What the rows have generated, the end token included: ids i32[B,max_new], -1 behind the end; lengths i32[B].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_decoding_output(
    context: *mut tk_context,
    decoding: *const tk_decoding,
    ids: *const tk_tensor,
    lengths: *const tk_tensor,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |_| unsafe {
        let (ids, lengths) = (tensor::write("ids", ids.as_ref())?, tensor::write("lengths", lengths.as_ref())?);
        rows(decoding)?.output(ids, lengths)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}
