#include "config.h"

#include "ui/app/tour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/text/receipt.h"

#define READ_NS  ((uint64_t)5 * 1000 * 1000 * 1000) /* to read the figures of a step */
#define LONGEST  96                                 /* tokens of an answer */
#define CTX_LONG 4096
#define FINEST   ((double)MIB / 10) /* budgets are multiples, so that a command can name them */
#define SPARE    (8 * MIB)          /* plenty for buffers beside the weights */
#define ALL_READ UINT64_MAX
#define N_STEP   4

enum phase { PHASE_LOAD, PHASE_ASK, PHASE_READ, PHASE_OVER };

struct tour {
    struct talk *talk;
    bool pauses; /* after each step */
    enum phase phase;
    int step;           /* from 0 */
    bool skips;         /* to the next step */
    uint64_t due_ns;    /* in PHASE_READ: when it ends */
    uint32_t n_predict; /* of the chat before the tour */
    double tps;         /* measured in the step before; 0: not */
};

static const struct {
    const char *title, *question;
} steps[N_STEP] = {
    { "smallest budget", "What is the memory wall?" },
    { "larger budget", "Does more memory make it faster?" },
    { "largest budget", "All weights are pinned. Does more budget help?" },
    { "longer context", "What is the KV cache?" },
};

struct tour *tour_new(struct talk *talk, bool pauses)
{
    struct tour *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->talk = talk;
    t->pauses = pauses;
    t->n_predict = talk_options(talk)->n_predict;
    return t;
}

void tour_free(struct tour *t)
{
    free(t);
}

/* ---- budgets ---- */

static uint64_t budget_bytes(uint64_t tenths)
{
    return (uint64_t)((double)tenths / 10 * (double)MIB);
}

static uint64_t budget_tenths(uint64_t bytes)
{
    return (uint64_t)((double)bytes / FINEST) + 1;
}

/* Return the smallest budget with which a token of these options reads at most `streamed`
 * bytes, or the largest budget of this machine if that is smaller. */
static uint64_t budget_for(struct tour *t, const struct mw_options *o, uint64_t streamed)
{
    struct mw_options wanted = *o;
    uint64_t smallest = 0, low, high;
    uint32_t ignored;
    char why[320];

    talk_try_fit(t->talk, o, &smallest, &ignored);
    wanted.memory_bytes = smallest + 2 * talk_info(t->talk)->hot_bytes + SPARE;
    mw_budget_lower(&wanted.memory_bytes, why, sizeof why);
    low = budget_tenths(smallest);
    high = budget_tenths(wanted.memory_bytes);
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        struct err e = ERR_INIT;
        struct plan plan;

        wanted.memory_bytes = budget_bytes(middle);
        if (talk_try_plan(t->talk, &wanted, &plan, &e) == 0 && plan.streamed_bytes <= streamed)
            high = middle;
        else
            low = middle + 1;
    }
    return budget_bytes(low);
}

/* Tokens of the long context: no more than the model was trained for. */
static uint32_t long_ctx(const struct tour *t)
{
    uint32_t trained = talk_info(t->talk)->n_ctx_train;

    return trained > 0 && trained < CTX_LONG ? trained : CTX_LONG;
}

/* ---- steps ---- */

/* Choose the options of the step. */
static void choose(struct tour *t, struct mw_options *o)
{
    uint64_t hot = talk_info(t->talk)->hot_bytes, least;

    switch (t->step) {
    case 1: o->memory_bytes = budget_for(t, o, hot / 2); break;
    case 2: o->memory_bytes = budget_for(t, o, 0); break;
    case 3:
        o->n_ctx = long_ctx(t);
        least = budget_for(t, o, ALL_READ);
        if (o->memory_bytes < least)
            o->memory_bytes = least;
        break;
    }
}

/* The share of the weights that a plan pins. */
static double planned_share(const struct tour *t, const struct plan *plan)
{
    uint64_t hot = talk_info(t->talk)->hot_bytes;

    return hot > 0 ? 1 - (double)plan->streamed_bytes / (double)hot : 0;
}

