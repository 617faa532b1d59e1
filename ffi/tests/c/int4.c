/* Weights of four bits: numbers that can be checked by hand, every way to lie, and what is refused. */
#include "check.h"

enum { M = 3, K = 32, N = 128, E = 2, HALF = N / 2, PITCH = N + 6, BYTES = E * K * PITCH / 2 };

static double memory[1 << 17];
static tk_context context = TK_CONTEXT_INIT;
static const int64_t x_shape[] = {M, K}, nd[] = {E, K, N}, nz[] = {E, N / 64, K / 16, 16, 64}, pitched[] = {K * PITCH, PITCH, 1};
static const int64_t channels[] = {E, N}, rows[] = {M}, groups[] = {E}, output_shape[] = {M, HALF};

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

static int run(const tk_grouped_matmul_swiglu_quant_args *args) {
  size_t bytes;
  int status = tk_grouped_matmul_swiglu_quant_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  return tk_grouped_matmul_swiglu_quant(&context, args, workspace(), bytes);
}

static int pack(const tk_pack_weight_args *args) {
  size_t bytes;
  int status = tk_pack_weight_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes == 0);
  return tk_pack_weight(&context, args, NULL, 0);
}

/* How many bytes e matrices of k rows and n columns take, packed. */
static int64_t packed_bytes(int64_t e, int64_t k, int64_t n) {
  size_t bytes;
  CHECK_STATUS(tk_pack_weight_bytes(e, k, n, &bytes), 0);
  return (int64_t)bytes;
}

/* Two experts of two rows: 5 3 2 -1 and 7 7 7 7; -1 -1 1 0 and 7 6 -8 1. */
static uint8_t small[] = {0x35, 0xF2, 0x77, 0x77, 0xFF, 0x01, 0x67, 0x18};
static int8_t small_x[M * 2] = {20, 0, 0, 16, -128, 127}, small_output[M * 2], small_packed[1 << 12];
static float small_assist[] = {96, 80, 72, 48, 48, 40, -56, 8}, x_scale[M] = {1, 1, 1}, output_scale[M];
/* 1.0f; the high word is nobody's. */
static uint64_t small_scale[] = {0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x4000003F800000, 0x3F800000, 0x3F800000, 0x3F800000};
static int64_t ends[E] = {1, M};
static const int64_t small_x_shape[] = {M, 2}, small_shape[] = {E, 2, 4}, small_channels[] = {E, 4}, small_output_shape[] = {M, 2};
static int64_t small_length[1];
static tk_tensor tensors[8];

static tk_grouped_matmul_swiglu_quant_args small_call(void) {
  tk_grouped_matmul_swiglu_quant_args args = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT;
  tensors[0] = tensor(small_x, small_x_shape, 2, TK_I8), tensors[1] = tensor(small, small_shape, 3, TK_I4);
  tensors[2] = tensor(small_scale, small_channels, 2, TK_U64), tensors[3] = tensor(x_scale, rows, 1, TK_F32);
  tensors[4] = tensor(ends, groups, 1, TK_I64), tensors[5] = tensor(small_output, small_output_shape, 2, TK_I8);
  tensors[6] = tensor(output_scale, rows, 1, TK_F32), tensors[7] = tensor(small_assist, small_channels, 2, TK_F32);
  args.x = &tensors[0], args.weight = &tensors[1], args.weight_scale = &tensors[2], args.x_scale = &tensors[3];
  args.group_list = &tensors[4], args.output = &tensors[5], args.output_scale = &tensors[6], args.bias = &tensors[7];
  return args;
}

static void clear(void) {
  size_t i;
  memset(small_output, 77, sizeof small_output);
  for (i = 0; i < M; i++) output_scale[i] = -1;
}

