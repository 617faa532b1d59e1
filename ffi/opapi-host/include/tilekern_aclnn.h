// The ACL and aclnn functions that libtilekern_opapi implements on the host, under the names and prototypes of CANN. Made by
// cbindgen from ffi/opapi-host/src and ffi/acl/src; do not edit. The installation has it behind acl/acl.h, aclnn/acl_meta.h and aclnnop/*.h.
#ifndef TILEKERN_ACLNN_H
#define TILEKERN_ACLNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int aclError;
typedef int32_t aclnnStatus;
typedef void *aclrtStream;
typedef void *aclrtContext;
typedef void *aclrtEvent;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

typedef enum aclDataType {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33,
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36,
  ACL_FLOAT8_E8M0 = 37,
  ACL_FLOAT6_E3M2 = 38,
  ACL_FLOAT6_E2M3 = 39,
  ACL_FLOAT4_E2M1 = 40,
  ACL_FLOAT4_E1M2 = 41,
} aclDataType;

typedef enum aclFormat {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NC1HWC0 = 3,
  ACL_FORMAT_FRACTAL_Z = 4,
  ACL_FORMAT_NC1HWC0_C04 = 12,
  ACL_FORMAT_HWCN = 16,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_FRACTAL_NZ = 29,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NDC1HWC0 = 32,
  ACL_FRACTAL_Z_3D = 33,
  ACL_FORMAT_NC = 35,
  ACL_FORMAT_NCL = 47,
  ACL_FORMAT_FRACTAL_NZ_C0_16 = 50,
  ACL_FORMAT_FRACTAL_NZ_C0_32 = 51,
  ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
  ACL_FORMAT_FRACTAL_NZ_C0_4 = 53,
  ACL_FORMAT_FRACTAL_NZ_C0_8 = 54,
} aclFormat;

typedef enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4,
  ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
  ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
  ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
  ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
  ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
  ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
  ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

typedef enum aclrtMemAttr {
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5,
} aclrtMemAttr;

typedef enum aclrtRunMode {
  ACL_DEVICE = 0,
  ACL_HOST = 1,
} aclrtRunMode;

typedef enum aclrtStreamStatus {
  ACL_STREAM_STATUS_COMPLETE = 0,
  ACL_STREAM_STATUS_NOT_READY = 1,
  ACL_STREAM_STATUS_RESERVED = 0xFFFF,
} aclrtStreamStatus;

