//! Error codes and their names. 1xxxxx is the caller's error, 2xxxxx a lack of resources, 3xxxxx a limit, 5xxxxx internal.

/// Done.
pub const ACL_SUCCESS: i32 = 0;
/// A pointer is null that aclnn needs.
pub const ACLNN_ERR_PARAM_NULLPTR: i32 = 161001;
/// A dtype, shape or attribute is wrong.
pub const ACLNN_ERR_PARAM_INVALID: i32 = 161002;
/// The runtime failed inside an operator.
pub const ACLNN_ERR_RUNTIME_ERROR: i32 = 361001;
/// An operator failed.
pub const ACLNN_ERR_INNER: i32 = 561000;
/// A size that the operator excludes.
pub const ACLNN_ERR_INNER_TILING_ERROR: i32 = 561002;
/// An executor could not be made.
pub const ACLNN_ERR_INNER_CREATE_EXECUTOR: i32 = 561101;
/// A step inside the operator gave null.
pub const ACLNN_ERR_INNER_NULLPTR: i32 = 561103;
/// A parameter of the runtime is wrong.
pub const ACL_ERROR_INVALID_PARAM: i32 = 100000;
/// `aclInit` did not happen.
pub const ACL_ERROR_UNINITIALIZE: i32 = 100001;
/// `aclInit` happened before: as good as success.
pub const ACL_ERROR_REPEAT_INITIALIZE: i32 = 100002;
/// No such file.
pub const ACL_ERROR_INVALID_FILE: i32 = 100003;
/// `aclFinalize` happened before.
pub const ACL_ERROR_REPEAT_FINALIZE: i32 = 100037;
/// A parameter of the runtime is wrong.
pub const ACL_ERROR_RT_PARAM_INVALID: i32 = 107000;
/// No such device.
pub const ACL_ERROR_RT_INVALID_DEVICEID: i32 = 107001;
/// This thread has no context: it never set a device.
pub const ACL_ERROR_RT_CONTEXT_NULL: i32 = 107002;
/// The stream belongs to another context.
pub const ACL_ERROR_RT_STREAM_CONTEXT: i32 = 107003;
/// A handle that is none.
pub const ACL_ERROR_RT_INVALID_HANDLE: i32 = 107017;
/// Nothing happened in time.
pub const ACL_ERROR_RT_WAIT_TIMEOUT: i32 = 107019;
/// Memory of the host is out.
pub const ACL_ERROR_BAD_ALLOC: i32 = 200000;
/// This runtime does not have the function.
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: i32 = 207000;
/// Memory of the device is out.
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: i32 = 207001;
/// Memory cannot be freed.
pub const ACL_ERROR_RT_MEMORY_FREE: i32 = 207002;
/// A kernel's numbers overflowed: reported when its stream is synchronised.
pub const ACL_ERROR_RT_AICORE_OVER_FLOW: i32 = 207003;
/// There is no device.
pub const ACL_ERROR_RT_NO_DEVICE: i32 = 207004;
/// No more streams are to be had.
pub const ACL_ERROR_RT_NO_STREAM_RESOURCE: i32 = 207008;
/// The runtime failed.
pub const ACL_ERROR_INTERNAL_ERROR: i32 = 500000;
/// A kernel failed: reported when its stream is synchronised.
pub const ACL_ERROR_RT_AICORE_EXCEPTION: i32 = 507015;
/// A stream was not done in time.
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: i32 = 507046;

/// The name of a code in the headers; "unknown" for one that is not listed.
///
/// ```
/// assert_eq!(tilekern_acl::codes::name(107002), "ACL_ERROR_RT_CONTEXT_NULL");
/// ```
pub fn name(code: i32) -> &'static str {
    NAMES.binary_search_by_key(&code, |&(code, _)| code).map_or("unknown", |i| NAMES[i].1)
}

