/* tk_top_k_top_p_sample_v1: the worked examples in f32, every optional tensor, and what it refuses. */
#include <math.h>
#include <stdbool.h>
#include "check.h"

enum { B = 2, V = 4 };

static double memory[65536];
static tk_context context = TK_CONTEXT_INIT;
static const int64_t matrix[2] = {B, V}, column[2] = {B, 1}, wrong[2] = {B, V - 1}, none[2] = {0, V};

static int run(const tk_top_k_top_p_sample_v1_args *args) {
  char *workspace = (char *)memory + (64 - (size_t)memory % 64) % 64;
  size_t bytes = 0;
  int status = tk_top_k_top_p_sample_v1_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  memset(workspace, 0xA5, bytes);
  return tk_top_k_top_p_sample_v1(&context, args, workspace, bytes);
}

int main(void) {
  float logits[B * V] = {0, 0, 0, 0, 1, 4, 2, 3}, top_p[B] = {0.5f, 0}, select[B * V], q[B * V] = {1, 0.2f, 1, 1, 1, 0.2f, 1, 1};
  int32_t top_k[B] = {4000, 3};
  int64_t chosen[B] = {-1, -1};
  uint8_t status[B];
  tk_tensor logits_tensor = tensor(logits, matrix, 2, TK_F32), top_k_tensor = tensor(top_k, column, 1, TK_I32);
  tk_tensor top_p_tensor = tensor(top_p, column, 2, TK_F32), q_tensor = tensor(q, matrix, 2, TK_F32);
  tk_tensor chosen_tensor = tensor(chosen, column, 1, TK_I64), select_tensor = tensor(select, matrix, 2, TK_F32);
  tk_tensor status_tensor = tensor(status, column, 1, TK_U8);
  tk_top_k_top_p_sample_v1_args args = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT;
  static const float expected[B * V] = {0, 0, 0, -INFINITY, -INFINITY, 4, 2, 3};
  static const float peaked[B * V] = {3, 0, -1, -2, 3, 0, -1, -2};
  CHECK(args.struct_size == sizeof args && args.q == NULL && args.eps == 1e-8 && !args.is_need_logits && args.top_k_guess == 32);
  args.logits = &logits_tensor, args.top_k = &top_k_tensor, args.top_p = &top_p_tensor;
  CHECK_STATUS(run(&args), 161001);
  CHECK_MESSAGE(context, "logits_select_idx: ");
  args.logits_select_idx = &chosen_tensor, args.is_need_logits = true;
  CHECK_STATUS(run(&args), 161001);
  CHECK_MESSAGE(context, "logits_top_kp_select: ");
  args.logits_top_kp_select = &select_tensor, args.row_status = &status_tensor;
  /* 0.5 of four equals keeps three; p of 0 is no stage. */
  CHECK_STATUS(run(&args), 0);
  CHECK(memcmp(select, expected, sizeof select) == 0);
  CHECK(chosen[0] == 0 && chosen[1] == 1 && status[0] == 0 && status[1] == 0);
  /* Top-p alone softmaxes its probabilities, so the noise decides; with top-k the logits do. */
  memcpy(logits, peaked, sizeof logits);
  top_p[0] = top_p[1] = 0.97021484375f, top_k[1] = 4;
  args.q = &q_tensor;
  CHECK_STATUS(run(&args), 0);
  CHECK(chosen[0] == 1 && chosen[1] == 0);
  logits[0] = NAN, logits[1] = INFINITY, logits[4] = logits[5] = logits[6] = logits[7] = -INFINITY;
  CHECK_STATUS(run(&args), 0);
  CHECK(status[0] == 3 && status[1] == 4 && chosen[0] == 1 && chosen[1] == 0);
  q_tensor.shape = wrong;
  CHECK_STATUS(run(&args), 161002);
  CHECK_MESSAGE(context, "q: expected [2,4], found [2,3] (161002)");
  q_tensor.shape = matrix, q_tensor.dtype = TK_F16;
  CHECK_STATUS(run(&args), 161002);
  args.q = NULL, top_p_tensor.dtype = TK_BF16;
  CHECK_STATUS(run(&args), 161002);
  CHECK_MESSAGE(context, "top_p: expected f32, found bf16 (161002)");
  top_p_tensor.dtype = TK_F32, args.eps = -1;
  CHECK_STATUS(run(&args), 161002);
  args.eps = 0, logits_tensor.shape = none;
  CHECK_STATUS(run(&args), 161002);
  CHECK_MESSAGE(context, "logits: ");
  return 0;
}
