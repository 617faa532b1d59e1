/* Continues a text with a model, decoded in this program's memory: generate MODEL.tkm TEXT [TOKENS]. With -fopenmp on all cores, which
   changes no bit. How to compile and link: ffi/README.md. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tilekern.h"
#ifdef _OPENMP
#include <omp.h>
#endif

enum { BEGIN = 1, END = 2, MAX_PROMPT = 256 };

static tk_context context = TK_CONTEXT_INIT;

/* Any pool will do that calls each index once, and never two at the same time with one worker. */
#ifdef _OPENMP
static void parallel_for(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  (void)user;
#pragma omp parallel for schedule(dynamic)
  for (size_t i = 0; i < tasks; i++) task(arg, i, (size_t)omp_get_thread_num());
}
#endif

/* The message is empty until a call that takes the context fails; the first that fails ends the program. */
static void check(int32_t status, const char *what) {
  if (status == TK_STATUS_SUCCESS) return;
  const char *why = context.message[0] != '\0' ? context.message : tk_status_string(status);
  fprintf(stderr, "%s: status %d %s\n", what, (int)status, why);
  exit(1);
}

/* Aligned to 64 bytes, and never freed. */
static void *memory(size_t bytes) {
  char *all = malloc(bytes + 63);
  if (all == NULL) exit(1);
  return all + (64 - (uintptr_t)all % 64) % 64;
}

static void *contents(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
  *bytes = (size_t)ftell(file);
  rewind(file);
  void *all = malloc(*bytes);
  if (all != NULL && fread(all, 1, *bytes, file) != *bytes) all = NULL;
  fclose(file);
  return all;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "generate MODEL.tkm TEXT [TOKENS]\n");
    return 2;
  }
#ifdef _OPENMP
  context.parallel_for = parallel_for;
  context.parallel_threads = (size_t)omp_get_max_threads();
#endif

  size_t file_bytes, bytes;
  void *file = contents(argv[1], &file_bytes);
  if (file == NULL) {
    fprintf(stderr, "cannot read %s\n", argv[1]);
    return 2;
  }
  tk_model_options options = TK_MODEL_OPTIONS_INIT;
  tk_model *model;
  check(tk_model_bytes(&context, &options, file, file_bytes, &bytes), "model");
  check(tk_model_load(&context, &options, file, file_bytes, memory(bytes), bytes, &model), "model");
  free(file);

  tk_decoding_config config = TK_DECODING_CONFIG_INIT;
  tk_decoding *decoding;
  config.max_prompt = MAX_PROMPT;
  config.max_new = argc > 3 ? atoi(argv[3]) : 64;
  config.end_id = END;
  check(tk_decoding_bytes(&context, &config, model, &bytes), "decoding");
  check(tk_decoding_init(&context, &config, model, memory(bytes), bytes, &decoding), "decoding");
  tk_row_sampling sampling = TK_ROW_SAMPLING_INIT;
  sampling.temperature = 0; /* the likeliest token, always */
  check(tk_decoding_set_row(decoding, 0, &sampling), "sampling");

  int32_t prompt[MAX_PROMPT] = {BEGIN}, length[1], id[1];
  int64_t prompt_shape[] = {1, MAX_PROMPT}, row[] = {1};
  size_t count;
  check(tk_model_encode(model, argv[2], strlen(argv[2]), prompt + 1, MAX_PROMPT - 1, &count), "prompt");
  length[0] = (int32_t)count + 1;
  tk_tensor prompt_tensor = {prompt, prompt_shape, NULL, 2, TK_I32};
  tk_tensor length_tensor = {length, row, NULL, 1, TK_I32};
  tk_tensor id_tensor = {id, row, NULL, 1, TK_I32};
  check(tk_decoding_prompt(&context, decoding, &prompt_tensor, &length_tensor), "prompt");

  printf("%s", argv[2]);
  int32_t previous = prompt[count];
  while (tk_decoding_finished(decoding) == 0) {
    check(tk_decoding_step(&context, decoding, &id_tensor), "step");
    if (id[0] == BEGIN || id[0] == END) break; /* a model ends with one of them */
    const char *text;
    size_t text_length;
    check(tk_model_token_text(model, previous, id[0], &text, &text_length), "text");
    fwrite(text, 1, text_length, stdout);
    fflush(stdout);
    previous = id[0];
  }
  printf("\n");
  return 0;
}
