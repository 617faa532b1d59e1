//! The functions of a CANN, or of a library that stands in for it.

use crate::meta::*;
use crate::operators::*;
use crate::runtime::*;
use core::ffi::{CStr, c_void};

/// [`Functions`] that do what their names say.
#[derive(Clone, Copy, Debug)]
pub struct Table(Functions);

impl Table {
    /// Takes the functions.
    ///
    /// # Safety
    ///
    /// Each has the behaviour of the symbol that its field is called by, for good.
    pub const unsafe fn new(functions: Functions) -> Table {
        Table(functions)
    }
}

impl core::ops::Deref for Table {
    type Target = Functions;
    fn deref(&self) -> &Functions {
        &self.0
    }
}

/// Everything that is called. Each field bears its symbol's name; what a CANN may lack is optional.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Devices, streams and memory.
    pub runtime: Runtime,
    /// Descriptors and executors.
    pub meta: Meta,
    /// Operators.
    pub operators: Operators,
}

/// Devices, streams and memory.
#[derive(Clone, Copy, Debug)]
#[allow(non_snake_case, missing_docs)]
pub struct Runtime {
    pub aclInit: aclInit,
    pub aclGetRecentErrMsg: aclGetRecentErrMsg,
    pub aclrtSetDevice: aclrtSetDevice,
    pub aclrtResetDevice: aclrtResetDevice,
    pub aclrtCreateStream: aclrtCreateStream,
    pub aclrtDestroyStream: aclrtDestroyStream,
    pub aclrtSynchronizeStream: aclrtSynchronizeStream,
    pub aclrtMalloc: aclrtMalloc,
    pub aclrtFree: aclrtFree,
    pub aclrtMemcpy: aclrtMemcpy,
    pub aclrtSynchronizeDevice: Option<aclrtSynchronizeDevice>,
    pub aclrtGetCurrentContext: Option<aclrtGetCurrentContext>,
    pub aclrtSetCurrentContext: Option<aclrtSetCurrentContext>,
    pub aclrtGetDeviceCount: Option<aclrtGetDeviceCount>,
    pub aclrtGetSocName: Option<aclrtGetSocName>,
    pub aclrtCreateEvent: Option<aclrtCreateEvent>,
    pub aclrtDestroyEvent: Option<aclrtDestroyEvent>,
    pub aclrtRecordEvent: Option<aclrtRecordEvent>,
    pub aclrtStreamWaitEvent: Option<aclrtStreamWaitEvent>,
    pub aclrtSynchronizeEvent: Option<aclrtSynchronizeEvent>,
}

/// Descriptors and executors.
#[derive(Clone, Copy, Debug)]
#[allow(non_snake_case, missing_docs)]
pub struct Meta {
    pub aclCreateTensor: aclCreateTensor,
    pub aclDestroyTensor: aclDestroyTensor,
    pub aclCreateTensorList: aclCreateTensorList,
    pub aclDestroyTensorList: aclDestroyTensorList,
    pub aclDestroyAclOpExecutor: aclDestroyAclOpExecutor,
}

/// Both phases of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Operator<P> {
    /// `..GetWorkspaceSize`
    pub workspace: P,
    /// Phase two.
    pub run: aclnnRun,
}

/// Phase one of GroupedMatmulSwigluQuant, whose prototype hangs on the library: vllm-ascend's package exports the official names
/// with one parameter more.
#[derive(Clone, Copy, Debug)]
pub enum Grouped<O, L> {
    /// Out of CANN.
    Official(O),
    /// Out of a package beside CANN: to be called with a limit of 0.
    Limited(L),
}

/// V1, by either prototype.
pub type GroupedV1 = Grouped<aclnnGroupedMatmulSwigluQuantGetWorkspaceSize, aclnnGroupedMatmulSwigluQuantGetWorkspaceSizeLimited>;
/// V2, by either prototype.
pub type GroupedV2 =
    Grouped<aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize, aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSizeLimited>;

/// The operators; none of them needs to be there.
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_snake_case, missing_docs)]
pub struct Operators {
    pub aclnnTopKTopPSampleV2: Option<Operator<aclnnTopKTopPSampleV2GetWorkspaceSize>>,
    pub aclnnTopKTopPSample: Option<Operator<aclnnTopKTopPSampleGetWorkspaceSize>>,
    pub aclnnApplyTopKTopP: Option<Operator<aclnnApplyTopKTopPGetWorkspaceSize>>,
    pub aclnnMultinomial: Option<Operator<aclnnMultinomialGetWorkspaceSize>>,
    pub aclnnMultinomialTensor: Option<Operator<aclnnMultinomialTensorGetWorkspaceSize>>,
    pub aclnnGather: Option<Operator<aclnnGatherGetWorkspaceSize>>,
    pub aclnnGroupedMatmulSwigluQuant: Option<Operator<GroupedV1>>,
    pub aclnnGroupedMatmulSwigluQuantWeightNZ: Option<Operator<GroupedV1>>,
    pub aclnnGroupedMatmulSwigluQuantV2: Option<Operator<GroupedV2>>,
    pub aclnnGroupedMatmulSwigluQuantWeightNzV2: Option<Operator<GroupedV2>>,
}

/// The address of a symbol, null where it is missing.
pub type Find<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

