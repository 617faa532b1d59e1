/* The sampling operators over rows and columns that lie apart, and with a pool: what they give over plain rows in one thread. */
#include <math.h>
#include "pool.h"

enum { B = 4, V = 20000, PITCH = V + 37, S = 50, DRAWN_PITCH = S + 3 };

/* How a matrix lies: plain, with rows apart, and with columns apart too. */
enum { FORMS = 3 };

static const int64_t strides[FORMS][2] = {{V, 1}, {PITCH, 1}, {2 * PITCH, 2}};
static const int64_t drawn_strides[FORMS][2] = {{S, 1}, {DRAWN_PITCH, 1}, {2 * DRAWN_PITCH, 2}};
static const int64_t matrix[2] = {B, V}, row[1] = {B}, samples[2] = {B, S};

static float logits[FORMS][2 * B * PITCH], probs[FORMS][2 * B * PITCH], q[FORMS][2 * B * PITCH];

/* What a call writes. */
typedef struct outputs {
  float values[2 * B * PITCH];
  int64_t drawn[2 * B * DRAWN_PITCH], chosen[B];
} outputs;

static const float untouched = -77;
static outputs expected, found;
static int32_t top_k[B] = {50, 0, 1000, 3};
static float top_p[B] = {0.9f, 0.5f, 0.99f, 1.0f};
static double memory[1 << 20];

static tk_tensor rows(float *data, int form) {
  tk_tensor t = tensor(data, matrix, 2, TK_F32);
  t.strides = form == 0 ? NULL : strides[form];
  return t;
}

