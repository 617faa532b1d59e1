/* Chooses the next token of every sequence of a batch. How to compile and link: ffi/README.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "tilekern.h"

enum { BATCH = 3, VOCABULARY = 32000 };

static float logits[BATCH * VOCABULARY];

int main(void) {
  /* Of each sequence its own: the first is greedy, the second takes of the 40 best, the third of the 90 % and at least a tenth of the
     best. */
  int32_t top_k[BATCH] = {1, 40, 0};
  float top_p[BATCH] = {1.0f, 1.0f, 0.9f};
  float min_p[BATCH] = {0.0f, 0.0f, 0.1f};
  int64_t seeds[BATCH][2] = {{1, 0}, {2, 0}, {3, 0}}; /* (seed, offset); the next step takes an offset 4 higher */
  int64_t chosen[BATCH];

  /* A model's logits, in place of which here is something with a peak. */
  for (int b = 0; b < BATCH; b++)
    for (int v = 0; v < VOCABULARY; v++) logits[b * VOCABULARY + v] = 10.0f * expf(-1e-4f * (float)abs(v - 1000 * (b + 1)));

  int64_t by_token[] = {BATCH, VOCABULARY}, by_row[] = {BATCH}, by_seed[] = {BATCH, 2};
  tk_tensor logits_tensor = {logits, by_token, NULL, 2, TK_F32};
  tk_tensor top_k_tensor = {top_k, by_row, NULL, 1, TK_I32};
  tk_tensor top_p_tensor = {top_p, by_row, NULL, 1, TK_F32};
  tk_tensor min_p_tensor = {min_p, by_row, NULL, 1, TK_F32};
  tk_tensor seeds_tensor = {seeds, by_seed, NULL, 2, TK_I64};
  tk_tensor chosen_tensor = {chosen, by_row, NULL, 1, TK_I64};

  tk_top_k_top_p_sample_args args = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  args.logits = &logits_tensor;
  args.top_k = &top_k_tensor;
  args.top_p = &top_p_tensor;
  args.min_ps = &min_p_tensor;
  args.q = &seeds_tensor;
  args.post_sample = TK_POST_SAMPLE_MULTINOMIAL;
  args.logits_select_idx = &chosen_tensor;

  /* NULL would do as well; a context says why a call failed. */
  tk_context context = TK_CONTEXT_INIT;
  size_t bytes;
  int32_t status = tk_top_k_top_p_sample_workspace_size(&context, &args, &bytes);
  if (status != TK_STATUS_SUCCESS) {
    fprintf(stderr, "%s\n", context.message);
    return 1;
  }

  /* Once; every later call of these shapes runs in the same workspace, which is aligned to 64 bytes. */
  char *memory = malloc(bytes + 63);
  if (memory == NULL) return 1;
  char *workspace = memory + (64 - (size_t)memory % 64) % 64;

  status = tk_top_k_top_p_sample(&context, &args, workspace, bytes);
  if (status != TK_STATUS_SUCCESS) {
    fprintf(stderr, "%s\n", context.message);
    return 1;
  }
  for (int b = 0; b < BATCH; b++) printf("%d: token %lld\n", b, (long long)chosen[b]);
  free(memory);
  return 0;
}
