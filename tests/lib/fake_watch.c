/* The kernel's figures and the diagnosis of a fake chat (fake_chat.h). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/memwall.h"
#include "tests/lib/fake_chat.h"

/* ---- diagnosis ---- */

void mw_model_anchor(const struct mw_model *m, struct plan_anchor *out)
{
    (void)m;
    *out = (struct plan_anchor){ 0 };
}

/* ---- tried settings: those of the last answers ---- */

static struct mw_tried tried[MW_TRIED_MOST];
static size_t n_tried;

size_t mw_model_tried(const struct mw_model *m, struct mw_tried *list)
{
    (void)m;
    memcpy(list, tried, n_tried * sizeof list[0]);
    return n_tried;
}

void mw_model_tried_peak(struct mw_model *m, const struct plan *p, uint64_t bytes)
{
    (void)m;
    if (n_tried > 0 && tried[0].memory_bytes == (double)p->budget_bytes)
        tried[0].peak_bytes = (double)bytes;
}

void fake_watch_answered(const struct mw_options *o, const struct plan *p)
{
    struct mw_tried t = { .n_token = 24, .wait_share = 0.71, .is_session = true };

    mw_tried_of_options(&t, o);
    t.memory_bytes = (double)p->budget_bytes;
    t.n_ctx = p->n_ctx;
    t.n_thread = 4;
    t.tps = p->decode_tps;
    t.measured_s = (double)time(NULL);
    mw_tried_put(tried, &n_tried, &t);
}

int mw_diagnose(struct mw_model *m, const struct mw_options *o, const struct mw_sample *s,
                struct mw_diagnosis *out, struct err *e)
{
    struct plan plan;

    (void)s;
    if (mw_plan(m, o, &plan, e) != 0)
        return -1;
    *out = (struct mw_diagnosis){ .tps = plan.decode_tps,
                                  .binds = plan.binds,
                                  .read_bytes = plan.streamed_bytes };
    return 0;
}

/* ---- the kernel's figures ---- */

struct mw_watch {
    int unused;
};

int mw_watch_new(struct mw_watch **out, struct mw_model *m, struct err *e)
{
    (void)m;
    *out = calloc(1, sizeof **out);
    return *out != NULL ? 0 : err_set(e, ERR_MEMORY, "no memory");
}

void mw_watch_free(struct mw_watch *w)
{
    free(w);
}

void mw_watch_begin_answer(struct mw_watch *w)
{
    (void)w;
}

void mw_watch_end_answer(struct mw_watch *w, uint64_t *peak_charged, uint64_t *peak_resident)
{
    (void)w;
    *peak_charged = 1408 * MIB;
    *peak_resident = 0;
}

void mw_watch_complete(struct mw_watch *w, struct mw_sample *s)
{
    uint64_t used = 0;

    (void)w;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        used += s->mem.used[i];
    s->os.t_ns = s->t_ns;
    s->os.rss.value = s->os.rss_anon.value = used + 8 * MIB;
    s->os.charged.value = s->os.charged_peak.value = used + 9 * MIB;
    s->os.limit.why_not = "no limit is set";
    s->os.available.value = 6 * GIB;
    s->os.system_total.value = 16 * GIB;
    s->os.system_cached.value = 3 * GIB;
    s->verdict.binds = MW_BINDS_DISK;
    s->verdict.share = 0.71;
    snprintf(s->verdict.advice, sizeof s->verdict.advice, "more_budget");
    s->verdict.advice_from = 0.5;
    s->verdict.advice_to = 0.7;
    s->verdict.advice_amount = (double)(800 * MIB);
}
