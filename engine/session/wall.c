/* See api/wall.h.  Only functions of memwall.h are used. */
#include "config.h"

#include <string.h>

#include "engine/memwall.h"

#define STEPS     32 /* of the budget, at most */
#define LEAST_CTX 512
#define PAST      16 /* the axis ends this part after the budget that reads nothing */

/* ---- where the points are ---- */

static void add(struct mw_wall *w, enum mw_wall_axis axis, uint64_t at)
{
    struct mw_wall_point *p = w->point[axis];
    uint32_t i = w->n[axis];

    while (i > 0 && p[i - 1].at > at)
        i--;
    if ((i > 0 && p[i - 1].at == at) || w->n[axis] == MW_WALL_POINTS)
        return;
    memmove(&p[i + 1], &p[i], (w->n[axis] - i) * sizeof p[0]);
    p[i] = (struct mw_wall_point){ .at = at };
    w->n[axis]++;
}

/* Returns the largest budget that this machine can give now, rounded to steps of 3 to 6 %.  The
 * axis then stays the same if other programs use a little more memory.  0: unknown. */
static uint64_t largest_budget(void)
{
    struct mw_machine machine;
    uint64_t step = MIB;

    mw_machine_read(&machine);
    while (step * 32 <= machine.budget_bytes)
        step *= 2;
    return machine.budget_bytes > step ? machine.budget_bytes / step * step
                                       : machine.budget_bytes;
}

/* The tried settings from the least to the end of the axis are points, too: the cursor stops at
 * them. */
static void add_tried(struct mw_wall *w, enum mw_wall_axis axis, uint64_t least)
{
    uint64_t high = w->point[axis][w->n[axis] - 1].at;

    for (uint32_t i = 0; i < w->n_mark; i++)
        if (w->mark[i].at[axis] >= least && w->mark[i].at[axis] < high)
            add(w, axis, w->mark[i].at[axis]);
}

/* From the smallest budget to a little more than all weights need, in equal steps. */
static void choose_budgets(struct mw_wall *w, uint64_t low)
{
    uint64_t here = w->here[MW_WALL_BUDGET], high = w->nothing_bytes, step = MIB;
    uint64_t most = largest_budget();

    high += high / PAST;
    if (most > 0 && (high == 0 || high > most))
        high = most;
    high = high > here ? high : here;
    low = low < here ? low : here;
    while ((high - low) / step > STEPS)
        step *= 2;
    add(w, MW_WALL_BUDGET, here);
    add(w, MW_WALL_BUDGET, align_up(low, MIB));
    if (w->nothing_bytes > low && w->nothing_bytes < high)
        add(w, MW_WALL_BUDGET, align_up(w->nothing_bytes, MIB));
    for (uint64_t at = align_up(low + step / 2, step); at + step / 2 < high; at += step)
        add(w, MW_WALL_BUDGET, at);
    if (high / MIB * MIB > low)
        add(w, MW_WALL_BUDGET, high / MIB * MIB);
}

/* Powers of two and one and a half times as much, from what the conversation needs to the
 * trained context or the largest that fits. */
static void choose_contexts(struct mw_wall *w, struct mw_model *m, const struct mw_sample *s,
                            uint32_t largest)
{
    uint64_t here = w->here[MW_WALL_CTX], least = LEAST_CTX, high = largest;
    struct mw_model_info info;

    mw_model_info(m, &info);
    if (info.n_ctx_train > 0 && high > info.n_ctx_train)
        high = info.n_ctx_train;
    high = high > here ? high : here;
    while (least < s->kv.tokens || least < s->kv.context)
        least *= 2;
    add(w, MW_WALL_CTX, here);
    add(w, MW_WALL_CTX, high);
    for (uint64_t at = least; at < high; at *= 2) {
        add(w, MW_WALL_CTX, at);
        if (at + at / 2 < high)
            add(w, MW_WALL_CTX, at + at / 2);
    }
}

