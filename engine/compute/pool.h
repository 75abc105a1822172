/*
 * pool.h - the workers.  The caller is one of them: pool_run returns when all have
 * finished their part.  Workers spin for a short while before they sleep, since parts
 * follow each other within microseconds during a pass.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_POOL_H
#define MEMWALL_ENGINE_COMPUTE_POOL_H

#include "engine/base/err.h"

struct pool;

typedef void pool_fn(void *ctx, int thread, int n_thread);

/* n_thread 1 starts nothing and runs everything in the caller. */
int pool_new(struct pool **out, int n_thread, struct err *e);
void pool_free(struct pool *p);
int pool_threads(const struct pool *p);

/* Call fn(ctx, i, n_thread) once for each i, fn(ctx, 0, …) in the caller. */
void pool_run(struct pool *p, pool_fn *fn, void *ctx);

#endif
