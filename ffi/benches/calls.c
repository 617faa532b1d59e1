/* One call of tk_top_k_top_p_sample, prepared once and made again and again, as an engine makes it. */

#include "tilekern.h"

static int64_t matrix[2], line[2] = {1, 2}, column[1] = {1}, chosen;
static int32_t top_k;
static float top_p, min_p;
static tk_tensor logits, k, p, m, q, index;
static tk_top_k_top_p_sample_args args;
static tk_context context;
static void *memory;
static size_t memory_bytes;

static tk_tensor tensor(void *data, const int64_t *shape, int32_t rank, int32_t dtype) {
  tk_tensor t = {data, shape, NULL, rank, dtype};
  return t;
}

/* The row, its length, the noise or NULL, seed and offset or NULL, k (0: no top-k), p (1: no top-p), min-p (0: none) and a workspace. */
void calls_prepare(float *row, int64_t v, float *noise, int64_t *seeds, int32_t count, float part, float least, void *workspace,
                   size_t bytes) {
  const tk_top_k_top_p_sample_args init = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  const tk_context none = TK_CONTEXT_INIT;
  matrix[0] = 1;
  matrix[1] = v;
  top_k = count;
  top_p = part;
  min_p = least;
  memory = workspace;
  memory_bytes = bytes;
  logits = tensor(row, matrix, 2, TK_F32);
  k = tensor(&top_k, column, 1, TK_I32);
  p = tensor(&top_p, column, 1, TK_F32);
  m = tensor(&min_p, column, 1, TK_F32);
  q = seeds ? tensor(seeds, line, 2, TK_I64) : tensor(noise, matrix, 2, TK_F32);
  index = tensor(&chosen, column, 1, TK_I64);
  context = none;
  args = init;
  args.logits = &logits;
  args.top_k = &k;
  args.top_p = &p;
  args.min_ps = least > 0.0f ? &m : NULL;
  args.q = noise || seeds ? &q : NULL;
  if (seeds) args.post_sample = TK_POST_SAMPLE_MULTINOMIAL;
  args.logits_select_idx = &index;
}

/* Makes the call n times; the chosen token, or a status with its sign turned. */
int64_t calls_make(int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    int32_t status = tk_top_k_top_p_sample(&context, &args, memory, memory_bytes);
    if (status != TK_STATUS_SUCCESS) return status < 0 ? status : -(int64_t)status;
  }
  return chosen;
}
