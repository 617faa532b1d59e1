//! Descriptions of tensors, as aclnn takes them.
//!
//! aclnn wants addresses of 32 bytes' alignment and has an offset in elements: an address is split into both. Blocks (NZ) have no
//! offset.

use super::tensor::DeviceView;
use super::{Ascend, failed, supports};
use crate::error::Error;
use crate::tensor::MAX_RANK;
use core::ffi::c_void;
use half::{bf16, f16};
use tilekern_acl::*;

/// What aclnn wants of an address.
const ALIGNMENT: usize = 32;

mod sealed {
    pub trait Sealed {}
}

/// An element that a device knows.
pub trait DeviceType: sealed::Sealed {
    /// Its number.
    const TYPE: aclDataType;
}

macro_rules! types {
    ($($t:ty = $code:ident,)*) => {
        $(impl sealed::Sealed for $t {}
        impl DeviceType for $t {
            const TYPE: aclDataType = $code;
        })*
    };
}
types! {
    f32 = ACL_FLOAT, f16 = ACL_FLOAT16, bf16 = ACL_BF16, f64 = ACL_DOUBLE, i8 = ACL_INT8, i32 = ACL_INT32, i64 = ACL_INT64,
    u8 = ACL_UINT8, u64 = ACL_UINT64,
}

/// What describes a tensor.
#[derive(Clone, Copy)]
pub(super) struct Description {
    rank: usize,
    sizes: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
    kind: aclDataType,
    format: aclFormat,
    address: usize,
    /// Half bytes of an element.
    nibbles: usize,
}

impl Description {
    /// Row-major at an address.
    pub fn contiguous<T: DeviceType>(sizes: &[usize], address: usize) -> Description {
        let mut description = Description {
            rank: sizes.len(),
            sizes: [1; MAX_RANK],
            strides: [1; MAX_RANK],
            kind: T::TYPE,
            format: ACL_FORMAT_ND,
            address,
            nibbles: 2 * size_of::<T>(),
        };
        for i in (0..sizes.len()).rev() {
            description.sizes[i] = sizes[i] as i64;
            description.strides[i] = if i + 1 < sizes.len() { description.strides[i + 1] * description.sizes[i + 1] } else { 1 };
        }
        description
    }

    /// Of an output that is not written: no elements.
    pub fn unwritten<T: DeviceType>() -> Description {
        Description::contiguous::<T>(&[0], 0)
    }

    /// A column of one number each, without its dimension of 1.
    pub fn flat(mut self) -> Description {
        self.rank = 1;
        self
    }

    /// A list as a column: `[n]` or `[n,1]` as `[n,1]`.
    pub fn column(mut self) -> Description {
        (self.rank, self.sizes[1], self.strides[1]) = (2, 1, 1);
        self
    }

    /// A list as the one line of a matrix.
    pub fn line(mut self) -> Description {
        (self.rank, self.sizes[1], self.strides[1]) = (2, self.sizes[0], self.strides[0]);
        self.sizes[0] = 1;
        self
    }

    /// One element of a matrix, as a list of one.
    pub fn element<T: DeviceType>(&self, index: [usize; 2]) -> Description {
        let places: i64 = (0..self.rank).map(|i| index[i] as i64 * self.strides[i]).sum();
        let bytes = if self.address == 0 { 0 } else { places as usize * size_of::<T>() };
        Description::contiguous::<T>(&[1], self.address + bytes)
    }

    /// Blocks of 16 rows by 32 bytes.
    pub fn blocks(mut self, argument: &'static str) -> Result<Description, Error> {
        let aligned = self.address % ALIGNMENT == 0;
        supports(argument, aligned, "blocks at an address aligned to 32 bytes", "a misaligned address")?;
        self.format = ACL_FORMAT_FRACTAL_NZ;
        Ok(self)
    }

    /// Bytes of two four-bit integers each, as these.
    pub fn four_bits(mut self) -> Description {
        for i in 0..self.rank {
            self.strides[i] *= 2;
        }
        (self.sizes[self.rank - 1], self.strides[self.rank - 1]) = (self.sizes[self.rank - 1] * 2, 1);
        (self.kind, self.nibbles) = (ACL_INT4, 1);
        self
    }

