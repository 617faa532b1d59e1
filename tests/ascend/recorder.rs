//! A CANN that computes nothing: it records what is called, keeps account of what lives, and fails where it is told to. Each test thread
//! has its own.

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use tilekern::acl::table::{Grouped, Meta, Operator, Operators, Runtime, Table};
use tilekern::acl::*;

/// What a call answers instead of success.
pub type Failure = Box<dyn FnMut(&'static str) -> Option<i32>>;

/// The account of one thread.
#[derive(Default)]
struct Recorder {
    log: Option<Vec<String>>,
    /// Kind and number of what lives, by handle.
    live: BTreeMap<usize, (&'static str, usize)>,
    /// Descriptions, for the log.
    shown: BTreeMap<usize, String>,
    sizes: BTreeMap<usize, usize>,
    made: BTreeMap<&'static str, usize>,
    failure: Option<Failure>,
    workspace: u64,
    context: usize,
    next: usize,
}

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::default();
}

fn with<R>(body: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDER.with(|recorder| body(&mut recorder.borrow_mut()))
}

/// Forgets everything; phase one answers that many bytes.
pub fn reset(workspace: u64) {
    with(|r| *r = Recorder { workspace, log: Some(Vec::new()), next: 0x1000, ..Recorder::default() });
}

/// Keeps the account alone.
pub fn quiet() {
    with(|r| r.log = None);
}

/// What the next calls answer.
pub fn fail(failure: impl FnMut(&'static str) -> Option<i32> + 'static) {
    with(|r| r.failure = Some(Box::new(failure)));
}

/// The `n`th call of that name from here on fails.
pub fn fail_once(name: &'static str, mut n: usize, code: i32) {
    fail(move |called| {
        n -= usize::from(called == name && n > 0);
        (called == name && n == 0).then(|| {
            n = usize::MAX;
            code
        })
    });
}

/// Nothing fails any more.
pub fn succeed() {
    with(|r| r.failure = None);
}

/// What was called since.
pub fn log() -> Vec<String> {
    with(|r| r.log.replace(Vec::new()).unwrap_or_default())
}

/// How many of each kind live.
pub fn live() -> BTreeMap<&'static str, usize> {
    with(|r| {
        r.live.values().fold(BTreeMap::new(), |mut counts, (kind, _)| {
            *counts.entry(*kind).or_default() += 1;
            counts
        })
    })
}

/// How many of that kind were ever made.
pub fn made(kind: &'static str) -> usize {
    with(|r| r.made.get(kind).copied().unwrap_or(0))
}

impl Recorder {
    fn say(&mut self, text: impl FnOnce(&Recorder) -> String) {
        let text = self.log.is_some().then(|| text(self));
        if let (Some(log), Some(text)) = (&mut self.log, text) {
            log.push(text);
        }
    }

    fn failure(&mut self, name: &'static str) -> Option<i32> {
        let failure = self.failure.as_mut()?;
        failure(name)
    }

    fn make(&mut self, kind: &'static str, handle: usize) -> usize {
        let number = self.made.entry(kind).or_default();
        *number += 1;
        assert!(self.live.insert(handle, (kind, *number)).is_none());
        *number
    }

    /// A handle that is no address.
    fn handle(&mut self, kind: &'static str) -> usize {
        self.next += 0x100;
        let handle = self.next;
        self.make(kind, handle);
        handle
    }

    fn end(&mut self, kind: &'static str, handle: usize) {
        let ended = self.live.remove(&handle);
        assert_eq!(ended.map(|(kind, _)| kind), Some(kind), "{kind} {handle:#x} does not live");
        self.shown.remove(&handle);
    }

    fn expect(&self, kind: &'static str, handle: usize) {
        assert_eq!(self.live.get(&handle).map(|(kind, _)| *kind), Some(kind), "{handle:#x} is no {kind}");
    }

    /// A place in memory: which allocation, which byte.
    fn place(&self, address: usize) -> String {
        let found = self.sizes.range(..=address).next_back().filter(|(start, size)| address < *start + **size);
        match found {
            _ if address == 0 => "null".into(),
            Some((start, _)) => format!("m{}+{}", self.live[start].1, address - start),
            None => format!("{address:#x}"),
        }
    }

    fn shown(&self, tensor: *const aclTensor) -> String {
        if tensor.is_null() { "-".into() } else { self.shown[&(tensor as usize)].clone() }
    }
}

/// Answers through a place of the caller's.
fn answer<T>(place: *mut T, value: T) {
    // SAFETY: a place of the caller of ACL.
    unsafe { *place = value };
}

/// A call without more to it: its name in the log, and whether it fails.
fn simple(name: &'static str) -> i32 {
    with(|r| {
        r.say(|_| name.into());
        r.failure(name).unwrap_or(0)
    })
}

unsafe extern "C" fn init(_: *const c_char) -> i32 {
    simple("aclInit")
}

unsafe extern "C" fn message() -> *const c_char {
    c"EZ9999: said the library".as_ptr()
}

/// As the library of the host says it.
unsafe extern "C" fn soc_name() -> *const c_char {
    c"Ascend910B_tilekern".as_ptr()
}

unsafe extern "C" fn set_device(_: i32) -> i32 {
    let code = simple("aclrtSetDevice");
    if code == 0 {
        with(|r| {
            r.context = 1;
            r.handle("device");
        });
    }
    code
}

unsafe extern "C" fn reset_device(_: i32) -> i32 {
    with(|r| {
        r.say(|_| "aclrtResetDevice".into());
        let device = r.live.iter().find(|(_, (kind, _))| *kind == "device").map(|(handle, _)| *handle);
        r.end("device", device.expect("a device"));
    });
    0
}

unsafe extern "C" fn get_context(context: *mut aclrtContext) -> i32 {
    answer(context, std::ptr::without_provenance_mut(7));
    simple("aclrtGetCurrentContext")
}

unsafe extern "C" fn set_context(context: aclrtContext) -> i32 {
    assert_eq!(context.addr(), 7);
    with(|r| r.failure("aclrtSetCurrentContext").unwrap_or(0))
}

unsafe extern "C" fn create_stream(stream: *mut aclrtStream) -> i32 {
    let code = simple("aclrtCreateStream");
    if code == 0 {
        answer(stream, std::ptr::without_provenance_mut(with(|r| r.handle("stream"))));
    }
    code
}

unsafe extern "C" fn destroy_stream(stream: aclrtStream) -> i32 {
    with(|r| r.end("stream", stream.addr()));
    simple("aclrtDestroyStream")
}

unsafe extern "C" fn synchronize_stream(stream: aclrtStream) -> i32 {
    with(|r| r.expect("stream", stream.addr()));
    simple("aclrtSynchronizeStream")
}

unsafe extern "C" fn synchronize_device() -> i32 {
    simple("aclrtSynchronizeDevice")
}

unsafe extern "C" fn create_event(event: *mut aclrtEvent) -> i32 {
    let code = simple("aclrtCreateEvent");
    if code == 0 {
        answer(event, std::ptr::without_provenance_mut(with(|r| r.handle("event"))));
    }
    code
}

unsafe extern "C" fn destroy_event(event: aclrtEvent) -> i32 {
    with(|r| r.end("event", event.addr()));
    simple("aclrtDestroyEvent")
}

unsafe extern "C" fn record_event(event: aclrtEvent, _: aclrtStream) -> i32 {
    with(|r| r.expect("event", event.addr()));
    simple("aclrtRecordEvent")
}

unsafe extern "C" fn wait_event(_: aclrtStream, event: aclrtEvent) -> i32 {
    with(|r| r.expect("event", event.addr()));
    simple("aclrtStreamWaitEvent")
}

unsafe extern "C" fn synchronize_event(event: aclrtEvent) -> i32 {
    with(|r| r.expect("event", event.addr()));
    simple("aclrtSynchronizeEvent")
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 64).unwrap()
}

