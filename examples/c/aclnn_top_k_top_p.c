/* Filters logits and draws tokens, as a program for CANN does: on an NPU with CANN, and on any machine with tilekern's host
 * library.
 *
 *   ffi/opapi-host/install.sh /opt/tilekern && . /opt/tilekern/lib/tilekern-cann/set_env.sh
 *   cc -std=c99 -I "$ASCEND_HOME_PATH/include" examples/c/aclnn_top_k_top_p.c -L "$ASCEND_HOME_PATH/lib64" -lascendcl -lnnopbase -lopapi
 */
#include <stdio.h>
#include <string.h>
#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_apply_top_k_top_p.h"
#include "aclnnop/aclnn_gather.h"
#include "aclnnop/aclnn_multinomial.h"
#include "aclnnop/aclnn_top_k_top_p_sample_v2.h"

enum { BATCH = 3, VOCABULARY = 6, MAX_BUFFERS = 16 };

static void *buffers[MAX_BUFFERS];
static int used;

/* Success, or says why not. */
static int check(int status, const char *what) {
  if (status == ACL_SUCCESS) return 1;
  fprintf(stderr, "%s: %d\n%s\n", what, status, aclGetRecentErrMsg());
  return 0;
}

/* Memory of the device, with a copy of `bytes` from the host if there are any; freed by release(). */
static void *device(const void *from, size_t bytes) {
  void *memory = NULL;
  if (used == MAX_BUFFERS || !check(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc")) return NULL;
  buffers[used++] = memory;
  if (from != NULL && !check(aclrtMemcpy(memory, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy")) return NULL;
  return memory;
}

/* A contiguous matrix, or a vector where `columns` is 0. */
static aclTensor *tensor(void *memory, int64_t rows, int64_t columns, aclDataType type) {
  int64_t shape[2] = {rows, columns}, strides[2] = {columns == 0 ? 1 : columns, 1};
  uint64_t rank = columns == 0 ? 1 : 2;
  return aclCreateTensor(shape, rank, type, strides, 0, ACL_FORMAT_ND, shape, rank, memory);
}

/* What the second phase works in; freed when the stream is idle. */
static int workspace(uint64_t bytes, void **memory) {
  *memory = NULL;
  return bytes == 0 || (*memory = device(NULL, bytes)) != NULL;
}

static void release(void) {
  while (used > 0) aclrtFree(buffers[--used]);
}

/* The logits that top-k and top-p leave. */
static int filter(const aclTensor *logits, const aclTensor *p, const aclTensor *k, aclTensor *out, aclrtStream stream) {
  uint64_t bytes;
  aclOpExecutor *executor;
  void *memory;
  return check(aclnnApplyTopKTopPGetWorkspaceSize(logits, p, k, out, &bytes, &executor), "aclnnApplyTopKTopPGetWorkspaceSize") &&
         workspace(bytes, &memory) && check(aclnnApplyTopKTopP(memory, bytes, executor, stream), "aclnnApplyTopKTopP");
}

/* What is left of each row, sorted, and where it stood. */
static int survivors(const aclTensor *logits, const aclTensor *k, const aclTensor *p, const aclTensor *unused[2],
                     const aclTensor *places, const aclTensor *sorted, aclrtStream stream) {
  uint64_t bytes;
  aclOpExecutor *executor;
  void *memory;
  return check(aclnnTopKTopPSampleV2GetWorkspaceSize(logits, k, p, NULL, NULL, 1e-8, false, 32, 1024, true, true, unused[0],
                                                     unused[1], places, sorted, &bytes, &executor),
               "aclnnTopKTopPSampleV2GetWorkspaceSize") &&
         workspace(bytes, &memory) && check(aclnnTopKTopPSampleV2(memory, bytes, executor, stream), "aclnnTopKTopPSampleV2");
}

/* A place of each row, drawn by its probability, and the token that stood there. */
static int draw(const aclTensor *sorted, const aclTensor *places, int64_t offset, aclTensor *chosen, aclTensor *tokens,
                aclrtStream stream) {
  uint64_t bytes;
  aclOpExecutor *executor;
  void *memory;
  return check(aclnnMultinomialGetWorkspaceSize(sorted, 1, true, 1, offset, chosen, &bytes, &executor),
               "aclnnMultinomialGetWorkspaceSize") &&
         workspace(bytes, &memory) && check(aclnnMultinomial(memory, bytes, executor, stream), "aclnnMultinomial") &&
         check(aclnnGatherGetWorkspaceSize(places, 1, chosen, tokens, &bytes, &executor), "aclnnGatherGetWorkspaceSize") &&
         workspace(bytes, &memory) && check(aclnnGather(memory, bytes, executor, stream), "aclnnGather");
}

static int run(aclrtStream stream) {
  const float row[VOCABULARY] = {0.5f, 2.0f, 1.0f, 1.5f, 0.0f, -1.0f};
  float logits[BATCH][VOCABULARY], kept[BATCH][VOCABULARY];
  for (int b = 0; b < BATCH; b++) memcpy(logits[b], row, sizeof row);
  const int32_t top_k[BATCH] = {4, 4, 4};
  const float filter_p[BATCH] = {0.8f, 0.8f, 0.8f}, sample_p[BATCH] = {0.95f, 0.95f, 0.95f};

  void *x_memory = device(logits, sizeof logits), *k_memory = device(top_k, sizeof top_k);
  void *p_memory = device(filter_p, sizeof filter_p), *q_memory = device(sample_p, sizeof sample_p);
  void *kept_memory = device(NULL, sizeof kept), *sorted_memory = device(NULL, sizeof kept);
  void *places_memory = device(NULL, BATCH * VOCABULARY * sizeof(int64_t));
  void *chosen_memory = device(NULL, BATCH * sizeof(int64_t)), *tokens_memory = device(NULL, BATCH * sizeof(int64_t));
  if (tokens_memory == NULL) return 0;

  aclTensor *x = tensor(x_memory, BATCH, VOCABULARY, ACL_FLOAT), *k = tensor(k_memory, BATCH, 0, ACL_INT32);
  aclTensor *p = tensor(p_memory, BATCH, 0, ACL_FLOAT), *q = tensor(q_memory, BATCH, 0, ACL_FLOAT);
  aclTensor *kept_tensor = tensor(kept_memory, BATCH, VOCABULARY, ACL_FLOAT);
  aclTensor *sorted = tensor(sorted_memory, BATCH, VOCABULARY, ACL_FLOAT);
  aclTensor *places = tensor(places_memory, BATCH, VOCABULARY, ACL_INT64);
  aclTensor *chosen = tensor(chosen_memory, BATCH, 1, ACL_INT64), *tokens = tensor(tokens_memory, BATCH, 1, ACL_INT64);
  /* Outputs that the call does not write must be there all the same. */
  aclTensor *index = tensor(chosen_memory, BATCH, 0, ACL_INT64);
  const aclTensor *unused[2] = {index, kept_tensor};

  int64_t drawn[BATCH];
  int done = filter(x, p, k, kept_tensor, stream) && check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream") &&
             check(aclrtMemcpy(kept, sizeof kept, kept_memory, sizeof kept, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
  if (done) {
    printf("kept:");
    for (int v = 0; v < VOCABULARY; v++) printf(" %g", kept[0][v]);
    printf("\n");
  }
  done = done && survivors(x, k, q, unused, places, sorted, stream);
  /* Each step takes an offset 12 higher. */
  for (int64_t step = 0; done && step < 2; step++) {
    done = draw(sorted, places, 12 * step, chosen, tokens, stream) &&
           check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream") &&
           check(aclrtMemcpy(drawn, sizeof drawn, tokens_memory, sizeof drawn, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    if (done) printf("tokens: %d %d %d\n", (int)drawn[0], (int)drawn[1], (int)drawn[2]);
  }

  aclTensor *all[] = {x, k, p, q, kept_tensor, sorted, places, chosen, tokens, index};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) aclDestroyTensor(all[i]);
  return done;
}

int main(void) {
  aclrtStream stream;
  if (!check(aclInit(NULL), "aclInit") || !check(aclrtSetDevice(0), "aclrtSetDevice")) return 1;
  if (!check(aclrtCreateStream(&stream), "aclrtCreateStream")) return 1;
  int done = run(stream);
  aclrtDestroyStream(stream);
  release();
  aclrtResetDevice(0);
  aclFinalize();
  return done ? 0 : 1;
}