    /// The elements from the first to the last, both included.
    fn extent(&self) -> i64 {
        if self.sizes[..self.rank].contains(&0) {
            return 0;
        }
        1 + (0..self.rank).map(|i| (self.sizes[i] - 1) * self.strides[i]).sum::<i64>()
    }

    fn is_contiguous(&self) -> bool {
        let mut next = 1;
        (0..self.rank).rev().all(|i| {
            let fits = self.sizes[i] == 1 || self.strides[i] == next;
            next *= self.sizes[i];
            fits
        })
    }
}

impl<'t> Ascend<'t> {
    /// Of a tensor, whose use is noted.
    pub(super) fn describe<T: DeviceType>(
        &self,
        name: &'static str,
        view: &(impl DeviceView + ?Sized),
    ) -> Result<Description, Error> {
        self.note(name, view.usage())?;
        let dims = view.dims();
        let mut description = Description::contiguous::<T>(dims.shape(), view.bytes().start);
        if !dims.is_contiguous() {
            for (to, from) in description.strides.iter_mut().zip(dims.strides()) {
                *to = *from as i64;
            }
        }
        Ok(description)
    }

    /// The library's own.
    pub(super) fn tensor(&self, of: Description) -> Result<Descriptor<'t>, Error> {
        let misplaced = of.address % ALIGNMENT;
        let offset = (2 * misplaced / of.nibbles) as i64;
        let flat = [offset + of.extent()];
        // Examples of CANN describe whole tensors by their own shape.
        let storage: &[i64] = if offset == 0 && of.is_contiguous() { &of.sizes[..of.rank] } else { &flat };
        // SAFETY: the arrays are as long as said, and are copied; the address is not followed.
        let raw = unsafe {
            (self.table.meta.aclCreateTensor)(
                of.sizes.as_ptr(),
                of.rank as u64,
                of.kind,
                of.strides.as_ptr(),
                offset,
                of.format,
                storage.as_ptr(),
                storage.len() as u64,
                (of.address - misplaced) as *mut c_void,
            )
        };
        if raw.is_null() {
            return Err(failed("aclCreateTensor", codes::ACL_ERROR_BAD_ALLOC));
        }
        Ok(Descriptor { table: self.table, raw: Raw::Tensor(raw) })
    }

    /// Of an optional tensor.
    pub(super) fn optional(&self, of: Option<Description>) -> Result<Descriptor<'t>, Error> {
        of.map_or(Ok(self.absent()), |of| self.tensor(of))
    }

    /// Of none.
    pub(super) fn absent(&self) -> Descriptor<'t> {
        Descriptor { table: self.table, raw: Raw::None }
    }

    /// A list of one tensor.
    pub(super) fn list(&self, of: Description) -> Result<Descriptor<'t>, Error> {
        let mut tensor = self.tensor(of)?;
        // SAFETY: one tensor, as said.
        let raw = unsafe { (self.table.meta.aclCreateTensorList)(&tensor.tensor().cast_const(), 1) };
        if raw.is_null() {
            return Err(failed("aclCreateTensorList", codes::ACL_ERROR_BAD_ALLOC));
        }
        // The list destroys its members.
        tensor.raw = Raw::List(raw);
        Ok(tensor)
    }
}

/// A description of the library's, destroyed when dropped.
pub(super) struct Descriptor<'t> {
    table: &'t Table,
    raw: Raw,
}

#[derive(Clone, Copy)]
enum Raw {
    None,
    Tensor(*mut aclTensor),
    List(*mut aclTensorList),
}

impl Descriptor<'_> {
    /// Null for none.
    pub fn tensor(&self) -> *mut aclTensor {
        if let Raw::Tensor(raw) = self.raw { raw } else { core::ptr::null_mut() }
    }

    /// Null for none.
    pub fn list(&self) -> *mut aclTensorList {
        if let Raw::List(raw) = self.raw { raw } else { core::ptr::null_mut() }
    }
}

impl Drop for Descriptor<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `tensor` or `list`, and destroyed once.
        _ = unsafe {
            match self.raw {
                Raw::None => codes::ACL_SUCCESS,
                Raw::Tensor(raw) => (self.table.meta.aclDestroyTensor)(raw),
                Raw::List(raw) => (self.table.meta.aclDestroyTensorList)(raw),
            }
        };
    }
}
