/* A product whose scales are subnormal, in a program that starts with flush-to-zero on: of as many rows as keep all threads busy.
   Prints the bits of each scale that differs from the one before it. */
#include <stdio.h>
#include <string.h>
#include "acl/acl.h"
#include "aclnnop/aclnn_grouped_matmul_swiglu_quant.h"

enum { M = 4096, K = 16, N = 32 };

static int8_t x[M * K], output[M * N / 2];
static uint32_t x_scale[M], output_scale[M];

static aclTensor *describe(const void *from, size_t bytes, aclDataType type, uint64_t rank, const int64_t *shape, void **memory) {
  if (aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return NULL;
  if (aclrtMemcpy(*memory, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS) return NULL;
  aclFormat format = rank == 5 ? ACL_FORMAT_FRACTAL_NZ : ACL_FORMAT_ND;
  return aclCreateTensor(shape, rank, type, NULL, 0, format, shape, rank, *memory);
}

int main(void) {
  int8_t weight[K * N];
  uint32_t scale[N], one = 0x3f800000;
  int64_t list = M, by_one[] = {1}, rows[] = {M, K}, columns[] = {1, N}, half[] = {M, N / 2};
  int64_t blocks[] = {1, N / 32, K / 16, 16, 32};
  memset(x, 1, sizeof x);
  memset(weight, 1, sizeof weight);
  /* As bits: 1 for the activations, 2^-140 for the gates. */
  for (int m = 0; m < M; m++) x_scale[m] = one;
  for (int n = 0; n < N; n++) scale[n] = n < N / 2 ? one : 1u << 9;
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  void *memory[7], *workspace = NULL;
  aclTensor *t[7] = {
      describe(x, sizeof x, ACL_INT8, 2, rows, &memory[0]),
      describe(weight, sizeof weight, ACL_INT8, 5, blocks, &memory[1]),
      describe(scale, sizeof scale, ACL_FLOAT, 2, columns, &memory[2]),
      describe(x_scale, sizeof x_scale, ACL_FLOAT, 1, rows, &memory[3]),
      describe(&list, sizeof list, ACL_INT64, 1, by_one, &memory[4]),
      describe(output, sizeof output, ACL_INT8, 2, half, &memory[5]),
      describe(output_scale, sizeof output_scale, ACL_FLOAT, 1, rows, &memory[6]),
  };
  uint64_t bytes;
  aclOpExecutor *executor;
  int status = aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(t[0], t[1], NULL, NULL, t[2], t[3], t[4], t[5], t[6], NULL, &bytes,
                                                             &executor);
  if (status == 0 && bytes > 0) status = aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (status == 0) status = aclnnGroupedMatmulSwigluQuant(workspace, bytes, executor, NULL);
  if (status == 0) status = aclrtSynchronizeStream(NULL);
  size_t size = sizeof output_scale;
  if (status == 0) status = aclrtMemcpy(output_scale, size, memory[6], size, ACL_MEMCPY_DEVICE_TO_HOST);
  if (status != 0) fprintf(stderr, "%d %s\n", status, aclGetRecentErrMsg());
  for (int m = 0; m < M; m++)
    if (m == 0 || output_scale[m] != output_scale[m - 1]) printf("%08x\n", (unsigned)output_scale[m]);
  return status != 0;
}
