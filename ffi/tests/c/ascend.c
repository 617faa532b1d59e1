/* Calls to an NPU. Without an argument there is none; with `cann` and a package the functions are those of cann.c, and every address is
 * one that the host must not follow. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include "allocations.h"
#include "check.h"

enum { B = 4, V = 64 };

typedef struct call {
  tk_context context;
  tk_top_k_top_p_sample_args args;
  tk_tensor logits, top_k, top_p, chosen, status;
} call;

static void *device(size_t page) { return (void *)(0x10000 + (page << 12)); }

static void make(call *c) {
  static const int64_t matrix[2] = {B, V}, row[1] = {B};
  const tk_context context = TK_CONTEXT_INIT;
  const tk_top_k_top_p_sample_args args = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
  c->context = context, c->args = args;
  c->context.backend = TK_BACKEND_ASCEND;
  c->context.stream = device(0);
  c->logits = tensor(device(1), matrix, 2, TK_F32);
  c->top_k = tensor(device(2), row, 1, TK_I32);
  c->top_p = tensor(device(3), row, 1, TK_F32);
  c->chosen = tensor(device(4), row, 1, TK_I64);
  c->status = tensor(device(5), row, 1, TK_U8);
  c->args.logits = &c->logits, c->args.top_k = &c->top_k, c->args.top_p = &c->top_p;
  c->args.logits_select_idx = &c->chosen;
}

static void absent(void) {
  static const char begin[] = "backend: expected CANN, found no CANN here: looked in LD_LIBRARY_PATH, ";
  size_t bytes;
  int round;
  call c;
  for (round = 0; round < 2; round++) {
    make(&c);
    CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, NULL, 0), -3);
    CHECK(strncmp(c.context.message, begin, sizeof begin - 1) == 0);
    CHECK(strstr(c.context.message, "/usr/local/Ascend/cann/lib64") != NULL);
    CHECK(c.context.backend_status == 0);
    CHECK_STATUS(tk_top_k_top_p_sample_workspace_size(&c.context, &c.args, &bytes), -3);
  }
  /* The name of what it would run on does not hang on it. */
  CHECK(strcmp(tk_isa_name(&c.context), "ascend") == 0);
}

/* Symbols of cann.c. */
static void *symbol_of(const char *library, const char *name) {
  void *address = dlsym(dlopen(library, RTLD_LAZY), name);
  CHECK(address != NULL);
  return address;
}

static void *symbol(const char *name) { return symbol_of("libopapi.so", name); }

static void calls(int *live, int *runs) {
  size_t bytes = 0;
  call c;
  make(&c);
  CHECK_STATUS(tk_top_k_top_p_sample_workspace_size(&c.context, &c.args, &bytes), 0);
  CHECK(bytes == 256 && *live == 0 && *runs == 0);
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), bytes), 0);
  CHECK(*live == 0 && *runs == 1);
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), bytes - 1), -1);
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, (char *)device(6) + 8, bytes), -1);
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, NULL, 0), -1);
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, NULL, NULL, 0), 161001);
  c.args.row_status = &c.status;
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), bytes), -2);
  CHECK(strcmp(c.context.message, "row_status: expected none on the NPU, found a tensor (-2)") == 0);
  make(&c);
  c.top_p.dtype = TK_F16;
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), bytes), 161002);
  make(&c);
  c.logits.data = NULL;
  CHECK_STATUS(tk_top_k_top_p_sample_workspace_size(&c.context, &c.args, &bytes), 0);
  CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), bytes), 161001);
  CHECK(*live == 0 && *runs == 1);
}

/* What the NPU has no function for, and what this CANN lacks. */
static void missing(void) {
  const tk_rms_norm_args norm = TK_RMS_NORM_ARGS_INIT;
  tk_multinomial_args draw = TK_MULTINOMIAL_ARGS_INIT;
  size_t bytes;
  call c;
  make(&c);
  CHECK_STATUS(tk_rms_norm_workspace_size(&c.context, &norm, &bytes), -2);
  CHECK_STATUS(tk_decoding_bytes(&c.context, NULL, NULL, &bytes), -2);
  draw.probs = &c.logits, draw.out = &c.chosen;
  c.chosen.rank = 2, c.chosen.shape = (const int64_t[]){B, 1};
  CHECK_STATUS(tk_multinomial_workspace_size(&c.context, &draw, &bytes), -2);
  CHECK(strcmp(c.context.message, "backend: expected aclnnMultinomial, found a CANN without it (-2)") == 0);
}

