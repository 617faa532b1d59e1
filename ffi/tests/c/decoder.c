/* Each operation of the decoder once, with numbers that can be checked by hand, and the defaults of its struct. */
#include "check.h"

static double memory[1024];

#define RUN(op, args) run_##op(&(args))
#define RUNNER(op)                                                                \
  static int run_##op(const tk_##op##_args *args) {                               \
    size_t bytes;                                                                 \
    char *workspace = (char *)memory + (64 - (size_t)memory % 64) % 64;           \
    CHECK_STATUS(tk_##op##_workspace_size(NULL, args, &bytes), 0);                \
    CHECK(bytes + 64 <= sizeof memory);                                           \
    return tk_##op(NULL, args, workspace, bytes);                                 \
  }

RUNNER(dequant_residual)
RUNNER(dequant_residual_rms_norm_quant)
RUNNER(dequant_swiglu_quant)
RUNNER(dequant_transpose)
RUNNER(dequant_rope_transpose)
RUNNER(embedding_lookup)
RUNNER(quantize_rows)
RUNNER(remove_prompt_tokens)
RUNNER(rope_table)
RUNNER(store_kv_cache)
RUNNER(update_logits)

static const int64_t one[] = {1}, two[] = {2}, four[] = {4}, one_two[] = {1, 2};

static int near(float x, double y) {
  return x - y < 1e-6 && y - x < 1e-6;
}

static void residual(void) {
  int32_t sums[] = {2, -3};
  float input_scale[] = {0.5f}, weight_scale[] = {2, 4}, before[] = {1, 1}, gamma_[] = {1, 1}, hidden[2], scale[1];
  int8_t quantised[2];
  tk_tensor sums_tensor = tensor(sums, one_two, 2, TK_I32), input_scale_tensor = tensor(input_scale, one, 1, TK_F32);
  tk_tensor weight_scale_tensor = tensor(weight_scale, two, 1, TK_F32), gamma_tensor = tensor(gamma_, two, 1, TK_F32);
  tk_tensor before_tensor = tensor(before, one_two, 2, TK_F32), hidden_tensor = tensor(hidden, one_two, 2, TK_F32);
  tk_tensor quantised_tensor = tensor(quantised, one_two, 2, TK_I8), scale_tensor = tensor(scale, one, 1, TK_F32);
  tk_dequant_residual_args plain = TK_DEQUANT_RESIDUAL_ARGS_INIT;
  tk_dequant_residual_rms_norm_quant_args norm = TK_DEQUANT_RESIDUAL_RMS_NORM_QUANT_ARGS_INIT;
  plain.input = &sums_tensor, plain.input_scale = &input_scale_tensor, plain.weight_scale = &weight_scale_tensor;
  plain.residual = &before_tensor, plain.output = &hidden_tensor;
  CHECK_STATUS(RUN(dequant_residual, plain), 0);
  CHECK(hidden[0] == 3 && hidden[1] == -5);

  hidden[0] = hidden[1] = 0;
  CHECK(norm.eps == 1e-5);
  norm.input = &sums_tensor, norm.input_scale = &input_scale_tensor, norm.weight_scale = &weight_scale_tensor;
  norm.residual = &before_tensor, norm.gamma = &gamma_tensor, norm.eps = 0;
  norm.output = &quantised_tensor, norm.output_scale = &scale_tensor, norm.hidden = &hidden_tensor;
  CHECK_STATUS(RUN(dequant_residual_rms_norm_quant, norm), 0);
  CHECK(hidden[0] == 3 && hidden[1] == -5);
  CHECK(quantised[0] == 76 && quantised[1] == -127);
  CHECK(near(scale[0], 5 / 4.123105625617661 / 127));
}

static void swiglu(void) {
  int32_t gate[] = {100, 0}, up[] = {1, 5};
  float row_scale[] = {1}, column_scale[] = {1, 1}, scale[1];
  int8_t quantised[2];
  tk_tensor gate_tensor = tensor(gate, one_two, 2, TK_I32), up_tensor = tensor(up, one_two, 2, TK_I32);
  tk_tensor row_scale_tensor = tensor(row_scale, one, 1, TK_F32), column_scale_tensor = tensor(column_scale, two, 1, TK_F32);
  tk_tensor quantised_tensor = tensor(quantised, one_two, 2, TK_I8), scale_tensor = tensor(scale, one, 1, TK_F32);
  tk_dequant_swiglu_quant_args args = TK_DEQUANT_SWIGLU_QUANT_ARGS_INIT;
  args.w1 = &gate_tensor, args.w3 = &up_tensor, args.input_scale = &row_scale_tensor;
  args.w1_scale = args.w3_scale = &column_scale_tensor;
  args.output = &quantised_tensor, args.output_scale = &scale_tensor;
  CHECK_STATUS(RUN(dequant_swiglu_quant, args), 0);
  CHECK(quantised[0] == 127 && quantised[1] == 0 && near(scale[0], 100.0 / 127));
}

