/* The operators of sampling and of int8 weights, with the stack that the header asks for below them and at most a page more. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { B = 2, V = 70000, S = 300, M = 70, K = 640, N = 320, E = 2, G = 2 };
enum { STACK = 64 << 10, THREAD = 1 << 18 };

static float logits[B * V], probs[B * V], q[B * V], kept[B * V], sorted[B * V], numbers[B] = {0.3f, 0.9f}, w[2 * E * K * N];
static float weight_scale[E * N], x_scale[M], bias[E * N], output_scale[M], output_offset[M], product[M * N];
static uint16_t half_logits[B * V], half_probs[B * V];
static uint64_t scale_bits[E * G * N];
static int64_t chosen[B], order[B * V], drawn[B * S], ends[E] = {M / 3, M}, generator[2] = {7, 0};
static int32_t top_k[B], ids[B];
static int8_t x[M * K], output[M * N / 2], packed[1 << 20];
static char memory[(1 << 24) + 64];

static const int64_t matrix[] = {B, V}, cube[] = {B, 1, V}, row[] = {B}, pair[] = {2}, samples[] = {B, S};
static const int64_t left[] = {M, K}, right[] = {K, N}, out[] = {M, N}, half[] = {M, N / 2}, rows[] = {M}, list[] = {E};
static const int64_t experts[] = {E, K, N}, channels[] = {E, N}, groups[] = {E, G, N};
static const int64_t blocks[] = {E, N / 32, K / 16, 16, 32}, blocks_of_pairs[] = {E, N / 64, K / 16, 16, 64};

static char *thread_stack;
/* What an overflow reports. */
static const char *volatile running;

static void overflow(int number) {
  static const char text[] = " takes more than 64 KiB of stack\n";
  (void)number;
  _exit(write(2, running, strlen(running)) < 0 || write(2, text, sizeof text - 1) < 0 ? 2 : 1);
}

/* Leaves that much below the caller, to the page. */
__attribute__((noinline)) static void limit(void) {
  char here;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), beyond = (size_t)(&here - thread_stack) - STACK;
  CHECK(mprotect(thread_stack, THREAD, PROT_READ | PROT_WRITE) == 0);
  CHECK(mprotect(thread_stack, beyond / page * page, PROT_NONE) == 0);
}

static void *workspace(void) {
  return memory + (64 - (size_t)memory % 64) % 64;
}

