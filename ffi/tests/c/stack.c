/* The calls that take most of the stack, on a thread that has little more than the header asks for. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>

enum { V = 40000, M = 70, K = 600, N = 300 };
/* What the header says, and what pthread keeps there. */
enum { STACK = 64 << 10, OWN = 16 << 10, GUARD = 64 << 10 };

static float logits[V], q[V], kept[V], product[M * N];
static int8_t x[M * K], w[K * N];
static int64_t chosen;
static char memory[(1 << 23) + 64];

#define RUN(name, args)                                                     \
  do {                                                                      \
    size_t bytes;                                                           \
    CHECK_STATUS(name##_workspace_size(context, args, &bytes), 0);          \
    CHECK(bytes <= sizeof memory - 64);                                     \
    CHECK_STATUS(name(context, args, workspace, bytes), 0);                 \
  } while (0)

static void *calls(void *user) {
  static const int64_t row[2] = {1, V}, one[1] = {1}, left[2] = {M, K}, right[2] = {K, N}, out[2] = {M, N};
  tk_context *context = user;
  char *workspace = memory + (64 - (size_t)memory % 64) % 64;
  int32_t top_k = 0;
  float top_p = 0.95f;
  tk_tensor l = tensor(logits, row, 2, TK_F32), k = tensor(&top_k, one, 1, TK_I32), p = tensor(&top_p, one, 1, TK_F32);
  tk_tensor noise = tensor(q, row, 2, TK_F32), c = tensor(&chosen, one, 1, TK_I64), f = tensor(kept, row, 2, TK_F32);
  tk_tensor a = tensor(x, left, 2, TK_I8), b = tensor(w, right, 2, TK_I8), y = tensor(product, out, 2, TK_F32);
  tk_top_k_top_p_sample_args sample = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  tk_top_k_top_p_sample_v1_args first = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT;
  tk_apply_top_k_top_p_args apply = TK_APPLY_TOP_K_TOP_P_ARGS_INIT;
  tk_quant_matmul_args multiply = TK_QUANT_MATMUL_ARGS_INIT;
  sample.logits = &l, sample.top_k = &k, sample.top_p = &p, sample.q = &noise, sample.logits_select_idx = &c;
  first.logits = &l, first.top_k = &k, first.top_p = &p, first.q = &noise, first.logits_select_idx = &c;
  apply.logits = &l, apply.p = &p, apply.out = &f;
  multiply.x = &a, multiply.weight = &b, multiply.out = &y;
  for (top_k = 0; top_k <= 900; top_k += 300) {
    RUN(tk_top_k_top_p_sample, &sample);
    RUN(tk_top_k_top_p_sample_v1, &first);
  }
  RUN(tk_apply_top_k_top_p, &apply);
  RUN(tk_quant_matmul, &multiply);
  return context;
}

int main(void) {
  int32_t isa;
  size_t i, ran = 0;
  for (i = 0; i < V; i++) logits[i] = (float)((i * 2654435761u >> 8) % 100000) * 1e-4f, q[i] = 0.1f + (float)(i % 13);
  for (i = 0; i < M * K; i++) x[i] = (int8_t)(i * 31 % 251);
  for (i = 0; i < K * N; i++) w[i] = (int8_t)(i * 17 % 253);
  for (isa = TK_ISA_PORTABLE; isa <= TK_ISA_AVX512AMX; isa++) {
    tk_context context = TK_CONTEXT_INIT;
    pthread_t thread;
    pthread_attr_t attributes;
    void *result = NULL;
    char *stack;
    context.isa = isa;
    if (tk_isa_name(&context) == NULL) continue;
    stack = mmap(NULL, GUARD + STACK + OWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, GUARD, PROT_NONE) == 0);
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack + GUARD, STACK + OWN) == 0);
    CHECK(pthread_create(&thread, &attributes, calls, &context) == 0 && pthread_join(thread, &result) == 0);
    CHECK(result == &context && pthread_attr_destroy(&attributes) == 0);
    ran++;
  }
  CHECK(ran > 0);
  return 0;
}
