/* tk_top_k_top_p_sample: worked examples, every way of choosing, every optional tensor, and what it refuses. */
#include <math.h>
#include <stdbool.h>
#include "check.h"

enum { B = 2, V = 6 };

/* A call over two equal rows, for tests to change. */
typedef struct call {
  float logits[B * V], top_p[B], noise[B * V], min_ps[B], select[B * V], sorted[B * V];
  int32_t top_k[B];
  int64_t seeds[B * 2], generator[2], chosen[B], order[B * V];
  uint8_t status[B];
  int64_t matrix[2], row[2], lines[2], pair[1];
  tk_tensor logits_tensor, top_k_tensor, top_p_tensor, noise_tensor, seeds_tensor, min_ps_tensor, chosen_tensor;
  tk_tensor select_tensor, status_tensor, order_tensor, sorted_tensor, generator_tensor;
  tk_top_k_top_p_sample_args args;
  tk_context context;
} call;

static double memory[4096];

static void make(call *c) {
  static const tk_top_k_top_p_sample_args args = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  static const tk_context context = TK_CONTEXT_INIT;
  static const float row[V] = {0.5f, 2.0f, 1.0f, 1.5f, 0.0f, -1.0f};
  int b;
  memset(c, 0, sizeof *c);
  for (b = 0; b < B; b++) {
    memcpy(c->logits + b * V, row, sizeof row);
    c->top_k[b] = 4, c->top_p[b] = 0.8f, c->chosen[b] = -1, c->status[b] = 99;
  }
  c->matrix[0] = B, c->matrix[1] = V, c->row[0] = B, c->row[1] = 1, c->lines[0] = B, c->lines[1] = 2, c->pair[0] = 2;
  c->logits_tensor = tensor(c->logits, c->matrix, 2, TK_F32);
  c->top_k_tensor = tensor(c->top_k, c->row, 1, TK_I32);
  c->top_p_tensor = tensor(c->top_p, c->row, 1, TK_F32);
  c->noise_tensor = tensor(c->noise, c->matrix, 2, TK_F32);
  c->seeds_tensor = tensor(c->seeds, c->lines, 2, TK_I64);
  c->min_ps_tensor = tensor(c->min_ps, c->row, 1, TK_F32);
  c->chosen_tensor = tensor(c->chosen, c->row, 1, TK_I64);
  c->select_tensor = tensor(c->select, c->matrix, 2, TK_F32);
  c->status_tensor = tensor(c->status, c->row, 1, TK_U8);
  c->order_tensor = tensor(c->order, c->matrix, 2, TK_I64);
  c->sorted_tensor = tensor(c->sorted, c->matrix, 2, TK_F32);
  c->generator_tensor = tensor(c->generator, c->pair, 1, TK_I64);
  c->args = args;
  c->args.logits = &c->logits_tensor, c->args.top_k = &c->top_k_tensor, c->args.top_p = &c->top_p_tensor;
  c->args.logits_select_idx = &c->chosen_tensor;
  c->context = context;
}

