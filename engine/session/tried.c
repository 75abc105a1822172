/* See tried.h. */
#include "config.h"

#include "engine/session/tried.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/session/model.h"

#define NS 1e9

struct tried_box *tried_new(void)
{
    struct tried_box *b = calloc(1, sizeof *b);

    if (b != NULL)
        pthread_mutex_init(&b->lock, NULL);
    return b;
}

void tried_free(struct tried_box *b)
{
    if (b == NULL)
        return;
    pthread_mutex_destroy(&b->lock);
    free(b);
}

size_t mw_model_tried(const struct mw_model *m, struct mw_tried *list)
{
    size_t n;

    pthread_mutex_lock(&m->tried->lock);
    n = m->tried->n;
    memcpy(list, m->tried->list, n * sizeof list[0]);
    pthread_mutex_unlock(&m->tried->lock);
    return n;
}

void mw_model_set_tried(struct mw_model *m, const struct mw_tried *list, size_t n)
{
    struct tried_box *b = m->tried;

    pthread_mutex_lock(&b->lock);
    b->n = 0;
    for (size_t i = n < MW_TRIED_MOST ? n : MW_TRIED_MOST; i-- > 0;)
        mw_tried_put(b->list, &b->n, &list[i]);
    pthread_mutex_unlock(&b->lock);
}

void mw_model_tried_peak(struct mw_model *m, const struct plan *p, uint64_t bytes)
{
    struct tried_box *b = m->tried;

    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].is_session && b->list[i].memory_bytes == (double)p->budget_bytes &&
            b->list[i].n_ctx == p->n_ctx) {
            b->list[i].peak_bytes = (double)bytes;
            break;
        }
    pthread_mutex_unlock(&b->lock);
}

/* ---- the tokens of an answer ---- */

void tried_begin(struct tried_answer *a)
{
    *a = (struct tried_answer){ 0 };
}

void tried_add(struct tried_answer *a, uint64_t ns, uint64_t stall_ns, struct mw_model *m,
               const struct mw_options *o)
{
    struct mw_tried t = { .is_session = true };

    a->n++;
    a->ns += ns;
    a->stall_ns += stall_ns < ns ? stall_ns : ns;
    if (a->n < MW_TRIED_TOKENS || a->ns == 0)
        return;
    mw_tried_of_options(&t, o);
    t.n_token = (double)a->n;
    t.tps = (double)a->n * NS / (double)a->ns;
    t.wait_share = (double)a->stall_ns / (double)a->ns;
    t.measured_s = (double)time(NULL);
    if (!mw_tried_is_plausible(&t))
        return;
    pthread_mutex_lock(&m->tried->lock);
    mw_tried_put(m->tried->list, &m->tried->n, &t);
    pthread_mutex_unlock(&m->tried->lock);
}
