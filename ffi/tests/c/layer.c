/* The int8 product, attention and a whole layer, with numbers that can be checked by hand. */
#include "check.h"

static double memory[1 << 17];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

#define RUN(op, args) run_##op(&(args))
#define RUNNER(op)                                                 \
  static int run_##op(const tk_##op##_args *args) {                \
    size_t bytes;                                                  \
    CHECK_STATUS(tk_##op##_workspace_size(NULL, args, &bytes), 0); \
    CHECK(bytes + 64 <= sizeof memory);                            \
    return tk_##op(NULL, args, workspace(), bytes);                \
  }

RUNNER(quant_matmul)
RUNNER(pack_weight)
RUNNER(attention)
RUNNER(decoder_layer)

/* A packed [K,N] with K <= 64 and N <= 16: header, one panel of quads of K, column sums. */
enum { PACKED = 64 + 64 * 16 + 64 };

static void pack(int8_t *packed, const int8_t *weight, int k, int n) {
  int i, j;
  memset(packed, 0, PACKED);
  memcpy(packed, "TKPACKED", 8);
  packed[8] = packed[16] = 1, packed[24] = (int8_t)k, packed[32] = (int8_t)n;
  for (j = 0; j < n; j++) {
    int32_t sum = 0;
    for (i = 0; i < k; i++) {
      packed[64 + i / 4 * 64 + j * 4 + i % 4] = weight[i * n + j];
      sum += weight[i * n + j];
    }
    memcpy(packed + 64 + 64 * 16 + j * 4, &sum, 4);
  }
}

static const int64_t one[] = {1}, two[] = {2}, bytes_of_packed[] = {PACKED};

static void product(void) {
  static const int64_t x_shape[] = {2, 2}, out_shape[] = {2, 3}, three[] = {3};
  static const int8_t weight[] = {-128, 1, 1, 1, -128, 1};
  static const int32_t sums[] = {-126, -255, 3, 16387, -512, -125};
  int8_t x[] = {1, 2, -128, 3}, packed[PACKED];
  int32_t out[6], bias[] = {1, 0, -1};
  float scaled[6], channel[] = {1, 2, 4}, row[] = {0.5f, 2};
  int i;
  tk_tensor x_tensor = tensor(x, x_shape, 2, TK_I8), packed_tensor = tensor(packed, bytes_of_packed, 1, TK_I8);
  tk_tensor out_tensor = tensor(out, out_shape, 2, TK_I32), scaled_tensor = tensor(scaled, out_shape, 2, TK_F32);
  tk_tensor bias_tensor = tensor(bias, three, 1, TK_I32), channel_tensor = tensor(channel, three, 1, TK_F32);
  tk_tensor row_tensor = tensor(row, two, 1, TK_F32);
  tk_tensor plain_tensor = tensor((void *)weight, out_shape, 2, TK_I8);
  tk_quant_matmul_args args = TK_QUANT_MATMUL_ARGS_INIT;
  pack(packed, weight, 2, 3);
  /* The default is a plain [K,N]. */
  CHECK(args.weight_format == TK_FORMAT_ND);
  args.x = &x_tensor, args.weight = &plain_tensor, args.out = &out_tensor;
  CHECK_STATUS(RUN(quant_matmul, args), 0);
  CHECK(memcmp(out, sums, sizeof out) == 0);
  memset(out, 0, sizeof out);
  args.x = &x_tensor, args.weight = &packed_tensor, args.weight_format = TK_FORMAT_PACKED, args.out = &out_tensor;
  CHECK_STATUS(RUN(quant_matmul, args), 0);
  CHECK(memcmp(out, sums, sizeof out) == 0);

  {
    /* The library packs the same bytes; a float weight gets its scales. */
    int8_t made[PACKED];
    float floats[6], scale[3];
    size_t bytes;
    tk_tensor made_tensor = tensor(made, bytes_of_packed, 1, TK_I8), floats_tensor = tensor(floats, out_shape, 2, TK_F32);
    tk_tensor scale_tensor = tensor(scale, three, 1, TK_F32);
    tk_pack_weight_args pack_args = TK_PACK_WEIGHT_ARGS_INIT;
    CHECK(pack_args.weight_format == TK_FORMAT_ND);
    CHECK_STATUS(tk_pack_weight_bytes(1, 2, 3, &bytes), 0);
    CHECK(bytes == PACKED);
    CHECK_STATUS(tk_pack_weight_bytes(0, 2, 3, &bytes), 161002);
    CHECK_STATUS(tk_pack_weight_bytes(1, 2, 3, NULL), 161001);
    CHECK_STATUS(tk_pack_weight_bytes(INT64_MAX, INT64_MAX, 3, &bytes), 161002);
    pack_args.weight = &plain_tensor, pack_args.packed = &made_tensor;
    CHECK_STATUS(RUN(pack_weight, pack_args), 0);
    CHECK(memcmp(made, packed, sizeof made) == 0);
    for (i = 0; i < 6; i++) floats[i] = weight[i] == -128 ? -127.0f : (float)weight[i];
    pack_args.weight = &floats_tensor;
    CHECK_STATUS(tk_pack_weight(NULL, &pack_args, NULL, 0), 161001);
    pack_args.weight_scale = &scale_tensor;
    CHECK_STATUS(RUN(pack_weight, pack_args), 0);
    CHECK(scale[0] == 1 && scale[1] == 1 && scale[2] == 1.0f / 127);
    CHECK(made[64] == -127 && made[65] == 1 && made[64 + 8] == 127);
  }

  args.weight_scale = &channel_tensor;
  CHECK_STATUS(tk_quant_matmul(NULL, &args, workspace(), sizeof memory - 64), 161002);
  args.x_scale = &row_tensor, args.bias = &bias_tensor, args.out = &scaled_tensor;
  CHECK_STATUS(RUN(quant_matmul, args), 0);
  for (i = 0; i < 6; i++) CHECK(scaled[i] == (float)(sums[i] + bias[i % 3]) * row[i / 3] * channel[i % 3]);

  bias_tensor.dtype = TK_I8;
  CHECK_STATUS(tk_quant_matmul(NULL, &args, workspace(), sizeof memory - 64), 161002);
  args.bias = NULL, args.weight_format = 3;
  CHECK_STATUS(tk_quant_matmul(NULL, &args, workspace(), sizeof memory - 64), 161002);
  args.weight_format = TK_FORMAT_PACKED;
  packed[0] = 'X';
  CHECK_STATUS(RUN(quant_matmul, args), 161002);
}

