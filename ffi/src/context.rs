//! `tk_context`: what a call runs on, and where it says why it failed.

use crate::args::{self, Args};
use crate::pool::{Callback, Pool};
use crate::status::text;
use crate::target::{Npu, Processor};
use core::ffi::{c_char, c_void};
use core::fmt::Write;
use tilekern::acl::load;
use tilekern::{Error, Host, Isa, Status, Value};

/// `backend`: this processor.
pub const TK_BACKEND_HOST: i32 = 0;
/// `backend`: an Ascend NPU, through the CANN that is found. Every `data` and the workspace are addresses of the device, a call
/// enqueues into `stream`, and what it named stays until that is synchronised.
pub const TK_BACKEND_ASCEND: i32 = 1;

/// `isa`: the best of this processor.
pub const TK_ISA_BEST: i32 = 0;
/// `isa`: no instruction set in particular.
pub const TK_ISA_PORTABLE: i32 = 1;
/// `isa`: AVX2, FMA, F16C, POPCNT, LZCNT, BMI1 and BMI2.
pub const TK_ISA_AVX2: i32 = 2;
/// `isa`: AVX-512 F, BW, DQ and VL.
pub const TK_ISA_AVX512: i32 = 3;
/// `isa`: AVX-512 with VNNI.
pub const TK_ISA_AVX512VNNI: i32 = 4;
/// `isa`: NEON.
pub const TK_ISA_NEON: i32 = 5;
/// `isa`: NEON with the dot product.
pub const TK_ISA_NEONDOT: i32 = 6;
/// `isa`: AVX-512 VNNI with AMX.
pub const TK_ISA_AVX512AMX: i32 = 7;

/// What a call runs on. NULL instead of one means: this processor, its best instruction set, the calling thread. The caller's own;
/// used by one thread at a time.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tk_context {
    /// sizeof(tk_context)
    struct_size: usize,
    /// TK_BACKEND_HOST or TK_BACKEND_ASCEND
    backend: i32,
    /// TK_ISA_BEST and so on. One that the processor lacks: -2. Every one gives the same bits.
    isa: i32,
    /// Ascend: an aclrtStream
    stream: *mut c_void,
    /// Calls task(arg, index, worker) once for each index < tasks, on any threads, and returns after the last has returned. Tasks
    /// may run at the same time, but never two with the same worker; worker < parallel_threads. What a task wrote, later tasks of its
    /// worker and the caller see, as a lock, a join or an acquire load does it. A task never calls parallel_for.
    /// An exception or a longjmp out of it ends the process.
    parallel_for: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            tasks: usize,
            task: extern "C" fn(arg: *mut c_void, index: usize, worker: usize),
            arg: *mut c_void,
        ),
    >,
    /// The first argument of parallel_for
    parallel_user: *mut c_void,
    /// How many workers parallel_for names; 0: everything on the calling thread. With more a parallel_for of NULL is 161001.
    parallel_threads: usize,
    /// The ACL code behind -3
    backend_status: i32,
    /// Filled when a call fails: the argument, what was expected, what was found.
    message: [c_char; 256],
}

// SAFETY: `struct_size` comes first, this is the first size, and any bytes are numbers and pointers.
unsafe impl Args for tk_context {
    const INIT: Self = Self {
        struct_size: size_of::<Self>(),
        backend: 0,
        isa: 0,
        stream: core::ptr::null_mut(),
        parallel_for: None,
        parallel_user: core::ptr::null_mut(),
        parallel_threads: 0,
        backend_status: 0,
        message: [0; 256],
    };
}

/// A context of a known size, or none.
#[derive(Clone, Copy)]
pub(crate) struct Context(Option<core::ptr::NonNull<tk_context>>);

impl Context {
    /// # Safety
    ///
    /// `context` is null, or a context that is valid for as long as this one is used.
    pub unsafe fn new(context: *mut tk_context) -> Result<Context, Error> {
        let context = core::ptr::NonNull::new(context);
        if let Some(context) = context {
            // SAFETY: as promised by the caller.
            unsafe { args::size("context", context.as_ptr())? };
        }
        Ok(Context(context))
    }

    fn backend(self) -> Result<i32, Error> {
        let Some(context) = self.0 else { return Ok(TK_BACKEND_HOST) };
        // SAFETY: `new` was promised a valid context.
        let backend = unsafe { (*context.as_ptr()).backend };
        match backend {
            TK_BACKEND_HOST | TK_BACKEND_ASCEND => Ok(backend),
            _ => Err(Error::new(Status::Invalid, "backend", "0 or 1", i64::from(backend))),
        }
    }

