/* The caller's floating-point environment changes no result and is as it was after a call, and after each task of a call. */
#include "check.h"

#if defined(__x86_64__) || defined(__SSE__)
#include <xmmintrin.h>
typedef unsigned int word;
static word get(void) { return _mm_getcsr(); }
static void set(word w) { _mm_setcsr(w); }
/* FTZ, DAZ, round up; one that -ffast-math sets first; the default, with no exception seen yet and with all. */
static const word words[] = {0x9FC0, 0x5F80, 0x1F80, 0x1FBF};
#elif defined(__aarch64__)
typedef unsigned long long word;
static word get(void) {
  word w;
  __asm__ volatile("mrs %0, fpcr" : "=r"(w));
  return w;
}
static void set(word w) { __asm__ volatile("msr fpcr, %0" : : "r"(w)); }
/* FZ, round up, default NaN. */
static const word words[] = {1ull << 24, 1ull << 22, 1ull << 25};
#else
typedef int word;
static word get(void) { return 0; }
static void set(word w) { (void)w; }
static const word words[] = {0};
#endif

enum { M = 40, H = 1024 };

static float input[M * H], gamma_[H], expected[M * H], output[M * H];
static word caller;

/* Every task enters with the caller's environment, and must leave it. */
static void serial_for(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  word inside = get();
  size_t i;
  for (i = 0; i < tasks; i++) {
    set(caller);
    task(arg, i, i % 2);
    CHECK(get() == caller);
  }
  set(inside);
  *(size_t *)user += tasks;
}

static void run(tk_context *context, float *to) {
  static const int64_t matrix[2] = {M, H}, row[1] = {H};
  static double memory[8192];
  size_t bytes;
  tk_rms_norm_args args = TK_RMS_NORM_ARGS_INIT;
  tk_tensor x = tensor(input, matrix, 2, TK_F32);
  tk_tensor g = tensor(gamma_, row, 1, TK_F32);
  tk_tensor y = tensor(to, matrix, 2, TK_F32);
  char *workspace = (char *)memory + (64 - (size_t)memory % 64) % 64;
  args.input = &x, args.gamma = &g, args.output = &y;
  CHECK_STATUS(tk_rms_norm_workspace_size(context, &args, &bytes), 0);
  CHECK(bytes + 64 <= sizeof memory);
  CHECK_STATUS(tk_rms_norm(context, &args, workspace, bytes), 0);
}

int main(void) {
  size_t i, tasks = 0, subnormal = 0;
  word initial = get();
  tk_context threads = TK_CONTEXT_INIT;
  threads.parallel_for = serial_for;
  threads.parallel_user = &tasks;
  threads.parallel_threads = 2;
  for (i = 0; i < M * H; i++) input[i] = (float)(i % 97) - 48.5f;
  /* Subnormal factors: flushed, they would give 0. */
  for (i = 0; i < H; i++) gamma_[i] = i % 2 ? 1e-41f : 1.3f;
  run(NULL, expected);
  for (i = 0; i < M * H; i++) subnormal += expected[i] != 0.0f && expected[i] < 1e-38f && expected[i] > -1e-38f;
  CHECK(subnormal > 0);
  for (i = 0; i < sizeof words / sizeof *words; i++) {
    int serial_equal, threads_equal;
    word after_serial, after_threads;
    caller = words[i];
    set(caller);
    run(NULL, output);
    after_serial = get();
    set(initial);
    serial_equal = memcmp(output, expected, sizeof output) == 0;
    memset(output, 0, sizeof output);
    set(caller);
    run(&threads, output);
    after_threads = get();
    set(initial);
    threads_equal = memcmp(output, expected, sizeof output) == 0;
    CHECK(serial_equal && threads_equal);
    CHECK(after_serial == caller && after_threads == caller);
  }
  CHECK(tasks > 0);
  return 0;
}
