#include "config.h"

#include "ui/app/tour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"

#define READ_NS  ((uint64_t)5 * 1000 * 1000 * 1000) /* to read the figures of a step */
#define LONGEST  96                                 /* tokens of an answer */
#define CTX_LONG 4096
#define FINEST   ((double)MIB / 10) /* budgets are multiples, so that a command can name them */
#define SPARE    (8 * MIB)          /* plenty for buffers beside the weights */
#define GROWS    (3 * MIB)          /* what the program may still take in a step */
#define LOOK_NS  ((uint64_t)1000 * 1000 * 1000) /* between two looks at its memory */
#define USUAL    ((uint32_t)24)     /* tokens of a question with its marks */
#define ALL_READ UINT64_MAX
#define USUAL_DEPTH ((uint32_t)4)   /* drafts of a pass, where no plan predicts their gain */

enum phase { PHASE_LOAD, PHASE_ASK, PHASE_READ, PHASE_OVER };

enum step_id { STEP_SMALLEST, STEP_LARGER, STEP_DRAFTS, STEP_LARGEST, STEP_CONTEXT, N_STEP };

struct tour {
    struct talk *talk;
    bool pauses; /* after each step */
    enum phase phase;
    enum step_id steps[N_STEP];
    int step, n_step;   /* of steps, from 0 */
    bool skips;         /* to the next step */
    uint64_t due_ns;    /* in PHASE_READ: when it ends */
    uint32_t n_predict; /* of the chat before the tour, */
    enum mw_draft draft; /* and what drafted, */
    uint32_t draft_depth; /* and how many */
    double tps;         /* measured in the step before; 0: not */
    uint64_t looked_ns; /* at the memory of the program */
    struct mw_options set; /* that the tour has chosen */
};

static const struct {
    const char *title, *question;
} steps[N_STEP] = {
    [STEP_SMALLEST] = { "smallest budget", "What is the memory wall?" },
    [STEP_LARGER] = { "larger budget", "Does more memory make it faster?" },
    [STEP_DRAFTS] = { "drafts", "What is a stall?" },
    [STEP_LARGEST] = { "largest budget", "All weights are pinned. Does more budget help?" },
    [STEP_CONTEXT] = { "longer context", "What is the KV cache?" },
};

static enum step_id now(const struct tour *t)
{
    return t->steps[t->step];
}

struct tour *tour_new(struct talk *talk, bool pauses)
{
    struct tour *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->talk = talk;
    t->pauses = pauses;
    t->n_predict = talk_options(talk)->n_predict;
    t->draft = talk_options(talk)->engine.draft;
    t->draft_depth = talk_options(talk)->engine.draft_depth;
    return t;
}

void tour_free(struct tour *t)
{
    free(t);
}

/* The facts that a step announces before it begins. */
struct step {
    const struct mw_options *o;
    struct plan plan;
    struct plan_outlook then;
};

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

/* ---- the program's memory ---- */

/* Returns what the program holds: all that no other item of the plan does.  0: unknown. */
static uint64_t program_holds(struct tour *t)
{
    struct mw_sample *s = malloc(sizeof *s);
    uint64_t all = 0, others = 0;

    if (s == NULL)
        return 0;
    talk_sample(t->talk, s);
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        others += i != MW_ROW_PROGRAM ? s->mem.used[i] : 0;
    if (s->os.t_ns != 0 && s->os.own.why_not == NULL)
        all = s->os.own.value;
    /* A first start is charged for pages of the program's files that it does not map. */
    if (all > 0 && s->os.charged.why_not == NULL && s->os.charged.value > all)
        all = s->os.charged.value;
    free(s);
    return all > others ? all - others : 0;
}

/* Returns whether the program may soon hold more than is reserved for it. */
static bool needs_more(uint64_t holds, uint64_t reserved)
{
    return holds > reserved - GROWS / 3;
}

/* The reserve stays while it is enough, so that the verdict of one step proposes the budgets
 * of the next ones. */
static void reserve_for_program(struct tour *t, struct mw_options *o)
{
    uint64_t holds = program_holds(t);

    if (holds == 0)
        o->program_bytes = 0;
    else if (o->program_bytes == 0 || needs_more(holds, o->program_bytes))
        o->program_bytes = holds + GROWS;
}

static void change(struct tour *t, const struct mw_chat_options *o)
{
    talk_change(t->talk, o, THEN_NOTHING, "the tour's options");
    t->set = talk_options(t->talk)->engine;
}

