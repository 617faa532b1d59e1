//! Tensors of the device in memory of the host, for the time of a call.

extern crate alloc;

use super::super::tensor::DeviceView;
use super::super::{Ascend, DeviceTensor, DeviceTensorMut, failed};
use crate::backend::{Backend, Run};
use crate::error::Error;
use crate::host::Host;
use crate::parallel::ParallelFor;
use crate::scratch::{ALIGN, Scratch};
use crate::tensor::{Describe, Dims, Tensor, TensorMut};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ffi::c_void;
use tilekern_acl::{ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, aclrtMemcpyKind, codes};

/// Copies of tensors.
pub struct Stage<'n> {
    npu: &'n Ascend<'n>,
    copies: Vec<Copied>,
}

/// A tensor's memory, from its first element to its last.
struct Copied {
    memory: Scratch,
    address: usize,
    element: usize,
    /// Of a tensor that is written.
    output: Option<Dims>,
}

impl<'n> Stage<'n> {
    /// Once the stream is empty.
    pub fn new(npu: &'n Ascend<'n>) -> Result<Stage<'n>, Error> {
        // SAFETY: the stream lives.
        let code = unsafe { (npu.table.runtime.aclrtSynchronizeStream)(npu.stream) };
        if code == codes::ACL_SUCCESS {
            Ok(Stage { npu, copies: Vec::new() })
        } else {
            Err(failed("aclrtSynchronizeStream", code))
        }
    }

    /// A copy to read, until [`run`](Self::run).
    pub fn read<'s, T>(&mut self, name: &'static str, tensor: &DeviceTensor<'_, T>) -> Result<Tensor<'s, T>, Error> {
        let data = self.fetch(name, tensor, None)?;
        // SAFETY: a copy of what `dims` describes, which stays where it is until `run` is through with the call.
        Ok(unsafe { Tensor::from_raw(*tensor.dims(), data.cast()) })
    }

    /// [`read`](Self::read) of a tensor that may be absent.
    pub fn read_optional<'s, T>(
        &mut self,
        name: &'static str,
        tensor: &Option<DeviceTensor<'_, T>>,
    ) -> Result<Option<Tensor<'s, T>>, Error> {
        tensor.as_ref().map(|tensor| self.read(name, tensor)).transpose()
    }

    /// A copy to write, until [`run`](Self::run). What the call does not write keeps its value.
    pub fn write<'s, T>(&mut self, name: &'static str, tensor: &DeviceTensorMut<'_, T>) -> Result<TensorMut<'s, T>, Error> {
        let data = self.fetch(name, tensor, Some(*tensor.dims()))?;
        // SAFETY: as in `read`, and a copy of its own.
        Ok(unsafe { TensorMut::from_raw(*tensor.dims(), data.cast()) })
    }

    /// [`write`](Self::write) of a tensor that may be absent.
    pub fn write_optional<'s, T>(
        &mut self,
        name: &'static str,
        tensor: &Option<DeviceTensorMut<'_, T>>,
    ) -> Result<Option<TensorMut<'s, T>>, Error> {
        tensor.as_ref().map(|tensor| self.write(name, tensor)).transpose()
    }

    /// A copy of a tensor of the stream's device. Null for one without data, so that the call on the copies is refused for what it lacks.
    fn fetch(&mut self, name: &'static str, tensor: &impl DeviceView, output: Option<Dims>) -> Result<*mut u8, Error> {
        self.npu.note(name, tensor.usage())?;
        if !tensor.location().has_data() {
            return Ok(core::ptr::null_mut());
        }
        let range = tensor.bytes();
        // A size that a tensor on the device has.
        let layout = Layout::from_size_align(range.len(), ALIGN).unwrap_or(Layout::new::<()>());
        let mut memory = Scratch::new(layout);
        let data = memory.as_mut_ptr();
        // SAFETY: as many bytes here as there, and the stream is empty.
        unsafe { self.copy(data.cast(), range.start as *const c_void, range.len(), ACL_MEMCPY_DEVICE_TO_HOST)? };
        self.copies.push(Copied { memory, address: range.start, element: tensor.element_bytes(), output });
        Ok(data)
    }

    /// Runs the call that was made of the copies, and copies back what it wrote.
    pub fn run<P: ParallelFor, C>(&mut self, host: &Host<P>, call: C) -> Result<(), Error>
    where
        Host<P>: Run<C> + for<'s> Backend<Scratch<'s> = &'s mut [u8]>,
    {
        let mut scratch = Scratch::new(host.workspace(&call)?);
        host.run(call, &mut scratch)?;
        for copied in &self.copies {
            if let Some(dims) = &copied.output {
                self.return_rows(copied, dims)?;
            }
        }
        Ok(())
    }

    /// Element by element where rows have gaps: what lies in them is another's.
    fn return_rows(&self, copied: &Copied, dims: &Dims) -> Result<(), Error> {
        let (len, step) = dims.last();
        // So many rows, of so many pieces, of so many elements.
        let (rows, pieces, width) = match step {
            _ if dims.is_contiguous() => (1, 1, dims.elements()),
            1 => (dims.elements() / len.max(1), 1, len),
            _ => (dims.elements() / len.max(1), len, 1),
        };
        for row in 0..rows {
            for piece in 0..pieces {
                let offset = (dims.row_offset(row) + piece * step) * copied.element;
                let from = copied.memory[offset..][..width * copied.element].as_ptr();
                let to = (copied.address + offset) as *mut c_void;
                // SAFETY: elements of the output, which this call may write.
                unsafe { self.copy(to, from.cast(), width * copied.element, ACL_MEMCPY_HOST_TO_DEVICE)? };
            }
        }
        Ok(())
    }

    /// # Safety
    ///
    /// `bytes` bytes can be copied that way.
    unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize, kind: aclrtMemcpyKind) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: as promised by the caller.
        let code = unsafe { (self.npu.table.runtime.aclrtMemcpy)(to, bytes, from, bytes, kind) };
        if code == codes::ACL_SUCCESS { Ok(()) } else { Err(failed("aclrtMemcpy", code)) }
    }
}