/// Ascending.
const NAMES: [(i32, &str); 86] = [
    (0, "ACL_SUCCESS"),
    (100000, "ACL_ERROR_INVALID_PARAM"),
    (100001, "ACL_ERROR_UNINITIALIZE"),
    (100002, "ACL_ERROR_REPEAT_INITIALIZE"),
    (100003, "ACL_ERROR_INVALID_FILE"),
    (100024, "ACL_ERROR_OP_NOT_FOUND"),
    (100029, "ACL_ERROR_KERNEL_NOT_FOUND"),
    (100037, "ACL_ERROR_REPEAT_FINALIZE"),
    (100039, "ACL_ERROR_COMPILING_STUB_MODE"),
    (107000, "ACL_ERROR_RT_PARAM_INVALID"),
    (107001, "ACL_ERROR_RT_INVALID_DEVICEID"),
    (107002, "ACL_ERROR_RT_CONTEXT_NULL"),
    (107003, "ACL_ERROR_RT_STREAM_CONTEXT"),
    (107008, "ACL_ERROR_RT_ADDR_UNALIGNED"),
    (107016, "ACL_ERROR_RT_INVALID_MEMORY_TYPE"),
    (107017, "ACL_ERROR_RT_INVALID_HANDLE"),
    (107019, "ACL_ERROR_RT_WAIT_TIMEOUT"),
    (107020, "ACL_ERROR_RT_TASK_TIMEOUT"),
    (107022, "ACL_ERROR_RT_DEVICE_TASK_ABORT"),
    (107023, "ACL_ERROR_RT_STREAM_ABORT"),
    (145000, "ACL_ERROR_GE_PARAM_INVALID"),
    (145020, "ACL_ERROR_GE_FORMAT_INVALID"),
    (145021, "ACL_ERROR_GE_SHAPE_INVALID"),
    (145022, "ACL_ERROR_GE_DATATYPE_INVALID"),
    (148049, "ACL_ERROR_INVALID_OPP_PATH"),
    (161001, "ACLNN_ERR_PARAM_NULLPTR"),
    (161002, "ACLNN_ERR_PARAM_INVALID"),
    (200000, "ACL_ERROR_BAD_ALLOC"),
    (200001, "ACL_ERROR_API_NOT_SUPPORT"),
    (200002, "ACL_ERROR_INVALID_DEVICE"),
    (200003, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED"),
    (200004, "ACL_ERROR_RESOURCE_NOT_MATCH"),
    (200005, "ACL_ERROR_INVALID_RESOURCE_HANDLE"),
    (200006, "ACL_ERROR_FEATURE_UNSUPPORTED"),
    (207000, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"),
    (207001, "ACL_ERROR_RT_MEMORY_ALLOCATION"),
    (207002, "ACL_ERROR_RT_MEMORY_FREE"),
    (207003, "ACL_ERROR_RT_AICORE_OVER_FLOW"),
    (207004, "ACL_ERROR_RT_NO_DEVICE"),
    (207005, "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL"),
    (207008, "ACL_ERROR_RT_NO_STREAM_RESOURCE"),
    (207018, "ACL_ERROR_RT_DEVICE_OOM"),
    (245000, "ACL_ERROR_GE_MEMORY_ALLOCATION"),
    (300000, "ACL_ERROR_STORAGE_OVER_LIMIT"),
    (361001, "ACLNN_ERR_RUNTIME_ERROR"),
    (500000, "ACL_ERROR_INTERNAL_ERROR"),
    (500001, "ACL_ERROR_FAILURE"),
    (500002, "ACL_ERROR_GE_FAILURE"),
    (500003, "ACL_ERROR_RT_FAILURE"),
    (500004, "ACL_ERROR_DRV_FAILURE"),
    (500005, "ACL_ERROR_PROFILING_FAILURE"),
    (507000, "ACL_ERROR_RT_INTERNAL_ERROR"),
    (507008, "ACL_ERROR_RT_SOC_VERSION"),
    (507010, "ACL_ERROR_RT_LOST_HEARTBEAT"),
    (507014, "ACL_ERROR_RT_AICORE_TIMEOUT"),
    (507015, "ACL_ERROR_RT_AICORE_EXCEPTION"),
    (507033, "ACL_ERROR_RT_DEV_SETUP_ERROR"),
    (507034, "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT"),
    (507035, "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION"),
    (507046, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT"),
    (507053, "ACL_ERROR_RT_DEVICE_MEM_ERROR"),
    (507899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR"),
    (545000, "ACL_ERROR_GE_INTERNAL_ERROR"),
    (561000, "ACLNN_ERR_INNER"),
    (561001, "ACLNN_ERR_INNER_INFERSHAPE_ERROR"),
    (561002, "ACLNN_ERR_INNER_TILING_ERROR"),
    (561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR"),
    (561101, "ACLNN_ERR_INNER_CREATE_EXECUTOR"),
    (561102, "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR"),
    (561103, "ACLNN_ERR_INNER_NULLPTR"),
    (561104, "ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE"),
    (561105, "ACLNN_ERR_INNER_KEY_CONFLICT"),
    (561106, "ACLNN_ERR_INNER_INVALID_IMPL_MODE"),
    (561107, "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND"),
    (561108, "ACLNN_ERR_INNER_LOAD_JSON_FAILED"),
    (561109, "ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND"),
    (561110, "ACLNN_ERR_INNER_JSON_FORMAT_INVALID"),
    (561111, "ACLNN_ERR_INNER_JSON_DTYPE_INVALID"),
    (561112, "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND"),
    (561113, "ACLNN_ERR_INNER_OP_FILE_INVALID"),
    (561114, "ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND"),
    (561115, "ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH"),
    (561116, "ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE"),
    (561117, "ACLNN_ERR_INNER_INPUT_JSON_IS_NULL"),
    (561118, "ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID"),
    (561119, "ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(NAMES.iter().all(|&(code, text)| name(code) == text));
        assert_eq!(name(507015), "ACL_ERROR_RT_AICORE_EXCEPTION");
        assert_eq!(name(1), "unknown");
    }
}
