/* No call allocates: malloc and its kin are this program's own here, and count. */
#include "allocations.h"
#include "check.h"

static void nobody(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  (void)user, (void)tasks, (void)task, (void)arg;
}

static void everybody(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  (void)user;
  for (i = 0; i < tasks; i++) task(arg, i, 0);
}

enum { B = 2, V = 300, M = 64, H = 512 };

static double memory[16384];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

static void sampling(void) {
  static float logits[B * V], top_p[B] = {0.9f, 1.0f};
  static int32_t top_k[B] = {40, 0};
  static int64_t generator[2] = {7, 0}, chosen[B];
  static const int64_t matrix[2] = {B, V}, row[1] = {B}, pair[1] = {2};
  tk_tensor logits_tensor = tensor(logits, matrix, 2, TK_F32), top_k_tensor = tensor(top_k, row, 1, TK_I32);
  tk_tensor top_p_tensor = tensor(top_p, row, 1, TK_F32), generator_tensor = tensor(generator, pair, 1, TK_I64);
  tk_tensor chosen_tensor = tensor(chosen, row, 1, TK_I64);
  tk_top_k_top_p_sample_args args = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  size_t bytes, i;
  for (i = 0; i < B * V; i++) logits[i] = (float)(i * 2654435761u % 1000) * 0.01f;
  args.logits = &logits_tensor, args.top_k = &top_k_tensor, args.top_p = &top_p_tensor;
  args.post_sample = TK_POST_SAMPLE_MULTINOMIAL, args.generator = &generator_tensor;
  args.logits_select_idx = &chosen_tensor;
  for (i = 0; i < 10000; i++) {
    generator[1] = (int64_t)i * 12;
    CHECK_STATUS(tk_top_k_top_p_sample_workspace_size(NULL, &args, &bytes), 0);
    CHECK(bytes + 64 <= sizeof memory);
    CHECK_STATUS(tk_top_k_top_p_sample(NULL, &args, workspace(), bytes), 0);
  }
}

static void drawing(void) {
  static float probs[B * V];
  static int64_t drawn[B * V];
  static const int64_t matrix[2] = {B, V};
  tk_tensor probs_tensor = tensor(probs, matrix, 2, TK_F32), out = tensor(drawn, matrix, 2, TK_I64);
  tk_tensor numbers = tensor(probs, matrix, 2, TK_F32);
  tk_multinomial_args args = TK_MULTINOMIAL_ARGS_INIT;
  tk_exponential_args exponential = TK_EXPONENTIAL_ARGS_INIT;
  size_t i;
  args.probs = &probs_tensor, args.out = &out, args.num_samples = V;
  exponential.out = &numbers;
  for (i = 0; i < 100; i++) {
    exponential.offset = args.offset = (int64_t)i * 12;
    args.replacement = i % 2 == 0;
    CHECK_STATUS(tk_exponential(NULL, &exponential, workspace(), sizeof memory - 64), 0);
    CHECK_STATUS(tk_multinomial(NULL, &args, workspace(), sizeof memory - 64), 0);
  }
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
  context.parallel_threads = 1;
  allocations = 0;
  sampling();
  drawing();
  steps();
  norm(&context);
  return 0;
}
