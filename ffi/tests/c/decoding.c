/* A model and its decoding loop, in the memory of this program: decoding FILE. */
#include "check.h"
#include <math.h>

static char *aligned(size_t bytes) {
  char *memory = malloc(bytes + 64);
  CHECK(memory != NULL);
  return memory + (64 - (size_t)memory % 64) % 64;
}

static char *file;
static size_t file_bytes;

static void read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  CHECK(f != NULL && fseek(f, 0, SEEK_END) == 0);
  file_bytes = (size_t)ftell(f);
  rewind(f);
  file = malloc(file_bytes);
  CHECK(file != NULL && fread(file, 1, file_bytes, f) == file_bytes);
  fclose(f);
}

static tk_model *load(int32_t dtype) {
  tk_context context = TK_CONTEXT_INIT;
  tk_model_options options = TK_MODEL_OPTIONS_INIT;
  tk_model *model = NULL;
  size_t bytes;
  char *memory, *meeting;
  CHECK(options.dtype == TK_F32 && options.head_dtype == TK_I8 && options.tokenizer == NULL);
  options.dtype = dtype;
  CHECK_STATUS(tk_model_bytes(&context, &options, file, file_bytes, &bytes), 0);
  memory = aligned(bytes);
  CHECK_STATUS(tk_model_load(&context, &options, file, file_bytes, memory, bytes - 1, &model), -1);
  CHECK_STATUS(tk_model_load(&context, &options, file, file_bytes, memory + 8, bytes, &model), -1);
  CHECK_STATUS(tk_model_load(&context, &options, file, file_bytes, NULL, bytes, &model), 161001);
  CHECK_STATUS(tk_model_load(&context, &options, file, file_bytes - 1, memory, bytes, &model), 161002);
  CHECK_STATUS(tk_model_load(&context, &options, NULL, file_bytes, memory, bytes, &model), 161001);
  CHECK_STATUS(tk_model_load(&context, NULL, file, file_bytes, memory, bytes, &model), 161001);
  meeting = aligned(bytes + file_bytes) + bytes - 1;
  memcpy(meeting, file, file_bytes);
  CHECK_STATUS(tk_model_load(&context, &options, meeting, file_bytes, meeting - bytes + 1, bytes, &model), 161002);
  CHECK(strcmp(context.message, "file: expected bytes outside of `memory`, found bytes in it (161002)") == 0);
  CHECK(memcmp(meeting, file, file_bytes) == 0);
  options.head_dtype = 1;
  CHECK_STATUS(tk_model_bytes(&context, &options, file, file_bytes, &bytes), 161002);
  CHECK(strcmp(context.message, "head_dtype: expected 0 or 2, found 1 (161002)") == 0);
  options.head_dtype = TK_I8, options.dtype = TK_I8;
  CHECK_STATUS(tk_model_bytes(&context, &options, file, file_bytes, &bytes), 161002);
  CHECK(model == NULL);
  options.dtype = dtype;
  CHECK_STATUS(tk_model_load(&context, &options, file, file_bytes, memory, bytes, &model), 0);
  CHECK(model != NULL);
  return model;
}

static const char *text = "and God said";