/* The question was sent and its answer is over. */
static bool is_answered(const struct tour *t)
{
    return talk_state(t->talk) == TALK_READY && talk_outbox(t->talk)->n_queue == 0;
}

/* Returns whether the settings are no longer those of the step, for example after F10. */
static bool is_taken_over(const struct tour *t)
{
    const struct mw_options *o = &talk_options(t->talk)->engine;

    return o->memory_bytes != t->set.memory_bytes || o->n_ctx != t->set.n_ctx ||
           o->kv_k != t->set.kv_k || o->kv_v != t->set.kv_v || o->draft != t->set.draft;
}

/* A window that grows takes memory for its cells: give the program more before it needs it. */
static void watch_program(struct tour *t)
{
    struct mw_chat_options o = *talk_options(t->talk);
    uint64_t now = clock_ns(), before = o.engine.program_bytes, holds;

    if (before == 0 || now - t->looked_ns < LOOK_NS)
        return;
    t->looked_ns = now;
    holds = program_holds(t);
    if (!needs_more(holds, before))
        return;
    o.engine.program_bytes = holds + GROWS;
    o.engine.memory_bytes += o.engine.program_bytes - before;
    change(t, &o);
}

/* ---- steps ---- */

/* Drafts of a pass, as the plan predicts them.  A fixed number, since a busy machine measures
 * passes badly: the head would be closed in its own step. */
static uint32_t depth_of(struct tour *t, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct plan plan = { 0 };

    (void)talk_try_plan(t->talk, o, &plan, &ignored);
    return plan.assumed > 0 ? plan.draft_depth : USUAL_DEPTH;
}

/* Choose the options of the step. */
static void choose(struct tour *t, struct mw_options *o)
{
    uint64_t hot = talk_info(t->talk)->hot_bytes, least;

    reserve_for_program(t, o);
    o->draft = now(t) == STEP_DRAFTS ? MW_DRAFT_MTP : MW_DRAFT_OFF;
    o->draft_depth = 0;
    switch (now(t)) {
    case STEP_SMALLEST: o->memory_bytes = budget_for(t, o, ALL_READ); break;
    case STEP_LARGER: o->memory_bytes = budget_for(t, o, hot / 2); break;
    case STEP_LARGEST: o->memory_bytes = budget_for(t, o, 0); break;
    case N_STEP: break;
    case STEP_DRAFTS: /* in the budget of the step before, so that both can be compared */
    case STEP_CONTEXT:
        o->n_ctx = now(t) == STEP_CONTEXT ? long_ctx(t) : o->n_ctx;
        least = budget_for(t, o, ALL_READ);
        if (o->memory_bytes < least)
            o->memory_bytes = least;
        break;
    }
    if (now(t) == STEP_DRAFTS)
        o->draft_depth = depth_of(t, o);
}

/* How the step will be: after its question, in the middle of a usual answer. */
static bool outlook(struct tour *t, const struct mw_options *o, struct plan_outlook *out)
{
    uint32_t n = (uint32_t)talk_tokens(t->talk) + USUAL + LONGEST / 2;

    return talk_try_outlook(t->talk, o, &(struct plan_run){ n, USUAL, LONGEST / 2 }, out);
}

/* The share of the weights that a step pins, in borrowed space, too. */
static double pinned_then(const struct tour *t, const struct plan_outlook *then)
{
    uint64_t hot = talk_info(t->talk)->hot_bytes;
    double share = hot > 0 ? 1 - then->token.streamed_bytes / (double)hot : 0;

    return share > 0 ? share : 0;
}

static void explain_smallest(struct tour *t, const struct step *s)
{
    uint64_t rate = s->o->disk_rate, reserved = s->o->program_bytes;
    char budget[16], read[16], limit[24], disk[48] = "", a[16], b[16], program[120] = "";

    if (rate > 0)
        snprintf(disk, sizeof disk, ", and a disk slowed down to %s",
                 units_rate(limit, sizeof limit, (double)rate));
    if (reserved > GROWS)
        snprintf(program, sizeof program,
                 " %s of it is reserved for the program, which holds %s now.",
                 units_size(a, sizeof a, reserved), units_size(b, sizeof b, reserved - GROWS));
    talk_notice(t->talk,
                "tour 1 of %d: the smallest budget, %s%s.%s Buffers, keys and values need the "
                "rest. So no weights stay in memory, and every token reads %s of them.",
                t->n_step, units_size(budget, sizeof budget, s->plan.budget_bytes), disk, program,
                units_size(read, sizeof read, s->plan.streamed_bytes));
}

