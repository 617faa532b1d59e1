//! Tensors and scalars.

use crate::boundary::{aclnn, array, create, null_argument, put};
use crate::descriptor::{MAX_DIMS, SCALARS, Scalar, Spec, TENSORS, Tensor, destroy};
use crate::failure::Failure;
use core::ffi::{c_char, c_void};
use tilekern_acl::{aclDataType, aclFormat, aclScalar, aclTensor, aclnnStatus};

/// What C describes a tensor with.
struct Description {
    dims: (*const i64, u64),
    stride: *const i64,
    storage: (*const i64, u64),
    rest: (aclDataType, aclFormat, i64, usize),
}

impl Description {
    /// # Safety
    ///
    /// The pointers are null, or as many numbers as their counts say; `stride` as many as there are dimensions.
    unsafe fn read(self) -> Result<Spec, Failure> {
        let rank = self.dims.1.max(self.storage.1);
        if rank > MAX_DIMS {
            return Err(Failure::invalid(format!("expected at most {MAX_DIMS} dimensions, found {rank}")));
        }
        // SAFETY: as promised by the caller.
        let (dims, storage) =
            unsafe { (array("viewDims", self.dims.0, self.dims.1)?, array("storageDims", self.storage.0, self.storage.1)?) };
        let strides = match self.stride.is_null() {
            true => None,
            // SAFETY: as promised by the caller.
            false => Some(unsafe { array("stride", self.stride, self.dims.1)? }),
        };
        Ok(Spec::new(dims, strides, storage, self.rest))
    }
}

/// A tensor's description: dimensions are copied, nothing is validated. Null strides are those of a contiguous tensor, the offset
/// counts elements. Null for null dimensions with a count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateTensor(
    viewDims: *const i64,
    viewDimsNum: u64,
    dataType: aclDataType,
    stride: *const i64,
    offset: i64,
    format: aclFormat,
    storageDims: *const i64,
    storageDimsNum: u64,
    tensorData: *mut c_void,
) -> *mut aclTensor {
    let rest = (dataType, format, offset, tensorData as usize);
    let given = Description { dims: (viewDims, viewDimsNum), stride, storage: (storageDims, storageDimsNum), rest };
    // SAFETY: as promised by the caller.
    create("aclCreateTensor", || Ok(TENSORS.insert(Tensor::new(unsafe { given.read()? }))))
}

/// Another description in the place of a tensor's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclInitTensor(
    tensor: *mut aclTensor,
    viewDims: *const i64,
    viewDimsNum: u64,
    dataType: aclDataType,
    stride: *const i64,
    offset: i64,
    format: aclFormat,
    storageDims: *const i64,
    storageDimsNum: u64,
    tensorData: *mut c_void,
) -> aclnnStatus {
    let rest = (dataType, format, offset, tensorData as usize);
    let given = Description { dims: (viewDims, viewDimsNum), stride, storage: (storageDims, storageDimsNum), rest };
    aclnn("aclInitTensor", || {
        // SAFETY: as promised by the caller.
        let spec = unsafe { given.read()? };
        Tensor::of("tensor", tensor as usize)?.edit(|old| *old = spec);
        Ok(())
    })
}

/// The end of a tensor that no list owns; null is fine. The memory that it describes stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyTensor(tensor: *const aclTensor) -> aclnnStatus {
    aclnn("aclDestroyTensor", || destroy(&TENSORS, tensor as usize))
}

/// A number. Null for a null value, and for a dtype that is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateScalar(value: *mut c_void, dataType: aclDataType) -> *mut aclScalar {
    create("aclCreateScalar", || match () {
        _ if value.is_null() => Err(Failure::null("value")),
        _ if crate::operand::element_bits(dataType).is_none() => {
            Err(Failure::invalid(format!("dataType: expected a dtype of numbers, found {}", dataType.0)))
        }
        _ => Ok(SCALARS.insert(Scalar::default())),
    })
}

/// The end of a scalar that no list owns; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyScalar(scalar: *const aclScalar) -> aclnnStatus {
    aclnn("aclDestroyScalar", || destroy(&SCALARS, scalar as usize))
}

unsafe extern "C" {
    safe fn malloc(size: usize) -> *mut c_void;
}