static void tokens(const tk_model *model) {
  int32_t ids[64] = {-7}, previous = 1;
  size_t count, again, length, i, at = 0;
  char back[64];
  const char *piece;
  CHECK_STATUS(tk_model_encode(model, text, strlen(text), NULL, 0, &count), -1);
  CHECK(count > 1 && count <= 64);
  CHECK_STATUS(tk_model_encode(model, text, strlen(text), ids, count - 1, &again), -1);
  CHECK(again == count && ids[0] == -7);
  CHECK_STATUS(tk_model_encode(model, text, strlen(text), ids, 64, &again), 0);
  CHECK(again == count);
  for (i = 0; i < count; i++) {
    CHECK_STATUS(tk_model_token_text(model, previous, ids[i], &piece, &length), 0);
    CHECK(at + length < sizeof back);
    memcpy(back + at, piece, length);
    at += length, previous = ids[i];
  }
  CHECK(at == strlen(text) && memcmp(back, text, at) == 0);
  CHECK_STATUS(tk_model_token_text(model, 1, -1, &piece, &length), 161002);
  CHECK_STATUS(tk_model_token_text(NULL, 1, 2, &piece, &length), 161001);
  piece = NULL, length = 7;
  CHECK_STATUS(tk_model_token_text(model, 1, 2, &piece, NULL), 161001);
  CHECK_STATUS(tk_model_token_text(model, 1, 2, NULL, &length), 161001);
  CHECK(piece == NULL && length == 7);
  CHECK_STATUS(tk_model_encode(model, text, strlen(text), ids, SIZE_MAX, &again), 0);
  CHECK(again == count);
  CHECK_STATUS(tk_model_encode(model, NULL, 3, ids, 64, &count), 161001);
  /* No object is as large: -1 does not stand for an end that is looked for. */
  CHECK_STATUS(tk_model_encode(model, text, SIZE_MAX, ids, 64, &count), 161002);
  CHECK_STATUS(tk_model_encode(model, text, SIZE_MAX / 2 + 1, ids, 64, &count), 161002);
  CHECK_STATUS(tk_model_encode(model, NULL, 0, NULL, 0, &count), 0);
  CHECK(count == 0);
}

enum { BATCH = 2, PROMPT = 32, NEW = 12, THREADS = 4 };

/* A pool that takes its workers in turn. */
static void in_turn(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  size_t i;
  (void)user;
  for (i = 0; i < tasks; i++) task(arg, i, i % THREADS);
}

/* Leaves each row the token that `user` has for it. */
static void leave_one(void *user, int64_t row, float *logits, size_t count) {
  size_t i, left = (size_t)((const int32_t *)user)[row];
  CHECK(row < BATCH && left < count);
  for (i = 0; i < count; i++)
    if (i != left) logits[i] = -INFINITY;
}

