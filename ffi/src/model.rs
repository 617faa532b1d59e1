//! `tk_model`: a checkpoint in the caller's memory, and its tokenizer.

use crate::args::{self, Args};
use crate::context::tk_context;
use crate::enter::enter;
use crate::memory::{self, addresses, answer, split, with_head};
use crate::tensor::{TK_BF16, TK_F16, TK_F32, TK_I8};
use core::ffi::{c_char, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use tilekern::llama::{HeadKind, Model, ModelOptions};
use tilekern::{Element, Error, Status, bf16, f16};

/// How a model is loaded.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_model_options {
    /// sizeof(tk_model_options)
    struct_size: usize,
    /// TK_F32: the activations; or TK_F16 or TK_BF16.
    dtype: i32,
    /// TK_I8: the product that gives the logits; or TK_F32, not quantised: a matrix of its own takes up to four times the memory.
    head_dtype: i32,
    /// ? A llama2.c tokenizer, for checkpoints that carry none; it may be freed after the load.
    tokenizer: *const c_void,
    /// Its length.
    tokenizer_bytes: usize,
}

// SAFETY: `struct_size` comes first, this is the first size, and any bytes are numbers and pointers.
unsafe impl Args for tk_model_options {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        dtype: TK_F32,
        head_dtype: TK_I8,
        tokenizer: core::ptr::null(),
        tokenizer_bytes: 0,
    };
}

/// A model. It lies in the memory that it was loaded into, is read-only, and may serve any number of decodings and threads.
pub struct tk_model {
    pub(crate) any: AnyModel,
    /// The addresses of it and of all that it refers to.
    pub(crate) memory: Range<usize>,
}

