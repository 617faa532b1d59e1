/* Every line of the conventions: what is refused, with which status and message, and that nothing is written. */
#include <stdbool.h>
#include "check.h"

enum { M = 2, H = 4 };

/* A call that succeeds, for tests to break. */
typedef struct call {
  float input[M * H + 1], gamma[H], output[M * H + 1];
  int64_t matrix[2], row[1];
  tk_tensor input_tensor, gamma_tensor, output_tensor;
  tk_rms_norm_args args;
  tk_context context;
} call;

static void make(call *c) {
  static const tk_rms_norm_args args = TK_RMS_NORM_ARGS_INIT;
  static const tk_context context = TK_CONTEXT_INIT;
  size_t i;
  for (i = 0; i < M * H + 1; i++) {
    c->input[i] = (float)i;
    c->output[i] = -1.0f;
  }
  for (i = 0; i < H; i++) c->gamma[i] = 1.0f;
  c->matrix[0] = M, c->matrix[1] = H, c->row[0] = H;
  c->input_tensor = tensor(c->input, c->matrix, 2, TK_F32);
  c->gamma_tensor = tensor(c->gamma, c->row, 1, TK_F32);
  c->output_tensor = tensor(c->output, c->matrix, 2, TK_F32);
  c->args = args;
  c->args.input = &c->input_tensor, c->args.gamma = &c->gamma_tensor, c->args.output = &c->output_tensor;
  c->context = context;
}

static union {
  unsigned char bytes[4096 + 64];
  double aligned;
} memory;

static unsigned char *workspace(void) {
  return memory.bytes + (64 - (size_t)memory.bytes % 64) % 64;
}

static int run(call *c) {
  return tk_rms_norm(&c->context, &c->args, workspace(), 4096);
}

static int query(call *c) {
  size_t bytes = 0;
  return tk_rms_norm_workspace_size(&c->context, &c->args, &bytes);
}

/* Both phases refuse, the message says why, and the output is as it was. */
static void refused(call *c, int status, const char *message) {
  size_t i;
  CHECK_STATUS(query(c), status);
  memset(c->context.message, 'x', sizeof c->context.message);
  CHECK_STATUS(run(c), status);
  if (strcmp(c->context.message, message) != 0) {
    fprintf(stderr, "expected \"%s\", found \"%.255s\"\n", message, c->context.message);
    exit(1);
  }
  for (i = 0; i < M * H + 1; i++) CHECK(c->output[i] == -1.0f);
}

static void fine(void) {
  call c;
  size_t bytes = 0;
  make(&c);
  CHECK_STATUS(run(&c), 0);
  CHECK(c.output[0] == 0.0f && c.output[1] > 0.5f);
  /* Without a context, with a dirty and exactly sufficient workspace: the same bits. */
  call d;
  make(&d);
  CHECK_STATUS(tk_rms_norm_workspace_size(NULL, &d.args, &bytes), 0);
  CHECK(bytes > 0 && bytes <= 4096);
  memset(workspace(), 0xA5, 4096);
  CHECK_STATUS(tk_rms_norm(NULL, &d.args, workspace(), bytes), 0);
  CHECK(memcmp(c.output, d.output, sizeof c.output) == 0);
  /* A query needs no data. */
  make(&c);
  c.input_tensor.data = c.gamma_tensor.data = c.output_tensor.data = NULL;
  CHECK_STATUS(query(&c), 0);
  /* 0 rows: nothing to do, nothing to point to. */
  c.matrix[0] = 0;
  c.gamma_tensor.data = c.gamma;
  CHECK_STATUS(run(&c), 0);
}

static void pointers(void) {
  call c;
  make(&c);
  CHECK_STATUS(tk_rms_norm(&c.context, NULL, workspace(), 4096), 161001);
  CHECK(strcmp(c.context.message, "args: expected a struct, found null (161001)") == 0);
  CHECK_STATUS(tk_rms_norm_workspace_size(&c.context, &c.args, NULL), 161001);
  CHECK(strncmp(c.context.message, "bytes: ", 7) == 0);
  CHECK_STATUS(tk_rms_norm(NULL, NULL, NULL, 0), 161001);
  c.args.gamma = NULL;
  refused(&c, 161001, "gamma: expected a tensor, found null (161001)");
  make(&c);
  c.input_tensor.shape = NULL;
  refused(&c, 161001, "input: expected a shape, found null (161001)");
  make(&c);
  c.input_tensor.data = NULL;
  CHECK_STATUS(query(&c), 0);
  CHECK_STATUS(run(&c), 161001);
  CHECK(strcmp(c.context.message, "input: expected a tensor with data, found null (161001)") == 0);
}

