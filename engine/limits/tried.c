#include "config.h"

#include "engine/limits/tried.h"

#include <math.h>
#include <string.h>

#include "engine/limits/store.h"

/* Beyond these, a file was damaged. */
#define KV_MOST     3 /* MW_KV_Q4_0 */
#define IO_MOST     3 /* MW_IO_MMAP */
#define THREAD_MOST 1024
#define COUNT_MOST  2147483648.0 /* tokens */
#define BYTES_MOST  1e15
#define TPS_MOST    1e6

_Static_assert(offsetof(struct mw_tried, is_session) == TRIED_VALUES * sizeof(double) &&
                   offsetof(struct mw_tried, n_token) == TRIED_SETTINGS * sizeof(double) &&
                   TRIED_VALUES <= LIMITS_VALUES,
               "a line holds the numbers of a record");

bool mw_tried_same_settings(const struct mw_tried *a, const struct mw_tried *b)
{
    const double *x = &a->memory_bytes, *y = &b->memory_bytes;

    for (int i = 0; i < TRIED_SETTINGS; i++)
        if (x[i] != y[i])
            return false;
    return true;
}

static bool is_whole(double value, double least, double most)
{
    return value >= least && value <= most && value == floor(value);
}

bool mw_tried_is_plausible(const struct mw_tried *t)
{
    return is_whole(t->memory_bytes, 1, BYTES_MOST) && is_whole(t->n_ctx, 1, COUNT_MOST) &&
           is_whole(t->kv_k, 0, KV_MOST) && is_whole(t->kv_v, 0, KV_MOST) &&
           is_whole(t->n_thread, 1, THREAD_MOST) && is_whole(t->io, 0, IO_MOST) &&
           is_whole(t->chunk, 0, COUNT_MOST) && is_whole(t->disk_rate, 0, BYTES_MOST) &&
           is_whole(t->exact, 0, 1) && is_whole(t->n_token, MW_TRIED_TOKENS, COUNT_MOST) &&
           t->tps > 0 && t->tps <= TPS_MOST && t->wait_share >= 0 && t->wait_share <= 1 &&
           is_whole(t->peak_bytes, 0, BYTES_MOST) && t->measured_s >= 1 &&
           t->measured_s <= BYTES_MOST;
}

void mw_tried_put(struct mw_tried *list, size_t *n, const struct mw_tried *t)
{
    struct mw_tried first = *t;
    size_t at = 0;

    while (at < *n && !mw_tried_same_settings(&list[at], t))
        at++;
    if (at < *n && first.peak_bytes == 0)
        first.peak_bytes = list[at].peak_bytes;
    if (at == *n && *n < MW_TRIED_MOST)
        ++*n;
    else if (at == *n)
        at--;
    memmove(&list[1], &list[0], at * sizeof list[0]);
    list[0] = first;
}

const struct mw_tried *mw_tried_slowest(const struct mw_tried *list, size_t n)
{
    const struct mw_tried *slowest = NULL;

    for (size_t i = 0; i < n; i++)
        if (slowest == NULL || list[i].tps < slowest->tps)
            slowest = &list[i];
    return slowest;
}

void tried_to_line(const struct mw_tried *t, struct limits_line *l)
{
    l->kind = LIMITS_TRIED;
    l->time_s = (int64_t)t->measured_s;
    memcpy(l->value, t, TRIED_VALUES * sizeof(double));
}

bool tried_of_line(const struct limits_line *l, struct mw_tried *t)
{
    *t = (struct mw_tried){ 0 };
    memcpy(t, l->value, TRIED_VALUES * sizeof(double));
    return l->kind == LIMITS_TRIED && mw_tried_is_plausible(t);
}
