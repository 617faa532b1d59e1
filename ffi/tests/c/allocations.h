/* malloc and its kin are the program's own here, and count. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static volatile size_t allocations;

void *malloc(size_t bytes) {
  allocations++;
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  allocations++;
  return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
  allocations++;
  return __libc_realloc(memory, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  allocations++;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == NULL ? 12 : 0;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  allocations++;
  return __libc_memalign(alignment, bytes);
}

#endif