static void sizes(void) {
  static const size_t wrong[] = {0, 8, sizeof(tk_rms_norm_args) - 8, sizeof(tk_rms_norm_args) + 8, (size_t)-1};
  size_t i;
  call c;
  for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    make(&c);
    c.args.struct_size = wrong[i];
    CHECK_STATUS(query(&c), 161002);
    CHECK_STATUS(run(&c), 161002);
    CHECK(strncmp(c.context.message, "struct_size: expected ", 22) == 0);
    /* Of a context of unknown size nothing is written. */
    make(&c);
    c.context.struct_size = wrong[i];
    memset(c.context.message, 'x', sizeof c.context.message);
    CHECK_STATUS(query(&c), 161002);
    CHECK_STATUS(run(&c), 161002);
    CHECK(tk_isa_name(&c.context) == NULL);
    CHECK(c.context.message[0] == 'x');
  }
}

static void shapes(void) {
  call c;
  int64_t strides[2] = {H, 1};
  int64_t deep[6] = {1, 1, 1, 1, 2, 4};
  make(&c);
  c.input_tensor.rank = -1;
  refused(&c, 161002, "input: expected a rank of at least 0, found -1 (161002)");
  make(&c);
  c.input_tensor.rank = 6, c.input_tensor.shape = deep;
  refused(&c, 161002, "input: expected a rank of at most 5, found 6 (161002)");
  make(&c);
  c.input_tensor.rank = 1;
  refused(&c, 161002, "input: expected a rank of 2, found [2] (161002)");
  make(&c);
  c.row[0] = 3;
  refused(&c, 161002, "gamma: expected [4], found [3] (161002)");
  make(&c);
  c.matrix[0] = -2;
  refused(&c, 161002, "input: expected sizes of at least 0, found -2 (161002)");
  make(&c);
  c.matrix[1] = 0, c.row[0] = 0;
  refused(&c, 161002, "input: expected no dimension of 0, found [2,0] (161002)");
  make(&c);
  c.matrix[0] = INT64_MAX;
  refused(&c, 161002, "input: expected a size that fits in memory, found an overflow (161002)");
  make(&c);
  c.input_tensor.strides = strides, strides[1] = -1;
  refused(&c, 161002, "input: expected strides of at least 0, found -1 (161002)");
  make(&c);
  c.args.eps = -1.0;
  refused(&c, 161002, "eps: expected eps >= 0, found -1 (161002)");
  c.args.eps = -1e-300;
  refused(&c, 161002, "eps: expected eps >= 0, found -1e-300 (161002)");
}

static void dtypes(void) {
  call c;
  make(&c);
  c.input_tensor.dtype = 5;
  refused(&c, 161002, "input: expected a dtype, found 5 (161002)");
  make(&c);
  c.input_tensor.dtype = TK_I8;
  refused(&c, 161002, "input: expected f32, f16 or bf16, found i8 (161002)");
  make(&c);
  c.gamma_tensor.dtype = TK_F16;
  refused(&c, 161002, "gamma: expected f32, found f16 (161002)");
}

static void memory_of_tensors(void) {
  call c;
  int64_t strides[2];
  size_t i;
  make(&c);
  c.input_tensor.data = (char *)c.input + 1;
  CHECK_STATUS(run(&c), 161002);
  CHECK(strncmp(c.context.message, "input: ", 7) == 0);
  make(&c);
  c.output_tensor.data = (char *)c.output + 2;
  CHECK_STATUS(run(&c), 161002);
  /* In place, and by one element. */
  for (i = 0; i < 2; i++) {
    make(&c);
    c.output_tensor.data = c.input + i;
    CHECK_STATUS(run(&c), 161002);
    CHECK(strncmp(c.context.message, "output: ", 8) == 0);
    CHECK(c.input[1] == 1.0f);
  }
  make(&c);
  strides[0] = 0, strides[1] = 1;
  c.output_tensor.strides = strides;
  refused(&c, 161002, "output: expected elements that do not overlap, found [0,1] (161002)");
  /* An input may repeat itself. */
  make(&c);
  c.input_tensor.strides = strides;
  CHECK_STATUS(run(&c), 0);
  CHECK(memcmp(c.output, c.output + H, H * sizeof(float)) == 0);
  /* Slices of one buffer: columns 0..2 to columns 2..4 of rows of 4. */
  make(&c);
  c.matrix[1] = 2, c.row[0] = 2;
  strides[0] = 4;
  c.input_tensor.strides = c.output_tensor.strides = strides;
  c.output_tensor.data = c.input + 2;
  CHECK_STATUS(run(&c), 0);
  CHECK(c.input[0] == 0.0f && c.input[2] == 0.0f && c.input[3] > 1.0f && c.input[4] == 4.0f);
}

