/* See ticker.h. */
#include "config.h"

#include "src/base/ticker.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"

#define FIRST_NS    UINT64_C(200000000) /* shorter work shows nothing */
#define EVERY_NS    (PROGRESS_EVERY_MS * UINT64_C(1000000))
#define STACK_BYTES ((size_t)64 << 10)

static void *tick(void *arg)
{
    struct ticker *t = arg;

    pthread_mutex_lock(&t->lock);
    for (uint64_t at_ns = t->line.from_ns + FIRST_NS; !t->has_ended;) {
        char text[128];

        if (clock_cond_wait(&t->end, &t->lock, at_ns))
            continue;
        snprintf(text, sizeof text, "%s, %.1f s", t->text,
                 (double)(clock_ns() - t->line.from_ns) / 1e9);
        progress_text(&t->line, text);
        at_ns = clock_ns() + EVERY_NS;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void ticker_begin(struct ticker *t, bool quiet, const char *text)
{
    *t = (struct ticker){ .text = text };
    progress_open(&t->line, quiet);
    if (!t->line.is_on)
        return;
    pthread_mutex_init(&t->lock, NULL);
    clock_cond_init(&t->end);
    t->has_thread = thread_start(&t->thread, "progress", STACK_BYTES, tick, t) == 0;
}

void ticker_end(struct ticker *t)
{
    if (!t->line.is_on)
        return;
    if (t->has_thread) {
        pthread_mutex_lock(&t->lock);
        t->has_ended = true;
        pthread_cond_signal(&t->end);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->thread, NULL);
    }
    pthread_cond_destroy(&t->end);
    pthread_mutex_destroy(&t->lock);
    progress_clear(&t->line);
}