    /// The instruction set that is asked for; none: the best.
    fn isa(self) -> Result<Option<Isa>, Error> {
        let Some(context) = self.0 else { return Ok(None) };
        // SAFETY: `new` was promised a valid context.
        let code = unsafe { (*context.as_ptr()).isa };
        Ok(Some(match code {
            TK_ISA_BEST => return Ok(None),
            TK_ISA_PORTABLE => Isa::Portable,
            TK_ISA_AVX2 => Isa::Avx2,
            TK_ISA_AVX512 => Isa::Avx512,
            TK_ISA_AVX512VNNI => Isa::Avx512Vnni,
            TK_ISA_NEON => Isa::Neon,
            TK_ISA_NEONDOT => Isa::NeonDot,
            TK_ISA_AVX512AMX => Isa::Avx512Amx,
            _ => return Err(Error::new(Status::Invalid, "isa", "0 to 7", i64::from(code))),
        }))
    }

    fn pool(self) -> Result<Pool, Error> {
        let Some(context) = self.0 else { return Ok(Pool::Serial) };
        let context = context.as_ptr();
        // SAFETY: `new` was promised a valid context.
        let (callback, user, workers) =
            unsafe { ((*context).parallel_for as Option<Callback>, (*context).parallel_user, (*context).parallel_threads) };
        match (workers, callback) {
            (0, _) => Ok(Pool::Serial),
            (_, Some(callback)) => Ok(Pool::Threads { callback, user, workers }),
            (_, None) => Err(Error::new(Status::Null, "parallel_for", "a function", "null")),
        }
    }

    /// Whether the context means an NPU.
    pub fn is_npu(self) -> Result<bool, Error> {
        Ok(self.backend()? == TK_BACKEND_ASCEND)
    }

    /// The processor that the context describes.
    #[inline(always)]
    pub fn host(self) -> Result<Processor, Error> {
        // SAFETY: `new` was promised a valid context.
        let is_plain = |context: core::ptr::NonNull<tk_context>| unsafe {
            (*context.as_ptr()).isa == TK_ISA_BEST && (*context.as_ptr()).parallel_threads == 0
        };
        if self.0.is_none_or(is_plain) { Ok(Host::best(Pool::Serial)) } else { self.any_host() }
    }

    /// The same, whatever it describes.
    #[cold]
    fn any_host(self) -> Result<Processor, Error> {
        match self.isa()? {
            Some(isa) => Host::with(isa, self.pool()?),
            None => Ok(Host::best(self.pool()?)),
        }
    }

    /// The stream that the context describes.
    pub fn npu(self) -> Result<Npu, Error> {
        self.isa()?;
        let missing = |missing: &'static load::Missing| Error::new(Status::Backend, "backend", "CANN", missing.text());
        let table = load::cann().map_err(missing)?;
        // SAFETY: `new` was promised a valid context, and the C program promises that the stream lives until the call is done.
        Ok(unsafe { Npu::from_raw(table, self.0.map_or(core::ptr::null_mut(), |context| (*context.as_ptr()).stream)) })
    }

    /// Leaves `error` in the context, with what ACL says about a failure of its own.
    pub fn report(self, error: &Error) {
        let Some(context) = self.0 else { return };
        let mut message = Message { bytes: [0; 256], length: 0 };
        // A message that is too long is cut off.
        _ = write!(message, "{error}");
        let mut backend_status = 0;
        // Only a call of ACL's leaves a code: no other error looks for CANN.
        if let Value::Code { code, .. } = error.found()
            && let Ok(table) = load::cann()
        {
            backend_status = code;
            _ = write!(message, ": {}", table.recent_message().as_str());
        }
        // SAFETY: `new` was promised a valid context.
        unsafe {
            (*context.as_ptr()).backend_status = backend_status;
            (*context.as_ptr()).message = message.bytes;
        }
    }
}

/// Text with a NUL behind it.
struct Message {
    bytes: [c_char; 256],
    length: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self.bytes.len() - 1 - self.length;
        let n = text.floor_char_boundary(room);
        for &byte in &text.as_bytes()[..n] {
            self.bytes[self.length] = byte as c_char;
            self.length += 1;
        }
        if n < text.len() { Err(core::fmt::Error) } else { Ok(()) }
    }
}

/// The name of the instruction set that calls with this context run on; NULL for one that this processor lacks, "ascend" for an
/// NPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tk_isa_name(context: *const tk_context) -> *const c_char {
    // SAFETY: as promised by the caller; nothing is written.
    let context = unsafe { Context::new(context.cast_mut()) };
    let name = context.and_then(|context| match context.backend()? {
        TK_BACKEND_ASCEND => Ok(text!("ascend")),
        _ => context.isa().map(|isa| isa_text(isa.unwrap_or_else(Isa::detect))),
    });
    name.unwrap_or(core::ptr::null())
}

fn isa_text(isa: Isa) -> *const c_char {
    if !isa.is_available() {
        return core::ptr::null();
    }
    match isa {
        Isa::Portable => text!(Isa::Portable.name()),
        Isa::Avx2 => text!(Isa::Avx2.name()),
        Isa::Avx512 => text!(Isa::Avx512.name()),
        Isa::Avx512Vnni => text!(Isa::Avx512Vnni.name()),
        Isa::Neon => text!(Isa::Neon.name()),
        Isa::NeonDot => text!(Isa::NeonDot.name()),
        Isa::Avx512Amx => text!(Isa::Avx512Amx.name()),
    }
}
