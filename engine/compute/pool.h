/*
 * pool.h - a pool of worker threads.  The caller is one of them, and pool_run returns when
 * all parts are done.  Workers spin for a short while before they sleep, because calls follow
 * each other within microseconds during a pass.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_POOL_H
#define MEMWALL_ENGINE_COMPUTE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct pool;

typedef void pool_fn(void *ctx, int part, int n_part);

/* With n_thread 1 no thread is started, and the caller does all the work. */
int pool_new(struct pool **out, int n_thread, struct err *e);
void pool_free(struct pool *p);

/* Start or end threads, between two rounds.  Those that stay are not started again.  Returns 0,
 * or -1 with *e and as many threads as before. */
int pool_set_threads(struct pool *p, int n_thread, struct err *e);
int pool_threads(const struct pool *p);

/* The number of parts to make of n_item equal items: more than there are threads, if possible,
 * so that a thread that is slowed down does less. */
int pool_parts(const struct pool *p, size_t n_item);

/* Call fn(ctx, i, n_part) once for each i < n_part, on any threads; with one thread, call
 * fn(ctx, 0, 1).  Nothing waits for a thread that has not begun a part. */
void pool_run(struct pool *p, int n_part, pool_fn *fn, void *ctx);

/*
 * Measure how long other programs keep the threads from running, between these two calls of the
 * thread that calls pool_run().  The result is the longest time that a thread was ready to run
 * and had no processor.  Threads also wait for each other, so the result is at most the time of
 * the processors that this process did not use, and that other programs used
 * (machine/load_meter.h).  The time that the host of a virtual machine took counts, too.  0 also
 * if the kernel does not report it.
 *
 * Only computing counts, which took computing_ns: a thread that is woken for a block also waits
 * for its processor, but that is part of the stall.  The caller computes all that time, except
 * while it waits for a processor or for a worker.
 */
void pool_wait_begin(struct pool *p);
/* How much longer threads that never sleep would take, because more programs want processors than
 * there are (load_meter_crowding()).  0: not known. */
double pool_crowding(const struct pool *p);
uint64_t pool_wait_ns(struct pool *p, uint64_t computing_ns);
/* The processor time of all threads between the last two of these calls; without the workers'
 * if the kernel does not report it. */
uint64_t pool_ran_ns(const struct pool *p);

/*
 * Parts of a product with n_row rows.  pool_row_parts() returns their number for weights of
 * `bytes` bytes, counted once for each column: one part for each thread, or POOL_SIZES for each
 * thread if the product is large enough.
 *
 * pool_rows() sets the rows [*from, *to) of a part.  They are whole groups of 32, as the
 * kernels for many columns multiply them, so that no two threads write to the same cache line.
 * A part may have no rows.  Large parts come first, because each part starts reading at new
 * places in memory.  Small parts come last, so that the threads finish together.
 */
#define POOL_SIZES 3

int pool_row_parts(const struct pool *p, uint64_t bytes);
void pool_rows(const struct pool *p, size_t n_row, int part, int n_part, size_t *from,
               size_t *to);

#endif
