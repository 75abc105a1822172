/*
 * Lookups, on the engine's side: rows go to lookup.c in batches and are waited for.  The reader
 * begins the next batch when one is done, so that all rows may arrive before they are waited for.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/stream/stream_internal.h"

uint64_t stream_lookup_bytes(const uint64_t *row_bytes, size_t n_table, size_t n_token)
{
    return align_up(lookup_bytes(lookup_cells(row_bytes, n_table, n_token)), SCHEDULE_ALIGN);
}

static bool is_in_file(const struct stream *s, const struct stream_lookup *l,
                       uint32_t first_file)
{
    uint32_t file = first_file + l->file;
    uint64_t end;

    return file < s->source.n_file && l->bytes > 0 &&
           !__builtin_add_overflow(l->offset, l->bytes, &end) &&
           end <= s->source.files[file].size;
}

void lookup_next_batch(struct stream *s)
{
    size_t n = s->n_lookup < LOOKUP_BATCH ? s->n_lookup : LOOKUP_BATCH;

    if (n == 0 || s->is_mapped || s->lookup_state != LOOKUP_READING || !lookup_is_done(&s->lookup))
        return;
    lookup_begin(&s->lookup, s->lookups, n, s->lookup_file);
    s->lookups += n;
    s->n_lookup -= n;
}

void stream_lookup_start(struct stream *s, const struct stream_lookup *lookups, size_t n)
{
    uint32_t first_file = s->first_file;

    if (s->host != NULL)
        s = s->host;
    for (size_t i = 0; i < n; i++)
        assert(is_in_file(s, &lookups[i], first_file));
    pthread_mutex_lock(&s->lock);
    assert(s->lookup_state == LOOKUP_NONE);
    s->lookup_file = first_file;
    s->lookup_state = LOOKUP_READING;
    s->lookups = lookups;
    s->n_lookup = n;
    lookup_next_batch(s);
    if (!s->is_mapped)
        reader_wake(s);
    pthread_mutex_unlock(&s->lock);
}

static int copy_mapped(struct stream *s, struct err *e)
{
    for (size_t i = 0; i < s->n_lookup; i++) {
        const struct stream_lookup *l = &s->lookups[i];
        const void *p = mapping_at(&s->mapping, l->file, l->offset, l->bytes, e);

        if (p == NULL)
            return -1;
        memcpy(l->dst, p, l->bytes);
        if (s->drops)
            mapping_drop(&s->mapping, l->file, l->offset, l->bytes);
    }
    return mapping_check(&s->mapping, e);
}

static bool rows_are_missing(const struct stream *s)
{
    return !lookup_is_done(&s->lookup) ||
           (s->lookup_state == LOOKUP_READING && s->n_lookup > 0);
}

/* A dead reader starts no lookup, so the rows that are left never come. */
static void fail_unread(struct stream *s)
{
    if (s->state != READER_DEAD || s->lookup.n_flying > 0 || !rows_are_missing(s))
        return;
    s->lookup_failure = s->failure;
    s->lookup_state = LOOKUP_FAILED;
    s->lookup.stopped = true;
}

static int await_rows(struct stream *s, struct err *e)
{
    for (;;) {
        fail_unread(s);
        if (!rows_are_missing(s))
            break;
        pthread_cond_wait(&s->news, &s->lock);
    }
    if (s->lookup_state != LOOKUP_FAILED)
        return 0;
    *e = s->lookup_failure;
    return -1;
}

int stream_lookup_wait(struct stream *s, struct err *e)
{
    int result;

    if (s->host != NULL)
        s = s->host;
    if (s->is_mapped) {
        assert(s->lookup_state != LOOKUP_NONE);
        s->lookup_state = LOOKUP_NONE;
        return copy_mapped(s, e);
    }
    pthread_mutex_lock(&s->lock);
    assert(s->lookup_state != LOOKUP_NONE);
    result = await_rows(s, e);
    s->lookup_state = LOOKUP_NONE;
    pthread_mutex_unlock(&s->lock);
    return result;
}
