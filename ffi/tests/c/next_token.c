/* Tokens drawn by one number: the k best, the most probable, prompts and ends; and what is refused. */
#include "check.h"

static double memory[8192];

static const int64_t two[] = {2}, column[] = {2, 1}, rows[] = {2, 3}, prompts[] = {2, 1};

static float values[6], numbers[2];
static int32_t tokens[2], ids[2], lengths[2];
static uint8_t mask[2], finished[2];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

static int top_k(const tk_top_k_sampling_args *args) {
  size_t bytes;
  int status = tk_top_k_sampling_workspace_size(NULL, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  return tk_top_k_sampling(NULL, args, workspace(), bytes);
}

static int top_p(const tk_top_p_sampling_args *args) {
  size_t bytes;
  int status = tk_top_p_sampling_workspace_size(NULL, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  return tk_top_p_sampling(NULL, args, workspace(), bytes);
}

static void best(void) {
  tk_tensor logits = tensor(values, rows, 2, TK_F32), random = tensor(numbers, two, 1, TK_F32);
  tk_tensor prompt_tokens = tensor(tokens, prompts, 2, TK_I32), prompt_mask = tensor(mask, prompts, 2, TK_BOOL);
  tk_tensor chosen = tensor(ids, column, 2, TK_I32), length = tensor(lengths, two, 1, TK_I32);
  tk_tensor ended = tensor(finished, column, 2, TK_BOOL);
  tk_top_k_sampling_args args = TK_TOP_K_SAMPLING_ARGS_INIT;
  int i;
  CHECK(args.prompt_tokens == NULL && args.cur_pos == 0 && args.diversity_rate == 0 && args.end_id == 0);
  for (i = 0; i < 6; i++) values[i] = (float)(i % 3);
  numbers[0] = 0.7f, numbers[1] = 0.75f;
  args.logits = &logits, args.random = &random, args.ids = &chosen;
  CHECK_STATUS(top_k(&args), 161002);
  args.k = 2;
  CHECK_STATUS(top_k(&args), 0);
  CHECK(ids[0] == 2 && ids[1] == 1);

  /* The first row is its prompt's, the second has ended; then that one goes on until it ends. */
  tokens[0] = 0, tokens[1] = -5, mask[0] = 1, finished[0] = finished[1] = 3, lengths[0] = 4, lengths[1] = 7;
  args.prompt_tokens = &prompt_tokens, args.prompt_mask = &prompt_mask, args.end_id = 1;
  args.sequence_length = &length, args.finished = &ended;
  CHECK_STATUS(top_k(&args), 0);
  CHECK(ids[0] == 0 && ids[1] == 1 && lengths[0] == 4 && lengths[1] == 7 && finished[0] == 3 && finished[1] == 3);
  finished[0] = finished[1] = 0, args.cur_pos = 1;
  CHECK_STATUS(top_k(&args), 0);
  CHECK(ids[0] == 2 && ids[1] == 1 && lengths[0] == 5 && lengths[1] == 8 && finished[0] == 0 && finished[1] == 1);

  ids[0] = 9, args.cur_pos = -1;
  CHECK_STATUS(top_k(&args), 161002);
  args.cur_pos = 0, mask[1] = 2;
  CHECK_STATUS(top_k(&args), 161002);
  mask[1] = 0, args.k = 4;
  CHECK_STATUS(top_k(&args), 161002);
  args.k = 2, args.end_id = 3;
  CHECK_STATUS(top_k(&args), 161002);
  args.end_id = 1, ended.dtype = TK_U8;
  CHECK_STATUS(top_k(&args), 161002);
  ended.dtype = TK_BOOL, args.prompt_mask = NULL;
  CHECK_STATUS(top_k(&args), 161001);
  args.prompt_tokens = NULL, ended.data = NULL;
  CHECK_STATUS(top_k(&args), 161001);
  ended.data = finished, length.data = ids;
  CHECK_STATUS(top_k(&args), 161002);
  length.data = lengths;
  CHECK_STATUS(tk_top_k_sampling(NULL, &args, NULL, 0), -1);
  CHECK(ids[0] == 9);
}

static void most_probable(void) {
  tk_tensor probs = tensor(values, rows, 2, TK_F32), random = tensor(numbers, two, 1, TK_F32);
  tk_tensor chosen = tensor(ids, two, 1, TK_I32), length = tensor(lengths, column, 2, TK_I32);
  tk_tensor ended = tensor(finished, two, 1, TK_BOOL);
  tk_top_p_sampling_args args = TK_TOP_P_SAMPLING_ARGS_INIT;
  CHECK(args.prompt_mask == NULL && args.cur_pos == 0 && args.p == 0 && args.end_id == 0);
  values[0] = values[3] = 0.25f, values[1] = values[4] = 0.5f, values[2] = values[5] = 0.25f;
  numbers[0] = 0.99f, numbers[1] = 0.5f;
  args.probs = &probs, args.random = &random, args.ids = &chosen;
  CHECK_STATUS(top_p(&args), 0);
  CHECK(ids[0] == 1 && ids[1] == 1);
  finished[0] = finished[1] = 0, lengths[0] = lengths[1] = 0;
  args.p = 0.5, args.sequence_length = &length, args.finished = &ended;
  CHECK_STATUS(top_p(&args), 0);
  CHECK(ids[0] == 0 && ids[1] == 1 && lengths[0] == 1 && lengths[1] == 1 && finished[0] == 1 && finished[1] == 0);
  args.p = 0.75;
  CHECK_STATUS(top_p(&args), 0);
  CHECK(ids[0] == 0 && ids[1] == 1 && lengths[0] == 1 && lengths[1] == 2 && finished[0] == 1 && finished[1] == 0);
  finished[0] = 0;
  CHECK_STATUS(top_p(&args), 0);
  CHECK(ids[0] == 2 && lengths[0] == 2 && finished[0] == 0);

  ids[0] = 9, args.end_id = -1;
  CHECK_STATUS(top_p(&args), 161002);
  args.end_id = 0, args.probs = NULL;
  CHECK_STATUS(top_p(&args), 161001);
  args.probs = &probs, args.struct_size--;
  CHECK_STATUS(top_p(&args), 161002);
  CHECK(ids[0] == 9);
}

/* aclnn has no function for these. Without CANN the answer is another. */
static void npu(void) {
  tk_context context = TK_CONTEXT_INIT;
  tk_top_k_sampling_args args = TK_TOP_K_SAMPLING_ARGS_INIT;
  size_t bytes;
  int status;
  context.backend = 1;
  status = tk_top_k_sampling_workspace_size(&context, &args, &bytes);
  CHECK(status == -2 || status == -3);
}

int main(void) {
  best();
  most_probable();
  npu();
  return 0;
}