pub(crate) enum AnyModel {
    F32(Model<'static, f32>),
    F16(Model<'static, f16>),
    BF16(Model<'static, bf16>),
}

/// The one match over the dtype of a model that is loaded.
macro_rules! with_model {
    ($model:expr, $name:ident => $body:expr) => {
        match &$model.any {
            $crate::model::AnyModel::F32($name) => $body,
            $crate::model::AnyModel::F16($name) => $body,
            $crate::model::AnyModel::BF16($name) => $body,
        }
    };
}
pub(crate) use with_model;

impl tk_model_options {
    /// # Safety
    ///
    /// `tokenizer` is null, or `tokenizer_bytes` bytes that nobody writes during `'a`.
    unsafe fn options<'a>(&self) -> Result<ModelOptions<'a>, Error> {
        let head = match self.head_dtype {
            TK_I8 => HeadKind::Int8,
            TK_F32 => HeadKind::Float,
            code => return Err(Error::new(Status::Invalid, "head_dtype", "0 or 2", i64::from(code))),
        };
        // SAFETY: as promised by the caller.
        let tokenizer = unsafe { memory::bytes("tokenizer", self.tokenizer, self.tokenizer_bytes)? };
        Ok(ModelOptions { head, tokenizer: (!self.tokenizer.is_null()).then_some(tokenizer) })
    }

    fn bytes(&self, options: &ModelOptions<'_>, file: &[u8]) -> Result<usize, Error> {
        let layout = match self.dtype {
            TK_F32 => Model::<f32>::layout(options, file),
            TK_F16 => Model::<f16>::layout(options, file),
            TK_BF16 => Model::<bf16>::layout(options, file),
            code => Err(Error::new(Status::Invalid, "dtype", "0, 1 or 27", i64::from(code))),
        };
        with_head::<tk_model>(layout?.size())
    }
}

fn load<T: Element>(
    options: &ModelOptions<'_>,
    file: &[u8],
    memory: &'static mut [u8],
    any: impl FnOnce(Model<'static, T>) -> AnyModel,
) -> Result<AnyModel, Error> {
    Ok(any(Model::load(options, file, memory)?))
}

/// How much memory the model in `file` takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_model_bytes(
    context: *mut tk_context,
    options: *const tk_model_options,
    file: *const c_void,
    file_bytes: usize,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller, for the time of the call.
    let body = |_| unsafe {
        let raw = args::read("options", options)?;
        let bytes = answer("bytes", bytes)?;
        *bytes = raw.bytes(&raw.options()?, memory::bytes("file", file, file_bytes)?)?;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// Loads a .tkm file or a llama2.c checkpoint of version 0 or 1 into `memory`, which is aligned to 64 bytes and has no byte of the file
/// or the tokenizer (161002). The file may be freed after the load, the memory after the last use of the model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_model_load(
    context: *mut tk_context,
    options: *const tk_model_options,
    file: *const c_void,
    file_bytes: usize,
    memory: *mut c_void,
    bytes: usize,
    model: *mut *mut tk_model,
) -> i32 {
    // SAFETY: as promised by the caller: `memory` is the model's for as long as it is used.
    let body = |_| unsafe {
        let raw = args::read("options", options)?;
        let model = answer("model", model)?;
        let (options, file) = (raw.options()?, memory::bytes("file", file, file_bytes)?);
        let read = [("file", addresses(file)), ("tokenizer", addresses(options.tokenizer.unwrap_or_default()))];
        let needed = raw.bytes(&options, file)?;
        let (place, rest) = split::<tk_model>(memory, bytes, needed, &read)?;
        let any = match raw.dtype {
            TK_F16 => load(&options, file, rest, AnyModel::F16)?,
            TK_BF16 => load(&options, file, rest, AnyModel::BF16)?,
            _ => load(&options, file, rest, AnyModel::F32)?,
        };
        place.write(tk_model { any, memory: place.addr()..place.addr() + needed });
        *model = place;
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(context, body) }
}

/// # Safety
///
/// `model` is null, or was loaded and lives during `'a`.
pub(crate) unsafe fn loaded<'a>(model: *const tk_model) -> Result<&'a tk_model, Error> {
    // SAFETY: as promised by the caller.
    unsafe { model.as_ref() }.ok_or_else(|| Error::new(Status::Null, "model", "a model", "null"))
}

/// How many tokens the model knows, and the longest sequence, in tokens. Either place may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_model_sizes(model: *const tk_model, vocab: *mut i64, longest: *mut i64) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |_| unsafe {
        let shape = with_model!(loaded(model)?, model => model.shape());
        for (place, size) in [(vocab, shape.vocab), (longest, shape.context)] {
            if let Some(place) = place.as_mut() {
                *place = size as i64;
            }
        }
        Ok(())
    };
    // SAFETY: no context.
    unsafe { enter(null_mut(), body) }
}

/// The bytes of token `id` after token `previous`: the model's own, without a NUL. A character may be several tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_model_token_text(
    model: *const tk_model,
    previous: i32,
    id: i32,
    text: *mut *const c_char,
    length: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |_| unsafe {
        let bytes = with_model!(loaded(model)?, model => model.token_text(previous, id)?);
        let (text, length) = (answer("text", text)?, answer("length", length)?);
        (*text, *length) = (bytes.as_ptr().cast(), bytes.len());
        Ok(())
    };
    // SAFETY: no context.
    unsafe { enter(null_mut(), body) }
}

/// The ids of `text`, none added for its beginning. `count` says how many there are; if that is more than `capacity`, -1 is
/// returned and no id is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_model_encode(
    model: *const tk_model,
    text: *const c_char,
    length: usize,
    ids: *mut i32,
    capacity: usize,
    count: *mut usize,
) -> i32 {
    // SAFETY: as promised by the caller.
    let body = |_| unsafe {
        let (model, text, count) = (loaded(model)?, memory::bytes("text", text.cast(), length)?, answer("count", count)?);
        let ids = match (ids.is_null(), capacity) {
            // There are no more ids than bytes and a blank; `capacity` may stand for no limit.
            (false, _) => core::slice::from_raw_parts_mut(ids, capacity.min(text.len() + 1)),
            (true, 0) => &mut [],
            (true, _) => return Err(Error::new(Status::Null, "ids", "room for ids", "null")),
        };
        let needed = with_model!(model, model => model.encode(text, ids)?);
        *count = needed;
        if needed > capacity { Err(Error::new(Status::Workspace, "capacity", needed, capacity)) } else { Ok(()) }
    };
    // SAFETY: no context.
    unsafe { enter(null_mut(), body) }
}
