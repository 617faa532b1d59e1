//! Descriptors and executors: `libnnopbase.so`.

use crate::types::*;
use core::ffi::{c_char, c_void};

/// A tensor's description. Dimensions are copied, nothing is validated; null strides are those of a contiguous tensor; the offset
/// counts elements. Null where `view_dims` is null with a rank, or where memory is out.
pub type aclCreateTensor = unsafe extern "C" fn(
    view_dims: *const i64,
    view_dims_num: u64,
    data_type: aclDataType,
    stride: *const i64,
    offset: i64,
    format: aclFormat,
    storage_dims: *const i64,
    storage_dims_num: u64,
    tensor_data: *mut c_void,
) -> *mut aclTensor;
/// A number, copied.
pub type aclCreateScalar = unsafe extern "C" fn(value: *mut c_void, data_type: aclDataType) -> *mut aclScalar;
/// Numbers, copied.
pub type aclCreateIntArray = unsafe extern "C" fn(value: *const i64, size: u64) -> *mut aclIntArray;
/// Numbers, copied.
pub type aclCreateFloatArray = unsafe extern "C" fn(value: *const f32, size: u64) -> *mut aclFloatArray;
/// Truth values, copied.
pub type aclCreateBoolArray = unsafe extern "C" fn(value: *const bool, size: u64) -> *mut aclBoolArray;
/// A list that owns the tensors from here on.
pub type aclCreateTensorList = unsafe extern "C" fn(value: *const *const aclTensor, size: u64) -> *mut aclTensorList;
/// A list that owns the scalars from here on.
pub type aclCreateScalarList = unsafe extern "C" fn(value: *const *const aclScalar, size: u64) -> *mut aclScalarList;

/// Null is fine. The memory that the tensor describes stays.
pub type aclDestroyTensor = unsafe extern "C" fn(tensor: *const aclTensor) -> aclnnStatus;
/// Null is fine.
pub type aclDestroyScalar = unsafe extern "C" fn(scalar: *const aclScalar) -> aclnnStatus;
/// Null is fine.
pub type aclDestroyIntArray = unsafe extern "C" fn(array: *const aclIntArray) -> aclnnStatus;
/// Null is fine.
pub type aclDestroyFloatArray = unsafe extern "C" fn(array: *const aclFloatArray) -> aclnnStatus;
/// Null is fine.
pub type aclDestroyBoolArray = unsafe extern "C" fn(array: *const aclBoolArray) -> aclnnStatus;
/// With its tensors. Null is fine.
pub type aclDestroyTensorList = unsafe extern "C" fn(list: *const aclTensorList) -> aclnnStatus;
/// With its scalars. Null is fine.
pub type aclDestroyScalarList = unsafe extern "C" fn(list: *const aclScalarList) -> aclnnStatus;

/// The sizes, in an array that C++ allocated and no C function frees.
pub type aclGetViewShape = unsafe extern "C" fn(tensor: *const aclTensor, dims: *mut *mut i64, count: *mut u64) -> aclnnStatus;
/// As `aclGetViewShape`.
pub type aclGetStorageShape = aclGetViewShape;
/// As `aclGetViewShape`.
pub type aclGetViewStrides = aclGetViewShape;
/// In elements.
pub type aclGetViewOffset = unsafe extern "C" fn(tensor: *const aclTensor, offset: *mut i64) -> aclnnStatus;
/// How its elements lie.
pub type aclGetFormat = unsafe extern "C" fn(tensor: *const aclTensor, format: *mut aclFormat) -> aclnnStatus;
/// What its elements are.
pub type aclGetDataType = unsafe extern "C" fn(tensor: *const aclTensor, data_type: *mut aclDataType) -> aclnnStatus;
/// How many there are.
pub type aclGetTensorListSize = unsafe extern "C" fn(list: *const aclTensorList, size: *mut u64) -> aclnnStatus;
/// How many there are.
pub type aclGetScalarListSize = unsafe extern "C" fn(list: *const aclScalarList, size: *mut u64) -> aclnnStatus;
/// How many there are.
pub type aclGetIntArraySize = unsafe extern "C" fn(array: *const aclIntArray, size: *mut u64) -> aclnnStatus;
/// How many there are.
pub type aclGetFloatArraySize = unsafe extern "C" fn(array: *const aclFloatArray, size: *mut u64) -> aclnnStatus;
/// How many there are.
pub type aclGetBoolArraySize = unsafe extern "C" fn(array: *const aclBoolArray, size: *mut u64) -> aclnnStatus;

/// Another description in the same place.
pub type aclInitTensor = unsafe extern "C" fn(
    tensor: *mut aclTensor,
    view_dims: *const i64,
    view_dims_num: u64,
    data_type: aclDataType,
    stride: *const i64,
    offset: i64,
    format: aclFormat,
    storage_dims: *const i64,
    storage_dims_num: u64,
    tensor_data: *mut c_void,
) -> aclnnStatus;
/// In the description alone: an executor keeps its address.
pub type aclSetRawTensorAddr = unsafe extern "C" fn(tensor: *mut aclTensor, address: *mut c_void) -> aclnnStatus;
/// The address in the description.
pub type aclGetRawTensorAddr = unsafe extern "C" fn(tensor: *const aclTensor, address: *mut *mut c_void) -> aclnnStatus;

/// Phase two may run more than once. 561000 for an executor out of the cache.
pub type aclSetAclOpExecutorRepeatable = unsafe extern "C" fn(executor: *mut aclOpExecutor) -> aclnnStatus;
/// Of an executor that phase two did not take, or of a repeatable one.
pub type aclDestroyAclOpExecutor = unsafe extern "C" fn(executor: *mut aclOpExecutor) -> aclnnStatus;
/// Another address for an input of a repeatable executor.
pub type aclSetInputTensorAddr =
    unsafe extern "C" fn(executor: *mut aclOpExecutor, index: usize, tensor: *mut aclTensor, address: *mut c_void) -> aclnnStatus;
/// Another address for an output.
pub type aclSetOutputTensorAddr = aclSetInputTensorAddr;
/// Another address for either.
pub type aclSetTensorAddr = aclSetInputTensorAddr;
/// Another address for a member of a list.
pub type aclSetDynamicInputTensorAddr = unsafe extern "C" fn(
    executor: *mut aclOpExecutor,
    ir_index: usize,
    relative_index: usize,
    list: *mut aclTensorList,
    address: *mut c_void,
) -> aclnnStatus;
/// The same for an output.
pub type aclSetDynamicOutputTensorAddr = aclSetDynamicInputTensorAddr;
/// The same for either.
pub type aclSetDynamicTensorAddr = aclSetDynamicInputTensorAddr;
/// Lighter than `aclInit`, for operators alone.
pub type aclnnInit = unsafe extern "C" fn(config_path: *const c_char) -> aclnnStatus;
/// The counterpart of `aclnnInit`.
pub type aclnnFinalize = unsafe extern "C" fn() -> aclnnStatus;