typedef enum aclrtEventRecordedStatus {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtLastErrLevel {
  ACL_RT_THREAD_LEVEL = 0,
} aclrtLastErrLevel;

typedef enum aclrtFloatOverflowMode {
  ACL_RT_OVERFLOW_MODE_SATURATION = 0,
  ACL_RT_OVERFLOW_MODE_INFNAN = 1,
  ACL_RT_OVERFLOW_MODE_UNDEF = 2,
} aclrtFloatOverflowMode;

typedef enum aclSysParamOpt {
  ACL_OPT_DETERMINISTIC = 0,
  ACL_OPT_ENABLE_DEBUG_KERNEL = 1,
  ACL_OPT_STRONG_CONSISTENCY = 2,
} aclSysParamOpt;

#define ACL_STREAM_FAST_LAUNCH 1
#define ACL_STREAM_FAST_SYNC 2
#define ACL_CONTINUE_ON_FAILURE 0
#define ACL_STOP_ON_FAILURE 1

#define ACLNN_SUCCESS 0
#define ACL_SUCCESS 0
#define ACL_ERROR_INVALID_PARAM 100000
#define ACL_ERROR_UNINITIALIZE 100001
#define ACL_ERROR_REPEAT_INITIALIZE 100002
#define ACL_ERROR_INVALID_FILE 100003
#define ACL_ERROR_OP_NOT_FOUND 100024
#define ACL_ERROR_KERNEL_NOT_FOUND 100029
#define ACL_ERROR_REPEAT_FINALIZE 100037
#define ACL_ERROR_COMPILING_STUB_MODE 100039
#define ACL_ERROR_RT_PARAM_INVALID 107000
#define ACL_ERROR_RT_INVALID_DEVICEID 107001
#define ACL_ERROR_RT_CONTEXT_NULL 107002
#define ACL_ERROR_RT_STREAM_CONTEXT 107003
#define ACL_ERROR_RT_ADDR_UNALIGNED 107008
#define ACL_ERROR_RT_INVALID_MEMORY_TYPE 107016
#define ACL_ERROR_RT_INVALID_HANDLE 107017
#define ACL_ERROR_RT_WAIT_TIMEOUT 107019
#define ACL_ERROR_RT_TASK_TIMEOUT 107020
#define ACL_ERROR_RT_DEVICE_TASK_ABORT 107022
#define ACL_ERROR_RT_STREAM_ABORT 107023
#define ACL_ERROR_GE_PARAM_INVALID 145000
#define ACL_ERROR_GE_FORMAT_INVALID 145020
#define ACL_ERROR_GE_SHAPE_INVALID 145021
#define ACL_ERROR_GE_DATATYPE_INVALID 145022
#define ACL_ERROR_INVALID_OPP_PATH 148049
#define ACLNN_ERR_PARAM_NULLPTR 161001
#define ACLNN_ERR_PARAM_INVALID 161002
#define ACL_ERROR_BAD_ALLOC 200000
#define ACL_ERROR_API_NOT_SUPPORT 200001
#define ACL_ERROR_INVALID_DEVICE 200002
#define ACL_ERROR_MEMORY_ADDRESS_UNALIGNED 200003
#define ACL_ERROR_RESOURCE_NOT_MATCH 200004
#define ACL_ERROR_INVALID_RESOURCE_HANDLE 200005
#define ACL_ERROR_FEATURE_UNSUPPORTED 200006
#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT 207000
#define ACL_ERROR_RT_MEMORY_ALLOCATION 207001
#define ACL_ERROR_RT_MEMORY_FREE 207002
#define ACL_ERROR_RT_AICORE_OVER_FLOW 207003
#define ACL_ERROR_RT_NO_DEVICE 207004
#define ACL_ERROR_RT_RESOURCE_ALLOC_FAIL 207005
#define ACL_ERROR_RT_NO_STREAM_RESOURCE 207008
#define ACL_ERROR_RT_DEVICE_OOM 207018
#define ACL_ERROR_GE_MEMORY_ALLOCATION 245000
#define ACL_ERROR_STORAGE_OVER_LIMIT 300000
#define ACLNN_ERR_RUNTIME_ERROR 361001
#define ACL_ERROR_INTERNAL_ERROR 500000
#define ACL_ERROR_FAILURE 500001
#define ACL_ERROR_GE_FAILURE 500002
#define ACL_ERROR_RT_FAILURE 500003
#define ACL_ERROR_DRV_FAILURE 500004
#define ACL_ERROR_PROFILING_FAILURE 500005
#define ACL_ERROR_RT_INTERNAL_ERROR 507000
#define ACL_ERROR_RT_SOC_VERSION 507008
#define ACL_ERROR_RT_LOST_HEARTBEAT 507010
#define ACL_ERROR_RT_AICORE_TIMEOUT 507014
#define ACL_ERROR_RT_AICORE_EXCEPTION 507015
#define ACL_ERROR_RT_DEV_SETUP_ERROR 507033
#define ACL_ERROR_RT_VECTOR_CORE_TIMEOUT 507034
#define ACL_ERROR_RT_VECTOR_CORE_EXCEPTION 507035
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046
#define ACL_ERROR_RT_DEVICE_MEM_ERROR 507053
#define ACL_ERROR_RT_DRV_INTERNAL_ERROR 507899
#define ACL_ERROR_GE_INTERNAL_ERROR 545000
#define ACLNN_ERR_INNER 561000
#define ACLNN_ERR_INNER_INFERSHAPE_ERROR 561001
#define ACLNN_ERR_INNER_TILING_ERROR 561002
#define ACLNN_ERR_INNER_FIND_KERNEL_ERROR 561003
#define ACLNN_ERR_INNER_CREATE_EXECUTOR 561101
#define ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR 561102
#define ACLNN_ERR_INNER_NULLPTR 561103
#define ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE 561104
#define ACLNN_ERR_INNER_KEY_CONFLICT 561105
#define ACLNN_ERR_INNER_INVALID_IMPL_MODE 561106
#define ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND 561107
#define ACLNN_ERR_INNER_LOAD_JSON_FAILED 561108
#define ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND 561109
#define ACLNN_ERR_INNER_JSON_FORMAT_INVALID 561110
#define ACLNN_ERR_INNER_JSON_DTYPE_INVALID 561111
#define ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND 561112
#define ACLNN_ERR_INNER_OP_FILE_INVALID 561113
#define ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND 561114
#define ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH 561115
#define ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE 561116
#define ACLNN_ERR_INNER_INPUT_JSON_IS_NULL 561117
#define ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID 561118
#define ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID 561119


/// What `tk_opapi_live` counts: tensors, scalars, arrays and lists.
#define TK_OPAPI_DESCRIPTORS 0

/// What `tk_opapi_live` counts: executors that were neither run nor destroyed, and repeatable ones.
#define TK_OPAPI_EXECUTORS 1

/// What `tk_opapi_live` counts: memory of the device and of aclrtMallocHost.
#define TK_OPAPI_BUFFERS 2

/// What `tk_opapi_live` counts: streams that were created.
#define TK_OPAPI_STREAMS 3

/// What `tk_opapi_live` counts: events.
#define TK_OPAPI_EVENTS 4

/// What `tk_opapi_live` counts: contexts that were created.
#define TK_OPAPI_CONTEXTS 5

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// A tensor's description: dimensions are copied, nothing is validated. Null strides are those of a contiguous tensor, the offset
/// counts elements. Null for null dimensions with a count.
aclTensor *aclCreateTensor(const int64_t *viewDims,
                           uint64_t viewDimsNum,
                           aclDataType dataType,
                           const int64_t *stride,
                           int64_t offset,
                           aclFormat format,
                           const int64_t *storageDims,
                           uint64_t storageDimsNum,
                           void *tensorData);

/// Another description in the place of a tensor's.
aclnnStatus aclInitTensor(aclTensor *tensor,
                          const int64_t *viewDims,
                          uint64_t viewDimsNum,
                          aclDataType dataType,
                          const int64_t *stride,
                          int64_t offset,
                          aclFormat format,
                          const int64_t *storageDims,
                          uint64_t storageDimsNum,
                          void *tensorData);

/// The end of a tensor that no list owns; null is fine. The memory that it describes stays.
aclnnStatus aclDestroyTensor(const aclTensor *tensor);

/// A number. Null for a null value, and for a dtype that is none.
aclScalar *aclCreateScalar(void *value, aclDataType dataType);

/// The end of a scalar that no list owns; null is fine.
aclnnStatus aclDestroyScalar(const aclScalar *scalar);

/// The view's sizes, in memory that the caller releases.
aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum);