bool mw_wall_begin(struct mw_wall *w, struct mw_model *m, const struct mw_options *o,
                   const struct mw_sample *s)
{
    struct err ignored = ERR_INIT;
    uint64_t smallest = 0;
    uint32_t largest = 0;

    *w = (struct mw_wall){ .here = { s->run.budget_bytes, s->run.ctx } };
    if (s->run.budget_bytes == 0 || s->run.ctx == 0 ||
        mw_plan_fit(m, o, &smallest, &largest, &ignored) != 0 || smallest == 0)
        return false;
    w->nothing_bytes = mw_reads_nothing_budget(m, o);
    choose_budgets(w, smallest);
    choose_contexts(w, m, s, largest);
    mw_wall_marks(w, m, o);
    add_tried(w, MW_WALL_BUDGET, smallest); /* which may be less than a whole MiB */
    add_tried(w, MW_WALL_CTX, w->point[MW_WALL_CTX][0].at);
    return true;
}

/* ---- what they predict ---- */

static void predict(struct mw_wall *w, enum mw_wall_axis axis, struct mw_wall_point *p,
                    struct mw_model *m, const struct mw_options *o, const struct mw_sample *s)
{
    struct mw_diagnosis d = { 0 };
    struct err ignored = ERR_INIT;
    struct mw_options then = *o;
    struct plan plan;

    if (axis == MW_WALL_BUDGET)
        then.memory_bytes = p->at;
    else
        then.n_ctx = (uint32_t)p->at;
    p->tps = mw_diagnose(m, &then, s, &d, &ignored) == 0 ? d.tps : 0;
    if (axis == MW_WALL_CTX) /* from the same diagnosis, as the other panels and sheets show it */
        p->full_tps = d.full_tps;
    if (axis == MW_WALL_CTX && mw_plan(m, &then, &plan, &ignored) == 0)
        p->kv_bytes = plan.row[MW_ROW_KV_GLOBAL] + plan.row[MW_ROW_KV_SLIDING];
    if (p->at == w->here[axis]) {
        w->is_measured = d.is_measured;
        w->is_doubtful = d.is_doubtful;
    }
}

bool mw_wall_step(struct mw_wall *w, struct mw_model *m, const struct mw_options *o,
                  const struct mw_sample *s, uint32_t n)
{
    uint32_t n_budget = w->n[MW_WALL_BUDGET], all = n_budget + w->n[MW_WALL_CTX];

    for (; n > 0 && w->n_done < all; n--, w->n_done++)
        if (w->n_done < n_budget)
            predict(w, MW_WALL_BUDGET, &w->point[MW_WALL_BUDGET][w->n_done], m, o, s);
        else
            predict(w, MW_WALL_CTX, &w->point[MW_WALL_CTX][w->n_done - n_budget], m, o, s);
    return w->n_done < all;
}

/* ---- what was measured ---- */

void mw_wall_marks(struct mw_wall *w, const struct mw_model *m, const struct mw_options *o)
{
    struct mw_tried tried[MW_TRIED_MOST], now = { 0 };
    size_t n = mw_model_tried(m, tried);

    mw_tried_of_options(&now, o);
    w->n_mark = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct mw_tried budget = now, ctx = now;

        budget.memory_bytes = tried[i].memory_bytes;
        ctx.n_ctx = tried[i].n_ctx;
        w->mark[i] = (struct mw_wall_mark){
            .at = { (uint64_t)tried[i].memory_bytes, (uint64_t)tried[i].n_ctx },
            .tps = tried[i].tps,
            .is_session = tried[i].is_session,
            .is_same = { mw_tried_same_settings(&tried[i], &budget),
                         mw_tried_same_settings(&tried[i], &ctx) },
        };
    }
}

int mw_wall_nearest(const struct mw_wall *w, enum mw_wall_axis axis, uint64_t at)
{
    const struct mw_wall_point *p = w->point[axis];
    int best = -1;
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < (int)w->n[axis]; i++) {
        uint64_t off = p[i].at > at ? p[i].at - at : at - p[i].at;

        if (off < least) {
            least = off;
            best = i;
        }
    }
    return best;
}
