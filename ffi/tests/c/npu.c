/* Every operation that goes to an NPU, on the host's aclnn: the bits of the same call on the processor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "check.h"

enum { B = 3, V = 100, M = 4, K = 32, N = 64, E = 2, TO_DEVICE = 1, TO_HOST = 2 };

static int32_t (*acl_init)(const char *), (*set_device)(int32_t), (*create_stream)(void **), (*synchronize)(void *);
static int32_t (*allocate)(void **, size_t, unsigned), (*copy)(void *, size_t, const void *, size_t, int);
static void *stream;

static void *symbol(const char *name) {
  void *address = dlsym(dlopen("libascendcl.so", RTLD_NOW), name);
  CHECK(address != NULL);
  return address;
}

/* A function's address is an object's in POSIX alone. */
#define LOAD(function, name) *(void **)&function = symbol(name)

static void begin(void) {
  LOAD(acl_init, "aclInit");
  LOAD(set_device, "aclrtSetDevice");
  LOAD(create_stream, "aclrtCreateStream");
  LOAD(synchronize, "aclrtSynchronizeStream");
  LOAD(allocate, "aclrtMalloc");
  LOAD(copy, "aclrtMemcpy");
  CHECK_STATUS(acl_init(NULL), 0);
  CHECK_STATUS(set_device(0), 0);
  CHECK_STATUS(create_stream(&stream), 0);
}

static size_t bytes_of(const tk_tensor *t) {
  size_t bytes = t->dtype == TK_I64 ? 8 : t->dtype == TK_F16 ? 2 : t->dtype == TK_I8 ? 1 : 4;
  int i;
  for (i = 0; i < t->rank; i++) bytes *= (size_t)t->shape[i];
  return bytes;
}

/* The tensors of a call on the device; outputs are the last. */
typedef struct copies {
  tk_tensor device[8];
  const tk_tensor *host[8];
  int count, inputs;
} copies;

static const tk_tensor *put(copies *c, const tk_tensor *t) {
  tk_tensor *device = &c->device[c->count];
  *device = *t;
  CHECK_STATUS(allocate(&device->data, bytes_of(t), 0), 0);
  CHECK_STATUS(copy(device->data, bytes_of(t), t->data, bytes_of(t), TO_DEVICE), 0);
  c->host[c->count++] = t;
  return device;
}

/* What the device wrote is what the processor wrote meanwhile. */
static void same(const copies *c) {
  static char bytes[4096];
  int i;
  CHECK_STATUS(synchronize(stream), 0);
  for (i = c->inputs; i < c->count; i++) {
    CHECK(bytes_of(c->host[i]) <= sizeof bytes);
    CHECK_STATUS(copy(bytes, sizeof bytes, c->device[i].data, bytes_of(c->host[i]), TO_HOST), 0);
    CHECK(memcmp(bytes, c->host[i]->data, bytes_of(c->host[i])) == 0);
  }
}

static tk_context npu(void) {
  tk_context context = TK_CONTEXT_INIT;
  context.backend = TK_BACKEND_ASCEND;
  context.stream = stream;
  return context;
}

