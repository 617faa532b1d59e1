/* A CANN that computes nothing: the symbols that a call needs, with an account of what lives. With -DPACKAGE it is a package beside CANN,
 * whose GroupedMatmulSwigluQuant has one parameter more. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef PACKAGE

/* How often the wider prototype was called without a limit, and phase two ran. */
int package_calls, package_runs;

int32_t aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(const void *x, const void *weight, const void *bias, const void *offset,
                                                      const void *scale, const void *x_scale, const void *groups, double limited,
                                                      void *out, void *out_scale, void *out_offset, uint64_t *bytes,
                                                      void **executor);
int32_t aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(const void *x, const void *weight, const void *bias, const void *offset,
                                                      const void *scale, const void *x_scale, const void *groups, double limited,
                                                      void *out, void *out_scale, void *out_offset, uint64_t *bytes,
                                                      void **executor) {
  if (!x || !weight || bias || offset || !scale || !x_scale || !groups || !out || !out_scale || out_offset) return 161001;
  if (limited != 0) return 161002;
  package_calls++;
  *bytes = 0;
  *executor = NULL;
  return 0;
}

int32_t aclnnGroupedMatmulSwigluQuant(void *workspace, uint64_t bytes, void *executor, void *stream);
int32_t aclnnGroupedMatmulSwigluQuant(void *workspace, uint64_t bytes, void *executor, void *stream) {
  package_runs += workspace == NULL && bytes == 0 && executor == NULL && stream != NULL;
  return 0;
}

#else

/* What lives, what a function answers, and how often phase two ran. */
int cann_live, cann_runs;
const char *cann_failing;
int32_t cann_code;

static int32_t answer(const char *name) {
  return cann_failing != NULL && strcmp(name, cann_failing) == 0 ? cann_code : 0;
}

#define RUNTIME(name, parameters) \
  int32_t name parameters;        \
  int32_t name parameters { return answer(#name); }
RUNTIME(aclInit, (const char *path))
RUNTIME(aclrtSetDevice, (int32_t device))
RUNTIME(aclrtResetDevice, (int32_t device))
RUNTIME(aclrtCreateStream, (void **stream))
RUNTIME(aclrtDestroyStream, (void *stream))
RUNTIME(aclrtSynchronizeStream, (void *stream))
RUNTIME(aclrtMalloc, (void **data, size_t size, unsigned policy))
RUNTIME(aclrtFree, (void *data))
RUNTIME(aclrtMemcpy, (void *to, size_t max, const void *from, size_t count, int kind))

const char *aclGetRecentErrMsg(void);
const char *aclGetRecentErrMsg(void) { return "EZ9999: said the library"; }

static char something;

void *aclCreateTensor(const int64_t *dims, uint64_t rank, int type, const int64_t *strides, int64_t offset, int format,
                      const int64_t *storage, uint64_t storage_rank, void *data);
void *aclCreateTensor(const int64_t *dims, uint64_t rank, int type, const int64_t *strides, int64_t offset, int format,
                      const int64_t *storage, uint64_t storage_rank, void *data) {
  (void)dims, (void)rank, (void)type, (void)strides, (void)offset, (void)format, (void)storage, (void)storage_rank, (void)data;
  if (answer("aclCreateTensor") != 0) return NULL;
  cann_live++;
  return &something;
}

int32_t aclDestroyTensor(const void *tensor);
int32_t aclDestroyTensor(const void *tensor) {
  cann_live -= tensor != NULL;
  return 0;
}

void *aclCreateTensorList(const void *const *tensors, uint64_t count);
void *aclCreateTensorList(const void *const *tensors, uint64_t count) {
  (void)tensors, (void)count;
  return &something;
}

int32_t aclDestroyTensorList(const void *list);
int32_t aclDestroyTensorList(const void *list) { return aclDestroyTensor(list); }

int32_t aclDestroyAclOpExecutor(void *executor);
int32_t aclDestroyAclOpExecutor(void *executor) {
  (void)executor;
  cann_live--;
  return 0;
}

static int32_t one(const char *name, uint64_t *bytes, void **executor) {
  int32_t code = answer(name);
  if (code != 0) return code;
  *bytes = 256;
  *executor = &something;
  cann_live++;
  return 0;
}

#define TWO(name)                                                                     \
  int32_t name(void *workspace, uint64_t bytes, void *executor, void *stream);        \
  int32_t name(void *workspace, uint64_t bytes, void *executor, void *stream) {       \
    (void)workspace, (void)executor, (void)stream;                                    \
    cann_live--;                                                                      \
    cann_runs += bytes == 256;                                                        \
    return answer(#name);                                                             \
  }

int32_t aclnnTopKTopPSampleV2GetWorkspaceSize(const void *logits, const void *k, const void *p, const void *q, const void *m,
                                              double eps, bool need, int64_t guess, int64_t ks_max, bool in, bool middle,
                                              const void *chosen, const void *select, const void *idx, const void *sorted,
                                              uint64_t *bytes, void **executor);
int32_t aclnnTopKTopPSampleV2GetWorkspaceSize(const void *logits, const void *k, const void *p, const void *q, const void *m,
                                              double eps, bool need, int64_t guess, int64_t ks_max, bool in, bool middle,
                                              const void *chosen, const void *select, const void *idx, const void *sorted,
                                              uint64_t *bytes, void **executor) {
  (void)q, (void)m, (void)need, (void)middle;
  if (!logits || !k || !p || !chosen || !select || !idx || !sorted) return 161001;
  if (eps != 1e-8 || guess != 32 || ks_max != 1024 || !in) return 161002;
  return one("aclnnTopKTopPSampleV2GetWorkspaceSize", bytes, executor);
}
TWO(aclnnTopKTopPSampleV2)

int32_t aclnnApplyTopKTopPGetWorkspaceSize(const void *logits, const void *p, const void *k, void *out, uint64_t *bytes,
                                           void **executor);
int32_t aclnnApplyTopKTopPGetWorkspaceSize(const void *logits, const void *p, const void *k, void *out, uint64_t *bytes,
                                           void **executor) {
  (void)p, (void)k;
  if (!logits || !out) return 161001;
  return one("aclnnApplyTopKTopPGetWorkspaceSize", bytes, executor);
}
TWO(aclnnApplyTopKTopP)

/* The official prototype, which must not be called where a package has the function. */
int32_t aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(void);
int32_t aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(void) { return 561000; }
TWO(aclnnGroupedMatmulSwigluQuant)

#endif