static void explain_smallest(struct tour *t, const struct plan *plan)
{
    uint64_t rate = talk_options(t->talk)->engine.disk_rate;
    char budget[16], read[16], limit[24], disk[48] = "";

    if (rate > 0)
        snprintf(disk, sizeof disk, ", and a disk slowed down to %s",
                 units_rate(limit, sizeof limit, (double)rate));
    talk_notice(t->talk,
                "tour 1 of 4: the smallest budget, %s%s. The program may need all of it, in a "
                "first start most for its own files. So no weights stay in memory, and every "
                "token reads %s of them.",
                units_size(budget, sizeof budget, plan->budget_bytes), disk,
                units_size(read, sizeof read, plan->streamed_bytes));
}

static void explain_larger(struct tour *t, const struct plan *plan)
{
    double before = talk_plan(t->talk)->decode_tps;
    char times[48] = "";

    if (before > 0 && plan->decode_tps > 0)
        snprintf(times, sizeof times, " and should come %.1f times as fast",
                 plan->decode_tps / before);
    talk_notice(t->talk,
                "tour 2 of 4: /memory %.1fM. %.0f %% of the weights stay in memory (pinned). A "
                "token reads only the rest%s.",
                (double)plan->budget_bytes / (double)MIB, planned_share(t, plan) * 100, times);
}

static void explain_largest(struct tour *t, const struct plan *plan)
{
    double mib = (double)plan->budget_bytes / (double)MIB;

    if (plan->streamed_bytes == 0)
        talk_notice(
            t->talk,
            "tour 3 of 4: /memory %.1fM. All weights stay in memory. A token reads only "
            "a few rows of tables from the slow disk.",
            mib);
    else
        talk_notice(
            t->talk,
            "tour 3 of 4: /memory %.1fM, all that this machine can give. %.0f %% of the "
            "weights stay in memory.",
            mib, planned_share(t, plan) * 100);
}

static void explain_context(struct tour *t, const struct plan *plan)
{
    char a[16], b[16];

    talk_notice(t->talk,
                "tour 4 of 4: /ctx %u. The conversation may get longer: its keys and values "
                "get %s in place of %s, and weights make room for them.",
                plan->n_ctx, units_size(b, sizeof b, plan->row[MW_ROW_KV_GLOBAL]),
                units_size(a, sizeof a, talk_plan(t->talk)->row[MW_ROW_KV_GLOBAL]));
}

static void explain(struct tour *t, const struct mw_options *o)
{
    static void (*const texts[N_STEP])(struct tour *, const struct plan *) = {
        explain_smallest, explain_larger, explain_largest, explain_context
    };
    struct plan plan = { 0 };
    struct err e = ERR_INIT;

    if (talk_try_plan(t->talk, o, &plan, &e) == 0)
        texts[t->step](t, &plan);
    else
        talk_report(t->talk, &e);
}

static void begin(struct tour *t)
{
    struct mw_chat_options o = *talk_options(t->talk);

    choose(t, &o.engine);
    o.n_predict = LONGEST;
    explain(t, &o.engine);
    talk_change(t->talk, &o, THEN_NOTHING, "the tour's options");
    talk_send(t->talk, steps[t->step].question);
    t->phase = PHASE_ASK;
    t->skips = false;
}

/* ---- what was measured ---- */

static double pinned_share(const struct mw_sample *s)
{
    uint64_t pinned = 0, all = 0;

    for (uint32_t i = 0; i <= s->n_layer; i++) {
        pinned += s->layer[i].pinned_bytes;
        all += s->layer[i].bytes;
    }
    return all > 0 ? (double)pinned / (double)all : 0;
}