static void workspaces(void) {
  call c;
  size_t bytes;
  make(&c);
  CHECK_STATUS(tk_rms_norm_workspace_size(&c.context, &c.args, &bytes), 0);
  CHECK_STATUS(tk_rms_norm(&c.context, &c.args, workspace(), bytes - 1), -1);
  CHECK(strncmp(c.context.message, "workspace: ", 11) == 0);
  CHECK_STATUS(tk_rms_norm(&c.context, &c.args, workspace() + 8, bytes), -1);
  CHECK_STATUS(tk_rms_norm(&c.context, &c.args, NULL, bytes), -1);
  CHECK(c.output[0] == -1.0f);
}

static void contexts(void) {
  static const char *names[] = {"portable", "avx2", "avx512", "avx512vnni", "neon", "neondot", "avx512amx"};
  call c, portable;
  int isa, ran = 0;
  make(&portable);
  portable.context.isa = TK_ISA_PORTABLE;
  CHECK_STATUS(run(&portable), 0);
  for (isa = 1; isa <= 7; isa++) {
    const char *name;
    make(&c);
    c.context.isa = isa;
    name = tk_isa_name(&c.context);
    if (name == NULL) {
      refused(&c, -2, c.context.message);
      CHECK(strncmp(c.context.message, "isa: expected one that this processor has, found ", 49) == 0);
      CHECK(strncmp(c.context.message + 49, names[isa - 1], strlen(names[isa - 1])) == 0);
    } else {
      CHECK(strcmp(name, names[isa - 1]) == 0);
      CHECK_STATUS(run(&c), 0);
      CHECK(memcmp(c.output, portable.output, sizeof c.output) == 0);
      printf("%s ", name);
      ran++;
    }
  }
  printf("\n");
  CHECK(ran >= 1);
  make(&c);
  c.context.isa = 8;
  refused(&c, 161002, "isa: expected 0 to 7, found 8 (161002)");
  CHECK(tk_isa_name(&c.context) == NULL);
  make(&c);
  c.context.isa = -1;
  refused(&c, 161002, "isa: expected 0 to 7, found -1 (161002)");
  make(&c);
  c.context.backend = 2;
  refused(&c, 161002, "backend: expected 0 or 1, found 2 (161002)");
  CHECK(tk_isa_name(&c.context) == NULL);
  make(&c);
  c.context.parallel_threads = 2;
  refused(&c, 161001, "parallel_for: expected a function, found null (161001)");
  make(&c);
  c.context.backend = TK_BACKEND_ASCEND;
  CHECK(strcmp(tk_isa_name(&c.context), "ascend") == 0);
  /* On a machine with CANN there is no such operator on the NPU. */
  if (run(&c) == -3)
    CHECK(strncmp(c.context.message, "backend: expected CANN, found no CANN here: looked in ", 54) == 0);
  else
    refused(&c, -2, "backend: expected 0 for this function, found an NPU, for which aclnn has none (-2)");
  CHECK(tk_isa_name(NULL) != NULL);
}

static void texts(void) {
  static const int statuses[] = {0, 161001, 161002, 561002, -1, -2, -3, -4, 7};
  size_t i, j;
  CHECK(tk_version() == (0u << 16 | 1u << 8 | 0u));
  for (i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    CHECK(tk_status_string(statuses[i])[0] != '\0');
    for (j = 0; j < i; j++) CHECK(strcmp(tk_status_string(statuses[i]), tk_status_string(statuses[j])) != 0);
  }
}

int main(void) {
  fine();
  pointers();
  sizes();
  shapes();
  dtypes();
  memory_of_tensors();
  workspaces();
  contexts();
  texts();
  return 0;
}
