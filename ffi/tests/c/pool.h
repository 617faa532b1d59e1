/* A pool of pthreads behind parallel_for. */
#ifndef POOL_H
#define POOL_H

#include <pthread.h>
#include "check.h"

enum { THREADS = 4 };

typedef struct region {
  void (*task)(void *arg, size_t index, size_t worker);
  void *arg;
  size_t tasks, next;
  pthread_mutex_t lock;
} region;

typedef struct worker {
  region *of;
  size_t number;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  for (;;) {
    size_t index;
    pthread_mutex_lock(&w->of->lock);
    index = w->of->next++;
    pthread_mutex_unlock(&w->of->lock);
    if (index >= w->of->tasks) return NULL;
    w->of->task(w->of->arg, index, w->number);
  }
}

/* `user` counts the tasks. */
static void pthread_for(void *user, size_t tasks, void (*task)(void *arg, size_t index, size_t worker), void *arg) {
  pthread_t threads[THREADS];
  worker workers[THREADS];
  region r;
  size_t i;
  r.task = task, r.arg = arg, r.tasks = tasks, r.next = 0;
  pthread_mutex_init(&r.lock, NULL);
  for (i = 0; i < THREADS; i++) {
    workers[i].of = &r, workers[i].number = i;
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_mutex_destroy(&r.lock);
  *(size_t *)user += tasks;
}

#endif