/// The function of a symbol.
///
/// # Safety
///
/// `P` is the symbol's prototype, and the library stays.
pub(crate) unsafe fn function<P: Copy>(find: Find<'_>, symbol: &CStr) -> Option<P> {
    const { assert!(size_of::<P>() == size_of::<*mut c_void>()) };
    let address = find(symbol);
    // SAFETY: a function pointer and an address are of one size, and the caller knows the prototype.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy(&address) })
}

/// A C string of an identifier.
macro_rules! symbol {
    ($($name:expr),*) => {
        const { match CStr::from_bytes_with_nul(concat!($($name,)* "\0").as_bytes()) { Ok(name) => name, Err(_) => c"" } }
    };
}

/// A struct out of the symbols that its fields are called by. A missing one ends it with its name.
macro_rules! from_symbols {
    ($find:ident, $name:ident { $($required:ident)* } $({ $($optional:ident)* })?) => {
        // SAFETY: each field has its symbol's prototype; the rest is the caller's promise.
        unsafe { Ok($name {
            $($required: function($find, symbol!(stringify!($required))).ok_or(stringify!($required))?,)*
            $($($optional: function($find, symbol!(stringify!($optional))),)*)?
        }) }
    };
}

impl Runtime {
    /// Out of one library; the name of a symbol that must not be missing.
    ///
    /// # Safety
    ///
    /// What `find` gives are the functions of ACL, for good.
    pub unsafe fn find(find: Find<'_>) -> Result<Runtime, &'static str> {
        from_symbols!(find, Runtime {
            aclInit aclGetRecentErrMsg aclrtSetDevice aclrtResetDevice aclrtCreateStream aclrtDestroyStream aclrtSynchronizeStream
            aclrtMalloc aclrtFree aclrtMemcpy
        } {
            aclrtSynchronizeDevice aclrtGetCurrentContext aclrtSetCurrentContext aclrtGetDeviceCount aclrtGetSocName
            aclrtCreateEvent aclrtDestroyEvent aclrtRecordEvent aclrtStreamWaitEvent aclrtSynchronizeEvent
        })
    }
}

impl Meta {
    /// Out of one library; the name of a symbol that must not be missing.
    ///
    /// # Safety
    ///
    /// What `find` gives are the functions of aclnn's base, for good.
    pub unsafe fn find(find: Find<'_>) -> Result<Meta, &'static str> {
        from_symbols!(find, Meta {
            aclCreateTensor aclDestroyTensor aclCreateTensorList aclDestroyTensorList aclDestroyAclOpExecutor
        })
    }
}

/// Both phases, or none.
///
/// # Safety
///
/// As [`function`]'s.
unsafe fn phases<P: Copy>(find: Find<'_>, workspace: &CStr, run: &CStr) -> Option<Operator<P>> {
    // SAFETY: as promised by the caller; phase two is the same for all.
    unsafe { Some(Operator { workspace: function(find, workspace)?, run: function(find, run)? }) }
}

impl Operators {
    /// Adds what is not there yet out of one library.
    ///
    /// # Safety
    ///
    /// What `find` gives are operators of aclnn, for good; `custom` says truly whether the library belongs to a package beside
    /// CANN.
    pub unsafe fn find(&mut self, find: Find<'_>, custom: bool) {
        macro_rules! add {
            ($($name:ident)*) => {
                // SAFETY: each field has its symbol's prototype; the rest is the caller's promise.
                $(self.$name = self.$name.or_else(|| unsafe {
                    phases(find, symbol!(stringify!($name), "GetWorkspaceSize"), symbol!(stringify!($name)))
                });)*
            };
        }
        macro_rules! add_grouped {
            ($($name:ident)*) => {
                $(self.$name = self.$name.or_else(|| {
                    let (workspace, run) = (symbol!(stringify!($name), "GetWorkspaceSize"), symbol!(stringify!($name)));
                    // SAFETY: the prototype is the one that such a library has.
                    unsafe { grouped(find, workspace, run, custom) }
                });)*
            };
        }
        add!(aclnnTopKTopPSampleV2 aclnnTopKTopPSample aclnnApplyTopKTopP aclnnMultinomial aclnnMultinomialTensor aclnnGather);
        add_grouped!(aclnnGroupedMatmulSwigluQuant aclnnGroupedMatmulSwigluQuantWeightNZ);
        add_grouped!(aclnnGroupedMatmulSwigluQuantV2 aclnnGroupedMatmulSwigluQuantWeightNzV2);
    }
}

/// # Safety
///
/// As [`function`]'s, `O` being CANN's prototype and `L` that of a package beside it.
unsafe fn grouped<O: Copy, L: Copy>(
    find: Find<'_>,
    workspace: &CStr,
    run: &CStr,
    custom: bool,
) -> Option<Operator<Grouped<O, L>>> {
    // SAFETY: as promised by the caller.
    unsafe {
        if custom {
            let Operator { workspace, run } = phases(find, workspace, run)?;
            Some(Operator { workspace: Grouped::Limited(workspace), run })
        } else {
            let Operator { workspace, run } = phases(find, workspace, run)?;
            Some(Operator { workspace: Grouped::Official(workspace), run })
        }
    }
}

impl Table {
    /// Whether this is the library that runs the operators on the host's processor.
    pub fn is_host(&self) -> bool {
        let Some(name) = self.runtime.aclrtGetSocName else { return false };
        // SAFETY: a call without arguments.
        let name = unsafe { name() };
        // SAFETY: a string that stays.
        !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes().ends_with(b"_tilekern")
    }
}
