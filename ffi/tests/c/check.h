/* What every test program needs. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tilekern.h"

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);           \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#define CHECK_STATUS(call, expected)                                            \
  do {                                                                          \
    int status_ = (int)(call);                                                  \
    if (status_ != (expected)) {                                                \
      fprintf(stderr, "%s:%d: %s is %d\n", __FILE__, __LINE__, #call, status_); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

/* What the context says begins so. */
#define CHECK_MESSAGE(context, start)                                                          \
  do {                                                                                         \
    const char *start_ = (start);                                                              \
    if (strncmp((context).message, start_, strlen(start_)) != 0) {                             \
      fprintf(stderr, "expected \"%s\", found \"%.255s\"\n", start_, (context).message);      \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* Row-major. `shape` must outlive the tensor. */
static tk_tensor tensor(void *data, const int64_t *shape, int32_t rank, int32_t dtype) {
  tk_tensor t;
  t.data = data;
  t.shape = shape;
  t.strides = NULL;
  t.rank = rank;
  t.dtype = dtype;
  return t;
}

#endif
