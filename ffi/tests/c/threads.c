/* A pool of pthreads behind parallel_for: the same bits as without; a pool that breaks its promises: -4. */
#include "pool.h"

enum { M = 333, H = 512 };

static void stray_worker(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  (void)user;
  for (i = 0; i < tasks; i++) task(arg, i, i == 1 ? THREADS : 0);
}

static void stray_index(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  (void)user;
  for (i = 1; i <= tasks; i++) task(arg, i, 0);
}

static void lazy(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  (void)user, (void)tasks;
  task(arg, 0, 0);
}

static void twice(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  (void)user;
  for (i = 0; i < tasks; i++) task(arg, i == 1 ? 0 : i, 0);
}

static float input[M * H], gamma_[H], serial[M * H], output[M * H];
static double memory[8192];

static int run(tk_context *context, float *to) {
  static const int64_t matrix[2] = {M, H}, row[1] = {H};
  size_t bytes;
  tk_rms_norm_args args = TK_RMS_NORM_ARGS_INIT;
  tk_tensor x = tensor(input, matrix, 2, TK_F32);
  tk_tensor g = tensor(gamma_, row, 1, TK_F32);
  tk_tensor y = tensor(to, matrix, 2, TK_F32);
  char *workspace = (char *)memory + (64 - (size_t)memory % 64) % 64;
  args.input = &x, args.gamma = &g, args.output = &y;
  CHECK_STATUS(tk_rms_norm_workspace_size(context, &args, &bytes), 0);
  CHECK(bytes + 64 <= sizeof memory);
  return tk_rms_norm(context, &args, workspace, bytes);
}

int main(void) {
  size_t i, tasks = 0;
  tk_context context = TK_CONTEXT_INIT;
  for (i = 0; i < M * H; i++) input[i] = (float)(i * 2654435761u % 1000) - 500.0f;
  for (i = 0; i < H; i++) gamma_[i] = 1.0f + (float)i / H;
  CHECK_STATUS(run(NULL, serial), 0);
  context.parallel_for = pthread_for;
  context.parallel_user = &tasks;
  context.parallel_threads = THREADS;
  CHECK_STATUS(run(&context, output), 0);
  CHECK(tasks > THREADS);
  CHECK(memcmp(output, serial, sizeof output) == 0);
  /* 0 threads: the callback is not called. */
  tasks = 0;
  context.parallel_threads = 0;
  CHECK_STATUS(run(&context, output), 0);
  CHECK(tasks == 0);
  context.parallel_threads = THREADS;
  context.parallel_for = stray_worker;
  CHECK_STATUS(run(&context, output), -4);
  CHECK(strcmp(context.message, "parallel_for: expected a worker below parallel_threads, found 4 (-4)") == 0);
  context.parallel_for = stray_index;
  CHECK_STATUS(run(&context, output), -4);
  context.parallel_for = lazy;
  CHECK_STATUS(run(&context, output), -4);
  CHECK(strcmp(context.message, "parallel_for: expected each index below tasks once, found others (-4)") == 0);
  context.parallel_for = twice;
  CHECK_STATUS(run(&context, output), -4);
  /* The context serves on. */
  context.parallel_for = pthread_for;
  memset(output, 0, sizeof output);
  CHECK_STATUS(run(&context, output), 0);
  CHECK(memcmp(output, serial, sizeof output) == 0);
  return 0;
}