/* Exactly as much workspace as the query says. */
#define RUN(name, args)                                                                   \
  do {                                                                                    \
    unsigned char *workspace = (unsigned char *)memory + (64 - (size_t)memory % 64) % 64; \
    size_t bytes, byte;                                                                   \
    CHECK_STATUS(name##_workspace_size(context, args, &bytes), 0);                        \
    CHECK(bytes + 128 <= sizeof memory);                                                  \
    memset(workspace, 0xA5, bytes + 64);                                                  \
    CHECK_STATUS(name(context, args, workspace, bytes), 0);                               \
    for (byte = bytes; byte < bytes + 64; byte++) CHECK(workspace[byte] == 0xA5);         \
  } while (0)

static void sample(tk_context *context, int form) {
  tk_tensor l = rows(logits[form], form), noise = rows(q[form], form), select = rows(found.values, form);
  tk_tensor k = tensor(top_k, row, 1, TK_I32), p = tensor(top_p, row, 1, TK_F32), c = tensor(found.chosen, row, 1, TK_I64);
  tk_top_k_top_p_sample_args args = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  args.logits = &l, args.top_k = &k, args.top_p = &p, args.q = &noise, args.logits_select_idx = &c;
  args.is_need_logits = true, args.logits_top_kp_select = &select;
  RUN(tk_top_k_top_p_sample, &args);
}

static void sample_v1(tk_context *context, int form) {
  tk_tensor l = rows(logits[form], form), noise = rows(q[form], form), select = rows(found.values, form);
  tk_tensor k = tensor(top_k, row, 1, TK_I32), p = tensor(top_p, row, 1, TK_F32), c = tensor(found.chosen, row, 1, TK_I64);
  tk_top_k_top_p_sample_v1_args args = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT;
  args.logits = &l, args.top_k = &k, args.top_p = &p, args.q = &noise, args.logits_select_idx = &c;
  args.is_need_logits = true, args.logits_top_kp_select = &select;
  RUN(tk_top_k_top_p_sample_v1, &args);
}

static void filter(tk_context *context, int form) {
  tk_tensor l = rows(logits[form], form), out = rows(found.values, form);
  tk_tensor k = tensor(top_k, row, 1, TK_I32), p = tensor(top_p, row, 1, TK_F32);
  tk_apply_top_k_top_p_args args = TK_APPLY_TOP_K_TOP_P_ARGS_INIT;
  args.logits = &l, args.k = &k, args.p = &p, args.out = &out;
  RUN(tk_apply_top_k_top_p, &args);
}

static void min_p(tk_context *context, int form) {
  static float least[B] = {0.5f, 0.01f, 0, 0.001f};
  tk_tensor from = rows(probs[form], form), out = rows(found.values, form), m = tensor(least, row, 1, TK_F32);
  tk_tensor k = tensor(top_k, row, 1, TK_I32), p = tensor(top_p, row, 1, TK_F32);
  tk_apply_top_k_top_p_min_p_args args = TK_APPLY_TOP_K_TOP_P_MIN_P_ARGS_INIT;
  args.probs = &from, args.k = &k, args.p = &p, args.min_p = &m, args.sampled_res = &out;
  RUN(tk_apply_top_k_top_p_min_p, &args);
}

static void draw(tk_context *context, int form, bool replacement) {
  tk_tensor from = rows(probs[form], form), out = tensor(found.drawn, samples, 2, TK_I64);
  tk_multinomial_args args = TK_MULTINOMIAL_ARGS_INIT;
  out.strides = form == 0 ? NULL : drawn_strides[form];
  args.probs = &from, args.out = &out, args.num_samples = S, args.replacement = replacement, args.seed = 5;
  RUN(tk_multinomial, &args);
}

static void with_replacement(tk_context *context, int form) {
  draw(context, form, true);
}

static void without_replacement(tk_context *context, int form) {
  draw(context, form, false);
}

static void exponential(tk_context *context, int form) {
  tk_tensor out = rows(found.values, form);
  tk_exponential_args args = TK_EXPONENTIAL_ARGS_INIT;
  args.out = &out, args.seed = 5;
  RUN(tk_exponential, &args);
}

static void clear(void) {
  size_t i;
  memset(&found, 0xFF, sizeof found);
  for (i = 0; i < 2 * B * PITCH; i++) found.values[i] = untouched;
}

/* What is expected, which is plain, and nothing between; clears what is found. */
static void same(int form) {
  size_t b, i;
  for (b = 0; b < B; b++) {
    for (i = 0; i < V; i++) {
      float *value = &found.values[b * (size_t)strides[form][0] + i * (size_t)strides[form][1]];
      CHECK(memcmp(value, &expected.values[b * V + i], sizeof *value) == 0);
      *value = untouched;
    }
    for (i = 0; i < S; i++) {
      int64_t *drawn = &found.drawn[b * (size_t)drawn_strides[form][0] + i * (size_t)drawn_strides[form][1]];
      CHECK(*drawn == expected.drawn[b * S + i]);
      *drawn = -1;
    }
    CHECK(found.chosen[b] == expected.chosen[b]);
  }
  for (i = 0; i < 2 * B * PITCH; i++) CHECK(found.values[i] == untouched);
  for (i = 0; i < 2 * B * DRAWN_PITCH; i++) CHECK(found.drawn[i] == -1);
  clear();
}

static void compare(void (*call)(tk_context *context, int form)) {
  size_t tasks = 0;
  int form;
  tk_context context = TK_CONTEXT_INIT;
  context.parallel_for = pthread_for, context.parallel_user = &tasks, context.parallel_threads = THREADS;
  clear();
  expected = found;
  call(NULL, 0);
  CHECK(memcmp(&found, &expected, sizeof found) != 0);
  expected = found;
  same(0);
  for (form = 0; form < FORMS; form++) {
    call(NULL, form);
    same(form);
    tasks = 0;
    call(&context, form);
    same(form);
    CHECK(tasks > 1);
  }
}

/* The same numbers in every form; NaN between them. */
static void fill(float data[FORMS][2 * B * PITCH], float (*value)(size_t b, size_t i)) {
  size_t b, i, form;
  for (form = 0; form < FORMS; form++) {
    for (i = 0; i < 2 * B * PITCH; i++) data[form][i] = NAN;
    for (b = 0; b < B; b++) {
      for (i = 0; i < V; i++) data[form][b * (size_t)strides[form][0] + i * (size_t)strides[form][1]] = value(b, i);
    }
  }
}

static float logit(size_t b, size_t i) {
  return (float)(((b * V + i) * 2654435761u >> 8) % 100000) * 1e-4f;
}

static float prob(size_t b, size_t i) {
  return 0.09f / (float)(b + i + 1);
}

static float noise_of(size_t b, size_t i) {
  return 0.01f + (float)(((b * V + i) * 2246822519u >> 8) % 1000) * 1e-3f;
}

int main(void) {
  fill(logits, logit);
  fill(probs, prob);
  fill(q, noise_of);
  compare(sample);
  compare(sample_v1);
  compare(filter);
  compare(min_p);
  compare(with_replacement);
  compare(without_replacement);
  compare(exponential);
  return 0;
}