unsafe extern "C" fn malloc(device: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> i32 {
    assert!(size > 0 && policy == ACL_MEM_MALLOC_HUGE_FIRST);
    with(|r| {
        r.say(|_| format!("aclrtMalloc {size}"));
        if let Some(code) = r.failure("aclrtMalloc").or((size > 1 << 40).then_some(107_000)) {
            return code;
        }
        // SAFETY: a size above 0.
        let memory = unsafe { std::alloc::alloc_zeroed(layout(size)) };
        r.make("memory", memory.addr());
        r.sizes.insert(memory.addr(), size);
        answer(device, memory.cast());
        0
    })
}

unsafe extern "C" fn free(device: *mut c_void) -> i32 {
    with(|r| {
        r.say(|r| format!("aclrtFree {}", r.place(device.addr())));
        r.end("memory", device.addr());
        let size = r.sizes.remove(&device.addr()).unwrap();
        // SAFETY: what `malloc` gave, with its size.
        unsafe { std::alloc::dealloc(device.cast(), layout(size)) };
        0
    })
}

unsafe extern "C" fn memcpy(to: *mut c_void, max: usize, from: *const c_void, count: usize, kind: aclrtMemcpyKind) -> i32 {
    assert!(count > 0 && max >= count);
    let code = with(|r| {
        let (device, host) = if kind == ACL_MEMCPY_HOST_TO_DEVICE { (to.addr(), from.addr()) } else { (from.addr(), to.addr()) };
        assert!(r.place(device).starts_with('m') && !r.place(host).starts_with('m'));
        r.say(|r| format!("aclrtMemcpy {count} kind {} {}", kind.0, r.place(device)));
        r.failure("aclrtMemcpy").unwrap_or(0)
    });
    if code == 0 {
        // SAFETY: as many bytes on both sides, as the caller of ACL says.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), count) };
    }
    code
}

/// The dtype as it is written here.
fn dtype(of: aclDataType) -> String {
    let names = [(0, "f32"), (1, "f16"), (2, "i8"), (3, "i32"), (9, "i64"), (10, "u64"), (11, "f64"), (27, "bf16"), (29, "i4")];
    names.iter().find(|(code, _)| *code == of.0).map_or(format!("{of:?}"), |(_, name)| name.to_string())
}

unsafe extern "C" fn create_tensor(
    dims: *const i64,
    rank: u64,
    kind: aclDataType,
    strides: *const i64,
    offset: i64,
    format: aclFormat,
    storage: *const i64,
    storage_rank: u64,
    data: *mut c_void,
) -> *mut aclTensor {
    with(|r| {
        if r.failure("aclCreateTensor").is_some() {
            return std::ptr::null_mut();
        }
        let handle = r.handle("tensor");
        if r.log.is_some() {
            // SAFETY: arrays of these lengths.
            let array = |first: *const i64, length: u64| unsafe { std::slice::from_raw_parts(first, length as usize) };
            let (shape, strides, storage) = (array(dims, rank), array(strides, rank), array(storage, storage_rank));
            let rest: i64 = shape.iter().product();
            let mut contiguous: Vec<i64> = vec![1; shape.len()];
            (1..shape.len()).rev().for_each(|i| contiguous[i - 1] = contiguous[i] * shape[i]);
            let mut text = format!("{}{shape:?}", dtype(kind));
            if strides != contiguous {
                text += &format!("/{strides:?}");
            }
            if storage != shape {
                text += &format!(" of {storage:?}");
            }
            if format == ACL_FORMAT_FRACTAL_NZ {
                text += " nz";
            } else {
                assert_eq!(format, ACL_FORMAT_ND);
            }
            if rest > 0 {
                text += &format!(" {}", r.place(data.addr()));
            }
            if offset > 0 {
                text += &format!("[{offset}]");
            }
            assert_eq!(data.addr() % 32, 0);
            r.shown.insert(handle, text.replace(", ", ","));
        }
        std::ptr::without_provenance_mut(handle)
    })
}

unsafe extern "C" fn destroy_tensor(tensor: *const aclTensor) -> i32 {
    with(|r| r.end("tensor", tensor.addr()));
    0
}

unsafe extern "C" fn create_list(tensors: *const *const aclTensor, size: u64) -> *mut aclTensorList {
    assert_eq!(size, 1);
    with(|r| {
        if r.failure("aclCreateTensorList").is_some() {
            return std::ptr::null_mut();
        }
        // SAFETY: an array of one.
        let tensor = unsafe { *tensors };
        let shown = r.log.is_some().then(|| format!("{{{}}}", r.shown(tensor)));
        // The list owns it.
        r.end("tensor", tensor.addr());
        let handle = r.handle("list");
        r.shown.extend(shown.map(|shown| (handle, shown)));
        std::ptr::without_provenance_mut(handle)
    })
}

unsafe extern "C" fn destroy_list(list: *const aclTensorList) -> i32 {
    with(|r| r.end("list", list.addr()));
    0
}

unsafe extern "C" fn destroy_executor(executor: *mut aclOpExecutor) -> i32 {
    with(|r| r.end("executor", executor.addr()));
    simple("aclDestroyAclOpExecutor")
}

/// Phase one.
fn one(
    name: &'static str,
    tensors: &[*const aclTensor],
    rest: String,
    bytes: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> i32 {
    with(|r| {
        tensors.iter().filter(|tensor| !tensor.is_null()).for_each(|tensor| {
            let kind = r.live[&tensor.addr()].0;
            assert!(matches!(kind, "tensor" | "list"));
        });
        r.say(|r| format!("{name}: {}; {rest}", tensors.iter().map(|tensor| r.shown(*tensor)).collect::<Vec<_>>().join(", ")));
        if let Some(code) = r.failure(name) {
            return code;
        }
        answer(bytes, r.workspace);
        answer(executor, std::ptr::without_provenance_mut(r.handle("executor")));
        0
    })
}

/// Phase two: it takes the executor, whatever comes of it.
unsafe extern "C" fn two(workspace: *mut c_void, size: u64, executor: *mut aclOpExecutor, stream: aclrtStream) -> i32 {
    with(|r| {
        r.end("executor", executor.addr());
        r.expect("stream", stream.addr());
        assert_eq!(size, r.workspace);
        r.say(|r| format!("run in {}", r.place(workspace.addr())));
        r.failure("run").unwrap_or(0)
    })
}

macro_rules! phase_ones {
    ($($name:ident($($tensor:ident)*; $($rest:ident: $kind:ty),*; $($output:ident)*) $pointer:tt = $text:expr;)*) => {
        $(
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $name(
                $($tensor: *const aclTensor,)* $($rest: $kind,)* $($output: *$pointer aclTensor,)*
                bytes: *mut u64,
                executor: *mut *mut aclOpExecutor,
            ) -> i32 {
                let rest: &[(&str, &dyn std::fmt::Debug)] = &[$((stringify!($rest), &$rest)),*];
                let rest = rest.iter().map(|(name, value)| format!("{name} {value:?}")).collect::<Vec<_>>().join(", ");
                one($text, &[$($tensor,)* $($output.cast()),*], rest, bytes, executor)
            }
        )*
    };
}
phase_ones! {
    apply(logits p k;; out) mut = "ApplyTopKTopP";
    v1(logits k p q; eps: f64, need: bool, guess: i64; chosen select) const = "TopKTopPSample";
    v2(logits k p q m; eps: f64, need: bool, guess: i64, ks_max: i64, logits_in: bool, middle: bool; chosen select idx sorted)
        const = "TopKTopPSampleV2";
    multinomial(weights; samples: i64, replacement: bool, seed: i64, offset: i64; out) mut = "Multinomial";
    grouped_v1(x weight bias offset scale x_scale groups;; out out_scale out_offset) mut = "Grouped";
    grouped_v1_nz(x weight bias offset scale x_scale groups;; out out_scale out_offset) mut = "GroupedWeightNZ";
    grouped_v1_limited(x weight bias offset scale x_scale groups; limited: f64; out out_scale out_offset) mut = "GroupedLimited";
}

// Those that do not begin with all their tensors.
unsafe extern "C" fn multinomial_tensor(
    weights: *const aclTensor,
    samples: i64,
    replacement: bool,
    seed: *const aclTensor,
    offset_tensor: *const aclTensor,
    offset: i64,
    out: *mut aclTensor,
    bytes: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> i32 {
    let rest = format!("samples {samples}, replacement {replacement}, offset {offset}");
    one("MultinomialTensor", &[weights, seed, offset_tensor, out], rest, bytes, executor)
}

unsafe extern "C" fn gather(
    from: *const aclTensor,
    dim: i64,
    index: *const aclTensor,
    out: *mut aclTensor,
    bytes: *mut u64,
    executor: *mut *mut aclOpExecutor,
) -> i32 {
    one("Gather", &[from, index, out], format!("dim {dim}"), bytes, executor)
}

/// The arguments of V2, official or not.
macro_rules! grouped_v2 {
    ($name:ident $text:literal $(, $limit:ident)?) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name(
            x: *const aclTensor,
            weight: *const aclTensorList,
            scale: *const aclTensorList,
            assist: *const aclTensorList,
            bias: *const aclTensor,
            x_scale: *const aclTensor,
            smooth: *const aclTensor,
            groups: *const aclTensor,
            mode: i64,
            kind: i64,
            quant: i64,
            list: i64,
            tuning: *const aclIntArray,
            $($limit: f64,)?
            out: *mut aclTensor,
            out_scale: *mut aclTensor,
            bytes: *mut u64,
            executor: *mut *mut aclOpExecutor,
        ) -> i32 {
            assert!(tuning.is_null());
            #[allow(unused_mut)]
            let mut rest = format!("modes {mode} {kind} {quant} {list}");
            $(rest += &format!(" limit {:?}", $limit);)?
            let tensors = [x, weight.cast(), scale.cast(), assist.cast(), bias, x_scale, smooth, groups, out, out_scale];
            one($text, &tensors, rest, bytes, executor)
        }
    };
}
grouped_v2!(grouped_v2 "GroupedV2");
grouped_v2!(grouped_v2_nz "GroupedWeightNzV2");
grouped_v2!(grouped_v2_limited "GroupedV2Limited", limit);

/// The functions above, all there.
pub fn table() -> Table {
    Table {
        runtime: Runtime {
            aclInit: init,
            aclGetRecentErrMsg: message,
            aclrtSetDevice: set_device,
            aclrtResetDevice: reset_device,
            aclrtCreateStream: create_stream,
            aclrtDestroyStream: destroy_stream,
            aclrtSynchronizeStream: synchronize_stream,
            aclrtMalloc: malloc,
            aclrtFree: free,
            aclrtMemcpy: memcpy,
            aclrtSynchronizeDevice: Some(synchronize_device),
            aclrtGetCurrentContext: Some(get_context),
            aclrtSetCurrentContext: Some(set_context),
            aclrtGetDeviceCount: None,
            aclrtGetSocName: Some(soc_name),
            aclrtCreateEvent: Some(create_event),
            aclrtDestroyEvent: Some(destroy_event),
            aclrtRecordEvent: Some(record_event),
            aclrtStreamWaitEvent: Some(wait_event),
            aclrtSynchronizeEvent: Some(synchronize_event),
        },
        meta: Meta {
            aclCreateTensor: create_tensor,
            aclDestroyTensor: destroy_tensor,
            aclCreateTensorList: create_list,
            aclDestroyTensorList: destroy_list,
            aclDestroyAclOpExecutor: destroy_executor,
        },
        operators: Operators {
            aclnnTopKTopPSampleV2: Some(Operator { workspace: v2, run: two }),
            aclnnTopKTopPSample: Some(Operator { workspace: v1, run: two }),
            aclnnApplyTopKTopP: Some(Operator { workspace: apply, run: two }),
            aclnnMultinomial: Some(Operator { workspace: multinomial, run: two }),
            aclnnMultinomialTensor: Some(Operator { workspace: multinomial_tensor, run: two }),
            aclnnGather: Some(Operator { workspace: gather, run: two }),
            aclnnGroupedMatmulSwigluQuant: Some(Operator { workspace: Grouped::Official(grouped_v1), run: two }),
            aclnnGroupedMatmulSwigluQuantWeightNZ: Some(Operator { workspace: Grouped::Official(grouped_v1_nz), run: two }),
            aclnnGroupedMatmulSwigluQuantV2: Some(Operator { workspace: Grouped::Official(grouped_v2), run: two }),
            aclnnGroupedMatmulSwigluQuantWeightNzV2: Some(Operator { workspace: Grouped::Official(grouped_v2_nz), run: two }),
        },
    }
}

/// The functions that vllm-ascend's package has under the official names.
pub fn custom() -> Table {
    let mut table = table();
    let operators = &mut table.operators;
    operators.aclnnGroupedMatmulSwigluQuant = Some(Operator { workspace: Grouped::Limited(grouped_v1_limited), run: two });
    operators.aclnnGroupedMatmulSwigluQuantWeightNZ =
        Some(Operator { workspace: Grouped::Limited(grouped_v1_limited), run: two });
    operators.aclnnGroupedMatmulSwigluQuantV2 = Some(Operator { workspace: Grouped::Limited(grouped_v2_limited), run: two });
    operators.aclnnGroupedMatmulSwigluQuantWeightNzV2 =
        Some(Operator { workspace: Grouped::Limited(grouped_v2_limited), run: two });
    table
}
