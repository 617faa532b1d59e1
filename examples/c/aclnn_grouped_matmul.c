/* The products of the experts of a layer, as a program for CANN computes them: on an NPU with CANN, and on any machine with
 * tilekern's host library. How to compile it: examples/c/aclnn_top_k_top_p.c.
 */
#include <stdio.h>
#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_grouped_matmul_swiglu_quant_weight_nz.h"

/* Rows, experts, and the sizes of a weight. */
enum { M = 12, E = 4, K = 32, N = 64, TENSORS = 7 };

static int check(int status, const char *what) {
  if (status == ACL_SUCCESS) return 1;
  fprintf(stderr, "%s: %d\n%s\n", what, status, aclGetRecentErrMsg());
  return 0;
}

/* Something that looks like data, the same on every machine. */
static unsigned next(void) {
  static unsigned state = 12345;
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

static int8_t x[M][K], plain[E][K][N], blocks[E][N / 32][K / 16][16][32], output[M][N / 2];
static float weight_scale[E][N], x_scale[M], output_scale[M];
/* The end of each expert's rows: three, one, none and five; the last three rows belong to nobody. */
static const int64_t group_list[E] = {3, 4, 4, 9};

static void fill(void) {
  for (int i = 0; i < M * K; i++) (&x[0][0])[i] = (int8_t)(next() % 255 - 127);
  for (int i = 0; i < E * K * N; i++) (&plain[0][0][0])[i] = (int8_t)(next() % 255 - 127);
  for (int i = 0; i < E * N; i++) (&weight_scale[0][0])[i] = (float)(1 + next() % 64) / 8192;
  for (int i = 0; i < M; i++) x_scale[i] = (float)(1 + next() % 32) / 1024;
  /* The NPU takes int8 weights in blocks of 16 rows by 32 columns. */
  for (int e = 0; e < E; e++)
    for (int k = 0; k < K; k++)
      for (int n = 0; n < N; n++) blocks[e][n / 32][k / 16][k % 16][n % 32] = plain[e][k][n];
}

/* One argument: its memory on the host and on the device, and its description. */
struct argument {
  void *host;
  size_t bytes;
  void *device;
  aclTensor *tensor;
};

/* Copies an argument to the device, and describes it; `storage` is its shape in memory where that is another one. */
static int describe(struct argument *a, aclDataType type, uint64_t rank, const int64_t *shape, const int64_t *storage) {
  int64_t strides[3] = {1, 1, 1};
  for (uint64_t i = rank - 1; i > 0; i--) strides[i - 1] = strides[i] * shape[i];
  if (!check(aclrtMalloc(&a->device, a->bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc")) return 0;
  if (!check(aclrtMemcpy(a->device, a->bytes, a->host, a->bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy")) return 0;
  aclFormat format = storage == NULL ? ACL_FORMAT_ND : ACL_FORMAT_FRACTAL_NZ;
  a->tensor = aclCreateTensor(shape, rank, type, strides, 0, format, storage == NULL ? shape : storage,
                              storage == NULL ? rank : 5, a->device);
  return a->tensor != NULL;
}

static int run(aclrtStream stream) {
  struct argument a[TENSORS] = {
      {x, sizeof x, NULL, NULL},
      {blocks, sizeof blocks, NULL, NULL},
      {weight_scale, sizeof weight_scale, NULL, NULL},
      {x_scale, sizeof x_scale, NULL, NULL},
      {(void *)group_list, sizeof group_list, NULL, NULL},
      {output, sizeof output, NULL, NULL},
      {output_scale, sizeof output_scale, NULL, NULL},
  };
  const int64_t by_row[] = {M}, x_shape[] = {M, K}, weight_shape[] = {E, K, N}, scale_shape[] = {E, N}, list_shape[] = {E};
  const int64_t storage[] = {E, N / 32, K / 16, 16, 32}, output_shape[] = {M, N / 2};
  int done = describe(&a[0], ACL_INT8, 2, x_shape, NULL) && describe(&a[1], ACL_INT8, 3, weight_shape, storage) &&
             describe(&a[2], ACL_FLOAT, 2, scale_shape, NULL) && describe(&a[3], ACL_FLOAT, 1, by_row, NULL) &&
             describe(&a[4], ACL_INT64, 1, list_shape, NULL) && describe(&a[5], ACL_INT8, 2, output_shape, NULL) &&
             describe(&a[6], ACL_FLOAT, 1, by_row, NULL);

  uint64_t bytes = 0;
  aclOpExecutor *executor;
  void *workspace = NULL;
  done = done && check(aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(a[0].tensor, a[1].tensor, NULL, NULL, a[2].tensor,
                                                                             a[3].tensor, a[4].tensor, a[5].tensor, a[6].tensor,
                                                                             NULL, &bytes, &executor),
                       "aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize");
  done = done && (bytes == 0 || check(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc"));
  done = done && check(aclnnGroupedMatmulSwigluQuantWeightNZ(workspace, bytes, executor, stream), "the second phase") &&
         check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream") &&
         check(aclrtMemcpy(output, sizeof output, a[5].device, sizeof output, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy") &&
         check(aclrtMemcpy(output_scale, sizeof output_scale, a[6].device, sizeof output_scale, ACL_MEMCPY_DEVICE_TO_HOST),
               "aclrtMemcpy");

  for (int i = 0; i < TENSORS; i++) {
    aclDestroyTensor(a[i].tensor);
    if (a[i].device != NULL) aclrtFree(a[i].device);
  }
  if (workspace != NULL) aclrtFree(workspace);
  return done;
}

int main(void) {
  aclrtStream stream;
  fill();
  if (!check(aclInit(NULL), "aclInit") || !check(aclrtSetDevice(0), "aclrtSetDevice")) return 1;
  if (!check(aclrtCreateStream(&stream), "aclrtCreateStream")) return 1;
  int done = run(stream);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  for (int m = 0; done && m < M; m++) {
    printf("%d: %.6g *", m, output_scale[m]);
    for (int n = 0; n < N / 2; n++) printf(" %d", output[m][n]);
    printf("\n");
  }
  return done ? 0 : 1;
}