/* Sums 100 60 40 -20; 112 96 -128 16; 1017 890 -1144 127. Activations are so large that their sigmoid is 1. */
static void by_hand(const tk_grouped_matmul_swiglu_quant_args *args) {
  static const int8_t expected[M * 2] = {127, -38, -127, 14, -127, 12};
  clear();
  CHECK_STATUS(run(args), 0);
  CHECK(memcmp(small_output, expected, sizeof expected) == 0);
  CHECK(output_scale[0] == 4000.0f / 127 && output_scale[1] == 14336.0f / 127 && output_scale[2] == 1163448.0f / 127);
}

static void small_weights(void) {
  /* Rows 6 columns apart, with others between them. */
  static uint8_t apart[] = {0x35, 0xF2, 0x9A, 0x77, 0x77, 0x9A, 0xFF, 0x01, 0x9A, 0x67, 0x18, 0x9A};
  static const int64_t strides[] = {12, 6, 1};
  static int8_t again[sizeof small_packed];
  tk_grouped_matmul_swiglu_quant_args args = small_call();
  tk_pack_weight_args packing = TK_PACK_WEIGHT_ARGS_INIT;
  tk_tensor weight = tensors[1], packed = tensor(small_packed, small_length, 1, TK_I8);
  small_length[0] = packed_bytes(E, 2, 4);
  CHECK(small_length[0] <= (int64_t)sizeof small_packed);
  by_hand(&args);
  tensors[2].dtype = TK_I64;
  by_hand(&args);
  args = small_call(), tensors[1] = tensor(apart, small_shape, 3, TK_I4), tensors[1].strides = strides;
  by_hand(&args);
  packing.weight = &weight, packing.packed = &packed;
  CHECK_STATUS(pack(&packing), 0);
  args = small_call(), tensors[1] = packed, args.weight_format = TK_FORMAT_PACKED;
  by_hand(&args);
  memset(again, 1, sizeof again);
  weight = tensor(apart, small_shape, 3, TK_I4), weight.strides = strides, packed.data = again;
  CHECK_STATUS(pack(&packing), 0);
  CHECK(memcmp(small_packed, again, (size_t)small_length[0]) == 0);
}

/* Gate PEAK of row 0 is 1; row 1 has the activations, all 1; the others have gates of -8 to 7 anywhere but in PEAK. */
enum { PEAK = 41 };

static int weight_at(int e, int k, int n) {
  if (k == 0) return n == HALF + PEAK;
  if (k == 1) return n < HALF;
  return n < HALF || n == HALF + PEAK ? 0 : (3 * n + k + 5 * e) % 16 - 8;
}

static void put(uint8_t *bytes, int at, int value) {
  bytes[at / 2] = (uint8_t)(at % 2 == 0 ? (bytes[at / 2] & 0xF0) | (value & 15) : (bytes[at / 2] & 15) | (value & 15) << 4);
}