#define RUN(name, args, what)                                                   \
  do {                                                                          \
    size_t bytes;                                                               \
    running = #name " " what;                                                   \
    limit();                                                                    \
    CHECK_STATUS(name##_workspace_size(context, args, &bytes), 0);              \
    CHECK(bytes <= sizeof memory - 64);                                         \
    CHECK_STATUS(name(context, args, workspace(), bytes), 0);                   \
  } while (0)

static void sampling(tk_context *context, int32_t dtype) {
  const uint16_t most = dtype == TK_F16 ? 0x3B9A : 0x3F73; /* 0.95 */
  float p[B] = {0.95f, 0.9f};
  uint16_t half_p[B];
  tk_tensor l = tensor(dtype == TK_F32 ? (void *)logits : half_logits, matrix, 2, dtype);
  tk_tensor probs_tensor = tensor(dtype == TK_F32 ? (void *)probs : half_probs, matrix, 2, dtype);
  tk_tensor p_tensor = tensor(dtype == TK_F32 ? (void *)p : half_p, row, 1, dtype), k = tensor(top_k, row, 1, TK_I32);
  tk_tensor noise = tensor(q, matrix, 2, TK_F32), seeds = tensor(generator, pair, 1, TK_I64), c = tensor(chosen, row, 1, TK_I64);
  tk_tensor select = tensor(kept, matrix, 2, TK_F32), order_tensor = tensor(order, matrix, 2, TK_I64);
  tk_tensor sorted_tensor = tensor(sorted, matrix, 2, TK_F32), filtered = tensor(kept, matrix, 2, dtype);
  tk_top_k_top_p_sample_v1_args first = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT;
  tk_apply_top_k_top_p_args apply = TK_APPLY_TOP_K_TOP_P_ARGS_INIT;
  tk_apply_top_k_top_p_min_p_args min_p = TK_APPLY_TOP_K_TOP_P_MIN_P_ARGS_INIT;
  half_p[0] = half_p[1] = most;
  first.logits = &l, first.top_k = &k, first.top_p = &p_tensor, first.q = &noise, first.logits_select_idx = &c;
  first.logits_top_kp_select = &select;
  for (top_k[0] = 0; top_k[0] <= 900; top_k[0] += 300) {
    tk_top_k_top_p_sample_args sample = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
    top_k[1] = 900 - top_k[0];
    sample.logits = &l, sample.top_k = &k, sample.top_p = &p_tensor, sample.q = &noise, sample.logits_select_idx = &c;
    RUN(tk_top_k_top_p_sample, &sample, "with q");
    sample.post_sample = TK_POST_SAMPLE_MULTINOMIAL, sample.q = NULL, sample.generator = &seeds;
    RUN(tk_top_k_top_p_sample, &sample, "with a generator");
    sample.is_need_logits = true, sample.logits_top_kp_select = &select, sample.min_ps = &p_tensor;
    sample.logits_idx = &order_tensor, sample.logits_sort_masked = &sorted_tensor;
    RUN(tk_top_k_top_p_sample, &sample, "with all outputs");
    sample.logits = &probs_tensor, sample.input_is_logits = false;
    RUN(tk_top_k_top_p_sample, &sample, "of probabilities");
    first.is_need_logits = !first.is_need_logits;
    RUN(tk_top_k_top_p_sample_v1, &first, "");
  }
  apply.logits = &l, apply.p = &p_tensor, apply.out = &filtered;
  RUN(tk_apply_top_k_top_p, &apply, "by p");
  apply.k = &k;
  RUN(tk_apply_top_k_top_p, &apply, "by both");
  apply.p = NULL;
  RUN(tk_apply_top_k_top_p, &apply, "by k");
  min_p.probs = &probs_tensor, min_p.k = &k, min_p.p = min_p.min_p = &p_tensor, min_p.sampled_res = &filtered;
  RUN(tk_apply_top_k_top_p_min_p, &min_p, "");
}

/* Two values that nothing separates but halving the range, which leaves one value more behind each time. */
static void close_logits(tk_context *context) {
  static float close[V];
  static const int64_t one_row[] = {1, V}, one[] = {1};
  const uint32_t least = 1; /* 1e-45f */
  float p = 0.999f;
  int32_t all = 0;
  uint32_t value = 0x3727C5AC; /* 1e-5f */
  size_t i;
  tk_tensor l = tensor(close, one_row, 2, TK_F32), k = tensor(&all, one, 1, TK_I32), p_tensor = tensor(&p, one, 1, TK_F32);
  tk_tensor seeds = tensor(generator, pair, 1, TK_I64), c = tensor(chosen, one, 1, TK_I64);
  tk_top_k_top_p_sample_args sample = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  for (i = 0; i < V; i++) close[i] = 0;
  for (i = 1; i < V; i += 2) memcpy(&close[i], &least, sizeof least);
  close[0] = 0.02f;
  for (i = 100; value > 1; i += 1000, value = value / 2 - 1) memcpy(&close[i], &value, sizeof value);
  sample.logits = &l, sample.top_k = &k, sample.top_p = &p_tensor, sample.logits_select_idx = &c;
  sample.post_sample = TK_POST_SAMPLE_MULTINOMIAL, sample.generator = &seeds;
  RUN(tk_top_k_top_p_sample, &sample, "with a generator, of close logits");
}

static void drawing(tk_context *context, int32_t dtype) {
  tk_tensor probs_tensor = tensor(dtype == TK_F32 ? (void *)probs : half_probs, matrix, 2, dtype);
  tk_tensor filled = tensor(kept, matrix, 2, dtype), drawn_tensor = tensor(drawn, samples, 2, TK_I64);
  tk_exponential_args exponential = TK_EXPONENTIAL_ARGS_INIT;
  tk_multinomial_args multinomial = TK_MULTINOMIAL_ARGS_INIT;
  exponential.out = &filled;
  RUN(tk_exponential, &exponential, "");
  multinomial.probs = &probs_tensor, multinomial.num_samples = S, multinomial.out = &drawn_tensor;
  RUN(tk_multinomial, &multinomial, "with replacement");
  multinomial.replacement = false;
  RUN(tk_multinomial, &multinomial, "without replacement");
}

static void steps(tk_context *context) {
  tk_tensor l = tensor(logits, matrix, 2, TK_F32), probs_tensor = tensor(probs, matrix, 2, TK_F32), r = tensor(numbers, row, 1, TK_F32);
  tk_tensor all = tensor(logits, cube, 3, TK_F32), last = tensor(kept, matrix, 2, TK_F32), i = tensor(ids, row, 1, TK_I32);
  tk_update_logits_args update = TK_UPDATE_LOGITS_ARGS_INIT;
  tk_top_k_sampling_args best = TK_TOP_K_SAMPLING_ARGS_INIT;
  tk_top_p_sampling_args likely = TK_TOP_P_SAMPLING_ARGS_INIT;
  update.logits = &all, update.softmax = true, update.output = &last;
  RUN(tk_update_logits, &update, "");
  best.logits = &l, best.random = &r, best.k = 900, best.ids = &i;
  RUN(tk_top_k_sampling, &best, "");
  likely.probs = &probs_tensor, likely.random = &r, likely.p = 0.9, likely.ids = &i;
  RUN(tk_top_p_sampling, &likely, "");
}

/* The weight as it lies, transposed, and with gaps between columns. */
static void pack(tk_context *context, int32_t dtype) {
  static const int64_t transposed[] = {K * N, 1, K}, gaps[] = {2 * K * N, 2 * N, 2};
  int64_t length;
  size_t bytes;
  tk_tensor weight = tensor(w, experts, 3, dtype), scale = tensor(weight_scale, channels, 2, TK_F32);
  tk_tensor packed_tensor = tensor(packed, &length, 1, TK_I8);
  tk_pack_weight_args args = TK_PACK_WEIGHT_ARGS_INIT;
  CHECK_STATUS(tk_pack_weight_bytes(E, K, N, &bytes), 0);
  CHECK(bytes <= sizeof packed);
  length = (int64_t)bytes;
  args.weight = &weight, args.packed = &packed_tensor;
  if (dtype == TK_I8 || dtype == TK_I4) {
    weight = tensor(w, dtype == TK_I8 ? blocks : blocks_of_pairs, 5, dtype), args.weight_format = TK_FORMAT_NZ;
    if (dtype == TK_I8) RUN(tk_pack_weight, &args, "of i8 in blocks");
    if (dtype == TK_I4) RUN(tk_pack_weight, &args, "of i4 in blocks");
    weight = tensor(w, experts, 3, dtype), args.weight_format = TK_FORMAT_ND;
  } else {
    args.weight_scale = &scale;
  }
  if (dtype != TK_I4) {
    weight.strides = transposed;
    RUN(tk_pack_weight, &args, "of i8 or floats, transposed");
    weight.strides = gaps;
    RUN(tk_pack_weight, &args, "of i8 or floats, with gaps");
    weight.strides = NULL;
  }
  if (dtype == TK_F32) RUN(tk_pack_weight, &args, "of f32");
  if (dtype == TK_F16) RUN(tk_pack_weight, &args, "of f16");
  if (dtype == TK_BF16) RUN(tk_pack_weight, &args, "of bf16");
  if (dtype == TK_I4) RUN(tk_pack_weight, &args, "of i4");
  if (dtype == TK_I8) RUN(tk_pack_weight, &args, "of i8");
}

/* Packed weights are those of the last tk_pack_weight. */
static void grouped(tk_context *context, int32_t dtype) {
  int64_t length;
  size_t bytes;
  tk_tensor x_tensor = tensor(x, left, 2, TK_I8), weight = tensor(w, experts, 3, dtype), ends_tensor = tensor(ends, list, 1, TK_I64);
  tk_tensor scale = dtype == TK_I4 ? tensor(scale_bits, groups, 3, TK_U64) : tensor(weight_scale, channels, 2, TK_F32);
  tk_tensor x_scale_tensor = tensor(x_scale, rows, 1, TK_F32), bias_tensor = tensor(bias, channels, 2, TK_F32);
  tk_tensor y = tensor(output, half, 2, TK_I8), y_scale = tensor(output_scale, rows, 1, TK_F32);
  tk_tensor y_offset = tensor(output_offset, rows, 1, TK_F32);
  tk_grouped_matmul_swiglu_quant_args args = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT;
  CHECK_STATUS(tk_pack_weight_bytes(E, K, N, &bytes), 0);
  length = (int64_t)bytes;
  args.x = &x_tensor, args.weight = &weight, args.bias = &bias_tensor, args.weight_scale = &scale, args.x_scale = &x_scale_tensor;
  args.group_list = &ends_tensor, args.output = &y, args.output_scale = &y_scale;
  if (dtype == TK_I4) RUN(tk_grouped_matmul_swiglu_quant, &args, "of i4");
  if (dtype == TK_I8) RUN(tk_grouped_matmul_swiglu_quant, &args, "of i8");
  weight = tensor(w, dtype == TK_I8 ? blocks : blocks_of_pairs, 5, dtype), args.weight_format = TK_FORMAT_NZ;
  RUN(tk_grouped_matmul_swiglu_quant, &args, "of blocks");
  weight = tensor(packed, &length, 1, TK_I8), args.weight_format = TK_FORMAT_PACKED;
  RUN(tk_grouped_matmul_swiglu_quant, &args, "packed");
  if (dtype == TK_I4) return;
  args.arithmetic = 2, args.output_offset = &y_offset;
  RUN(tk_grouped_matmul_swiglu_quant, &args, "with an offset");
}

static void multiply(tk_context *context) {
  tk_tensor x_tensor = tensor(x, left, 2, TK_I8), weight = tensor(w, right, 2, TK_I8), y = tensor(product, out, 2, TK_F32);
  tk_quant_matmul_args args = TK_QUANT_MATMUL_ARGS_INIT;
  args.x = &x_tensor, args.weight = &weight, args.out = &y;
  RUN(tk_quant_matmul, &args, "");
  weight = tensor(w, blocks + 1, 4, TK_I8), args.weight_format = TK_FORMAT_NZ;
  RUN(tk_quant_matmul, &args, "of blocks");
}

static void *calls(void *user) {
  static const int32_t floats[] = {TK_F32, TK_F16, TK_BF16}, integers[] = {TK_I8, TK_I4};
  static char handler[1 << 16];
  tk_context *context = user;
  stack_t alternative;
  struct sigaction action;
  size_t i;
  memset(&alternative, 0, sizeof alternative), memset(&action, 0, sizeof action);
  alternative.ss_sp = handler, alternative.ss_size = sizeof handler, action.sa_handler = overflow, action.sa_flags = SA_ONSTACK;
  CHECK(sigaltstack(&alternative, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
  for (i = 0; i < 3; i++) {
    sampling(context, floats[i]);
    drawing(context, floats[i]);
    pack(context, floats[i]);
  }
  close_logits(context);
  steps(context);
  multiply(context);
  for (i = 0; i < 2; i++) {
    pack(context, integers[i]);
    grouped(context, integers[i]);
  }
  CHECK(mprotect(thread_stack, THREAD, PROT_READ | PROT_WRITE) == 0);
  return context;
}

static void in_turns(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  for (i = 0; i < tasks; i++) task(arg, i, i % 2);
  ++*(size_t *)user;
}

int main(void) {
  size_t i, ran = 0, regions = 0;
  for (i = 0; i < B * V; i++) {
    logits[i] = (float)((i * 2654435761u >> 8) % 100000) * 1e-4f, q[i] = 0.1f + (float)(i % 13);
    probs[i] = 0.1f / (float)(i % V + 1), half_logits[i] = (uint16_t)((i * 2654435761u >> 8) % 0x4000);
    half_probs[i] = (uint16_t)(0x3800 - i % V / 4);
  }
  for (i = 0; i < 2 * E * K * N; i++) w[i] = (float)((i * 2654435761u >> 8) % 1999) - 999.0f;
  for (i = 0; i < M * K; i++) x[i] = (int8_t)(i * 31 % 251);
  for (i = 0; i < E * N; i++) weight_scale[i] = 1e-3f;
  for (i = 0; i < E * G * N; i++) scale_bits[i] = 0x3F800000; /* 1.0f */
  for (i = 0; i < M; i++) x_scale[i] = 0.01f;
  for (i = 0; i < 2 * (TK_ISA_AVX512AMX + 1); i++) {
    tk_context context = TK_CONTEXT_INIT;
    pthread_t thread;
    pthread_attr_t attributes;
    void *result = NULL;
    context.isa = (int32_t)i / 2;
    if (i % 2 == 1) context.parallel_for = in_turns, context.parallel_user = &regions, context.parallel_threads = 2;
    if (i / 2 == TK_ISA_BEST || tk_isa_name(&context) == NULL) continue;
    thread_stack = mmap(NULL, THREAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(thread_stack != MAP_FAILED);
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, thread_stack, THREAD) == 0);
    CHECK(pthread_create(&thread, &attributes, calls, &context) == 0 && pthread_join(thread, &result) == 0);
    CHECK(result == &context && pthread_attr_destroy(&attributes) == 0);
    ran++;
  }
  CHECK(ran > 1 && regions > 0);
  return 0;
}