static void explain_larger(struct tour *t, const struct step *s)
{
    char times[48] = "", budget[16];

    if (t->tps > 0 && s->then.tps > 0)
        snprintf(times, sizeof times, " and should come ~%.1f times as fast",
                 s->then.tps / t->tps);
    talk_notice(t->talk,
                "tour 2 of %d: a budget of %s. ~%.0f %% of the weights stay in memory (pinned). "
                "A token reads only the rest%s.",
                t->n_step, units_size(budget, sizeof budget, s->plan.budget_bytes),
                pinned_then(t, &s->then) * 100, times);
}

static void explain_drafts(struct tour *t, const struct step *s)
{
    char times[80] = "", budget[16], head[16];

    if (t->tps > 0 && s->plan.drafted_tps > 0)
        snprintf(times, sizeof times, " If %.0f %% are right, it is ~%.1f times as fast.",
                 100 * s->plan.acceptance, s->plan.drafted_tps / t->tps);
    talk_notice(t->talk,
                "tour %d of %d: /draft mtp. A small model beside this one drafts the next %u tokens, "
                "and one pass over the weights verifies all of them, so the answer is the same. "
                "Of the budget of %s, drafts take %s, so fewer weights stay in memory.%s",
                t->step + 1, t->n_step, s->o->draft_depth,
                units_size(budget, sizeof budget, s->plan.budget_bytes),
                units_size(head, sizeof head,
                           s->plan.row[MW_ROW_DRAFTER] + s->plan.row[MW_ROW_LOGITS] -
                               talk_plan(t->talk)->row[MW_ROW_LOGITS]),
                times);
}

static void explain_largest(struct tour *t, const struct step *s)
{
    const char *without = t->n_step == N_STEP ? " without drafts" : "";
    char budget[16];

    units_size(budget, sizeof budget, s->plan.budget_bytes);
    if (s->plan.streamed_bytes == 0)
        talk_notice(
            t->talk,
            "tour %d of %d: a budget of %s%s. All weights stay in memory. A token reads only a "
            "few rows of tables from the slow disk.",
            t->step + 1, t->n_step, budget, without);
    else
        talk_notice(
            t->talk,
            "tour %d of %d: a budget of %s%s, all that this machine can give. ~%.0f %% of the "
            "weights stay in memory.",
            t->step + 1, t->n_step, budget, without, pinned_then(t, &s->then) * 100);
}

static void explain_context(struct tour *t, const struct step *s)
{
    char a[16], b[16];

    talk_notice(t->talk,
                "tour %d of %d: /ctx %u. The conversation may get longer: its keys and values "
                "get %s in place of %s, and weights make room for them.",
                t->step + 1, t->n_step, s->plan.n_ctx, units_size(b, sizeof b, s->plan.row[MW_ROW_KV_GLOBAL]),
                units_size(a, sizeof a, talk_plan(t->talk)->row[MW_ROW_KV_GLOBAL]));
}

static void explain(struct tour *t, const struct mw_options *o)
{
    static void (*const texts[N_STEP])(struct tour *, const struct step *) = {
        [STEP_SMALLEST] = explain_smallest, [STEP_LARGER] = explain_larger,
        [STEP_DRAFTS] = explain_drafts,     [STEP_LARGEST] = explain_largest,
        [STEP_CONTEXT] = explain_context
    };
    struct step s = { .o = o };
    struct err e = ERR_INIT;

    if (talk_try_plan(t->talk, o, &s.plan, &e) != 0) {
        talk_report(t->talk, &e);
        return;
    }
    (void)outlook(t, o, &s.then); /* it plans the same, so it cannot fail then */
    texts[now(t)](t, &s);
}

/* The model may have no draft head. */
static bool can_draft(struct tour *t)
{
    struct mw_options o = talk_options(t->talk)->engine;
    uint32_t ctx;

    o.draft = MW_DRAFT_MTP;
    return talk_try_fit(t->talk, &o, &o.memory_bytes, &ctx);
}