/* Row m meets row 0 with 127, row 1 with 32 and one other, of either group, with 5: sums of 32, and of 127 or 5 * weight. */
static void all_layouts(int64_t scales) {
  static const int met[M] = {2, 17, 31};
  static uint8_t plain[BYTES], apart[BYTES], blocks[BYTES];
  static int8_t x[M * K], output[M * HALF], packed[3][1 << 15];
  static float assist[E * N];
  static uint64_t scale[E * 2 * N];
  int64_t scale_shape[3], length[1];
  tk_tensor x_tensor = tensor(x, x_shape, 2, TK_I8), scale_tensor = tensor(scale, scale_shape, 3, TK_U64), weights[6];
  tk_tensor x_scale_tensor = tensor(x_scale, rows, 1, TK_F32), ends_tensor = tensor(ends, groups, 1, TK_I64);
  tk_tensor output_tensor = tensor(output, output_shape, 2, TK_I8), output_scale_tensor = tensor(output_scale, rows, 1, TK_F32);
  tk_tensor assist_tensor = tensor(assist, channels, 2, TK_F32);
  tk_grouped_matmul_swiglu_quant_args args = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT;
  int e, k, n, m, i, g = (int)scales;
  scale_shape[0] = E, scale_shape[1] = scales, scale_shape[2] = N;
  memset(apart, 0x9A, sizeof apart), memset(x, 0, sizeof x), memset(assist, 0, sizeof assist);
  for (e = 0; e < E; e++) {
    for (k = 0; k < K; k++) {
      for (n = 0; n < N; n++) {
        int value = weight_at(e, k, n), group = k * g / K;
        put(plain, (e * K + k) * N + n, value);
        put(apart, (e * K + k) * PITCH + n, value);
        put(blocks, e * K * N + n / 64 * (K * 64) + k * 64 + n % 64, value);
        scale[(e * g + group) * N + n] = group == 0 ? 0x3F800000 : 0x40000000; /* 1 and 2 */
        assist[e * N + n] += (float)(8 * value * (1 + group));
      }
    }
  }
  for (m = 0; m < M; m++) x[m * K] = 127, x[m * K + 1] = 32, x[m * K + met[m]] = 5;
  weights[0] = tensor(plain, nd, 3, TK_I4), weights[1] = tensor(apart, nd, 3, TK_I4), weights[1].strides = pitched;
  weights[2] = tensor(blocks, nz, 5, TK_I4);
  length[0] = packed_bytes(E, K, N);
  CHECK(length[0] <= (int64_t)sizeof packed[0]);
  for (i = 0; i < 3; i++) {
    tk_pack_weight_args packing = TK_PACK_WEIGHT_ARGS_INIT;
    memset(packed[i], i, sizeof packed[i]);
    weights[3 + i] = tensor(packed[i], length, 1, TK_I8);
    packing.weight = &weights[i], packing.packed = &weights[3 + i];
    packing.weight_format = i == 2 ? TK_FORMAT_NZ : TK_FORMAT_ND;
    CHECK_STATUS(pack(&packing), 0);
    CHECK(memcmp(packed[0], packed[i], (size_t)length[0]) == 0);
  }
  args.x = &x_tensor, args.weight_scale = &scale_tensor, args.x_scale = &x_scale_tensor, args.group_list = &ends_tensor;
  args.bias = &assist_tensor, args.output = &output_tensor, args.output_scale = &output_scale_tensor;
  for (i = 0; i < 6; i++) {
    args.weight = &weights[i], args.weight_format = i == 2 ? TK_FORMAT_NZ : i > 2 ? TK_FORMAT_PACKED : TK_FORMAT_ND;
    memset(output, 77, sizeof output);
    CHECK_STATUS(run(&args), 0);
    for (m = 0; m < M; m++) {
      CHECK(output_scale[m] == 32);
      for (n = 0; n < HALF; n++) {
        int gate = n == PEAK ? 127 : 5 * weight_at(m > 0, met[m], HALF + n) * (1 + met[m] * g / K);
        CHECK(output[m * HALF + n] == gate);
      }
    }
  }
}

static void refused(const tk_grouped_matmul_swiglu_quant_args *args, int status, const char *start) {
  int i;
  clear();
  CHECK_STATUS(run(args), status);
  CHECK_MESSAGE(context, start);
  CHECK_STATUS(tk_grouped_matmul_swiglu_quant(&context, args, workspace(), sizeof memory - 64), status);
  CHECK_MESSAGE(context, start);
  for (i = 0; i < M * 2; i++) CHECK(small_output[i] == 77);
  for (i = 0; i < M; i++) CHECK(output_scale[i] == -1);
}

static void not_packed(const tk_pack_weight_args *args, const char *start) {
  size_t i;
  memset(small_packed, 77, sizeof small_packed);
  CHECK_STATUS(pack(args), 161002);
  CHECK_MESSAGE(context, start);
  CHECK_STATUS(tk_pack_weight(&context, args, NULL, 0), 161002);
  for (i = 0; i < sizeof small_packed; i++) CHECK(small_packed[i] == 77);
}

