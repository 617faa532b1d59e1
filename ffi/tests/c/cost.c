/* What a call through the header costs beside its work: rows of 16 numbers. Printed, not judged. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>
#include "check.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  static float input[16], gamma_[16], output[16];
  static double memory[128];
  static const int64_t matrix[2] = {1, 16}, row[1] = {16};
  tk_tensor x = tensor(input, matrix, 2, TK_F32);
  tk_tensor g = tensor(gamma_, row, 1, TK_F32);
  tk_tensor y = tensor(output, matrix, 2, TK_F32);
  tk_rms_norm_args args = TK_RMS_NORM_ARGS_INIT;
  char *workspace = (char *)memory + (64 - (size_t)memory % 64) % 64;
  size_t calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 100, bytes, i;
  double start, best = 1e30;
  int round;
  args.input = &x, args.gamma = &g, args.output = &y;
  CHECK_STATUS(tk_rms_norm_workspace_size(NULL, &args, &bytes), 0);
  CHECK(bytes + 64 <= sizeof memory);
  for (round = 0; round < 100; round++) {
    start = now();
    for (i = 0; i < calls; i++) CHECK_STATUS(tk_rms_norm(NULL, &args, workspace, bytes), 0);
    start = (now() - start) / (double)calls;
    if (start < best) best = start;
  }
  printf("%.1f ns a call\n", best);
  return 0;
}