static void generate(const tk_model *model, int32_t kv_dtype, int32_t isa, int32_t *generated, int32_t *lengths) {
  static const int64_t rows[] = {BATCH}, prompt_shape[] = {BATCH, PROMPT}, output_shape[] = {BATCH, NEW};
  tk_context context = TK_CONTEXT_INIT, pool;
  tk_decoding_config config = TK_DECODING_CONFIG_INIT;
  tk_row_sampling sampling = TK_ROW_SAMPLING_INIT;
  tk_decoding *decoding = NULL;
  int32_t prompt[BATCH * PROMPT] = {0}, prompt_lengths[BATCH], ids[BATCH];
  tk_tensor prompt_tensor = tensor(prompt, prompt_shape, 2, TK_I32), lengths_tensor = tensor(prompt_lengths, rows, 1, TK_I32);
  tk_tensor ids_tensor = tensor(ids, rows, 1, TK_I32), generated_tensor = tensor(generated, output_shape, 2, TK_I32);
  tk_tensor generated_lengths = tensor(lengths, rows, 1, TK_I32);
  size_t bytes, pool_bytes, count, i;
  int step;
  char *memory;
  CHECK(config.kv_dtype == TK_F32 && config.end_id == -1);
  CHECK(sampling.temperature == 1 && sampling.top_k == 0 && sampling.top_p == 1 && sampling.min_p == 0 && sampling.seed == 0);
  context.isa = isa;
  pool = context;
  pool.parallel_for = in_turn, pool.parallel_threads = THREADS;
  config.batch = BATCH, config.max_prompt = PROMPT, config.max_new = NEW, config.kv_dtype = kv_dtype;
  CHECK_STATUS(tk_decoding_bytes(&context, &config, model, &bytes), 0);
  memory = aligned(bytes);
  CHECK_STATUS(tk_decoding_init(&context, &config, model, memory, bytes - 1, &decoding), -1);
  CHECK_STATUS(tk_decoding_init(&context, &config, NULL, memory, bytes, &decoding), 161001);
  config.kv_dtype = TK_I8;
  CHECK_STATUS(tk_decoding_init(&context, &config, model, memory, bytes, &decoding), 161002);
  config.kv_dtype = kv_dtype, config.batch = -1;
  CHECK_STATUS(tk_decoding_init(&context, &config, model, memory, bytes, &decoding), 161002);
  CHECK(decoding == NULL);
  config.batch = BATCH;
  /* The model's own memory, from its beginning and from its midst. */
  CHECK_STATUS(tk_decoding_init(&context, &config, model, (char *)model, bytes, &decoding), 161002);
  CHECK(strcmp(context.message, "model: expected bytes outside of `memory`, found bytes in it (161002)") == 0);
  CHECK_STATUS(tk_decoding_init(&context, &config, model, (char *)model + 64 * 64, bytes, &decoding), 161002);
  CHECK(decoding == NULL);
  CHECK_STATUS(tk_decoding_init(&context, &config, model, memory, bytes, &decoding), 0);
  CHECK_STATUS(tk_decoding_finished(decoding), 1);
  CHECK_STATUS(tk_decoding_finished(NULL), 161001);

  /* Row 0: greedy. Row 1: drawn, after a longer prompt. */
  CHECK_STATUS(tk_decoding_set_row(decoding, 2, &sampling), 161002);
  CHECK_STATUS(tk_decoding_set_row(decoding, -1, &sampling), 161002);
  sampling.temperature = 0;
  CHECK_STATUS(tk_decoding_set_row(decoding, 0, &sampling), 0);
  sampling.temperature = 1, sampling.top_p = 0.9, sampling.seed = 5;
  CHECK_STATUS(tk_decoding_set_row(decoding, 1, &sampling), 0);
  prompt[0] = prompt[PROMPT] = 1;
  CHECK_STATUS(tk_model_encode(model, text, strlen(text), prompt + PROMPT + 1, PROMPT - 1, &count), 0);
  prompt_lengths[0] = 0, prompt_lengths[1] = (int32_t)count + 1;
  CHECK_STATUS(tk_decoding_prompt(&context, decoding, &prompt_tensor, &lengths_tensor), 161002);
  prompt_lengths[0] = 1;
  CHECK_STATUS(tk_decoding_prompt(&context, decoding, &prompt_tensor, NULL), 161001);

  /* Threads that the memory has no room for, and then room for them, whatever the context that made it has. */
  CHECK_STATUS(tk_decoding_prompt(&pool, decoding, &prompt_tensor, &lengths_tensor), -1);
  CHECK_STATUS(tk_decoding_bytes(&pool, &config, model, &pool_bytes), 0);
  CHECK(pool_bytes > bytes);
  memory = aligned(pool_bytes);
  CHECK_STATUS(tk_decoding_init(&context, &config, model, memory, pool_bytes, &decoding), 0);
  sampling.temperature = 0;
  CHECK_STATUS(tk_decoding_set_row(decoding, 0, &sampling), 0);
  sampling.temperature = 1;
  CHECK_STATUS(tk_decoding_set_row(decoding, 1, &sampling), 0);
  CHECK_STATUS(tk_decoding_prompt(&pool, decoding, &prompt_tensor, &lengths_tensor), 0);
  CHECK_STATUS(tk_decoding_step(&pool, decoding, &ids_tensor), 0);
  CHECK_STATUS(tk_decoding_prompt(&context, decoding, &prompt_tensor, &lengths_tensor), 0);
  CHECK_STATUS(tk_decoding_finished(decoding), 0);
  for (step = 0; tk_decoding_finished(decoding) == 0; step++) {
    CHECK(step < NEW);
    CHECK_STATUS(tk_decoding_step(&context, decoding, &ids_tensor), 0);
    CHECK_STATUS(tk_decoding_output(&context, decoding, &generated_tensor, &generated_lengths), 0);
    for (i = 0; i < BATCH; i++) CHECK(lengths[i] == step + 1 && generated[i * NEW + (size_t)step] == ids[i]);
    for (i = (size_t)step + 1; i < NEW; i++) CHECK(generated[i] == -1);
  }
  CHECK(step == NEW);

  /* A new prompt in row 0, the same as before: the same tokens. */
  {
    static const int64_t one[] = {1};
    tk_tensor again = tensor(prompt, one, 1, TK_I32);
    CHECK_STATUS(tk_decoding_replace_row(&context, decoding, 0, &again), 0);
    for (i = 0; i < NEW; i++) {
      CHECK_STATUS(tk_decoding_step(&context, decoding, &ids_tensor), 0);
      CHECK(ids[0] == generated[i] && ids[1] == -1);
    }
    CHECK_STATUS(tk_decoding_replace_row(&context, decoding, BATCH, &again), 161002);

    /* Logits that the caller edits. */
    {
      int32_t only[BATCH] = {77, 0};
      const float *logits;
      int64_t vocab, longest;
      CHECK_STATUS(tk_decoding_replace_row(&context, decoding, 0, &again), 0);
      CHECK_STATUS(tk_decoding_step_with(&context, decoding, &ids_tensor, NULL, only), 161001);
      CHECK_STATUS(tk_decoding_step_with(&context, NULL, &ids_tensor, leave_one, only), 161001);
      CHECK_STATUS(tk_decoding_step_with(&context, decoding, NULL, leave_one, only), 161001);
      CHECK_STATUS(tk_decoding_step_with(&context, decoding, &ids_tensor, leave_one, only), 0);
      CHECK(ids[0] == 77 && ids[1] == -1);
      CHECK_STATUS(tk_model_sizes(model, &vocab, &longest), 0);
      CHECK_STATUS(tk_decoding_logits(decoding, 0, &logits, &count), 0);
      CHECK(count == (size_t)vocab && longest >= PROMPT + NEW);
      for (i = 0; i < count; i++) CHECK((logits[i] > -INFINITY) == (i == 77));
      CHECK_STATUS(tk_decoding_logits(decoding, 1, &logits, &count), 161002);
      CHECK_STATUS(tk_decoding_logits(decoding, BATCH, &logits, &count), 161002);
      CHECK_STATUS(tk_decoding_logits(decoding, 0, NULL, &count), 161001);
      CHECK_STATUS(tk_decoding_logits(NULL, 0, &logits, &count), 161001);
      CHECK_STATUS(tk_model_sizes(model, NULL, NULL), 0);
      CHECK_STATUS(tk_model_sizes(NULL, &vocab, &longest), 161001);
    }

    /* A row that is stopped: the end for it, and here for all. */
    CHECK_STATUS(tk_decoding_replace_row(&context, decoding, 0, &again), 0);
    CHECK_STATUS(tk_decoding_step(&context, decoding, &ids_tensor), 0);
    CHECK_STATUS(tk_decoding_stop_row(decoding, BATCH), 161002);
    CHECK_STATUS(tk_decoding_stop_row(decoding, -1), 161002);
    CHECK_STATUS(tk_decoding_stop_row(NULL, 0), 161001);
    CHECK_STATUS(tk_decoding_finished(decoding), 0);
    CHECK_STATUS(tk_decoding_stop_row(decoding, 0), 0);
    CHECK_STATUS(tk_decoding_finished(decoding), 1);
    CHECK_STATUS(tk_decoding_output(&context, decoding, &generated_tensor, &generated_lengths), 0);
    CHECK(lengths[0] == 1 && generated[0] == ids[0] && generated[1] == -1);
  }
  CHECK_STATUS(tk_decoding_reset(decoding), 0);
  CHECK_STATUS(tk_decoding_finished(decoding), 1);
}

int main(int argc, char **argv) {
  static const int32_t dtypes[] = {TK_F32, TK_F16, TK_BF16};
  int i;
  CHECK(argc == 2);
  read_file(argv[1]);
  for (i = 0; i < 3; i++) {
    int32_t best[BATCH * NEW], portable[BATCH * NEW], lengths[BATCH];
    const tk_model *model = load(dtypes[i]);
    tokens(model);
    generate(model, dtypes[2 - i], TK_ISA_BEST, best, lengths);
    generate(model, dtypes[2 - i], TK_ISA_PORTABLE, portable, lengths);
    CHECK(memcmp(best, portable, sizeof best) == 0);
  }
  return 0;
}