/// The storage's sizes, likewise.
aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims, uint64_t *storageDimsNum);

/// The view's strides in elements, likewise.
aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum);

/// The view's offset in elements.
aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset);

/// How its elements lie.
aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format);

/// What its elements are.
aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType);

/// Another address, in the description alone: an executor keeps its own.
aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr);

/// The address in the description.
aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr);

/// Bytes of an element; 0 for a dtype that has no whole ones.
size_t aclDataTypeSize(aclDataType dataType);

/// Beginning operators without the runtime: there is nothing to begin.
aclnnStatus aclnnInit(const char *configPath);

/// The counterpart of aclnnInit.
aclnnStatus aclnnFinalize(void);

/// This thread works on the device, in its default context.
aclError aclrtSetDevice(int32_t deviceId);

/// The counterpart of aclrtSetDevice.
aclError aclrtResetDevice(int32_t deviceId);

/// The same, however often the device was set.
aclError aclrtResetDeviceForce(int32_t deviceId);

/// This thread's device.
aclError aclrtGetDevice(int32_t *deviceId);

/// How many devices there are: one.
aclError aclrtGetDeviceCount(uint32_t *count);

/// The program runs on the host.
aclError aclrtGetRunMode(aclrtRunMode *runMode);

/// Ascend910B_tilekern: the operators are those of that generation, and this is not it.
const char *aclrtGetSocName(void);

/// A context beside the default one; this thread works in it from here on.
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/// Of a context that was created, never of a default one.
aclError aclrtDestroyContext(aclrtContext context);

/// This thread works in that context.
aclError aclrtSetCurrentContext(aclrtContext context);

/// This thread's context; 107002 where it has none.
aclError aclrtGetCurrentContext(aclrtContext *context);

/// Waits for every stream of this thread's device, and reports what failed in the first that has a failure; the others keep theirs.
aclError aclrtSynchronizeDevice(void);

/// Saturation or infinities: accepted, and without effect. Host operators say themselves what an overflow gives.
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);

/// When an operator counts as stuck: accepted, none does.
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);

/// A setting of the process: accepted, results are deterministic anyway.
aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);

