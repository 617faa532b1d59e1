/* The filters that write rows: worked examples, dtypes, and what they refuse. */
#include <math.h>
#include "check.h"

enum { B = 4, V = 4 };

static double memory[65536];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

static tk_context context = TK_CONTEXT_INIT;
static const int64_t matrix[2] = {B, V}, column[2] = {B, 1}, half[2] = {2, V};

static int min_p(const tk_apply_top_k_top_p_min_p_args *args) {
  size_t bytes = 0;
  int status = tk_apply_top_k_top_p_min_p_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  memset(workspace(), 0xA5, bytes);
  return tk_apply_top_k_top_p_min_p(&context, args, workspace(), bytes);
}

static void sorted_probabilities(void) {
  static const float expected[B * V] = {0.5f, 0.25f, 0, 0, 0.5f, 0.25f, 0, 0, 0, 0, 0, 0, 0.5f, 0.25f, 0.125f, 0};
  static const float best[B * V] = {0.5f, 0, 0, 0, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0.5f, 0, 0, 0};
  float probs[B * V], p[B] = {0.5f, 1, 1, 0.75f}, least[B] = {1, 1, 1, 1}, out[B * V];
  int32_t k[B] = {4, 2, 0, -1};
  tk_tensor probs_tensor = tensor(probs, matrix, 2, TK_F32), k_tensor = tensor(k, column, 1, TK_I32);
  tk_tensor p_tensor = tensor(p, column, 2, TK_F32), least_tensor = tensor(least, column, 1, TK_F32);
  tk_tensor out_tensor = tensor(out, matrix, 2, TK_F32);
  tk_apply_top_k_top_p_min_p_args args = TK_APPLY_TOP_K_TOP_P_MIN_P_ARGS_INIT;
  int i;
  for (i = 0; i < B * V; i++) probs[i] = i % V == 0 ? 0.5f : i % V == 1 ? 0.25f : 0.125f, out[i] = -1;
  CHECK(args.struct_size == sizeof args && args.probs == NULL && args.min_p == NULL);
  args.probs = &probs_tensor, args.k = &k_tensor, args.p = &p_tensor;
  CHECK_STATUS(min_p(&args), 161001);
  CHECK_MESSAGE(context, "sampled_res: expected a tensor, found null (161001)");
  args.sampled_res = &out_tensor;
  CHECK_STATUS(min_p(&args), 0);
  CHECK(memcmp(out, expected, sizeof out) == 0);
  args.min_p = &least_tensor;
  CHECK_STATUS(min_p(&args), 0);
  CHECK(memcmp(out, best, sizeof out) == 0);
  p_tensor.dtype = TK_F16;
  CHECK_STATUS(min_p(&args), 161002);
  CHECK_MESSAGE(context, "p: expected f32, found f16 (161002)");
  p_tensor.dtype = TK_F32, out_tensor.data = probs;
  CHECK_STATUS(min_p(&args), 161002);
  CHECK_MESSAGE(context, "sampled_res: ");
  out_tensor.data = out, out_tensor.shape = half;
  CHECK_STATUS(min_p(&args), 161002);
}

static int filter(const tk_apply_top_k_top_p_args *args) {
  size_t bytes = 0;
  int status = tk_apply_top_k_top_p_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  memset(workspace(), 0xA5, bytes);
  return tk_apply_top_k_top_p(&context, args, workspace(), bytes);
}

/* 0.5 of four equals keeps the last two, 0.51 the last three, 0 the last; k = 2 keeps all equals. */
static void logits_in_their_places(void) {
  static const float expected[B * V] = {-INFINITY, -INFINITY, 0, 0, -INFINITY, 0, 0, 0, -INFINITY, -INFINITY, -INFINITY, 0, 0, 0, 0, 0};
  static const int64_t nothing[2] = {0, V}, none[1] = {0};
  float logits[B * V] = {0}, p[B] = {0.5f, 0.51f, 0, 1}, out[B * V];
  int32_t k[B] = {2, 0, 4, -3};
  tk_tensor logits_tensor = tensor(logits, matrix, 2, TK_F32), p_tensor = tensor(p, column, 1, TK_F32);
  tk_tensor k_tensor = tensor(k, column, 2, TK_I32), out_tensor = tensor(out, matrix, 2, TK_F32);
  tk_apply_top_k_top_p_args args = TK_APPLY_TOP_K_TOP_P_ARGS_INIT;
  size_t bytes = 1;
  CHECK(args.struct_size == sizeof args && args.p == NULL && args.k == NULL);
  CHECK_STATUS(filter(&args), 161001);
  CHECK_MESSAGE(context, "logits: ");
  args.logits = &logits_tensor, args.out = &out_tensor;
  CHECK_STATUS(filter(&args), 161001);
  CHECK_MESSAGE(context, "p: ");
  args.k = &k_tensor;
  CHECK_STATUS(filter(&args), 0);
  CHECK(memcmp(out, logits, sizeof out) == 0);
  args.p = &p_tensor;
  CHECK_STATUS(filter(&args), 0);
  CHECK(memcmp(out, expected, sizeof out) == 0);
  k_tensor.dtype = TK_I64;
  CHECK_STATUS(filter(&args), 161002);
  CHECK_MESSAGE(context, "k: expected i32, found i64 (161002)");
  k_tensor.dtype = TK_I32, out_tensor.dtype = TK_BF16;
  CHECK_STATUS(filter(&args), 161002);
  CHECK_MESSAGE(context, "out: expected f32, found bf16 (161002)");
  out_tensor.dtype = TK_F32, logits_tensor.shape = out_tensor.shape = nothing, p_tensor.shape = k_tensor.shape = none;
  k_tensor.rank = 1;
  CHECK_STATUS(tk_apply_top_k_top_p_workspace_size(&context, &args, &bytes), 0);
  CHECK(bytes == 0);
  CHECK_STATUS(tk_apply_top_k_top_p(&context, &args, NULL, 0), 0);
}

int main(void) {
  logits_in_their_places();
  sorted_probabilities();
  return 0;
}
