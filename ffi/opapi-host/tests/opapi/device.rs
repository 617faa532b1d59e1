//! ACL as a test has it: one test at a time, and nothing is left alive behind it.

use crate::common::{acl, message, symbol};
use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tilekern_acl::*;

/// The process has one ACL: a test that begins it has it alone.
static ALONE: Mutex<()> = Mutex::new(());

/// How many are alive of each kind: descriptors, executors, buffers, streams, events, contexts.
pub fn alive() -> [i64; 6] {
    let live: unsafe extern "C" fn(i32) -> i64 = symbol("tk_opapi_live");
    // SAFETY: it takes any number.
    [0, 1, 2, 3, 4, 5].map(|kind| unsafe { live(kind) })
}

/// ACL, the device of this thread, and a stream.
pub struct Open {
    pub stream: aclrtStream,
    /// What a test that failed has left.
    before: [i64; 6],
    _alone: MutexGuard<'static, ()>,
}

impl Open {
    pub fn new() -> Open {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = alive();
        assert_eq!(acl!(runtime::aclInit(core::ptr::null())), 0);
        assert_eq!(acl!(runtime::aclrtSetDevice(0)), 0);
        Open { stream: stream(), before, _alone: alone }
    }

    /// Waits for the stream.
    pub fn synchronise(&self) -> i32 {
        acl!(runtime::aclrtSynchronizeStream(self.stream))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let ended =
            [acl!(runtime::aclrtDestroyStream(self.stream)), acl!(runtime::aclrtResetDevice(0)), acl!(runtime::aclFinalize())];
        if !std::thread::panicking() {
            assert_eq!((ended, alive()), ([0; 3], self.before));
        }
    }
}

/// A new stream.
pub fn stream() -> aclrtStream {
    let mut stream = core::ptr::null_mut();
    assert_eq!(acl!(runtime::aclrtCreateStream(&mut stream)), 0);
    stream
}

/// A plain element.
pub trait Plain: bytemuck::Pod + PartialEq + core::fmt::Debug {
    const DTYPE: aclDataType;
}

macro_rules! plain {
    ($($type:ty = $dtype:ident)*) => {$(impl Plain for $type { const DTYPE: aclDataType = $dtype; })*};
}
plain! { f32 = ACL_FLOAT f64 = ACL_DOUBLE i8 = ACL_INT8 u8 = ACL_UINT8 i32 = ACL_INT32 i64 = ACL_INT64 u64 = ACL_UINT64
u16 = ACL_UINT16 }
plain! { tilekern::f16 = ACL_FLOAT16 tilekern::bf16 = ACL_BF16 }

/// Memory of the device.
pub struct Buffer {
    pub address: *mut c_void,
    pub bytes: usize,
}

impl Buffer {
    pub fn empty(bytes: usize) -> Buffer {
        let mut address = core::ptr::null_mut();
        assert_eq!(acl!(runtime::aclrtMalloc(&mut address, bytes, ACL_MEM_MALLOC_HUGE_FIRST)), 0);
        assert!(address as usize % 64 == 0);
        Buffer { address, bytes }
    }

    pub fn of<T: Plain>(values: &[T]) -> Buffer {
        let buffer = Buffer::empty(size_of_val(values).max(1));
        if !values.is_empty() {
            assert_eq!(buffer.write(values), 0);
        }
        buffer
    }

    pub fn write<T: Plain>(&self, values: &[T]) -> i32 {
        let from = values.as_ptr().cast();
        acl!(runtime::aclrtMemcpy(self.address, self.bytes, from, size_of_val(values), ACL_MEMCPY_HOST_TO_DEVICE))
    }

    pub fn read<T: Plain>(&self, count: usize) -> Vec<T> {
        let mut bytes = vec![0u8; count * size_of::<T>()];
        let to = bytes.as_mut_ptr().cast();
        let status = acl!(runtime::aclrtMemcpy(to, bytes.len(), self.address, bytes.len(), ACL_MEMCPY_DEVICE_TO_HOST));
        assert_eq!(status, 0, "{}", message());
        bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let status = acl!(runtime::aclrtFree(self.address));
        assert!(status == 0 || std::thread::panicking(), "{}", message());
    }
}

/// What a description says beyond shape and address.
#[derive(Clone)]
pub struct View {
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub offset: i64,
    pub dtype: aclDataType,
    pub format: aclFormat,
    pub storage: Vec<i64>,
}

impl View {
    pub fn contiguous(shape: &[i64], dtype: aclDataType) -> View {
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        View { shape: shape.to_vec(), strides, offset: 0, dtype, format: ACL_FORMAT_ND, storage: shape.to_vec() }
    }

    pub fn describe(&self, address: *mut c_void) -> Tensor {
        let rank = self.shape.len() as u64;
        let (shape, strides, storage) = (self.shape.as_ptr(), self.strides.as_ptr(), self.storage.as_ptr());
        let count = self.storage.len() as u64;
        let tensor =
            acl!(meta::aclCreateTensor(shape, rank, self.dtype, strides, self.offset, self.format, storage, count, address));
        assert!(!tensor.is_null());
        Tensor(tensor)
    }
}

/// A description.
pub struct Tensor(pub *mut aclTensor);

impl Tensor {
    /// Contiguous.
    pub fn new(buffer: &Buffer, shape: &[i64], dtype: aclDataType) -> Tensor {
        View::contiguous(shape, dtype).describe(buffer.address)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        let status = acl!(meta::aclDestroyTensor(self.0));
        assert!(status == 0 || std::thread::panicking(), "{}", message());
    }
}

/// A phase one that succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub workspace: u64,
    pub executor: *mut aclOpExecutor,
}

/// The workspace's size and the executor, or the status.
pub fn phase_one(call: impl FnOnce(*mut u64, *mut *mut aclOpExecutor) -> i32) -> Result<Call, i32> {
    let mut made = Call { workspace: u64::MAX, executor: core::ptr::null_mut() };
    match call(&mut made.workspace, &mut made.executor) {
        0 => {
            assert!(made.workspace < u64::MAX && !made.executor.is_null());
            Ok(made)
        }
        status => {
            assert!(made.executor.is_null() && made.workspace == u64::MAX, "a call that fails writes no answers");
            Err(status)
        }
    }
}

/// Phase two in a workspace of its own, which lives until the stream was waited for.
pub fn phase_two(name: &str, call: Call, stream: aclrtStream) -> (i32, Option<Buffer>) {
    let workspace = (call.workspace > 0).then(|| Buffer::empty(call.workspace as usize));
    let address = workspace.as_ref().map_or(core::ptr::null_mut(), |buffer| buffer.address);
    let run: operators::aclnnRun = symbol(name);
    // SAFETY: handles, and memory of the device.
    (unsafe { run(address, call.workspace, call.executor, stream) }, workspace)
}

/// Both phases, and the wait: the first status that is not 0.
pub fn run(open: &Open, name: &str, call: impl FnOnce(*mut u64, *mut *mut aclOpExecutor) -> i32) -> i32 {
    match phase_one(call) {
        Err(status) => status,
        Ok(call) => {
            let (status, _workspace) = phase_two(name, call, open.stream);
            if status == 0 { open.synchronise() } else { status }
        }
    }
}