/// A setting of this thread's context: accepted likewise.
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);

/// An event.
aclError aclrtCreateEvent(aclrtEvent *event);

/// The same; every event can do all that the flags ask for.
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);

/// The end of an event; streams that wait for it still do.
aclError aclrtDestroyEvent(aclrtEvent event);

/// The event comes to pass when the stream gets here.
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/// The stream waits here for the event's last recording, if it has one.
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/// This thread waits for the event; what failed before it in its stream is reported here.
aclError aclrtSynchronizeEvent(aclrtEvent event);

/// Whether the event has come to pass; if so, what stands before it counts as waited for.
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);

/// Milliseconds from one event to another.
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);

/// The second phase may run more than once, until the executor is destroyed. 561000 for an operator that cannot.
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);

/// Of an executor that the second phase did not take, or of a repeatable one; null is fine.
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

/// Another address for an input of a repeatable executor, counted in the order of the prototype.
aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *addr);

/// The same for an output.
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *addr);

/// The same for either; inputs come first.
aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *addr);

/// Another address for a member of a list that is an input.
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor,
                                         size_t irIndex,
                                         size_t relativeIndex,
                                         aclTensorList *tensors,
                                         void *addr);

/// The same for an output.
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor,
                                          size_t irIndex,
                                          size_t relativeIndex,
                                          aclTensorList *tensors,
                                          void *addr);

/// The same for either; inputs come first.
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor,
                                    size_t irIndex,
                                    size_t relativeIndex,
                                    aclTensorList *tensors,
                                    void *addr);

/// aclSetInputTensorAddr under its older name.
aclnnStatus AclSetInputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *addr);

/// aclSetOutputTensorAddr under its older name.
aclnnStatus AclSetOutputTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *addr);

/// aclSetTensorAddr under its older name.
aclnnStatus AclSetTensorAddr(aclOpExecutor *executor, size_t index, aclTensor *tensor, void *addr);

/// aclSetDynamicInputTensorAddr under its older name.
aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor *executor,
                                         size_t irIndex,
                                         size_t relativeIndex,
                                         aclTensorList *tensors,
                                         void *addr);

/// aclSetDynamicOutputTensorAddr under its older name.
aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor *executor,
                                          size_t irIndex,
                                          size_t relativeIndex,
                                          aclTensorList *tensors,
                                          void *addr);

/// aclSetDynamicTensorAddr under its older name.
aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor *executor,
                                    size_t irIndex,
                                    size_t relativeIndex,
                                    aclTensorList *tensors,
                                    void *addr);

