/* The grouped product: numbers that can be checked by hand, and every refusal by its code. */
#include "check.h"

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

/* By the query, and by the call alone; nothing is written. */
static void refused(tk_grouped_matmul_swiglu_quant_args *args, int status, const char *start) {
  tk_context context = TK_CONTEXT_INIT;
  int i;
  memset(output, 77, sizeof output);
  for (i = 0; i < M; i++) output_scale[i] = output_offset[i] = -1;
  CHECK_STATUS(run(args), status);
  CHECK_STATUS(tk_grouped_matmul_swiglu_quant(&context, args, workspace(), sizeof memory - 64), status);
  CHECK_MESSAGE(context, start);
  for (i = 0; i < M * N / 2; i++) CHECK(output[i] == 77);
  for (i = 0; i < M; i++) CHECK(output_scale[i] == -1 && output_offset[i] == -1);
}

static void refusals(void) {
  static const int64_t deep_x[] = {M, 65537}, deep_weight[] = {E, 65537, N}, more_groups[] = {E + 1};
  static const int64_t odd_weight[] = {E, K, N - 1}, odd_channels[] = {E, N - 1}, wide[] = {E, 48}, wide_output[] = {M, 24};
  static const int64_t x_of_blocks[] = {M, 16}, blocks[] = {E, 1, 1, 16, 32};
  static const int64_t ragged_x[] = {M, 24}, narrow[] = {E, 32}, narrow_output[] = {M, 16};
  static const int32_t wrong_bias[] = {TK_F16, TK_BF16, TK_I8, TK_I64}, wrong_float[] = {TK_F16, TK_BF16, TK_F64, TK_I32};
  static float floats[E * 48];
  static int64_t more_ends[E + 1] = {1, 2, 3};
  tk_tensor bias, offset;
  tk_grouped_matmul_swiglu_quant_args args = call();
  int i;
  for (i = 0; i < 4; i++) {
    bias = tensor(floats, channels, 2, wrong_bias[i]), offset = tensor(floats, channels, 2, wrong_float[i]);
    args = call(), args.bias = &bias, args.output_offset = &tensors[7];
    refused(&args, 161002, "bias: expected i32 or f32, found ");
    args = call(), args.offset = &offset, args.output_offset = &tensors[7];
    refused(&args, 161002, "offset: expected f32, found ");
    args = call(), args.output_offset = &tensors[7], tensors[7].dtype = wrong_float[i];
    refused(&args, 161002, "output_offset: expected f32, found ");
    args = call(), tensors[6].dtype = wrong_float[i];
    refused(&args, 161002, "output_scale: expected f32, found ");
  }
  args = call(), args.output_offset = &tensors[7], tensors[4] = tensor(more_ends, more_groups, 1, TK_I64);
  refused(&args, 161002, "group_list: expected at most E experts, found 3 (161002)");
  args = call(), args.output_offset = &tensors[7], tensors[0].shape = deep_x, tensors[1].shape = deep_weight;
  refused(&args, 161002, "x: expected at most 65536 columns, found 65537 (161002)");
  args = call(), args.output_offset = &tensors[7], tensors[1].shape = odd_weight, tensors[2].shape = odd_channels;
  refused(&args, 161002, "weight_scale: expected an even N, found 3 (161002)");
  /* Blocks of 32 columns, 48 of them; and of 16 rows, 24 of them. */
  args = call(), args.output_offset = &tensors[7], args.weight_format = TK_FORMAT_NZ, tensors[0].shape = x_of_blocks;
  tensors[1] = tensor(floats, blocks, 5, TK_I8), tensors[2] = tensor(floats, wide, 2, TK_F32), tensors[5].shape = wide_output;
  refused(&args, 161002, "weight: expected a multiple of 32 columns, found 48 (161002)");
  args = call(), args.output_offset = &tensors[7], args.weight_format = TK_FORMAT_NZ, tensors[0].shape = ragged_x;
  tensors[1] = tensor(floats, blocks, 5, TK_I8), tensors[2] = tensor(floats, narrow, 2, TK_F32), tensors[5].shape = narrow_output;
  refused(&args, 161002, "weight: expected a multiple of 16 rows, found 24 (161002)");
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

  args.fp16_rounding = true;
  refused(&args, 161002, "fp16_rounding: ");
  args = call(), args.x = NULL;
  refused(&args, 161001, "x: ");
  args = call(), args.arithmetic = 3;
  refused(&args, 161002, "arithmetic: ");
  args = call(), tensors[1].dtype = TK_I4;
  refused(&args, 161001, "bias: "); /* int4 weights need one */
  args = call(), tensors[2].dtype = TK_U64;
  refused(&args, 161002, "weight_scale: "); /* a scale of int4 weights */
  args = call(), tensors[4].dtype = TK_I32;
  refused(&args, 161002, "group_list: ");
  /* A missing tensor comes first. */
  args = call(), tensors[0].dtype = TK_U8, args.output = NULL;
  refused(&args, 161001, "output: ");
  args = call(), args.struct_size--;
  refused(&args, 161002, "");
  args = call(), ends[0] = 2, ends[1] = 1, args.output_offset = &tensors[7];
  refused(&args, 161002, "group_list: expected ");
  {
    tk_context context = TK_CONTEXT_INIT;
    CHECK_STATUS(tk_grouped_matmul_swiglu_quant(&context, &args, workspace(), sizeof memory - 64), 161002);
    CHECK(strstr(context.message, "entry 1 of 1 after row 2 of 3") != NULL);
  }
  ends[0] = 1, ends[1] = 2;
  refusals();
  return 0;
}
