//! What a context can mean: this processor, or an Ascend NPU.

use crate::pool::Pool;
use core::ffi::c_void;
use tilekern::{Ascend, Backend, DeviceScratch, DeviceTensor, DeviceTensorMut, Dims, Host, Tensor, TensorMut};

/// This processor, with the caller's threads.
pub(crate) type Processor = Host<Pool>;
/// An NPU, through the CANN of this process.
pub(crate) type Npu = Ascend<'static>;

/// A backend whose tensors and workspace C can describe.
pub(crate) trait Target: Backend {
    /// # Safety
    ///
    /// `data` is null, or what `dims` describes can be read there until the call is done, in which at most outputs of the call are
    /// written between its elements.
    unsafe fn view<'a, T>(dims: Dims, data: *const T) -> Self::View<'a, T>;

    /// # Safety
    ///
    /// `data` is null, or what `dims` describes can be written there until the call is done.
    unsafe fn view_mut<'a, T>(dims: Dims, data: *mut T) -> Self::ViewMut<'a, T>;

    /// # Safety
    ///
    /// `data` is null, or `bytes` bytes that are the callee's until the call is done.
    unsafe fn scratch<'a>(data: *mut c_void, bytes: usize) -> Self::Scratch<'a>;
}

impl Target for Processor {
    #[inline]
    unsafe fn view<'a, T>(dims: Dims, data: *const T) -> Tensor<'a, T> {
        // SAFETY: as promised by the caller.
        unsafe { Tensor::from_raw(dims, data) }
    }

    #[inline]
    unsafe fn view_mut<'a, T>(dims: Dims, data: *mut T) -> TensorMut<'a, T> {
        // SAFETY: as promised by the caller.
        unsafe { TensorMut::from_raw(dims, data) }
    }

    unsafe fn scratch<'a>(data: *mut c_void, bytes: usize) -> &'a mut [u8] {
        if data.is_null() {
            return &mut [];
        }
        // SAFETY: as promised by the caller; no object is larger than `isize::MAX`.
        unsafe { core::slice::from_raw_parts_mut(data.cast(), bytes.min(isize::MAX as usize)) }
    }
}

impl Target for Npu {
    unsafe fn view<'a, T>(dims: Dims, data: *const T) -> DeviceTensor<'a, T> {
        // SAFETY: as promised by the caller.
        unsafe { DeviceTensor::from_raw(dims, data) }
    }

    unsafe fn view_mut<'a, T>(dims: Dims, data: *mut T) -> DeviceTensorMut<'a, T> {
        // SAFETY: as promised by the caller.
        unsafe { DeviceTensorMut::from_raw(dims, data) }
    }

    unsafe fn scratch<'a>(data: *mut c_void, bytes: usize) -> DeviceScratch<'a> {
        // SAFETY: as promised by the caller.
        unsafe { DeviceScratch::from_raw(data.cast(), bytes) }
    }
}