/// Numbers in memory that the caller releases, as it would those of C++'s `new[]`.
///
/// # Safety
///
/// Both places are null, or can be written.
unsafe fn give(values: &[i64], place: *mut *mut i64, count: *mut u64) -> Result<(), Failure> {
    if place.is_null() || count.is_null() {
        return Err(Failure::null("the place for the answer"));
    }
    let memory = malloc(size_of_val(values).max(1)).cast::<i64>();
    if memory.is_null() {
        return Err(Failure::new(tilekern_acl::codes::ACL_ERROR_BAD_ALLOC, "no memory"));
    }
    // SAFETY: the new memory has room for all of them; the rest is as promised by the caller.
    unsafe {
        memory.copy_from_nonoverlapping(values.as_ptr(), values.len());
        put(place, null_argument("place"), memory)?;
        put(count, null_argument("count"), values.len() as u64)
    }
}

/// The view's sizes, in memory that the caller releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetViewShape(
    tensor: *const aclTensor,
    viewDims: *mut *mut i64,
    viewDimsNum: *mut u64,
) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    aclnn("aclGetViewShape", || unsafe { give(&Tensor::of("tensor", tensor as usize)?.spec().dims, viewDims, viewDimsNum) })
}

/// The storage's sizes, likewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetStorageShape(
    tensor: *const aclTensor,
    storageDims: *mut *mut i64,
    storageDimsNum: *mut u64,
) -> aclnnStatus {
    aclnn("aclGetStorageShape", || {
        let spec = Tensor::of("tensor", tensor as usize)?.spec();
        // SAFETY: as promised by the caller.
        unsafe { give(&spec.storage, storageDims, storageDimsNum) }
    })
}

/// The view's strides in elements, likewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetViewStrides(
    tensor: *const aclTensor,
    stridesValue: *mut *mut i64,
    stridesNum: *mut u64,
) -> aclnnStatus {
    aclnn("aclGetViewStrides", || {
        let spec = Tensor::of("tensor", tensor as usize)?.spec();
        // SAFETY: as promised by the caller.
        unsafe { give(&spec.strides, stridesValue, stridesNum) }
    })
}

/// The view's offset in elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetViewOffset(tensor: *const aclTensor, offset: *mut i64) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    aclnn("aclGetViewOffset", || unsafe {
        put(offset, null_argument("offset"), Tensor::of("tensor", tensor as usize)?.spec().offset)
    })
}

/// How its elements lie.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetFormat(tensor: *const aclTensor, format: *mut aclFormat) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    aclnn("aclGetFormat", || unsafe {
        put(format, null_argument("format"), Tensor::of("tensor", tensor as usize)?.spec().format)
    })
}

/// What its elements are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetDataType(tensor: *const aclTensor, dataType: *mut aclDataType) -> aclnnStatus {
    // SAFETY: as promised by the caller.
    aclnn("aclGetDataType", || unsafe {
        put(dataType, null_argument("dataType"), Tensor::of("tensor", tensor as usize)?.spec().dtype)
    })
}

/// Another address, in the description alone: an executor keeps its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetRawTensorAddr(tensor: *mut aclTensor, addr: *mut c_void) -> aclnnStatus {
    aclnn("aclSetRawTensorAddr", || {
        Tensor::of("tensor", tensor as usize)?.edit(|spec| spec.data = addr as usize);
        Ok(())
    })
}

/// The address in the description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetRawTensorAddr(tensor: *const aclTensor, addr: *mut *mut c_void) -> aclnnStatus {
    aclnn("aclGetRawTensorAddr", || {
        let data = Tensor::of("tensor", tensor as usize)?.spec().data as *mut c_void;
        // SAFETY: as promised by the caller.
        unsafe { put(addr, null_argument("addr"), data) }
    })
}

/// Bytes of an element; 0 for a dtype that has no whole ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDataTypeSize(dataType: aclDataType) -> usize {
    crate::operand::element_bits(dataType).map_or(0, |bits| bits / 8)
}

/// Beginning operators without the runtime: there is nothing to begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnInit(configPath: *const c_char) -> aclnnStatus {
    let _ = configPath;
    0
}

/// The counterpart of aclnnInit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnFinalize() -> aclnnStatus {
    0
}
