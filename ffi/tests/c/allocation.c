/* No call allocates: malloc and its kin are this program's own here, and count. */
#include "allocations.h"
#include "check.h"

static size_t regions;

static void nobody(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  (void)user, (void)tasks, (void)task, (void)arg;
}

static void everybody(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  (void)user;
  for (i = 0; i < tasks; i++) task(arg, i, i % 2);
  regions++;
}

/* Rows of V and of H are long enough for a pool. */
enum { B = 2, V = 4200, S = 20, M = 64, H = 512, CALLS = 10000 };
/* The int8 operators. */
enum { ROWS = 4, K = 64, N = 128, E = 2 };

static double memory[1 << 18];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

#define RUN(name, args)                                                         \
  do {                                                                          \
    size_t bytes;                                                               \
    CHECK_STATUS(name##_workspace_size(context, args, &bytes), 0);              \
    CHECK(bytes + 64 <= sizeof memory);                                         \
    CHECK_STATUS(name(context, args, workspace(), bytes), 0);                   \
  } while (0)

/* A pool that there is must have come to work since the last look. */
static void counted(const tk_context *context) {
  CHECK(allocations == 0);
  CHECK(context == NULL || regions > 0);
  regions = 0;
}

static void sampling(tk_context *context) {
  static float logits[B * V], probs[B * V], top_p[B] = {0.9f, 1.0f}, q[B * V], out[B * V];
  static int32_t top_k[B] = {40, 0};
  static int64_t generator[2] = {7, 0}, chosen[B];
  static const int64_t matrix[2] = {B, V}, row[1] = {B}, pair[1] = {2};
  tk_tensor logits_tensor = tensor(logits, matrix, 2, TK_F32), probs_tensor = tensor(probs, matrix, 2, TK_F32);
  tk_tensor top_k_tensor = tensor(top_k, row, 1, TK_I32), top_p_tensor = tensor(top_p, row, 1, TK_F32);
  tk_tensor q_tensor = tensor(q, matrix, 2, TK_F32), generator_tensor = tensor(generator, pair, 1, TK_I64);
  tk_tensor chosen_tensor = tensor(chosen, row, 1, TK_I64), out_tensor = tensor(out, matrix, 2, TK_F32);
  tk_top_k_top_p_sample_args sample = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  tk_top_k_top_p_sample_v1_args first = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT;
  tk_apply_top_k_top_p_args apply = TK_APPLY_TOP_K_TOP_P_ARGS_INIT;
  tk_apply_top_k_top_p_min_p_args min_p = TK_APPLY_TOP_K_TOP_P_MIN_P_ARGS_INIT;
  size_t i;
  for (i = 0; i < B * V; i++) {
    logits[i] = (float)(i * 2654435761u % 1000) * 0.01f, probs[i] = 0.5f / (float)(i % V + 1), q[i] = 0.1f + (float)(i % 7);
  }
  sample.logits = first.logits = apply.logits = &logits_tensor, sample.top_k = first.top_k = &top_k_tensor;
  sample.top_p = first.top_p = &top_p_tensor, sample.logits_select_idx = first.logits_select_idx = &chosen_tensor;
  sample.generator = &generator_tensor, sample.q = first.q = &q_tensor;
  sample.logits_top_kp_select = first.logits_top_kp_select = apply.out = min_p.sampled_res = &out_tensor;
  min_p.probs = &probs_tensor, min_p.k = &top_k_tensor, min_p.p = &top_p_tensor;
  for (i = 0; i < CALLS; i++) {
    generator[1] = (int64_t)i * 12, sample.is_need_logits = i % 2 == 0;
    sample.post_sample = i % 3 == 0 ? TK_POST_SAMPLE_Q : TK_POST_SAMPLE_MULTINOMIAL, sample.q = i % 3 == 0 ? &q_tensor : NULL;
    RUN(tk_top_k_top_p_sample, &sample);
  }
  counted(context);
  for (i = 0; i < CALLS; i++) {
    first.is_need_logits = i % 2 == 0;
    RUN(tk_top_k_top_p_sample_v1, &first);
  }
  counted(context);
  for (i = 0; i < CALLS; i++) {
    apply.k = i % 3 != 0 ? &top_k_tensor : NULL, apply.p = i % 3 != 1 ? &top_p_tensor : NULL;
    RUN(tk_apply_top_k_top_p, &apply);
  }
  counted(context);
  for (i = 0; i < CALLS; i++) {
    min_p.min_p = i % 2 == 0 ? &top_p_tensor : NULL;
    RUN(tk_apply_top_k_top_p_min_p, &min_p);
  }
  counted(context);
}

static void drawing(tk_context *context) {
  static float probs[B * V], numbers[B * V];
  static int64_t drawn[B * S];
  static const int64_t matrix[2] = {B, V}, samples[2] = {B, S};
  tk_tensor probs_tensor = tensor(probs, matrix, 2, TK_F32), out = tensor(drawn, samples, 2, TK_I64);
  tk_tensor numbers_tensor = tensor(numbers, matrix, 2, TK_F32);
  tk_multinomial_args args = TK_MULTINOMIAL_ARGS_INIT;
  tk_exponential_args exponential = TK_EXPONENTIAL_ARGS_INIT;
  size_t i;
  for (i = 0; i < B * V; i++) probs[i] = (float)(i % 17);
  exponential.out = &numbers_tensor;
  args.probs = &probs_tensor, args.out = &out, args.num_samples = S;
  for (i = 0; i < CALLS; i++) {
    exponential.offset = (int64_t)i * 4;
    RUN(tk_exponential, &exponential);
  }
  counted(context);
  for (i = 0; i < CALLS; i++) {
    args.offset = (int64_t)i * 4, args.replacement = i % 2 == 0;
    RUN(tk_multinomial, &args);
  }
  counted(context);
}

/* Weights of each kind, plain, and packed first. */
static void products(tk_context *context) {
  static int8_t x[ROWS * K], y[ROWS * N / 2], packed[1 << 16];
  static float w[E * K * N], w_scale[E * N], x_scale[ROWS], bias[E * N], y_scale[ROWS], out[ROWS * N];
  static uint64_t bits[E * N];
  static int64_t ends[E] = {1, ROWS}, length;
  static const int32_t dtypes[3] = {TK_I8, TK_I4, TK_F32};
  static const int64_t left[2] = {ROWS, K}, right[2] = {K, N}, experts[3] = {E, K, N}, channels[2] = {E, N}, channel[1] = {N};
  static const int64_t rows[1] = {ROWS}, groups[1] = {E}, half[2] = {ROWS, N / 2}, matrix[2] = {ROWS, N};
  tk_tensor x_tensor = tensor(x, left, 2, TK_I8), w_tensor = tensor(w, experts, 3, TK_I8), y_tensor = tensor(y, half, 2, TK_I8);
  tk_tensor w_scale_tensor = tensor(w_scale, channels, 2, TK_F32), x_scale_tensor = tensor(x_scale, rows, 1, TK_F32);
  tk_tensor bits_tensor = tensor(bits, channels, 2, TK_U64), bias_tensor = tensor(bias, channels, 2, TK_F32);
  tk_tensor ends_tensor = tensor(ends, groups, 1, TK_I64), y_scale_tensor = tensor(y_scale, rows, 1, TK_F32);
  tk_tensor packed_tensor = tensor(packed, &length, 1, TK_I8), out_tensor = tensor(out, matrix, 2, TK_F32);
  tk_tensor one_tensor = tensor(w, right, 2, TK_I8), one_scale_tensor = tensor(w_scale, channel, 1, TK_F32);
  static int8_t large_x[M * H], large_w[H * H];
  static int32_t large_out[M * H];
  static const int64_t tall[2] = {M, H}, square[2] = {H, H};
  tk_tensor large_x_tensor = tensor(large_x, tall, 2, TK_I8), large_w_tensor = tensor(large_w, square, 2, TK_I8);
  tk_tensor large_out_tensor = tensor(large_out, tall, 2, TK_I32);
  tk_grouped_matmul_swiglu_quant_args grouped = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT;
  tk_pack_weight_args pack = TK_PACK_WEIGHT_ARGS_INIT;
  tk_quant_matmul_args multiply = TK_QUANT_MATMUL_ARGS_INIT;
  size_t bytes_of_packed, i;
  CHECK_STATUS(tk_pack_weight_bytes(E, K, N, &bytes_of_packed), 0);
  CHECK(bytes_of_packed <= sizeof packed);
  length = (int64_t)bytes_of_packed;
  for (i = 0; i < ROWS * K; i++) x[i] = (int8_t)(i * 31 % 251);
  for (i = 0; i < E * K * N; i++) w[i] = (float)(i % 255) - 127.0f;
  for (i = 0; i < E * N; i++) w_scale[i] = 1.0f, bits[i] = 0x3F800000;
  for (i = 0; i < ROWS; i++) x_scale[i] = 0.01f;
  pack.weight = &w_tensor, pack.packed = &packed_tensor;
  for (i = 0; i < CALLS; i++) {
    w_tensor.dtype = dtypes[i % 3], pack.weight_scale = i % 3 == 2 ? &w_scale_tensor : NULL;
    RUN(tk_pack_weight, &pack);
  }
  counted(context);
  multiply.x = &x_tensor, multiply.weight = &one_tensor, multiply.weight_scale = &one_scale_tensor;
  multiply.x_scale = &x_scale_tensor, multiply.out = &out_tensor;
  for (i = 0; i < CALLS; i++) RUN(tk_quant_matmul, &multiply);
  /* Small ones are not worth a pool. */
  multiply.x = &large_x_tensor, multiply.weight = &large_w_tensor, multiply.weight_scale = multiply.x_scale = NULL;
  multiply.out = &large_out_tensor;
  for (i = 0; i < 10; i++) RUN(tk_quant_matmul, &multiply);
  counted(context);
  w_tensor.dtype = TK_I8;
  RUN(tk_pack_weight, &pack);
  grouped.x = &x_tensor, grouped.x_scale = &x_scale_tensor, grouped.bias = &bias_tensor;
  grouped.group_list = &ends_tensor, grouped.output = &y_tensor, grouped.output_scale = &y_scale_tensor;
  for (i = 0; i < CALLS; i++) {
    int is_packed = i % 3 == 2;
    w_tensor.dtype = dtypes[i % 3 == 1], grouped.weight = is_packed ? &packed_tensor : &w_tensor;
    grouped.weight_format = is_packed ? TK_FORMAT_PACKED : TK_FORMAT_ND;
    grouped.weight_scale = i % 3 == 1 ? &bits_tensor : &w_scale_tensor;
    RUN(tk_grouped_matmul_swiglu_quant, &grouped);
  }
  counted(context);
}

/* One step of a batch, from the logits to the tokens without their prompts. */
static void steps(void) {
  static float logits[B * V], last[B * V], numbers[B] = {0.25f, 0.75f};
  static int32_t ids[B], lengths[B], prompts[B] = {1, 1}, tokens[B * 2];
  static uint8_t finished[B], mask[B * 2] = {1, 0, 0, 0};
  static const int64_t all[3] = {B, 1, V}, matrix[2] = {B, V}, row[1] = {B}, pairs[2] = {B, 2}, once[2] = {1, B};
  tk_tensor all_tensor = tensor(logits, all, 3, TK_F32), last_tensor = tensor(last, matrix, 2, TK_F32);
  tk_tensor numbers_tensor = tensor(numbers, row, 1, TK_F32), ids_tensor = tensor(ids, row, 1, TK_I32);
  tk_tensor tokens_tensor = tensor(tokens, pairs, 2, TK_I32), mask_tensor = tensor(mask, pairs, 2, TK_BOOL);
  tk_tensor lengths_tensor = tensor(lengths, row, 1, TK_I32), finished_tensor = tensor(finished, row, 1, TK_BOOL);
  tk_tensor prompts_tensor = tensor(prompts, row, 1, TK_I32), once_tensor = tensor(ids, once, 2, TK_I32);
  tk_update_logits_args update = TK_UPDATE_LOGITS_ARGS_INIT;
  tk_top_k_sampling_args top_k = TK_TOP_K_SAMPLING_ARGS_INIT;
  tk_top_p_sampling_args top_p = TK_TOP_P_SAMPLING_ARGS_INIT;
  tk_remove_prompt_tokens_args generated = TK_REMOVE_PROMPT_TOKENS_ARGS_INIT;
  size_t i;
  for (i = 0; i < B * V; i++) logits[i] = (float)(i * 2654435761u % 1000) * 0.001f;
  update.logits = &all_tensor, update.finished = &finished_tensor, update.output = &last_tensor;
  top_k.logits = top_p.probs = &last_tensor, top_k.random = top_p.random = &numbers_tensor;
  top_k.prompt_tokens = top_p.prompt_tokens = &tokens_tensor, top_k.prompt_mask = top_p.prompt_mask = &mask_tensor;
  top_k.ids = top_p.ids = &ids_tensor, top_k.sequence_length = top_p.sequence_length = &lengths_tensor;
  top_k.finished = top_p.finished = &finished_tensor;
  generated.word_ids = &once_tensor, generated.sequence_length = generated.prompt_lengths = &prompts_tensor;
  generated.min_prompt = 1, generated.output = &tokens_tensor;
  for (i = 0; i < 100; i++) {
    update.softmax = i % 2 == 0, top_k.k = 1 + (int64_t)i, top_p.p = 0.01 * (double)i;
    top_k.cur_pos = top_p.cur_pos = (int64_t)i % 3;
    CHECK_STATUS(tk_update_logits(NULL, &update, workspace(), sizeof memory - 64), 0);
    CHECK_STATUS(tk_top_k_sampling(NULL, &top_k, workspace(), sizeof memory - 64), 0);
    CHECK_STATUS(tk_top_p_sampling(NULL, &top_p, workspace(), sizeof memory - 64), 0);
    CHECK_STATUS(tk_remove_prompt_tokens(NULL, &generated, NULL, 0), 0);
  }
}

/* With a pool, and refused. */
static void norm(tk_context *context) {
  static float input[M * H], gamma_[H], output[M * H];
  static const int64_t matrix[2] = {M, H}, row[1] = {H};
  tk_tensor x = tensor(input, matrix, 2, TK_F32), g = tensor(gamma_, row, 1, TK_F32), y = tensor(output, matrix, 2, TK_F32);
  tk_tensor wrong = tensor(output, row, 1, TK_F32);
  tk_rms_norm_args args = TK_RMS_NORM_ARGS_INIT;
  args.input = &x, args.gamma = &g;
  context->parallel_for = everybody;
  args.output = &y;
  CHECK_STATUS(tk_rms_norm(context, &args, workspace(), sizeof memory - 64), 0);
  args.output = &wrong;
  CHECK_STATUS(tk_rms_norm(context, &args, workspace(), sizeof memory - 64), 161002);
  CHECK(allocations == 0);
  /* The count sees the library: what a pool did wrong is thrown, and throwing allocates. */
  args.output = &y;
  context->parallel_for = nobody;
  CHECK_STATUS(tk_rms_norm(context, &args, workspace(), sizeof memory - 64), -4);
  CHECK(allocations > 0);
}

int main(void) {
  tk_context context = TK_CONTEXT_INIT;
  context.parallel_for = everybody, context.parallel_threads = 2;
  allocations = 0;
  sampling(NULL), drawing(NULL), products(NULL);
  sampling(&context), drawing(&context), products(&context);
  steps();
  norm(&context);
  return 0;
}