static void transpose(void) {
  static const int64_t flat[] = {1, 2, 4}, tokens[] = {1, 2}, heads[] = {1, 2, 2, 2}, table[] = {2, 2};
  static const float by_heads[] = {0, 1, 4, 5, 2, 3, 6, 7}, turned[] = {0, 1, -5, 4, 2, 3, -7, 6};
  int32_t sums[] = {0, 1, 2, 3, 4, 5, 6, 7};
  float row_scale[] = {1, 1}, column_scale[] = {1, 1, 1, 1}, output[8];
  /* Position 0 is not turned, position 1 by a right angle. */
  float angles[] = {1, 0, 0, 1};
  int64_t start[] = {0};
  tk_tensor sums_tensor = tensor(sums, flat, 3, TK_I32), row_scale_tensor = tensor(row_scale, tokens, 2, TK_F32);
  tk_tensor column_scale_tensor = tensor(column_scale, four, 1, TK_F32), output_tensor = tensor(output, heads, 4, TK_F32);
  tk_tensor angles_tensor = tensor(angles, table, 2, TK_F32), start_tensor = tensor(start, one, 1, TK_I64);
  tk_dequant_transpose_args plain = TK_DEQUANT_TRANSPOSE_ARGS_INIT;
  tk_dequant_rope_transpose_args rope = TK_DEQUANT_ROPE_TRANSPOSE_ARGS_INIT;
  plain.input = &sums_tensor, plain.input_scale = &row_scale_tensor, plain.weight_scale = &column_scale_tensor;
  plain.output = &output_tensor;
  CHECK_STATUS(RUN(dequant_transpose, plain), 0);
  CHECK(memcmp(output, by_heads, sizeof output) == 0);
  rope.input = &sums_tensor, rope.input_scale = &row_scale_tensor, rope.weight_scale = &column_scale_tensor;
  rope.freqs = &angles_tensor, rope.start_pos = &start_tensor, rope.output = &output_tensor;
  CHECK_STATUS(RUN(dequant_rope_transpose, rope), 0);
  CHECK(memcmp(output, turned, sizeof output) == 0);
  start[0] = 1;
  CHECK_STATUS(RUN(dequant_rope_transpose, rope), 161002);
}

static void table(void) {
  static const int64_t shape[] = {2, 4};
  float output[8];
  tk_tensor output_tensor = tensor(output, shape, 2, TK_F32);
  tk_rope_table_args args = TK_ROPE_TABLE_ARGS_INIT;
  CHECK(args.start == 0 && args.theta == 10000);
  args.output = &output_tensor;
  CHECK_STATUS(RUN(rope_table, args), 0);
  CHECK(output[0] == 1 && output[1] == 0 && output[2] == 1 && output[3] == 0);
  CHECK(near(output[4], 0.5403023058681398) && near(output[5], 0.8414709848078965));
  CHECK(near(output[6], 0.9999500004166653) && near(output[7], 0.009999833334166664));
}

static void embedding(void) {
  static const int64_t ids_shape[] = {1, 2}, table_shape[] = {3, 2}, output_shape[] = {1, 2, 2};
  int32_t ids[] = {2, 0};
  float rows[] = {1, 2, 3, 4, 5, 6}, output[4];
  tk_tensor ids_tensor = tensor(ids, ids_shape, 2, TK_I32), rows_tensor = tensor(rows, table_shape, 2, TK_F32);
  tk_tensor output_tensor = tensor(output, output_shape, 3, TK_F32);
  tk_embedding_lookup_args args = TK_EMBEDDING_LOOKUP_ARGS_INIT;
  CHECK(args.scale == 1);
  args.ids = &ids_tensor, args.table = &rows_tensor, args.scale = 2, args.output = &output_tensor;
  CHECK_STATUS(RUN(embedding_lookup, args), 0);
  CHECK(output[0] == 10 && output[1] == 12 && output[2] == 2 && output[3] == 4);
  ids[0] = 1, ids[1] = 3;
  CHECK_STATUS(RUN(embedding_lookup, args), 161002);
  CHECK(output[0] == 10);
}

static void quantise(void) {
  float row[] = {127, -63}, scale[1];
  int8_t quantised[2];
  tk_tensor row_tensor = tensor(row, one_two, 2, TK_F32), scale_tensor = tensor(scale, one, 1, TK_F32);
  tk_tensor quantised_tensor = tensor(quantised, one_two, 2, TK_I8);
  tk_quantize_rows_args args = TK_QUANTIZE_ROWS_ARGS_INIT;
  args.input = &row_tensor, args.output = &quantised_tensor, args.output_scale = &scale_tensor;
  CHECK_STATUS(RUN(quantize_rows, args), 0);
  CHECK(quantised[0] == 127 && quantised[1] == -63 && scale[0] == 1);
}

