/* The grouped product: numbers that can be checked by hand, every refusal by its code, and no allocation. */
#include "check.h"

void *__libc_malloc(size_t bytes);
static volatile size_t allocations;

void *malloc(size_t bytes) {
  allocations++;
  return __libc_malloc(bytes);
}

static double memory[1 << 17];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

enum { M = 3, K = 2, N = 4, E = 2 };

static int8_t x[M * K] = {1, 0, 0, 1, 1, 1}, weight[E * K * N], output[M * N / 2];
static float weight_scale[E * N] = {1, 1, 1, 1, 1, 1, 1, 1}, x_scale[M] = {1, 1, 1}, output_scale[M], output_offset[M];
static int64_t ends[E] = {1, 2};
static const int64_t x_shape[] = {M, K}, weight_shape[] = {E, K, N}, channels[] = {E, N}, rows[] = {M}, groups[] = {E};
static const int64_t output_shape[] = {M, N / 2};
static tk_tensor tensors[9];

static tk_grouped_matmul_swiglu_quant_args call(void) {
  tk_grouped_matmul_swiglu_quant_args args = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT;
  tensors[0] = tensor(x, x_shape, 2, TK_I8), tensors[1] = tensor(weight, weight_shape, 3, TK_I8);
  tensors[2] = tensor(weight_scale, channels, 2, TK_F32), tensors[3] = tensor(x_scale, rows, 1, TK_F32);
  tensors[4] = tensor(ends, groups, 1, TK_I64), tensors[5] = tensor(output, output_shape, 2, TK_I8);
  tensors[6] = tensor(output_scale, rows, 1, TK_F32), tensors[7] = tensor(output_offset, rows, 1, TK_F32);
  args.x = &tensors[0], args.weight = &tensors[1], args.weight_scale = &tensors[2], args.x_scale = &tensors[3];
  args.group_list = &tensors[4], args.output = &tensors[5], args.output_scale = &tensors[6];
  return args;
}

static int run(tk_grouped_matmul_swiglu_quant_args *args) {
  static const tk_context initial = TK_CONTEXT_INIT;
  tk_context context = initial;
  size_t bytes;
  int status = tk_grouped_matmul_swiglu_quant_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  return tk_grouped_matmul_swiglu_quant(&context, args, workspace(), bytes);
}

int main(void) {
  int i;
  tk_grouped_matmul_swiglu_quant_args args = call();
  /* Expert 0, row k = 0: activations 100 and 50 (whose sigmoid is 1), gates 2 and -1. Expert 1, row k = 1: 64, 64 and 1, 1. */
  static const int8_t first[] = {100, 50, 2, -1}, second[] = {64, 64, 1, 1};
  memcpy(weight, first, sizeof first);
  memcpy(weight + (E - 1) * K * N + N, second, sizeof second);
  CHECK(args.weight_format == TK_FORMAT_ND && args.group_list_type == TK_GROUP_LIST_ENDS);
  CHECK(args.arithmetic == 1 && !args.fp16_rounding);
  memset(output, 77, sizeof output);
  for (i = 0; i < M; i++) output_scale[i] = -1;
  CHECK_STATUS(run(&args), 0);
  CHECK(output_scale[0] == 200.0f / 127 && output_scale[1] == 64.0f / 127 && output_scale[2] == -1);
  CHECK(output[0] == 127 && output[1] == -32 && output[2] == 127 && output[3] == 127 && output[4] == 77 && output[5] == 77);

  /* Counts, and an offset for the output: S = 200, -50 and a constant row. */
  ends[1] = 1, args.group_list_type = TK_GROUP_LIST_COUNTS, args.output_offset = &tensors[7];
  CHECK_STATUS(run(&args), 0);
  CHECK(output_scale[0] == 250.0f / 255 && output_offset[0] == -77 && output[0] == 127 && output[1] == -128);
  CHECK(output_scale[1] == 64 && output_offset[1] == 0 && output[2] == 1 && output[3] == 1);

  memset(output, 77, sizeof output);
  args.fp16_rounding = true;
  CHECK_STATUS(run(&args), 161002);
  args = call(), args.x = NULL;
  CHECK_STATUS(run(&args), 161001);
  args = call(), args.arithmetic = 3;
  CHECK_STATUS(run(&args), 161002);
  args = call(), tensors[1].dtype = TK_I4;
  CHECK_STATUS(run(&args), 161001); /* int4 weights need a bias */
  args = call(), tensors[2].dtype = TK_U64;
  CHECK_STATUS(run(&args), 161002); /* a scale of int4 weights */
  args = call(), tensors[4].dtype = TK_I32;
  CHECK_STATUS(run(&args), 161002);
  /* A missing tensor comes first. */
  args = call(), tensors[0].dtype = TK_U8, args.output = NULL;
  CHECK_STATUS(run(&args), 161001);
  args = call(), args.struct_size--;
  CHECK_STATUS(run(&args), 161002);
  {
    tk_context context = TK_CONTEXT_INIT;
    args = call(), ends[0] = 2, ends[1] = 1;
    CHECK_STATUS(tk_grouped_matmul_swiglu_quant(&context, &args, workspace(), sizeof memory - 64), 161002);
    CHECK(strstr(context.message, "group_list") != NULL && strstr(context.message, "entry 1 of 1 after row 2 of 3") != NULL);
  }
  for (i = 0; i < M * N / 2; i++) CHECK(output[i] == 77);

  args = call(), ends[0] = 1, ends[1] = 2;
  allocations = 0;
  for (i = 0; i < 10000; i++) CHECK_STATUS(run(&args), 0);
  CHECK(allocations == 0);
  return 0;
}
