/*
 * Pinned blocks are read into memory that is populated, as long as there is any, so what was read
 * follows the memory that was taken.
 *
 * The threads that populate get no further than the first chunk while the gate is closed.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/stream/pinned.h"
#include "engine/stream/stream.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/stream_model.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CHUNK     (2 * MIB)
#define ROW_BYTES 1000
#define N_ROW     20000 /* more than the threads leave to the caller */
#define N_START   4096

static struct telemetry telemetry;

/* ---- the gate ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool is_closed;
    unsigned char *base; /* of the memory for pinned blocks */
} gate = { .mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER };

/* The linker replaces calls of these functions by calls of the others. */
int __real_madvise(void *p, size_t bytes, int advice);
int __wrap_madvise(void *p, size_t bytes, int advice);
int __real_pinned_set(struct pinned *p, uint64_t bytes, struct err *e);
int __wrap_pinned_set(struct pinned *p, uint64_t bytes, struct err *e);
unsigned char *__real_pinned_place(const struct pinned *p, uint32_t block);
unsigned char *__wrap_pinned_place(const struct pinned *p, uint32_t block);

int __wrap_madvise(void *p, size_t bytes, int advice)
{
    if (advice == MADV_POPULATE_WRITE) {
        pthread_mutex_lock(&gate.mutex);
        while (gate.is_closed && (unsigned char *)p >= gate.base + CHUNK &&
               (unsigned char *)p < gate.base + N_ROW * ROW_BYTES)
            pthread_cond_wait(&gate.opened, &gate.mutex);
        pthread_mutex_unlock(&gate.mutex);
    }
    return __real_madvise(p, bytes, advice);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate.mutex);
    gate.is_closed = false;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.mutex);
}

/* The reader begins when the first chunk is populated. */
int __wrap_pinned_set(struct pinned *p, uint64_t bytes, struct err *e)
{
    int rc;

    pthread_mutex_lock(&gate.mutex);
    gate.base = p->area.base;
    pthread_mutex_unlock(&gate.mutex);
    rc = __real_pinned_set(p, bytes, e);
    while (gate.is_closed && p->area.held > CHUNK && populate_ready(&p->populate) < CHUNK)
        sched_yield();
    return rc;
}

/* The places to which blocks are read, in the order in which the reads begin. */
static uint64_t start[N_START];
static uint32_t n_start;

unsigned char *__wrap_pinned_place(const struct pinned *p, uint32_t block)
{
    unsigned char *place = __real_pinned_place(p, block);
    uint64_t at = (uint64_t)(place - p->area.base);

    if (n_start < N_START && (n_start == 0 || start[n_start - 1] != at))
        start[n_start++] = at;
    return place;
}

/* ---- the test ---- */

static void wait_until_loaded(void)
{
    while (counter_get(&telemetry.ahead_done_bytes) < counter_get(&telemetry.ahead_bytes))
        sched_yield();
}

static void populated_memory_is_filled_first(void **state)
{
    struct stream_options o = { .io = STREAM_BUFFERED, .no_uring = true, .n_slot = 2 };
    struct stream_shape shape;
    struct stream_model m;
    struct err e = ERR_INIT;
    uint32_t n_first = 0;
    struct stream *s;

    (void)state;
    model_seed(31);
    model_make(&m, N_ROW * ROW_BYTES + 1000);
    m.n_span = 1;
    m.spans[0] = (struct stream_span){ .row_bytes = ROW_BYTES, .n_row = N_ROW };
    shape_make(&shape, m.spans, m.n_span, 100000);
    no_error(stream_open(&s, &m.catalogue, m.spans, m.n_span, &shape, &o, &telemetry, &e), &e);
    gate.is_closed = true;
    no_error(stream_set_memory(s, 2, N_ROW * ROW_BYTES, &e), &e);
    wait_until_loaded(); /* also the blocks whose memory is not populated */
    assert_in_range(n_start, 100, N_START - 1);
    while (n_first < n_start && start[n_first] < CHUNK)
        n_first++;
    assert_in_range(n_first, CHUNK / shape.slot_bytes - 1, n_start - 1);
    for (uint32_t i = n_first; i < n_start; i++)
        assert_true(start[i] + shape.slot_bytes > CHUNK);
    gate_open();
    stream_close(s);
    model_remove(&m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(populated_memory_is_filled_first),
    };

    return cmocka_run_group_tests_name("loading", tests, NULL, NULL);
}