/// out[i][j] = input[i][index[i][j]] for dim 1. An index that is out of range fails the work, as 507015.
aclnnStatus aclnnGatherGetWorkspaceSize(const aclTensor *input,
                                        int64_t dim,
                                        const aclTensor *index,
                                        aclTensor *out,
                                        uint64_t *workspaceSize,
                                        aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnGather(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// The products of experts, SwiGLU and quantisation. int8 weights are in blocks, as their format must say; their view may be plain.
aclnnStatus aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(const aclTensor *x,
                                                          const aclTensor *weight,
                                                          const aclTensor *bias,
                                                          const aclTensor *offset,
                                                          const aclTensor *weightScale,
                                                          const aclTensor *xScale,
                                                          const aclTensor *groupList,
                                                          aclTensor *output,
                                                          aclTensor *outputScale,
                                                          aclTensor *outputOffset,
                                                          uint64_t *workspaceSize,
                                                          aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnGroupedMatmulSwigluQuant(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// The same for a weight in blocks, whatever its format says; its storage shape has five dimensions.
aclnnStatus aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(const aclTensor *x,
                                                                  const aclTensor *weight,
                                                                  const aclTensor *bias,
                                                                  const aclTensor *offset,
                                                                  const aclTensor *weightScale,
                                                                  const aclTensor *xScale,
                                                                  const aclTensor *groupList,
                                                                  aclTensor *output,
                                                                  aclTensor *outputScale,
                                                                  aclTensor *outputOffset,
                                                                  uint64_t *workspaceSize,
                                                                  aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnGroupedMatmulSwigluQuantWeightNZ(void *workspace,
                                                  uint64_t workspaceSize,
                                                  aclOpExecutor *executor,
                                                  aclrtStream stream);

/// The second version: lists of weights, ends or counts of rows, and its own order of the scales.
aclnnStatus aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(const aclTensor *x,
                                                            const aclTensorList *weight,
                                                            const aclTensorList *weightScale,
                                                            const aclTensorList *weightAssistMatrix,
                                                            const aclTensor *bias,
                                                            const aclTensor *xScale,
                                                            const aclTensor *smoothScale,
                                                            const aclTensor *groupList,
                                                            int64_t dequantMode,
                                                            int64_t dequantDtype,
                                                            int64_t quantMode,
                                                            int64_t groupListType,
                                                            const aclIntArray *tuningConfigOptional,
                                                            aclTensor *output,
                                                            aclTensor *outputScale,
                                                            uint64_t *workspaceSize,
                                                            aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnGroupedMatmulSwigluQuantV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// The same for weights in blocks, whatever their formats say.
aclnnStatus aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize(const aclTensor *x,
                                                                    const aclTensorList *weight,
                                                                    const aclTensorList *weightScale,
                                                                    const aclTensorList *weightAssistMatrix,
                                                                    const aclTensor *bias,
                                                                    const aclTensor *xScale,
                                                                    const aclTensor *smoothScale,
                                                                    const aclTensor *groupList,
                                                                    int64_t dequantMode,
                                                                    int64_t dequantDtype,
                                                                    int64_t quantMode,
                                                                    int64_t groupListType,
                                                                    const aclIntArray *tuningConfigOptional,
                                                                    aclTensor *output,
                                                                    aclTensor *outputScale,
                                                                    uint64_t *workspaceSize,
                                                                    aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnGroupedMatmulSwigluQuantWeightNzV2(void *workspace,
                                                    uint64_t workspaceSize,
                                                    aclOpExecutor *executor,
                                                    aclrtStream stream);

/// An array. Null for a null value with a size.
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);

/// The end of an array; null is fine.
aclnnStatus aclDestroyIntArray(const aclIntArray *array);

/// How many values an array has.
aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size);

/// An array. Null for a null value with a size.
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);

/// The end of an array; null is fine.
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);

/// How many values an array has.
aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size);

/// An array. Null for a null value with a size.
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);

/// The end of an array; null is fine.
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);

/// How many values an array has.
aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size);

/// A list, which owns its members from here on: they end with it. Null for a member that is dead, or in a list already.
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size);

/// The end of a list and of its members; null is fine.
aclnnStatus aclDestroyTensorList(const aclTensorList *list);

/// How many members a list has.
aclnnStatus aclGetTensorListSize(const aclTensorList *list, uint64_t *size);

/// A list, which owns its members from here on: they end with it. Null for a member that is dead, or in a list already.
aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size);

/// The end of a list and of its members; null is fine.
aclnnStatus aclDestroyScalarList(const aclScalarList *list);

/// How many members a list has.
aclnnStatus aclGetScalarListSize(const aclScalarList *list, uint64_t *size);

/// Memory of the device, aligned to 64 bytes. A size of 0 is an error.
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/// The same.
aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/// Of what aclrtMalloc gave. 207002 while work on a stream uses it that no synchronise has waited for; it stays then.
aclError aclrtFree(void *devPtr);

/// Memory of the host that copies in a stream need not wait for.
aclError aclrtMallocHost(void **hostPtr, size_t size);

/// Of what aclrtMallocHost gave.
aclError aclrtFreeHost(void *hostPtr);

/// The same byte everywhere.
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);

/// The same, in a stream.
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream);

/// A copy. It waits for itself, and not for what streams hold: bytes that they still use are refused, with 107000.
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind);

/// The same, in a stream. Only memory of aclrtMallocHost and of the device is copied while the caller goes on.
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream);

/// A copy of `height` rows of `width` bytes.
aclError aclrtMemcpy2d(void *dst,
                       size_t dpitch,
                       const void *src,
                       size_t spitch,
                       size_t width,
                       size_t height,
                       aclrtMemcpyKind kind);