static void failures(int *live, const char **failing, int32_t *code) {
  static const struct {
    const char *function;
    int32_t code;
    const char *message;
  } cases[] = {
      {"aclnnTopKTopPSampleV2GetWorkspaceSize", 561003,
       "aclnnTopKTopPSampleV2GetWorkspaceSize: expected success, found 561003 ACLNN_ERR_INNER_FIND_KERNEL_ERROR (-3): "
       "EZ9999: said the library"},
      {"aclnnTopKTopPSampleV2", 507899,
       "aclnnTopKTopPSampleV2: expected success, found 507899 ACL_ERROR_RT_DRV_INTERNAL_ERROR (-3): EZ9999: said the library"},
      {"aclCreateTensor", 200000,
       "aclCreateTensor: expected success, found 200000 ACL_ERROR_BAD_ALLOC (-3): EZ9999: said the library"},
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    call c;
    make(&c);
    *failing = cases[i].function, *code = cases[i].code;
    CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), 256), -3);
    CHECK(c.context.backend_status == cases[i].code);
    CHECK(strcmp(c.context.message, cases[i].message) == 0);
    CHECK(*live == 0);
    *failing = NULL;
    /* Another error leaves no code of ACL's. */
    CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, NULL, 0), -1);
    CHECK(c.context.backend_status == 0);
  }
}

/* A package beside CANN comes first, and its prototype is the wider one. */
static void package(const char *library) {
  static const int64_t rows[2] = {2, 16}, blocks[5] = {1, 1, 1, 16, 32}, scales[2] = {1, 32}, half[2] = {2, 16};
  static const int64_t two[1] = {2}, one[1] = {1};
  const int *calls = symbol_of(library, "package_calls"), *runs = symbol_of(library, "package_runs");
  tk_tensor x = tensor(device(1), rows, 2, TK_I8), weight = tensor(device(2), blocks, 5, TK_I8);
  tk_tensor scale = tensor(device(3), scales, 2, TK_F32), x_scale = tensor(device(4), two, 1, TK_F32);
  tk_tensor groups = tensor(device(5), one, 1, TK_I64), out = tensor(device(6), half, 2, TK_I8);
  tk_tensor out_scale = tensor(device(7), two, 1, TK_F32);
  tk_grouped_matmul_swiglu_quant_args args = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT;
  call c;
  make(&c);
  args.x = &x, args.weight = &weight, args.weight_scale = &scale, args.x_scale = &x_scale, args.group_list = &groups;
  args.output = &out, args.output_scale = &out_scale;
  args.weight_format = TK_FORMAT_NZ, args.fp16_rounding = true;
  CHECK_STATUS(tk_grouped_matmul_swiglu_quant(&c.context, &args, NULL, 0), 0);
  CHECK(*calls == 1 && *runs == 1);
  args.fp16_rounding = false;
  CHECK_STATUS(tk_grouped_matmul_swiglu_quant(&c.context, &args, NULL, 0), -2);
  CHECK(strncmp(c.context.message, "fp16_rounding: ", 15) == 0);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A call allocates nothing of its own and adds at most 2 us to its two phases, which take next to no time here. */
static void cost(void) {
  double best = 1e30;
  size_t before;
  int round, i;
  call c;
  make(&c);
  before = allocations;
  for (round = 0; round < 100; round++) {
    double start = now();
    for (i = 0; i < 100; i++) CHECK_STATUS(tk_top_k_top_p_sample(&c.context, &c.args, device(6), 256), 0);
    start = (now() - start) / 100;
    if (start < best) best = start;
  }
  CHECK(allocations == before);
  CHECK(best < 2000);
  printf("%.0f ns a call\n", best);
}

int main(int argc, char **argv) {
  if (argc == 1) {
    absent();
    return 0;
  }
  CHECK(strcmp(argv[1], "cann") == 0);
  /* The first call looks for CANN. */
  missing();
  calls(symbol("cann_live"), symbol("cann_runs"));
  failures(symbol("cann_live"), symbol("cann_failing"), symbol("cann_code"));
  package(argv[2]);
  cost();
  return 0;
}
