/* Loads the libraries of CANN as torch_npu does, then a program that was linked to none of them, and runs it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *load(const char *name, int mode) {
  void *library = dlopen(name, mode);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

int main(void) {
  union {
    void *object;
    int (*run)(void);
  } program;
  load("libascendcl.so", RTLD_NOW | RTLD_GLOBAL);
  load("libnnopbase.so", RTLD_NOW | RTLD_GLOBAL);
  load("libopapi.so", RTLD_LAZY | RTLD_GLOBAL);
  program.object = dlsym(load(getenv("PROGRAM"), RTLD_NOW), "main");
  return program.object == NULL ? 1 : program.run();
}