static int run(call *c) {
  char *workspace = (char *)memory + (64 - (size_t)memory % 64) % 64;
  size_t bytes = 0;
  int status = tk_top_k_top_p_sample_workspace_size(&c->context, &c->args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  memset(workspace, 0xA5, bytes);
  return tk_top_k_top_p_sample(&c->context, &c->args, workspace, bytes);
}

static void refused(call *c, int status, const char *start) {
  CHECK_STATUS(run(c), status);
  if (strncmp(c->context.message, start, strlen(start)) != 0) {
    fprintf(stderr, "expected \"%s\", found \"%.255s\"\n", start, c->context.message);
    exit(1);
  }
  CHECK(c->chosen[0] == -1);
}

static void defaults(void) {
  call c;
  make(&c);
  CHECK(c.args.struct_size == sizeof c.args && c.args.q == NULL && c.args.min_ps == NULL && c.args.eps == 1e-8);
  CHECK(!c.args.is_need_logits && c.args.top_k_guess == 32 && c.args.ks_max == 1024 && c.args.input_is_logits);
  CHECK(c.args.post_sample == 1 && c.args.row_status == NULL && c.args.generator == NULL);
}

/* Top-k leaves 1, 3, 2, 0; top-p the first three. */
static void outputs(void) {
  static const int64_t order[V] = {1, 3, 2, 0, 0, 0};
  static const double sorted[V] = {0.45505422353744507, 0.2760043442249298, 0.16740508377552032, 0, 0, 0};
  call c;
  int i;
  make(&c);
  c.args.is_need_logits = true;
  c.args.logits_top_kp_select = &c.select_tensor, c.args.row_status = &c.status_tensor;
  c.args.logits_idx = &c.order_tensor, c.args.logits_sort_masked = &c.sorted_tensor;
  CHECK_STATUS(run(&c), 0);
  for (i = 0; i < B * V; i++) {
    int kept = i % V >= 1 && i % V <= 3;
    CHECK(c.order[i] == order[i % V]);
    CHECK(fabs(c.sorted[i] - sorted[i % V]) < 1e-6);
    CHECK(kept ? c.select[i] == c.logits[i] : c.select[i] == -INFINITY);
  }
  CHECK(c.chosen[0] == 1 && c.chosen[1] == 1 && c.status[0] == 0 && c.status[1] == 0);
  /* The middle result alone. */
  c.args.logits_select_idx = NULL;
  CHECK_STATUS(run(&c), 0);
  /* Any byte but 0 is true. */
  memset(&c.args.is_need_logits, 2, 1);
  c.args.logits_top_kp_select = NULL;
  CHECK_STATUS(run(&c), 161001);
  memset(&c.args.is_need_logits, 0, 1);
  CHECK_STATUS(run(&c), 0);
  /* Neither written nor validated. */
  make(&c);
  c.select_tensor.dtype = 77;
  c.args.logits_top_kp_select = &c.select_tensor;
  CHECK_STATUS(run(&c), 0);
}

/* Noise is read by place in the row's list: 1, 3, 2. */
static void choices(void) {
  call c;
  int64_t first[B];
  int i;
  make(&c);
  for (i = 0; i < B * V; i++) c.noise[i] = 1.0f;
  c.noise[2] = -1e-6f;
  c.args.q = &c.noise_tensor;
  CHECK_STATUS(run(&c), 0);
  CHECK(c.chosen[0] == 2 && c.chosen[1] == 1);
  /* 0 looks at no q. */
  c.args.post_sample = TK_POST_SAMPLE_NONE;
  c.noise_tensor.dtype = 77;
  CHECK_STATUS(run(&c), 0);
  CHECK(c.chosen[0] == 1);
  /* Rows that share a line share their noise; one line serves both. */
  make(&c);
  c.args.post_sample = TK_POST_SAMPLE_MULTINOMIAL;
  c.args.q = &c.seeds_tensor;
  c.seeds[0] = c.seeds[2] = 42;
  CHECK_STATUS(run(&c), 0);
  CHECK(c.chosen[0] == c.chosen[1] && c.chosen[0] >= 1 && c.chosen[0] <= 3);
  memcpy(first, c.chosen, sizeof first);
  c.lines[0] = 1;
  CHECK_STATUS(run(&c), 0);
  CHECK(memcmp(first, c.chosen, sizeof first) == 0);
  /* The generator: every token that is left comes, and no other. */
  c.args.q = NULL, c.args.generator = &c.generator_tensor;
  {
    int seen[V] = {0};
    for (i = 0; i < 100; i++) {
      c.generator[1] = 12 * i;
      CHECK_STATUS(run(&c), 0);
      CHECK(c.generator[1] == 12 * i);
      seen[c.chosen[0]]++, seen[c.chosen[1]]++;
    }
    CHECK(seen[1] > seen[3] && seen[3] > seen[2] && seen[2] > 0 && seen[0] + seen[4] + seen[5] == 0);
  }
}

/* [B,1] for [B], everywhere. */
static void columns(void) {
  call c, flat;
  make(&flat);
  flat.min_ps[0] = 0.5f;
  flat.args.min_ps = &flat.min_ps_tensor, flat.args.row_status = &flat.status_tensor;
  CHECK_STATUS(run(&flat), 0);
  make(&c);
  c.min_ps[0] = 0.5f;
  c.args.min_ps = &c.min_ps_tensor, c.args.row_status = &c.status_tensor;
  c.top_k_tensor.rank = c.top_p_tensor.rank = c.min_ps_tensor.rank = c.chosen_tensor.rank = c.status_tensor.rank = 2;
  CHECK_STATUS(run(&c), 0);
  CHECK(memcmp(c.chosen, flat.chosen, sizeof c.chosen) == 0 && memcmp(c.status, flat.status, sizeof c.status) == 0);
}

static void rows(void) {
  call c;
  int i;
  make(&c);
  c.logits[0] = NAN, c.logits[1] = INFINITY;
  for (i = V; i < 2 * V; i++) c.logits[i] = -INFINITY;
  c.args.row_status = &c.status_tensor;
  CHECK_STATUS(run(&c), 0);
  CHECK(c.chosen[0] == 1 && c.status[0] == 3 && c.chosen[1] == 0 && c.status[1] == 4);
}

static void dtypes(void) {
  static const uint16_t halves[B * V] = {0x3800, 0x4000, 0x3C00, 0x3E00, 0, 0xBC00, 0x3800, 0x4000, 0x3C00, 0x3E00, 0, 0xBC00};
  static const uint16_t p[B] = {0x3A66, 0x3A66};
  call c;
  make(&c);
  memcpy(c.logits, halves, sizeof halves);
  memcpy(c.top_p, p, sizeof p);
  c.logits_tensor.dtype = c.top_p_tensor.dtype = TK_F16;
  CHECK_STATUS(run(&c), 0);
  CHECK(c.chosen[0] == 1 && c.chosen[1] == 1);
}

static void refusals(void) {
  call c;
  make(&c);
  c.args.top_k = NULL;
  refused(&c, 161001, "top_k: ");
  c.logits_tensor.dtype = TK_I32;
  refused(&c, 161001, "top_k: ");
  make(&c);
  c.top_k_tensor.dtype = TK_I64, c.args.logits_select_idx = NULL;
  refused(&c, 161001, "logits_select_idx: ");
  c.args.logits_sort_masked = &c.sorted_tensor;
  refused(&c, 161001, "logits_idx: ");
  c.args.logits_idx = &c.order_tensor, c.args.is_need_logits = true;
  refused(&c, 161001, "logits_top_kp_select: ");
  make(&c);
  c.args.logits_select_idx = NULL;
  refused(&c, 161001, "logits_select_idx: ");
  make(&c);
  c.args.logits_idx = &c.order_tensor;
  refused(&c, 161001, "logits_sort_masked: ");
  make(&c);
  c.args.post_sample = 3;
  refused(&c, 161002, "post_sample: expected 0, 1 or 2, found 3 (161002)");
  make(&c);
  c.args.q = &c.seeds_tensor;
  refused(&c, 161002, "q: expected f32, found i64 (161002)");
  make(&c);
  c.args.q = &c.noise_tensor, c.args.post_sample = TK_POST_SAMPLE_MULTINOMIAL;
  refused(&c, 161002, "q: expected i64, found f32 (161002)");
  make(&c);
  c.noise_tensor.shape = c.lines, c.args.q = &c.noise_tensor;
  refused(&c, 561002, "q: expected [2,6], found [2,2] (561002)");
  make(&c);
  c.top_p_tensor.dtype = TK_F16;
  refused(&c, 161002, "top_p: expected f32, found f16 (161002)");
  make(&c);
  c.matrix[0] = 0, c.row[0] = 0;
  refused(&c, 161002, "logits: ");
  make(&c);
  c.matrix[1] = (1 << 20) + 1;
  c.logits_tensor.data = NULL;
  refused(&c, 561002, "logits: ");
  make(&c);
  c.args.generator = &c.generator_tensor, c.generator_tensor.rank = 0;
  refused(&c, 161002, "generator: ");
  make(&c);
  c.status_tensor.data = c.chosen, c.args.row_status = &c.status_tensor;
  refused(&c, 161002, "");
  make(&c);
  c.logits_tensor.data = NULL;
  refused(&c, 161001, "logits: expected a tensor with data, found null (161001)");
}

int main(void) {
  defaults();
  outputs();
  choices();
  columns();
  rows();
  dtypes();
  refusals();
  return 0;
}
