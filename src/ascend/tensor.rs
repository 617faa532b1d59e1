//! Tensors of a device: a shape, strides in elements, and memory that only the device reads.

use super::Ascend;
use crate::error::{Error, Status};
use crate::scratch::ALIGN;
use crate::tensor::{Describe, Dims};
use core::marker::PhantomData;
use tilekern_acl::{Buffer, Usage};

/// A tensor in device memory, to read.
///
/// Only a [`Buffer`] makes one, or `unsafe`: memory of the host cannot be passed by mistake.
///
/// ```no_run
/// use tilekern::acl::{Buffer, Stream};
/// use tilekern::DeviceTensor;
///
/// # fn with(stream: &Stream<'_>) -> Result<(), Box<dyn std::error::Error>> {
/// let numbers = Buffer::from_slice(stream, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let rows = DeviceTensor::new([2, 3], &numbers)?;
/// let columns = DeviceTensor::strided([3, 2], [1, 3], &numbers)?;
/// # let _ = (rows, columns);
/// # Ok(())
/// # }
/// ```
pub struct DeviceTensor<'a, T> {
    data: *const T,
    dims: Dims,
    usage: Option<&'a Usage>,
    memory: PhantomData<&'a [T]>,
}

/// A tensor in device memory, to write.
pub struct DeviceTensorMut<'a, T> {
    data: *mut T,
    dims: Dims,
    usage: Option<&'a Usage>,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: the address is the device's; the host does not follow it.
unsafe impl<T> Send for DeviceTensor<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for DeviceTensor<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Send for DeviceTensorMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for DeviceTensorMut<'_, T> {}

impl<T> Clone for DeviceTensor<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceTensor<'_, T> {}

/// What a description needs beyond the dimensions.
pub trait DeviceView: Describe {
    /// Who remembers that it is used; nobody for an address of somebody else's.
    fn usage(&self) -> Option<&Usage>;
}

macro_rules! device {
    ($tensor:ident, $null:expr, $buffer:ty) => {
        crate::tensor::describe!($tensor);

        impl<T> DeviceView for $tensor<'_, T> {
            fn usage(&self) -> Option<&Usage> {
                self.usage
            }
        }

        impl<'a, T> $tensor<'a, T> {
            /// Row-major over a buffer, which may be longer.
            pub fn new<const R: usize>(shape: [usize; R], buffer: $buffer) -> Result<Self, Error> {
                Self::with(Dims::contiguous(&shape)?, buffer)
            }

            /// Strided over a buffer.
            pub fn strided<const R: usize>(shape: [usize; R], strides: [usize; R], buffer: $buffer) -> Result<Self, Error> {
                Self::with(Dims::strided(&shape, &strides)?, buffer)
            }

            /// Any shape and strides over a buffer.
            pub fn with(dims: Dims, buffer: $buffer) -> Result<Self, Error> {
                if dims.extent() > buffer.len() {
                    return Err(Error::invalid("data", dims.extent(), buffer.len()));
                }
                Ok($tensor { data: buffer.as_ptr(), dims, usage: Some(buffer.usage()), memory: PhantomData })
            }

            /// A shape without data, for a workspace query before buffers exist. A run refuses it.
            pub fn shape_only(dims: Dims) -> Self {
                $tensor { data: $null, dims, usage: None, memory: PhantomData }
            }
        }
    };
}
device!(DeviceTensor, core::ptr::null(), &'a Buffer<'_, T>);
device!(DeviceTensorMut, core::ptr::null_mut(), &'a mut Buffer<'_, T>);

impl<T> DeviceTensor<'_, T> {
    /// A tensor at an address of the device.
    ///
    /// # Safety
    ///
    /// `data` is null, or an address of the device behind which `dims.extent()` elements stay, unwritten but by work of the same
    /// stream, until what is called with it is done.
    pub unsafe fn from_raw(dims: Dims, data: *const T) -> Self {
        DeviceTensor { data, dims, usage: None, memory: PhantomData }
    }
}

impl<T> DeviceTensorMut<'_, T> {
    /// A tensor at an address of the device.
    ///
    /// # Safety
    ///
    /// `data` is null, or an address of the device behind which `dims.extent()` elements stay, unused but by work of the same
    /// stream, until what is called with it is done.
    pub unsafe fn from_raw(dims: Dims, data: *mut T) -> Self {
        DeviceTensorMut { data, dims, usage: None, memory: PhantomData }
    }
}

/// Memory of a device for the time of a call.
#[derive(Debug)]
pub struct DeviceScratch<'a> {
    pub(super) address: usize,
    pub(super) bytes: usize,
    usage: Option<&'a Usage>,
}

impl<'a> DeviceScratch<'a> {
    /// None, for a call that needs none.
    pub const NONE: DeviceScratch<'static> = DeviceScratch { address: 0, bytes: 0, usage: None };

    /// A buffer, which may be longer than what is needed.
    pub fn new(buffer: &'a mut Buffer<'_, u8>) -> DeviceScratch<'a> {
        DeviceScratch { address: buffer.as_ptr() as usize, bytes: buffer.len(), usage: Some(buffer.usage()) }
    }

    /// Memory at an address of the device.
    ///
    /// # Safety
    ///
    /// `data` is null, or an address of the device behind which `bytes` bytes stay, unused but by work of the same stream, until
    /// what is called with it is done.
    pub unsafe fn from_raw(data: *mut u8, bytes: usize) -> DeviceScratch<'a> {
        DeviceScratch { address: data as usize, bytes: if data.is_null() { 0 } else { bytes }, usage: None }
    }

    /// Remembers that it is used.
    pub(super) fn note(&self, npu: &Ascend<'_>) -> Result<(), Error> {
        npu.note("workspace", self.usage)
    }

    /// That much of it.
    pub(super) fn fits(&self, needed: usize) -> Result<(), Error> {
        if self.bytes < needed {
            return Err(Error::new(Status::Workspace, "workspace", needed, self.bytes));
        }
        if needed > 0 && self.address % ALIGN != 0 {
            return Err(Error::new(Status::Workspace, "workspace", "an alignment of 64", "a misaligned address"));
        }
        Ok(())
    }
}

impl Ascend<'_> {
    /// Remembers that memory is used in this stream, which must be one of its device.
    pub(super) fn note(&self, argument: &'static str, usage: Option<&Usage>) -> Result<(), Error> {
        let Some(usage) = usage else { return Ok(()) };
        if self.device.is_some_and(|device| device.place() != usage.place()) {
            return Err(Error::invalid(argument, "memory of the stream's device", "memory of another"));
        }
        usage.note(self.stream);
        Ok(())
    }
}