static void choose_steps(struct tour *t)
{
    bool has_head = can_draft(t);

    for (enum step_id i = STEP_SMALLEST; i < N_STEP; i++)
        if (i != STEP_DRAFTS || has_head)
            t->steps[t->n_step++] = i;
}

static void begin(struct tour *t)
{
    struct mw_chat_options o = *talk_options(t->talk);

    choose(t, &o.engine);
    o.n_predict = LONGEST;
    explain(t, &o.engine);
    change(t, &o);
    talk_send(t->talk, steps[now(t)].question);
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
    char rate[24], before[24], was[48] = "", read[16], drafts[64] = "", limit[MW_DIAGNOSIS_TEXT];
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
                     numbers_measured(before, sizeof before, t->tps));
        if (s->draft.drafted > 0)
            snprintf(drafts, sizeof drafts, " %.1f tokens a pass, %.0f %% of the drafts right,",
                     1 + (double)s->draft.accepted / (double)s->draft.passes,
                     100 * (double)s->draft.accepted / (double)s->draft.drafted);
        talk_notice(
            t->talk,
            "measured: %s tok/s%s,%s %.0f %% of the weights pinned, %s read per token; %s",
            numbers_measured(rate, sizeof rate, r.decode_mean), was, drafts, pinned_share(s) * 100,
            units_size(read, sizeof read, (uint64_t)r.read_per_token), limit);
        t->tps = r.decode_mean;
    }
    free(s);
}

/* ---- the end ---- */

/* Choose the budget of the chat after the tour, and describe it: "60.7 MiB now, enough for the
 * weights and the KV cache; the disk stays slow until /disk-rate none". */
static void leave(struct tour *t, struct mw_chat_options *o, char *budget, size_t n)
{
    struct err ignored = ERR_INIT;
    struct plan plan = { .streamed_bytes = 1 };
    uint64_t all;
    char size[16];

    *o = *talk_options(t->talk);
    o->n_predict = t->n_predict;
    o->engine.program_bytes = 0;
    o->engine.draft = t->draft;
    o->engine.draft_depth = t->draft_depth;
    all = budget_for(t, &o->engine, 0);
    if (o->engine.memory_bytes < all)
        o->engine.memory_bytes = all;
    talk_try_plan(t->talk, &o->engine, &plan, &ignored);
    snprintf(budget, n, "%s now%s%s", units_size(size, sizeof size, o->engine.memory_bytes),
             plan.streamed_bytes == 0 ? ", enough for the weights and the KV cache" : "",
             o->engine.disk_rate > 0 ? "; the disk stays slow until /disk-rate none" : "");
    t->phase = PHASE_OVER;
}

static void finish(struct tour *t)
{
    struct mw_chat_options o;
    char budget[160];

    leave(t, &o, budget, sizeof budget);
    talk_notice(
        t->talk,
        "That was the tour. The budget is set to %s. A chat reserves more for the "
        "program than the tour did, all that it may ever need. Ask anything; /help lists "
        "commands and keys. After /quit, \"memwall list\" shows the models on this "
        "machine, and \"memwall pull\" fetches one.",
        budget);
    change(t, &o);
}

void tour_end(struct tour *t)
{
    struct mw_chat_options o;
    char budget[160];

    if (t->phase == PHASE_OVER)
        return;
    leave(t, &o, budget, sizeof budget);
    change(t, &o);
    talk_notice(t->talk,
                "The tour has ended. The budget is set to %s. A chat reserves more for the "
                "program than the tour did, all that it may ever need. /memory changes the "
                "budget, /ctx the context.",
                budget);
}

bool tour_is_over(const struct tour *t)
{
    return t->phase == PHASE_OVER;
}

/* ---- time ---- */

static void go_on(struct tour *t)
{
    if (++t->step < t->n_step)
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
    if ((t->phase == PHASE_ASK || t->phase == PHASE_READ) && is_taken_over(t)) {
        /* The change is announced when it applies, and this budget after it. */
        if (is_answered(t) ||
            talk_plan(t->talk)->budget_bytes == talk_options(t->talk)->engine.memory_bytes)
            tour_end(t);
        return;
    }
    if (t->phase != PHASE_OVER)
        watch_program(t);
    switch (t->phase) {
    case PHASE_LOAD:
        if (state != TALK_READY)
            break;
        choose_steps(t);
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
    snprintf(buf, n, "tour %d/%d: %s.  Space: next step, Esc: end", t->step + 1, t->n_step,
             steps[now(t)].title);
}
