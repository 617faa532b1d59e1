//! Handles and enumerations, under their names in C.
//!
//! C's enumerations are integers of 32 bits, and a newer CANN may pass numbers that this file does not list: hence newtypes, never
//! a Rust `enum`.

use core::ffi::c_void;

/// What the runtime answers; 0 is success. [`codes::name`](crate::codes::name) names the others.
pub type aclError = i32;
/// What aclnn answers; 0 is success.
pub type aclnnStatus = i32;

/// A queue of work on a device. Null is the default one of the current context.
pub type aclrtStream = *mut c_void;
/// A context of a device: what a thread works in.
pub type aclrtContext = *mut c_void;
/// A mark in a stream.
pub type aclrtEvent = *mut c_void;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* #[repr(C)] pub struct $name { opaque: [u8; 0] })*
    };
}
opaque! {
    /// A tensor's description: shape, strides, dtype, format, address.
    aclTensor
    /// A number with a dtype.
    aclScalar
    /// Integers of 64 bits.
    aclIntArray
    /// Floats of 32 bits.
    aclFloatArray
    /// Truth values of a byte.
    aclBoolArray
    /// Tensors; it owns them.
    aclTensorList
    /// Scalars; it owns them.
    aclScalarList
    /// A call of an operator between its two phases.
    aclOpExecutor
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($repr:ty) { $($(#[$about:meta])* $constant:ident = $value:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub struct $name(pub $repr);
            $($(#[$about])* #[allow(missing_docs)] pub const $constant: $name = $name($value);)*
        )*
    };
}

numbers! {
    /// What an element is.
    aclDataType(i32) {
        ACL_DT_UNDEFINED = -1, ACL_FLOAT = 0, ACL_FLOAT16 = 1, ACL_INT8 = 2, ACL_INT32 = 3, ACL_UINT8 = 4, ACL_INT16 = 6,
        ACL_UINT16 = 7, ACL_UINT32 = 8, ACL_INT64 = 9, ACL_UINT64 = 10, ACL_DOUBLE = 11, ACL_BOOL = 12, ACL_STRING = 13,
        ACL_COMPLEX64 = 16, ACL_COMPLEX128 = 17, ACL_BF16 = 27, ACL_INT4 = 29, ACL_UINT1 = 30, ACL_COMPLEX32 = 33,
        ACL_HIFLOAT8 = 34, ACL_FLOAT8_E5M2 = 35, ACL_FLOAT8_E4M3FN = 36, ACL_FLOAT8_E8M0 = 37, ACL_FLOAT6_E3M2 = 38,
        ACL_FLOAT6_E2M3 = 39, ACL_FLOAT4_E2M1 = 40, ACL_FLOAT4_E1M2 = 41,
    }
    /// How elements lie in memory.
    aclFormat(i32) {
        ACL_FORMAT_UNDEFINED = -1, ACL_FORMAT_NCHW = 0, ACL_FORMAT_NHWC = 1,
        /// Row-major, or by strides.
        ACL_FORMAT_ND = 2,
        ACL_FORMAT_NC1HWC0 = 3, ACL_FORMAT_FRACTAL_Z = 4, ACL_FORMAT_NC1HWC0_C04 = 12, ACL_FORMAT_HWCN = 16, ACL_FORMAT_NDHWC = 27,
        /// Blocks of 16 rows by 32 bytes.
        ACL_FORMAT_FRACTAL_NZ = 29,
        ACL_FORMAT_NCDHW = 30, ACL_FORMAT_NDC1HWC0 = 32, ACL_FRACTAL_Z_3D = 33, ACL_FORMAT_NC = 35, ACL_FORMAT_NCL = 47,
        ACL_FORMAT_FRACTAL_NZ_C0_16 = 50, ACL_FORMAT_FRACTAL_NZ_C0_32 = 51, ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
        ACL_FORMAT_FRACTAL_NZ_C0_4 = 53, ACL_FORMAT_FRACTAL_NZ_C0_8 = 54,
    }
    /// Which way a copy goes.
    aclrtMemcpyKind(i32) {
        ACL_MEMCPY_HOST_TO_HOST = 0, ACL_MEMCPY_HOST_TO_DEVICE = 1, ACL_MEMCPY_DEVICE_TO_HOST = 2, ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
        ACL_MEMCPY_DEFAULT = 4, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
        ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
    }
    /// Which pages an allocation comes from.
    aclrtMemMallocPolicy(u32) {
        ACL_MEM_MALLOC_HUGE_FIRST = 0, ACL_MEM_MALLOC_HUGE_ONLY = 1, ACL_MEM_MALLOC_NORMAL_ONLY = 2,
        ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3, ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4, ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
        ACL_MEM_MALLOC_HUGE1G_ONLY = 6, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7, ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
        ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000, ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x10_0000,
    }
    /// Which memory is asked about.
    aclrtMemAttr(i32) {
        ACL_DDR_MEM = 0, ACL_HBM_MEM = 1, ACL_DDR_MEM_HUGE = 2, ACL_DDR_MEM_NORMAL = 3,
        ACL_HBM_MEM_HUGE = 4, ACL_HBM_MEM_NORMAL = 5,
    }
    /// Where the program runs.
    aclrtRunMode(i32) { ACL_DEVICE = 0, ACL_HOST = 1, }
    /// How far a stream is.
    aclrtStreamStatus(i32) {
        ACL_STREAM_STATUS_COMPLETE = 0, ACL_STREAM_STATUS_NOT_READY = 1, ACL_STREAM_STATUS_RESERVED = 0xFFFF,
    }
    /// Whether an event has come to pass.
    aclrtEventRecordedStatus(i32) { ACL_EVENT_RECORDED_STATUS_NOT_READY = 0, ACL_EVENT_RECORDED_STATUS_COMPLETE = 1, }
    /// Whose last error is asked for.
    aclrtLastErrLevel(i32) { ACL_RT_THREAD_LEVEL = 0, }
    /// What arithmetic on the device does with an overflow.
    aclrtFloatOverflowMode(i32) {
        ACL_RT_OVERFLOW_MODE_SATURATION = 0, ACL_RT_OVERFLOW_MODE_INFNAN = 1, ACL_RT_OVERFLOW_MODE_UNDEF = 2,
    }
    /// A setting of the process or of a context.
    aclSysParamOpt(i32) { ACL_OPT_DETERMINISTIC = 0, ACL_OPT_ENABLE_DEBUG_KERNEL = 1, ACL_OPT_STRONG_CONSISTENCY = 2, }
}

/// `aclrtCreateStreamWithConfig`: less work for each launch.
pub const ACL_STREAM_FAST_LAUNCH: u32 = 1;
/// `aclrtCreateStreamWithConfig`: a synchronise that spins.
pub const ACL_STREAM_FAST_SYNC: u32 = 2;
/// `aclrtSetStreamFailureMode`: work behind a failure runs.
pub const ACL_CONTINUE_ON_FAILURE: u64 = 0;
/// `aclrtSetStreamFailureMode`: work behind a failure does not run.
pub const ACL_STOP_ON_FAILURE: u64 = 1;