/* The same call twice: `args` on the processor, then, with the fields of `device`, on the device. */
#define BOTH(op, host_args, device_args, c)                                                       \
  do {                                                                                            \
    static double memory[1 << 17];                                                                \
    char *aligned = (char *)memory + (64 - (size_t)memory % 64) % 64;                             \
    tk_context context = npu();                                                                   \
    void *workspace = NULL;                                                                       \
    size_t bytes;                                                                                 \
    CHECK_STATUS(tk_##op##_workspace_size(&context, &device_args, &bytes), 0);                    \
    if (bytes > 0) CHECK_STATUS(allocate(&workspace, bytes, 0), 0);                               \
    CHECK_STATUS(tk_##op(&context, &device_args, workspace, bytes), 0);                           \
    CHECK_STATUS(tk_##op##_workspace_size(NULL, &host_args, &bytes), 0);                          \
    CHECK(bytes + 64 <= sizeof memory);                                                           \
    CHECK_STATUS(tk_##op(NULL, &host_args, aligned, bytes), 0);                                   \
    same(&c);                                                                                     \
  } while (0)

static float logits[B * V];
static int32_t top_k[B] = {20, 0, 5};
static float top_p[B] = {0.9f, 0.8f, 1.0f};
static int64_t seeds[2 * B] = {7, 0, 8, 4, 9, 8};
static const int64_t matrix[2] = {B, V}, row[1] = {B}, lines[2] = {B, 2}, pair[1] = {2}, column[2] = {B, 1};

static void sampling(void) {
  int kind;
  for (kind = 0; kind < 3; kind++) {
    static int64_t chosen[B];
    static float kept[B * V];
    tk_tensor x = tensor(logits, matrix, 2, TK_F32), k = tensor(top_k, column, 2, TK_I32), p = tensor(top_p, row, 1, TK_F32);
    tk_tensor q = tensor(seeds, lines, 2, TK_I64), generator = tensor(seeds, pair, 1, TK_I64);
    tk_tensor out = tensor(chosen, row, 1, TK_I64), select = tensor(kept, matrix, 2, TK_F32);
    tk_top_k_top_p_sample_args host = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT, device = TK_TOP_K_TOP_P_SAMPLE_ARGS_INIT;
    copies c = {0};
    host.logits = &x, host.top_k = &k, host.top_p = &p, host.logits_select_idx = &out, host.logits_top_kp_select = &select;
    device.logits = put(&c, &x), device.top_k = put(&c, &k), device.top_p = put(&c, &p);
    host.is_need_logits = device.is_need_logits = true;
    host.post_sample = device.post_sample = kind == 0 ? TK_POST_SAMPLE_NONE : TK_POST_SAMPLE_MULTINOMIAL;
    if (kind == 1) host.q = &q, device.q = put(&c, &q);
    if (kind == 2) host.generator = &generator, device.generator = put(&c, &generator);
    c.inputs = c.count;
    device.logits_select_idx = put(&c, &out), device.logits_top_kp_select = put(&c, &select);
    BOTH(top_k_top_p_sample, host, device, c);
  }
}

/* Bits of halves between 0 and 2. */
static uint16_t halves[B * V];

static void halves_and_filters(void) {
  static int64_t chosen[B];
  static uint16_t filtered[B * V], p16[B] = {0x3a66, 0x3800, 0x3c00};
  tk_tensor x = tensor(halves, matrix, 2, TK_F16), k = tensor(top_k, row, 1, TK_I32), p = tensor(p16, row, 1, TK_F16);
  tk_tensor out = tensor(chosen, column, 2, TK_I64), kept = tensor(filtered, matrix, 2, TK_F16);
  tk_top_k_top_p_sample_v1_args host = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT, device = TK_TOP_K_TOP_P_SAMPLE_V1_ARGS_INIT;
  tk_apply_top_k_top_p_args filter = TK_APPLY_TOP_K_TOP_P_ARGS_INIT, on_device = TK_APPLY_TOP_K_TOP_P_ARGS_INIT;
  copies c = {0}, d = {0};
  host.logits = &x, host.top_k = &k, host.top_p = &p, host.logits_select_idx = &out;
  device.logits = put(&c, &x), device.top_k = put(&c, &k), device.top_p = put(&c, &p);
  c.inputs = c.count;
  device.logits_select_idx = put(&c, &out);
  BOTH(top_k_top_p_sample_v1, host, device, c);
  filter.logits = &x, filter.k = &k, filter.p = &p, filter.out = &kept;
  on_device.logits = put(&d, &x), on_device.k = put(&d, &k), on_device.p = put(&d, &p);
  d.inputs = d.count;
  on_device.out = put(&d, &kept);
  BOTH(apply_top_k_top_p, filter, on_device, d);
}

static void draws(void) {
  static int64_t drawn[B * 4];
  static const int64_t shape[2] = {B, 4};
  tk_tensor x = tensor(logits, matrix, 2, TK_F32), out = tensor(drawn, shape, 2, TK_I64);
  tk_multinomial_args host = TK_MULTINOMIAL_ARGS_INIT, device = TK_MULTINOMIAL_ARGS_INIT;
  copies c = {0};
  host.num_samples = device.num_samples = 4, host.seed = device.seed = 5;
  host.probs = &x, host.out = &out, device.probs = put(&c, &x);
  c.inputs = c.count;
  device.out = put(&c, &out);
  BOTH(multinomial, host, device, c);
}

static void experts(void) {
  static int8_t x8[M * K], weights[E * K * N], quantised[M * N / 2];
  static float w_scale[E * N], x_scale[M], out_scale[M];
  static int64_t ends[E] = {1, 4}, counts[E] = {2, 1};
  static const int64_t rows[2] = {M, K}, blocks[5] = {E, N / 32, K / 16, 16, 32}, channels[2] = {E, N}, half[2] = {M, N / 2};
  static const int64_t each[1] = {M}, groups[1] = {E};
  int i, arithmetic;
  for (i = 0; i < E * K * N; i++) weights[i] = (int8_t)(i * 37 % 251 - 125);
  for (i = 0; i < M * K; i++) x8[i] = (int8_t)(i * 71 % 253 - 126);
  for (i = 0; i < E * N; i++) w_scale[i] = (float)(1 + i % 7) * 1e-3f;
  for (i = 0; i < M; i++) x_scale[i] = (float)(1 + i) * 1e-2f;
  for (arithmetic = 1; arithmetic <= 2; arithmetic++) {
    tk_tensor x = tensor(x8, rows, 2, TK_I8), weight = tensor(weights, blocks, 5, TK_I8), scale = tensor(w_scale, channels, 2, TK_F32);
    tk_tensor xs = tensor(x_scale, each, 1, TK_F32), list = tensor(arithmetic == 1 ? ends : counts, groups, 1, TK_I64);
    tk_tensor out = tensor(quantised, half, 2, TK_I8), os = tensor(out_scale, each, 1, TK_F32);
    tk_grouped_matmul_swiglu_quant_args host = TK_GROUPED_MATMUL_SWIGLU_QUANT_ARGS_INIT, device;
    copies c = {0};
    host.weight_format = TK_FORMAT_NZ, host.fp16_rounding = true, host.arithmetic = arithmetic;
    host.group_list_type = arithmetic == 1 ? TK_GROUP_LIST_ENDS : TK_GROUP_LIST_COUNTS;
    host.x = &x, host.weight = &weight, host.weight_scale = &scale, host.x_scale = &xs, host.group_list = &list;
    host.output = &out, host.output_scale = &os;
    device = host;
    device.x = put(&c, &x), device.weight = put(&c, &weight), device.weight_scale = put(&c, &scale);
    device.x_scale = put(&c, &xs), device.group_list = put(&c, &list);
    c.inputs = c.count;
    device.output = put(&c, &out), device.output_scale = put(&c, &os);
    BOTH(grouped_matmul_swiglu_quant, host, device, c);
  }
}

int main(void) {
  int i;
  for (i = 0; i < B * V; i++) {
    logits[i] = (float)(i * 37 % 101) * 0.05f;
    halves[i] = (uint16_t)(0x3000 + i * 37 % 4096);
  }
  begin();
  sampling();
  halves_and_filters();
  draws();
  experts();
  return 0;
}