static void refusals(void) {
  static const char odd[] = "weight: expected pairs of neighbouring columns, found an odd size or stride, or gaps (161002)";
  static const int64_t three[] = {E, 2, 3}, odd_rows[] = {10, 5, 1}, odd_experts[] = {9, 4, 1}, alternate[] = {16, 8, 2};
  static const int64_t ragged[] = {E, 1, 1, 16, 32};
  static float offset[E * 4], output_offset[M], float_scale[E * 4];
  static int8_t bytes[E * 2 * 4];
  static int32_t integers[E * 4];
  tk_tensor weight = tensor(small, small_shape, 3, TK_I4), packed = tensor(small_packed, small_length, 1, TK_I8);
  tk_tensor offset_tensor = tensor(offset, small_channels, 2, TK_F32), output_offset_tensor = tensor(output_offset, rows, 1, TK_F32);
  tk_tensor float_scale_tensor = tensor(float_scale, small_channels, 2, TK_F32);
  tk_grouped_matmul_swiglu_quant_args args = small_call();
  tk_pack_weight_args packing = TK_PACK_WEIGHT_ARGS_INIT;
  const int64_t *strides[3];
  int i;
  strides[0] = odd_rows, strides[1] = odd_experts, strides[2] = alternate;
  tensors[1].shape = three;
  refused(&args, 161002, odd);
  for (i = 0; i < 3; i++) {
    args = small_call(), tensors[1].strides = strides[i];
    refused(&args, 161002, odd);
  }
  args = small_call(), args.bias = NULL;
  refused(&args, 161001, "bias: ");
  args = small_call(), tensors[7] = tensor(integers, small_channels, 2, TK_I32);
  refused(&args, 161002, "bias: expected f32 with int4 weights, found i32 (161002)");
  args = small_call(), args.offset = &offset_tensor;
  refused(&args, 161002, "offset: ");
  args = small_call(), args.output_offset = &output_offset_tensor;
  refused(&args, 161002, "output_offset: ");
  args = small_call(), args.arithmetic = 2;
  refused(&args, 161002, "arithmetic: ");
  args = small_call(), args.weight_scale = &float_scale_tensor;
  refused(&args, 161002, "weight_scale: expected u64 or i64 for int4 weights, found a float dtype (161002)");
  args = small_call(), args.weight_format = TK_FORMAT_NZ;
  refused(&args, 161002, "weight: expected a multiple of 64 columns, found 4 (161002)");
  args = small_call(), args.weight_format = TK_FORMAT_PACKED;
  refused(&args, 161002, "weight_format: ");

  /* Packed of four bits for a scale of eight, or the other way round. */
  packing.weight = &weight, packing.packed = &packed;
  CHECK_STATUS(pack(&packing), 0);
  args = small_call(), args.weight = &packed, args.weight_format = TK_FORMAT_PACKED, args.weight_scale = &float_scale_tensor;
  clear();
  CHECK_STATUS(run(&args), 161002);
  CHECK_MESSAGE(context, "weight: expected a packed weight of the bits that its scale says");
  weight = tensor(bytes, small_shape, 3, TK_I8);
  CHECK_STATUS(pack(&packing), 0);
  args.weight_scale = &tensors[2];
  CHECK_STATUS(run(&args), 161002);
  CHECK_MESSAGE(context, "weight: expected a packed weight of the bits that its scale says");
  packed.dtype = TK_U8;
  refused(&args, 161002, "weight: expected i8 or i4, found u8 (161002)");
  for (i = 0; i < M * 2; i++) CHECK(small_output[i] == 77);

  weight = tensor(small, three, 3, TK_I4), packed.dtype = TK_I8;
  not_packed(&packing, odd);
  weight.shape = small_shape;
  for (i = 0; i < 3; i++) {
    weight.strides = strides[i];
    not_packed(&packing, odd);
  }
  weight.strides = NULL, packed.dtype = TK_U8;
  not_packed(&packing, "packed: expected i8, found u8 (161002)");
  packed.dtype = TK_I8, small_length[0]--;
  not_packed(&packing, "packed: ");
  small_length[0]++, weight = tensor(small, ragged, 5, TK_I4), packing.weight_format = TK_FORMAT_NZ;
  not_packed(&packing, "weight: ");
}

int main(void) {
  small_weights();
  all_layouts(1);
  all_layouts(2);
  refusals();
  return 0;
}
