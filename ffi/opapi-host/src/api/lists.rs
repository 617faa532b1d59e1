//! Arrays and lists.

use crate::boundary::{aclnn, array, create, null_argument, put};
use crate::descriptor::{BOOL_ARRAYS, FLOAT_ARRAYS, INT_ARRAYS, SCALAR_LISTS, SCALARS, TENSOR_LISTS, TENSORS};
use crate::descriptor::{create_list, destroy_array, destroy_list, live};
use crate::failure::Failure;
use crate::table::Table;
use tilekern_acl::{aclBoolArray, aclFloatArray, aclIntArray, aclScalar, aclScalarList, aclTensor, aclTensorList, aclnnStatus};

fn create_array<T>(table: &Table<u64>, value: *const T, size: u64) -> Result<usize, Failure> {
    if value.is_null() && size > 0 { Err(Failure::null("value")) } else { Ok(table.insert(size)) }
}

/// An array. Null for a null value with a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateIntArray(value: *const i64, size: u64) -> *mut aclIntArray {
    create("aclCreateIntArray", || create_array(&INT_ARRAYS, value, size))
}

/// The end of an array; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyIntArray(array: *const aclIntArray) -> aclnnStatus {
    aclnn("aclDestroyIntArray", || destroy_array(&INT_ARRAYS, array as usize))
}

/// How many values an array has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetIntArraySize(array: *const aclIntArray, size: *mut u64) -> aclnnStatus {
    aclnn("aclGetIntArraySize", || {
        let found = *live(&INT_ARRAYS, "array", array as usize)?;
        // SAFETY: as promised by the caller.
        unsafe { put(size, null_argument("size"), found) }
    })
}

/// An array. Null for a null value with a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateFloatArray(value: *const f32, size: u64) -> *mut aclFloatArray {
    create("aclCreateFloatArray", || create_array(&FLOAT_ARRAYS, value, size))
}

/// The end of an array; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyFloatArray(array: *const aclFloatArray) -> aclnnStatus {
    aclnn("aclDestroyFloatArray", || destroy_array(&FLOAT_ARRAYS, array as usize))
}

/// How many values an array has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetFloatArraySize(array: *const aclFloatArray, size: *mut u64) -> aclnnStatus {
    aclnn("aclGetFloatArraySize", || {
        let found = *live(&FLOAT_ARRAYS, "array", array as usize)?;
        // SAFETY: as promised by the caller.
        unsafe { put(size, null_argument("size"), found) }
    })
}

/// An array. Null for a null value with a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateBoolArray(value: *const bool, size: u64) -> *mut aclBoolArray {
    create("aclCreateBoolArray", || create_array(&BOOL_ARRAYS, value, size))
}

/// The end of an array; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyBoolArray(array: *const aclBoolArray) -> aclnnStatus {
    aclnn("aclDestroyBoolArray", || destroy_array(&BOOL_ARRAYS, array as usize))
}

/// How many values an array has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetBoolArraySize(array: *const aclBoolArray, size: *mut u64) -> aclnnStatus {
    aclnn("aclGetBoolArraySize", || {
        let found = *live(&BOOL_ARRAYS, "array", array as usize)?;
        // SAFETY: as promised by the caller.
        unsafe { put(size, null_argument("size"), found) }
    })
}

/// A list, which owns its members from here on: they end with it. Null for a member that is dead, or in a list already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateTensorList(value: *const *const aclTensor, size: u64) -> *mut aclTensorList {
    create("aclCreateTensorList", || {
        // SAFETY: as promised by the caller.
        let handles = unsafe { array("value", value.cast::<usize>(), size)? };
        create_list(&TENSORS, &TENSOR_LISTS, handles)
    })
}

/// The end of a list and of its members; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyTensorList(list: *const aclTensorList) -> aclnnStatus {
    aclnn("aclDestroyTensorList", || destroy_list(&TENSORS, &TENSOR_LISTS, list as usize))
}

/// How many members a list has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetTensorListSize(list: *const aclTensorList, size: *mut u64) -> aclnnStatus {
    aclnn("aclGetTensorListSize", || {
        let found = live(&TENSOR_LISTS, "list", list as usize)?.len() as u64;
        // SAFETY: as promised by the caller.
        unsafe { put(size, null_argument("size"), found) }
    })
}

/// A list, which owns its members from here on: they end with it. Null for a member that is dead, or in a list already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateScalarList(value: *const *const aclScalar, size: u64) -> *mut aclScalarList {
    create("aclCreateScalarList", || {
        // SAFETY: as promised by the caller.
        let handles = unsafe { array("value", value.cast::<usize>(), size)? };
        create_list(&SCALARS, &SCALAR_LISTS, handles)
    })
}

/// The end of a list and of its members; null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyScalarList(list: *const aclScalarList) -> aclnnStatus {
    aclnn("aclDestroyScalarList", || destroy_list(&SCALARS, &SCALAR_LISTS, list as usize))
}

/// How many members a list has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetScalarListSize(list: *const aclScalarList, size: *mut u64) -> aclnnStatus {
    aclnn("aclGetScalarListSize", || {
        let found = live(&SCALAR_LISTS, "list", list as usize)?.len() as u64;
        // SAFETY: as promised by the caller.
        unsafe { put(size, null_argument("size"), found) }
    })
}
