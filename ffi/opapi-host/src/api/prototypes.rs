//! Every symbol has the prototype by which it is called: this file fails to compile otherwise.

use super::{descriptors, device, events, executors, gather, grouped, lists, memory, random, sampling, streams, system};
use tilekern_acl::{meta, operators, runtime};

macro_rules! prototypes {
    ($($prototypes:ident in $symbols:ident: $($symbol:ident)*;)*) => {$($(const _: $prototypes::$symbol = $symbols::$symbol;)*)*};
}

/// The older names of these.
macro_rules! as_prototype {
    ($($prototype:path: $($symbol:path),*;)*) => {$($(const _: $prototype = $symbol;)*)*};
}

prototypes! {
    runtime in system:
        aclInit aclFinalize aclFinalizeReference aclGetRecentErrMsg aclrtGetLastError aclrtPeekAtLastError aclsysGetVersionStr
        aclsysGetVersionNum;
    runtime in device:
        aclrtSetDevice aclrtResetDevice aclrtResetDeviceForce aclrtGetDevice aclrtGetDeviceCount aclrtGetRunMode aclrtGetSocName
        aclrtCreateContext aclrtDestroyContext aclrtSetCurrentContext aclrtGetCurrentContext aclrtSynchronizeDevice
        aclrtSetDeviceSatMode aclrtSetOpExecuteTimeOut aclrtSetSysParamOpt aclrtCtxSetSysParamOpt;
    runtime in streams:
        aclrtCreateStream aclrtCreateStreamWithConfig aclrtDestroyStream aclrtDestroyStreamForce aclrtSynchronizeStream
        aclrtSynchronizeStreamWithTimeout aclrtStreamQuery aclrtSetStreamFailureMode;
    runtime in events:
        aclrtCreateEvent aclrtCreateEventWithFlag aclrtDestroyEvent aclrtRecordEvent aclrtStreamWaitEvent aclrtSynchronizeEvent
        aclrtQueryEventStatus aclrtEventElapsedTime;
    runtime in memory:
        aclrtMalloc aclrtMallocAlign32 aclrtFree aclrtMallocHost aclrtFreeHost aclrtMemset aclrtMemsetAsync aclrtMemcpy
        aclrtMemcpyAsync aclrtMemcpy2d aclrtGetMemInfo;
    meta in descriptors:
        aclCreateTensor aclInitTensor aclDestroyTensor aclCreateScalar aclDestroyScalar aclGetViewShape aclGetStorageShape
        aclGetViewStrides aclGetViewOffset aclGetFormat aclGetDataType aclSetRawTensorAddr aclGetRawTensorAddr aclnnInit
        aclnnFinalize;
    runtime in descriptors:
        aclDataTypeSize;
    meta in lists:
        aclCreateIntArray aclDestroyIntArray aclGetIntArraySize aclCreateFloatArray aclDestroyFloatArray aclGetFloatArraySize
        aclCreateBoolArray aclDestroyBoolArray aclGetBoolArraySize aclCreateTensorList aclDestroyTensorList aclGetTensorListSize
        aclCreateScalarList aclDestroyScalarList aclGetScalarListSize;
    meta in executors:
        aclSetAclOpExecutorRepeatable aclDestroyAclOpExecutor aclSetInputTensorAddr aclSetOutputTensorAddr aclSetTensorAddr
        aclSetDynamicInputTensorAddr aclSetDynamicOutputTensorAddr aclSetDynamicTensorAddr;
    operators in sampling:
        aclnnTopKTopPSampleV2GetWorkspaceSize aclnnTopKTopPSampleGetWorkspaceSize aclnnApplyTopKTopPGetWorkspaceSize;
    operators in random:
        aclnnMultinomialGetWorkspaceSize aclnnMultinomialTensorGetWorkspaceSize aclnnStatelessExponentialTensorGetWorkspaceSize;
    operators in gather:
        aclnnGatherGetWorkspaceSize;
    operators in grouped:
        aclnnGroupedMatmulSwigluQuantGetWorkspaceSize aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize
        aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize;
}

as_prototype! {
    operators::aclnnRun:
        sampling::aclnnTopKTopPSampleV2, sampling::aclnnTopKTopPSample, sampling::aclnnApplyTopKTopP, random::aclnnMultinomial,
        random::aclnnMultinomialTensor, random::aclnnStatelessExponentialTensor, gather::aclnnGather,
        grouped::aclnnGroupedMatmulSwigluQuant, grouped::aclnnGroupedMatmulSwigluQuantWeightNZ,
        grouped::aclnnGroupedMatmulSwigluQuantV2, grouped::aclnnGroupedMatmulSwigluQuantWeightNzV2;
    meta::aclSetInputTensorAddr: executors::AclSetInputTensorAddr;
    meta::aclSetOutputTensorAddr: executors::AclSetOutputTensorAddr;
    meta::aclSetTensorAddr: executors::AclSetTensorAddr;
    meta::aclSetDynamicInputTensorAddr: executors::AclSetDynamicInputTensorAddr;
    meta::aclSetDynamicOutputTensorAddr: executors::AclSetDynamicOutputTensorAddr;
    meta::aclSetDynamicTensorAddr: executors::AclSetDynamicTensorAddr;
}
