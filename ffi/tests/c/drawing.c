/* tk_exponential and tk_multinomial: worked examples, dtypes, and what they refuse. */
#include <math.h>
#include "check.h"

enum { N = 2, C = 4 };

static double memory[32768];

static char *workspace(void) {
  return (char *)memory + (64 - (size_t)memory % 64) % 64;
}

static tk_context context = TK_CONTEXT_INIT;

static int exponential(const tk_exponential_args *args) {
  size_t bytes = 0;
  int status = tk_exponential_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  memset(workspace(), 0xA5, bytes);
  return tk_exponential(&context, args, workspace(), bytes);
}

static int multinomial(const tk_multinomial_args *args) {
  size_t bytes = 0;
  int status = tk_multinomial_workspace_size(&context, args, &bytes);
  if (status != 0) return status;
  CHECK(bytes + 64 <= sizeof memory);
  memset(workspace(), 0xA5, bytes);
  return tk_multinomial(&context, args, workspace(), bytes);
}

static void exponential_numbers(void) {
  static const double expected[N * C] = {0.1162427, 3.595308, 0.1018805, 0.6187256, 0.313039, 0.1001752, 1.087805, 3.359809};
  static const int64_t shape[2] = {N, C}, empty[2] = {0, C}, hollow[2] = {N, 0};
  float numbers[N * C];
  uint16_t halves[N * C];
  tk_tensor out = tensor(numbers, shape, 2, TK_F32);
  tk_exponential_args args = TK_EXPONENTIAL_ARGS_INIT;
  int i;
  CHECK(args.struct_size == sizeof args && args.rate == 1.0 && args.seed == 0 && args.offset == 0 && args.out == NULL);
  CHECK_STATUS(exponential(&args), 161001);
  CHECK_MESSAGE(context, "out: expected a tensor, found null (161001)");
  args.out = &out;
  args.seed = 1;
  CHECK_STATUS(exponential(&args), 0);
  for (i = 0; i < N * C; i++) CHECK(fabs(numbers[i] - expected[i]) < 1e-6 * expected[i]);
  args.rate = 2.0;
  CHECK_STATUS(exponential(&args), 0);
  for (i = 0; i < N * C; i++) CHECK(fabs(2.0 * numbers[i] - expected[i]) < 1e-6 * expected[i]);
  out = tensor(halves, shape, 2, TK_F16);
  args.rate = 1.0;
  CHECK_STATUS(exponential(&args), 0);
  CHECK(halves[7] == 0x42B8); /* 3.359375 */
  out.dtype = TK_F64;
  CHECK_STATUS(exponential(&args), 161002);
  CHECK_MESSAGE(context, "out: expected f32, f16 or bf16, found f64 (161002)");
  out = tensor(numbers, shape, 2, TK_F32);
  args.rate = 0.0;
  CHECK_STATUS(exponential(&args), 161002);
  CHECK_MESSAGE(context, "rate: ");
  args.rate = NAN;
  CHECK_STATUS(exponential(&args), 161002);
  args.rate = 1.0;
  out.shape = empty;
  CHECK_STATUS(exponential(&args), 0);
  out.shape = hollow;
  CHECK_STATUS(exponential(&args), 161002);
}

static void draws(void) {
  static const int64_t one[2] = {N, 1}, three[2] = {N, 3}, eight[2] = {N, 8}, shape[2] = {N, C}, nothing[2] = {0, C};
  static const int64_t expected_one[N] = {0, 1}, expected_three[N * 3] = {0, 2, 3, 1, 0, 2};
  static const int64_t expected_eight[N * 8] = {3, 0, 2, 0, 1, 2, 3, 2, 3, 1, 3, 0, 1, 1, 0, 0};
  float probs[N * C] = {0.5f, 0.25f, 0.125f, 0.125f, 0.1f, 0.2f, 0.3f, 0.4f};
  double doubles[N * C] = {0.1f, 0.2f, 0.3f, 0.4f, 0.25f, 0.25f, 0.25f, 0.25f};
  int64_t drawn[N * 8];
  tk_tensor in = tensor(probs, shape, 2, TK_F32), out = tensor(drawn, one, 2, TK_I64);
  tk_multinomial_args args = TK_MULTINOMIAL_ARGS_INIT;
  CHECK(args.struct_size == sizeof args && args.num_samples == 1 && args.replacement && args.seed == 0 && args.offset == 0);
  args.out = &out;
  CHECK_STATUS(multinomial(&args), 161001);
  CHECK_MESSAGE(context, "probs: ");
  args.probs = &in, args.out = NULL, in.dtype = TK_I32;
  CHECK_STATUS(multinomial(&args), 161001);
  CHECK_MESSAGE(context, "out: ");
  args.out = &out;
  CHECK_STATUS(multinomial(&args), 161002);
  CHECK_MESSAGE(context, "probs: expected f32, f16, bf16 or f64, found i32 (161002)");
  in.dtype = TK_F32, out.dtype = TK_I32;
  CHECK_STATUS(multinomial(&args), 161002);
  CHECK_MESSAGE(context, "out: expected i64, found i32 (161002)");
  out.dtype = TK_I64, args.seed = 1;
  CHECK_STATUS(multinomial(&args), 0);
  CHECK(memcmp(drawn, expected_one, sizeof expected_one) == 0);
  args.num_samples = 3, args.replacement = false, out.shape = three;
  CHECK_STATUS(multinomial(&args), 0);
  CHECK(memcmp(drawn, expected_three, sizeof expected_three) == 0);
  args.num_samples = 8, out.shape = eight;
  CHECK_STATUS(multinomial(&args), 161002);
  CHECK_MESSAGE(context, "num_samples: ");
  in = tensor(doubles, shape, 2, TK_F64);
  args.replacement = true, args.seed = 42;
  CHECK_STATUS(multinomial(&args), 0);
  CHECK(memcmp(drawn, expected_eight, sizeof expected_eight) == 0);
  args.num_samples = 0;
  CHECK_STATUS(multinomial(&args), 161002);
  args.num_samples = 8, in.shape = nothing;
  out.shape = nothing;
  CHECK_STATUS(multinomial(&args), 161002);
  {
    static const int64_t none[2] = {0, 8};
    size_t bytes = 1;
    out.shape = none;
    CHECK_STATUS(tk_multinomial_workspace_size(&context, &args, &bytes), 0);
    CHECK(bytes == 0);
    CHECK_STATUS(tk_multinomial(&context, &args, NULL, 0), 0);
  }
}

int main(void) {
  exponential_numbers();
  draws();
  return 0;
}