/* Report the figures of the answer; an answer of one token has none. */
static void report(struct tour *t)
{
    struct mw_sample *s = malloc(sizeof *s);
    char rate[24], before[24], was[48] = "", read[16], limit[MW_DIAGNOSIS_TEXT];
    struct mw_diagnosis d;
    struct mw_rates r;

    if (s == NULL)
        return;
    talk_sample(t->talk, s);
    mw_rates(s, &r);
    if (r.decode_mean > 0 && r.read_per_token >= 0) {
        mw_diagnosis_of_sample(s, &d);
        d.advice[0] = d.held_back[0] = '\0'; /* the next step of the tour changes the settings */
        d.budget_bytes = 0;
        mw_diagnosis_text(&d, "", limit, sizeof limit);
        if (t->tps > 0)
            snprintf(was, sizeof was, " (%s before)",
                     receipt_rate(before, sizeof before, t->tps));
        talk_notice(
            t->talk,
            "measured: %s tok/s%s, %.0f %% of the weights pinned, %s read per token; %s",
            receipt_rate(rate, sizeof rate, r.decode_mean), was, pinned_share(s) * 100,
            units_size(read, sizeof read, (uint64_t)r.read_per_token), limit);
        t->tps = r.decode_mean;
    }
    free(s);
}

/* ---- the end ---- */

static void finish(struct tour *t)
{
    struct mw_chat_options o = *talk_options(t->talk);
    struct err ignored = ERR_INIT;
    struct plan plan = { .streamed_bytes = 1 };

    o.engine.memory_bytes = budget_for(t, &o.engine, 0);
    o.n_predict = t->n_predict;
    talk_try_plan(t->talk, &o.engine, &plan, &ignored);
    talk_notice(
        t->talk,
        "That was the tour. The budget is set to %.1fM now%s%s. Ask anything; /help lists "
        "commands and keys. After /quit, \"memwall list\" shows the models on this "
        "machine, and \"memwall pull\" fetches one.",
        (double)o.engine.memory_bytes / (double)MIB,
        plan.streamed_bytes == 0 ? ", enough for the weights and the KV cache" : "",
        o.engine.disk_rate > 0 ? "; the disk stays slow until /disk-rate none" : "");
    talk_change(t->talk, &o, THEN_NOTHING, "the tour's options");
    t->phase = PHASE_OVER;
}

void tour_end(struct tour *t)
{
    struct mw_chat_options o = *talk_options(t->talk);

    if (t->phase == PHASE_OVER)
        return;
    t->phase = PHASE_OVER;
    o.n_predict = t->n_predict;
    talk_change(t->talk, &o, THEN_NOTHING, "the tour's options");
    talk_notice(t->talk,
                "The tour has ended. /memory changes the budget, /disk-rate the limit of "
                "the disk, /ctx the context.");
}

bool tour_is_over(const struct tour *t)
{
    return t->phase == PHASE_OVER;
}

/* ---- time ---- */

/* The question was sent and its answer is over. */
static bool is_answered(const struct tour *t)
{
    return talk_state(t->talk) == TALK_READY && talk_outbox(t->talk)->n_queue == 0;
}

static void go_on(struct tour *t)
{
    if (++t->step < N_STEP)
        begin(t);
    else
        finish(t);
}

void tour_tick(struct tour *t)
{
    enum talk_state state = talk_state(t->talk);

    if (state == TALK_FAILED) {
        t->phase = PHASE_OVER;
        return;
    }
    switch (t->phase) {
    case PHASE_LOAD:
        if (state == TALK_READY)
            begin(t);
        break;
    case PHASE_ASK:
        if (t->skips && state == TALK_ANSWERING && talk_has_text(t->talk))
            talk_stop(t->talk);
        if (!is_answered(t))
            break;
        report(t);
        t->phase = PHASE_READ;
        t->due_ns = clock_ns() + (t->pauses ? READ_NS : 0);
        break;
    case PHASE_READ:
        if (t->skips || clock_ns() >= t->due_ns)
            go_on(t);
        break;
    case PHASE_OVER: break;
    }
}

uint64_t tour_wait(const struct tour *t)
{
    uint64_t now = clock_ns();

    if (t->phase != PHASE_READ)
        return UINT64_MAX;
    return t->skips || now >= t->due_ns ? 0 : t->due_ns - now;
}

void tour_next(struct tour *t)
{
    if (t->phase == PHASE_ASK || t->phase == PHASE_READ)
        t->skips = true;
}

void tour_line(const struct tour *t, char *buf, size_t n)
{
    snprintf(buf, n, "tour %d/%d: %s.  Space: next step, Esc: end", t->step + 1, N_STEP,
             steps[t->step].title);
}