static void attend(void) {
  static const int64_t tokens[] = {1, 1, 1, 2}, positions[] = {1, 1, 3, 2};
  /* Two equal keys are weighed equally; the third is in the future. */
  float query[] = {1, 2}, keys[] = {3, 4, 3, 4, 9, 9}, values[] = {1, 10, 3, 30, 100, 100}, output[2];
  int64_t start[] = {1};
  tk_tensor query_tensor = tensor(query, tokens, 4, TK_F32), output_tensor = tensor(output, tokens, 4, TK_F32);
  tk_tensor keys_tensor = tensor(keys, positions, 4, TK_F32), values_tensor = tensor(values, positions, 4, TK_F32);
  tk_tensor start_tensor = tensor(start, one, 1, TK_I64);
  tk_attention_args args = TK_ATTENTION_ARGS_INIT;
  CHECK(args.scale == 0);
  args.query = &query_tensor, args.key_cache = &keys_tensor, args.value_cache = &values_tensor;
  args.start_pos = &start_tensor, args.output = &output_tensor;
  CHECK_STATUS(RUN(attention, args), 0);
  CHECK(output[0] == 2 && output[1] == 20);
}

/* One head of size 2 in a hidden size of 2: every matrix is half the identity. */
static void whole_layer(void) {
  static const int64_t input_shape[] = {1, 1, 2}, table[] = {1, 2}, cache[] = {1, 1, 1, 2};
  static const int8_t diagonal[] = {127, 0, 0, 127};
  int8_t packed[PACKED];
  float input[] = {1, 1}, freqs[] = {1, 0}, ones[] = {1, 1}, scale[] = {0.5f / 127, 0.5f / 127};
  float keys[] = {0, 0}, values[] = {0, 0}, output[2];
  int64_t start[] = {0};
  tk_tensor input_tensor = tensor(input, input_shape, 3, TK_F32), output_tensor = tensor(output, input_shape, 3, TK_F32);
  tk_tensor freqs_tensor = tensor(freqs, table, 2, TK_F32), start_tensor = tensor(start, one, 1, TK_I64);
  tk_tensor norm = tensor(ones, two, 1, TK_F32), w = tensor(packed, bytes_of_packed, 1, TK_I8), s = tensor(scale, two, 1, TK_F32);
  tk_tensor keys_tensor = tensor(keys, cache, 4, TK_F32), values_tensor = tensor(values, cache, 4, TK_F32);
  tk_decoder_layer_args args = TK_DECODER_LAYER_ARGS_INIT;
  pack(packed, diagonal, 2, 2);
  CHECK(args.weight_format == 1000 && args.eps == 1e-5);
  args.input = &input_tensor, args.start_pos = &start_tensor, args.freqs = &freqs_tensor;
  args.attention_norm = args.ffn_norm = &norm;
  args.wq = args.wk = args.wv = args.wo = args.w1 = args.w3 = args.w2 = &w;
  args.wq_scale = args.wk_scale = args.wv_scale = args.wo_scale = args.w1_scale = args.w3_scale = args.w2_scale = &s;
  args.heads = args.kv_heads = 1;
  args.key_cache = &keys_tensor, args.value_cache = &values_tensor, args.output = &output_tensor;
  CHECK_STATUS(RUN(decoder_layer, args), 0);
  CHECK(output[0] > 1.327f && output[0] < 1.329f && output[0] == output[1]);
  CHECK(keys[0] > 0.499f && keys[0] < 0.501f && values[1] > 0.499f && values[1] < 0.501f);
  args.kv_heads = 0;
  CHECK_STATUS(tk_decoder_layer(NULL, &args, workspace(), sizeof memory - 64), 161002);
}

int main(void) {
  product();
  attend();
  whole_layer();
  return 0;
}
