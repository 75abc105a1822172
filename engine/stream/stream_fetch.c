/* Fetches, on the engine's side: they are queued and waited for. */
#include "config.h"

#include <assert.h>

#include "engine/base/clock.h"
#include "engine/stream/stream_internal.h"

bool stream_is_mapped(const struct stream *s)
{
    return s->is_mapped;
}

uint32_t stream_kv_file(const struct stream *s)
{
    return s->source.n_file;
}

void stream_set_kv_file(struct stream *s, int fd)
{
    struct source_file *f = &s->source.files[s->source.n_file];

    if (s->is_mapped)
        return;
    pthread_mutex_lock(&s->lock);
    *f = (struct source_file){ .fd = fd,
                               .mirror_fd = -1,
                               .is_elsewhere = source_is_elsewhere(fd, s->source.files[0].fd),
                               .size = fd >= 0 ? UINT64_MAX : 0,
                               .path = SOURCE_KV_NAME };
    pthread_mutex_unlock(&s->lock);
}

bool stream_fetch_is_done(struct stream *s, const struct stream_fetch *f)
{
    bool is_done;

    pthread_mutex_lock(&s->lock);
    is_done = f->state == FETCH_DONE;
    pthread_mutex_unlock(&s->lock);
    return is_done;
}

static bool is_in_file(const struct stream *s, const struct stream_range *r)
{
    return r->file <= s->source.n_file && r->need > 0 && r->need <= r->bytes &&
           r->offset % SCHEDULE_ALIGN == 0 && r->bytes % SCHEDULE_ALIGN == 0 &&
           (uintptr_t)r->dst % SCHEDULE_ALIGN == 0 &&
           r->offset <= s->source.files[r->file].size &&
           r->need <= s->source.files[r->file].size - r->offset;
}

void stream_fetch_start(struct stream *s, struct stream_fetch *f)
{
    assert(!s->is_mapped);
    for (uint32_t i = 0; i < f->n_range; i++)
        assert(is_in_file(s, &f->range[i]));
    pthread_mutex_lock(&s->lock);
    fetch_add(&s->fetches, f);
    reader_wake(s);
    pthread_mutex_unlock(&s->lock);
}

/* A dead reader begins no reads, so queued fetches fail. */
static void fail_queued(struct stream *s)
{
    if (s->state != READER_DEAD || s->fetches.first == NULL)
        return;
    s->fetch_failure = s->failure;
    fetch_drop(&s->fetches, false);
    fetch_drop(&s->fetches, true);
}

static int find_finished(struct stream *s, struct stream_fetch *const *fetches, uint32_t n,
                         struct err *e)
{
    for (uint32_t i = 0; i < n; i++) {
        if (fetches[i]->state == FETCH_DONE)
            return (int)i;
        if (fetches[i]->state == FETCH_FAILED) {
            *e = s->fetch_failure;
            return -1;
        }
    }
    return (int)n;
}

int stream_fetch_wait(struct stream *s, struct stream_fetch *const *fetches, uint32_t n,
                      uint64_t *stall_ns, struct err *e)
{
    uint64_t start = 0;
    int found;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        fail_queued(s);
        found = find_finished(s, fetches, n, e);
        if (found != (int)n)
            break;
        found = cancel_check(s->cancel, e);
        if (found != 0)
            break;
        if (start == 0)
            start = clock_ns();
        pthread_cond_wait(&s->news, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    if (start != 0)
        *stall_ns += clock_ns() - start;
    return found;
}

void stream_fetch_drain(struct stream *s, bool of_kv)
{
    pthread_mutex_lock(&s->lock);
    fetch_drop(&s->fetches, of_kv);
    while (s->fetches.n_flying > 0)
        pthread_cond_wait(&s->news, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

const void *stream_mapped_at(struct stream *s, uint32_t file, uint64_t offset, uint64_t bytes,
                             struct err *e)
{
    return mapping_at(&s->mapping, file, offset, bytes, e);
}

void stream_mapped_give(struct stream *s, uint32_t file, uint64_t offset, uint64_t bytes)
{
    if (s->drops)
        mapping_drop(&s->mapping, file, offset, bytes);
}