/// Bytes that the machine has, and has free.
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/// Draws numsamples indices from each row of weights.
aclnnStatus aclnnMultinomialGetWorkspaceSize(const aclTensor *weights,
                                             int64_t numsamples,
                                             bool replacement,
                                             int64_t seed,
                                             int64_t offset,
                                             aclTensor *out,
                                             uint64_t *workspaceSize,
                                             aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnMultinomial(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// The same, with seed and offset in tensors of one number each; the number offset is added.
aclnnStatus aclnnMultinomialTensorGetWorkspaceSize(const aclTensor *weights,
                                                   int64_t numsamples,
                                                   bool replacement,
                                                   const aclTensor *seedTensor,
                                                   const aclTensor *offsetTensor,
                                                   int64_t offset,
                                                   aclTensor *out,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnMultinomialTensor(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// Fills a tensor with exponential numbers of the rate lambd.
aclnnStatus aclnnStatelessExponentialTensorGetWorkspaceSize(aclTensor *values,
                                                            const aclTensor *seedTensor,
                                                            const aclTensor *offsetTensor,
                                                            int64_t offset,
                                                            double lambd,
                                                            uint64_t *workspaceSize,
                                                            aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnStatelessExponentialTensor(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// Filters logits, and chooses a token of each row or gives what is left.
aclnnStatus aclnnTopKTopPSampleV2GetWorkspaceSize(const aclTensor *logits,
                                                  const aclTensor *topK,
                                                  const aclTensor *topP,
                                                  const aclTensor *qOptional,
                                                  const aclTensor *minPsOptional,
                                                  double eps,
                                                  bool isNeedLogits,
                                                  int64_t topKGuess,
                                                  int64_t ksMax,
                                                  bool inputIsLogits,
                                                  bool isNeedSampleResult,
                                                  const aclTensor *logitsSelectIdx,
                                                  const aclTensor *logitsTopKpSelect,
                                                  const aclTensor *logitsIdx,
                                                  const aclTensor *logitsSortMasked,
                                                  uint64_t *workspaceSize,
                                                  aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnTopKTopPSampleV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// The first version of the same, for f16 and bf16.
aclnnStatus aclnnTopKTopPSampleGetWorkspaceSize(const aclTensor *logits,
                                                const aclTensor *topK,
                                                const aclTensor *topP,
                                                const aclTensor *qOptional,
                                                double eps,
                                                bool isNeedLogits,
                                                int64_t topKGuess,
                                                const aclTensor *logitsSelectIdx,
                                                const aclTensor *logitsTopKpSelect,
                                                uint64_t *workspaceSize,
                                                aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnTopKTopPSample(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// Makes every logit -inf that top-k or top-p drops. p comes before k.
aclnnStatus aclnnApplyTopKTopPGetWorkspaceSize(const aclTensor *logits,
                                               const aclTensor *p,
                                               const aclTensor *k,
                                               aclTensor *out,
                                               uint64_t *workspaceSize,
                                               aclOpExecutor **executor);

/// Puts it into the stream. The executor of this operator is taken, also by a call that fails, unless it was made repeatable.
aclnnStatus aclnnApplyTopKTopP(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

/// A stream of this thread's context.
aclError aclrtCreateStream(aclrtStream *stream);

/// The same; priority and flags make no difference here.
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);

/// Runs what is queued, and destroys.
aclError aclrtDestroyStream(aclrtStream stream);

/// Destroys; what has not begun does not run.
aclError aclrtDestroyStreamForce(aclrtStream stream);

/// Waits for everything in the stream; what failed is reported here, as 507015.
aclError aclrtSynchronizeStream(aclrtStream stream);

/// The same, for at most so many milliseconds; -1 is forever.
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/// Whether everything in the stream is done.
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/// Whether work behind a failure runs (0) or not (1).
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/// Begins ACL. The file's contents have nothing to configure here; NULL for none. 100002 if it was begun before.
aclError aclInit(const char *configPath);

/// Ends ACL, however often it was begun. With TILEKERN_OPAPI_LEAKS=1 in the environment it says on standard error what is alive.
aclError aclFinalize(void);

/// One owner fewer; ends ACL with the last.
aclError aclFinalizeReference(uint64_t *refCount);

/// What went wrong last on this thread; "" where nothing did. Reading clears it. Valid until the thread asks again.
const char *aclGetRecentErrMsg(void);

/// The code of the last runtime call that failed on this thread; reading clears it.
aclError aclrtGetLastError(aclrtLastErrLevel level);

/// The same, without clearing it.
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

/// The version of this library, whatever the package: at least 128 bytes of room.
aclError aclsysGetVersionStr(char *pkgName, char *versionStr);

/// The same as a number: major * 10^7 + minor * 10^5 + patch * 10^3.
aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum);

/// How many of a kind are alive: TK_OPAPI_DESCRIPTORS and so on; -1 for another kind. Not a function of CANN.
int64_t tk_opapi_live(int32_t kind);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus


#endif // TILEKERN_ACLNN_H