static void cache(void) {
  static const int64_t tokens[] = {1, 1, 1, 2}, positions[] = {1, 1, 3, 2};
  float key[] = {1, 2}, value[] = {-1, 0.5f};
  uint16_t keys[6] = {0}, values[6] = {0};
  int64_t start[] = {1};
  tk_tensor key_tensor = tensor(key, tokens, 4, TK_F32), value_tensor = tensor(value, tokens, 4, TK_F32);
  tk_tensor start_tensor = tensor(start, one, 1, TK_I64);
  tk_tensor keys_tensor = tensor(keys, positions, 4, TK_F16), values_tensor = tensor(values, positions, 4, TK_F16);
  tk_store_kv_cache_args args = TK_STORE_KV_CACHE_ARGS_INIT;
  args.key = &key_tensor, args.value = &value_tensor, args.start_pos = &start_tensor;
  args.key_cache = &keys_tensor, args.value_cache = &values_tensor;
  CHECK_STATUS(RUN(store_kv_cache, args), 0);
  CHECK(keys[1] == 0 && keys[2] == 0x3C00 && keys[3] == 0x4000 && keys[4] == 0);
  CHECK(values[2] == 0xBC00 && values[3] == 0x3800);
  start[0] = 3;
  CHECK_STATUS(RUN(store_kv_cache, args), 161002);
  keys_tensor.dtype = TK_I32;
  CHECK_STATUS(tk_store_kv_cache(NULL, &args, NULL, 0), 161002);
}

static void last_logits(void) {
  static const int64_t logits_shape[] = {2, 2, 2}, output_shape[] = {2, 2}, wrong_shape[] = {3};
  float logits[] = {9, 9, 1, 1, 9, 9, 3, 4}, output[4];
  uint8_t finished[] = {0, 2, 0};
  tk_tensor logits_tensor = tensor(logits, logits_shape, 3, TK_F32), output_tensor = tensor(output, output_shape, 2, TK_F32);
  tk_tensor finished_tensor = tensor(finished, two, 1, TK_BOOL);
  tk_update_logits_args args = TK_UPDATE_LOGITS_ARGS_INIT;
  CHECK(args.finished == NULL && args.end_id == 0 && !args.softmax);
  args.logits = &logits_tensor, args.output = &output_tensor;
  CHECK_STATUS(RUN(update_logits, args), 0);
  CHECK(output[0] == 1 && output[1] == 1 && output[2] == 3 && output[3] == 4);
  args.finished = &finished_tensor, args.end_id = 1;
  CHECK_STATUS(RUN(update_logits, args), 0);
  CHECK(output[1] == 1 && output[2] < -3.4e38f && output[3] > 3.4e38f);
  args.softmax = true;
  CHECK_STATUS(RUN(update_logits, args), 0);
  CHECK(output[0] == 0.5f && output[1] == 0.5f && output[2] == 0 && output[3] == 1);

  output[0] = 7;
  args.end_id = 2;
  CHECK_STATUS(tk_update_logits(NULL, &args, NULL, 0), 161002);
  args.end_id = 1, finished_tensor.dtype = TK_U8;
  CHECK_STATUS(tk_update_logits(NULL, &args, NULL, 0), 161002);
  finished_tensor = tensor(finished, wrong_shape, 1, TK_BOOL);
  CHECK_STATUS(tk_update_logits(NULL, &args, NULL, 0), 161002);
  finished_tensor = tensor(NULL, two, 1, TK_BOOL);
  CHECK_STATUS(RUN(update_logits, args), 161001);
  args.finished = NULL, args.output = NULL;
  CHECK_STATUS(tk_update_logits(NULL, &args, NULL, 0), 161001);
  CHECK(output[0] == 7);
}

static void generated(void) {
  static const int64_t ids_shape[] = {3, 2}, output_shape[] = {2, 3};
  static const int32_t expected[] = {10, 11, 12, 20, 21, -1};
  int32_t ids[] = {10, 7, 11, 20, 12, 21}, lengths[] = {3, 2}, prompts[] = {1, 2}, output[] = {-1, -1, -1, -1, -1, -1};
  tk_tensor ids_tensor = tensor(ids, ids_shape, 2, TK_I32), output_tensor = tensor(output, output_shape, 2, TK_I32);
  tk_tensor lengths_tensor = tensor(lengths, two, 1, TK_I32), prompts_tensor = tensor(prompts, two, 1, TK_I32);
  tk_remove_prompt_tokens_args args = TK_REMOVE_PROMPT_TOKENS_ARGS_INIT;
  args.word_ids = &ids_tensor, args.sequence_length = &lengths_tensor, args.prompt_lengths = &prompts_tensor;
  args.min_prompt = 1, args.output = &output_tensor;
  CHECK_STATUS(RUN(remove_prompt_tokens, args), 0);
  CHECK(memcmp(output, expected, sizeof output) == 0);
  ids[0] = 99, lengths[1] = 3;
  CHECK_STATUS(RUN(remove_prompt_tokens, args), 161002);
  lengths[1] = 4;
  CHECK_STATUS(RUN(remove_prompt_tokens, args), 161002);
  lengths[1] = 2, args.min_prompt = 2;
  CHECK_STATUS(RUN(remove_prompt_tokens, args), 161002);
  args.min_prompt = -1;
  CHECK_STATUS(tk_remove_prompt_tokens(NULL, &args, NULL, 0), 161002);
  CHECK(output[0] == 10);
}

int main(void) {
  residual();
  swiglu();
  transpose();
  table();
  embedding();
  quantise();
  cache();
  last_logits();
  generated();
  return 0;
}
