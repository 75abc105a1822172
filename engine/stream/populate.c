#include "config.h"

#include "engine/stream/populate.h"

#include <sys/mman.h>

#include "engine/base/arena.h"
#include "engine/base/thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* newer than some C libraries */
#endif

#define STACK_BYTES ((size_t)64 << 10)

/* A huge page: two threads never clear the same one. */
#define CHUNK_BYTES (2 * MIB)

/* Not worth a thread. */
#define CALLER_BYTES (16 * MIB)

void populator_open(struct populator *p)
{
    *p = (struct populator){ 0 };
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
}

void populator_close(struct populator *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_closing = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_thread; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
}

/* Chunks are finished in any order: everything before the first unfinished one is ready. */
static void settle(struct populator *p, struct populate_range *r)
{
    uint64_t ready = r->next;

    for (int i = 0; i < POPULATE_THREADS; i++)
        if (p->busy[i].range == r && p->busy[i].at < ready)
            ready = p->busy[i].at;
    atomic_store_explicit(&r->ready, ready, memory_order_release);
}

static uint64_t chunk_of(const struct populate_range *r)
{
    uint64_t end = align_down(r->next, CHUNK_BYTES) + CHUNK_BYTES;

    return (end < r->target ? end : r->target) - r->next;
}

/* A page that could not be populated is mapped when a read needs it. */
static void populate(const struct populate_range *r, uint64_t at, uint64_t bytes)
{
    (void)madvise(r->base + at, bytes, MADV_POPULATE_WRITE);
}

/* Populate the next chunk of r.  Called with the lock, which is released meanwhile. */
static void populate_chunk(struct populator *p, struct populate_range *r, int thread)
{
    uint64_t at = r->next, bytes = chunk_of(r);

    r->next += bytes;
    p->busy[thread].range = r;
    p->busy[thread].at = at;
    pthread_mutex_unlock(&p->lock);
    populate(r, at, bytes);
    pthread_mutex_lock(&p->lock);
    p->busy[thread].range = NULL;
    settle(p, r);
    pthread_cond_broadcast(&p->done);
}

static struct populate_range *find_work(const struct populator *p)
{
    struct populate_range *r = p->first;

    while (r != NULL && r->next >= r->target)
        r = r->after;
    return r;
}

static void *populate_main(void *arg)
{
    struct populator *p = arg;
    int index;

    pthread_mutex_lock(&p->lock);
    index = p->n_named++;
    while (!p->is_closing) {
        struct populate_range *r = find_work(p);

        if (r == NULL)
            pthread_cond_wait(&p->work, &p->lock);
        else
            populate_chunk(p, r, index);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void start_threads(struct populator *p)
{
    while (p->n_thread < POPULATE_THREADS && thread_start(&p->threads[p->n_thread], "populate",
                                                          STACK_BYTES, populate_main, p) == 0)
        p->n_thread++;
}

static void add_range(struct populator *p, struct populate_range *r, unsigned char *base)
{
    struct populate_range **end = &p->first;

    r->base = base;
    if (r->is_listed)
        return;
    while (*end != NULL)
        end = &(*end)->after;
    *end = r;
    r->is_listed = true;
}

static bool is_busy_after(const struct populator *p, const struct populate_range *r,
                          uint64_t from)
{
    for (int i = 0; i < POPULATE_THREADS; i++)
        if (p->busy[i].range == r && p->busy[i].at + CHUNK_BYTES > from)
            return true;
    return false;
}

static void shrink(struct populator *p, struct populate_range *r, uint64_t target)
{
    r->target = target;
    r->next = r->next < target ? r->next : target;
    while (is_busy_after(p, r, target))
        pthread_cond_wait(&p->done, &p->lock);
    settle(p, r);
}

void populate_forget(struct populator *p, struct populate_range *r)
{
    struct populate_range **at = &p->first;

    pthread_mutex_lock(&p->lock);
    shrink(p, r, 0);
    while (*at != NULL && *at != r)
        at = &(*at)->after;
    if (*at != NULL)
        *at = r->after;
    *r = (struct populate_range){ 0 };
    pthread_mutex_unlock(&p->lock);
}

void populate_to(struct populator *p, struct populate_range *r, unsigned char *base,
                 uint64_t target)
{
    uint64_t left;

    pthread_mutex_lock(&p->lock);
    add_range(p, r, base);
    if (target < r->target)
        shrink(p, r, target);
    r->target = target;
    left = target - r->next;
    if (left > CALLER_BYTES && p->n_thread == 0)
        start_threads(p);
    if (left > 0 && p->n_thread == 0) {
        if (left <= CALLER_BYTES) {
            populate(r, r->next, left);
            memory_enter(r->base + r->next, left); /* small models answer in milliseconds */
        }
        r->next = target;
        settle(p, r);
    }
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}
