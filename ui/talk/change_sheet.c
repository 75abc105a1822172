#include "config.h"

#include "ui/talk/change_sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/numbers.h"
#include "ui/text/sheet.h"

/* ---- rows: now and then ---- */

/* "+12.0 MiB", "-1.20 GiB", "" */
static char *difference(char *buf, size_t n, uint64_t now, uint64_t then)
{
    char size[16];

    if (now == then) {
        buf[0] = '\0';
        return buf;
    }
    snprintf(buf, n, "%c%s", then > now ? '+' : '-',
             units_size(size, sizeof size, then > now ? then - now : now - then));
    return buf;
}

static bool reads_the_same(uint64_t now, uint64_t then)
{
    char a[16], b[16];

    return strcmp(units_size(a, sizeof a, now), units_size(b, sizeof b, then)) == 0;
}

static void size_row(struct sheet *s, const char *name, uint64_t now, uint64_t then)
{
    bool is_same = reads_the_same(now, then);
    char a[16], b[16], d[24];

    sheet_line(s, is_same ? ROLE_DIM : ROLE_TEXT, "%-14s %10s %10s", name,
               units_size(a, sizeof a, now), units_size(b, sizeof b, then));
    if (!is_same)
        sheet_more(s, ROLE_ACCENT, "  %s", difference(d, sizeof d, now, then));
}

static void count_row(struct sheet *s, const char *name, uint32_t now, uint32_t then)
{
    char a[24], b[24];

    sheet_line(s, now == then ? ROLE_DIM : ROLE_TEXT, "%-14s %10s %10s", name,
               numbers_count(a, sizeof a, now), numbers_count(b, sizeof b, then));
}

static void word_row(struct sheet *s, const char *name, const char *now, const char *then)
{
    if (strcmp(now, then) != 0)
        sheet_line(s, ROLE_TEXT, "%-14s %10s %10s", name, now, then);
}

static char *rate_text(char *buf, size_t n, double tps, bool is_measured, bool is_doubtful)
{
    if (!(tps > 0))
        snprintf(buf, n, "-");
    else if (is_measured)
        numbers_measured(buf, n, tps);
    else
        numbers_predicted(buf, n, tps, is_doubtful);
    return buf;
}

/* now may be measured; predictions may be in doubt. */
static void speed_row(struct sheet *s, const char *name, double now, double then,
                      bool is_measured, bool is_doubtful)
{
    char a[24], b[24], change[16];

    if (!(now > 0) && !(then > 0))
        return;
    sheet_line(s, ROLE_TEXT, "%-14s %10s %10s", name,
               rate_text(a, sizeof a, now, is_measured, is_doubtful),
               rate_text(b, sizeof b, then, false, is_doubtful));
    if (now > 0 && then > 0 && (then / now > 1.01 || then / now < 0.99))
        sheet_more(s, then > now ? ROLE_GOOD : ROLE_WARN, "  %s, %s",
                   units_change(change, sizeof change, then / now),
                   then > now ? "faster" : "slower");
}

/* Both rates are those at this place of the conversation. */
static void answer_row(struct talk *t, struct sheet *s, const struct mw_options *wanted,
                       const struct plan *plan)
{
    struct mw_options then_o = *wanted;
    struct mw_diagnosis now, then;

    then_o.memory_bytes = plan->budget_bytes;
    talk_diagnose_now(t, &now);
    talk_diagnose(t, &then_o, &then);
    speed_row(s, "tokens/s", now.tps, then.tps, now.is_measured, then.is_doubtful);
    speed_row(s, "  when full", now.full_tps, then.full_tps, false, then.is_doubtful);
    if (talk_plan(t)->budget_bytes != plan->budget_bytes &&
        talk_plan(t)->streamed_bytes == 0 && plan->streamed_bytes == 0)
        sheet_text(s, ROLE_DIM,
                   talk_options(t)->engine.memory_bytes != wanted->memory_bytes
                       ? "No gain: no weights are read from the disk with either budget."
                       : "No weights are read from the disk, before and after.");
    if (plan->n_expert_all > 0 && !plan->hits_measured)
        sheet_text(s, ROLE_DIM, "Assumed: all experts are chosen equally often.");
}

void limits_line(const struct talk *t, struct sheet *s, uint64_t disk_rate)
{
    char limits[MW_LIMITS_TEXT], line[MW_LIMITS_TEXT + 80], rate[24];
    struct plan_anchor anchor;
    struct mw_limits l;

    talk_limits(t, &l);
    talk_anchor(t, &anchor);
    if (anchor.measured_s > 0) {
        sheet_text(s, ROLE_DIM, "Predicted from what the last tokens measured.");
        return;
    }
    if (!(l.memory_bytes_s > 0))
        return;
    mw_limits_text(&l, (int64_t)time(NULL), limits, sizeof limits);
    snprintf(line, sizeof line, "Predicted from: %s%s%s.", limits,
             disk_rate > 0 ? "; the disk is limited to " : "",
             disk_rate > 0 ? units_rate(rate, sizeof rate, (double)disk_rate) : "");
    sheet_text(s, mw_limits_doubtful(&l) ? ROLE_WARN : ROLE_DIM, line);
}

static const char *kv_text(char *buf, size_t n, const struct mw_options *o)
{
    if (o->kv_k == o->kv_v)
        snprintf(buf, n, "%s", mw_kv_name(o->kv_k));
    else
        snprintf(buf, n, "%s/%s", mw_kv_name(o->kv_k), mw_kv_name(o->kv_v));
    return buf;
}

static const char *disk_text(char *buf, size_t n, uint64_t rate)
{
    if (rate > 0)
        units_rate(buf, n, (double)rate);
    else
        snprintf(buf, n, "any rate");
    return buf;
}

static const char *threads_text(char *buf, size_t n, const struct mw_options *o)
{
    if (o->n_thread > 0)
        snprintf(buf, n, "%d", o->n_thread);
    else
        snprintf(buf, n, "auto");
    return buf;
}

static void option_rows(struct talk *t, struct sheet *s, const struct mw_options *b,
                        const struct plan *then)
{
    const struct mw_options *a = &talk_options(t)->engine;
    const struct plan *now = talk_plan(t);
    char x[24], y[24];

    sheet_line(s, ROLE_DIM, "%-14s %10s %10s", "", "now", "then");
    size_row(s, "budget", now->budget_bytes, then->budget_bytes);
    count_row(s, "context", now->n_ctx, then->n_ctx);
    word_row(s, "kv", kv_text(x, sizeof x, a), kv_text(y, sizeof y, b));
    word_row(s, "io", mw_io_name(a->io), mw_io_name(b->io));
    if (a->disk_rate != b->disk_rate)
        word_row(s, "disk", disk_text(x, sizeof x, a->disk_rate),
                 disk_text(y, sizeof y, b->disk_rate));
    if (a->n_thread != b->n_thread)
        word_row(s, "threads", threads_text(x, sizeof x, a), threads_text(y, sizeof y, b));
    answer_row(t, s, b, then);
    snprintf(x, sizeof x, "  prompt (%d)", PLAN_PROMPT_TOKENS); /* shorter ones are slower */
    speed_row(s, x, now->prefill_tps, then->prefill_tps, false,
              then->is_doubtful);
    if (then->decode_tps > 0)
        limits_line(t, s, b->disk_rate);
}

/* Show only the rows whose printed sizes change, so that the sheet leaves the answer visible.
 * /plan shows all rows. */
static void memory_rows(struct sheet *s, const struct plan *now, const struct plan *then)
{
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        if (!reads_the_same(now->row[i], then->row[i]))
            size_row(s, mw_plan_row_label((enum mw_plan_row)i), now->row[i], then->row[i]);
    size_row(s, "total", now->sum_bytes, then->sum_bytes);
    if (now->has_kv_disk || then->has_kv_disk)
        size_row(s, "KV on disk", now->kv_disk_bytes, then->kv_disk_bytes);
    size_row(s, "read per token", now->streamed_bytes, then->streamed_bytes);
}

/* ---- the conversation ---- */

static void say_what_is_kept(struct talk *t, struct sheet *s, const struct mw_options *b,
                             const struct plan *then)
{
    struct mw_cost cost = { 0 };
    char line[240], time[32] = "", count[24];
    uint32_t tokens = talk_tokens(t);

    if (talk_ledger(t)->n == 0)
        return;
    if (tokens > then->n_ctx) {
        snprintf(line, sizeof line,
                 "The conversation has %s tokens, more than the new context holds: the next "
                 "message drops its oldest turns, and a notice names them.",
                 numbers_count(count, sizeof count, tokens));
        sheet_text(s, ROLE_WARN, line);
        return;
    }
    if (mw_keeps_kv(talk_model(t), &talk_options(t)->engine, b) && !talk_is_answering(t) &&
        talk_cost(t, "", &cost) && cost.n_again > 0) {
        snprintf(line, sizeof line,
                 "The conversation is kept.  The next message evaluates %s tokens of it, as it "
                 "would without this change.",
                 numbers_count(count, sizeof count, cost.n_again));
        sheet_text(s, ROLE_TEXT, line);
        return;
    }
    if (mw_keeps_kv(talk_model(t), &talk_options(t)->engine, b)) {
        sheet_text(s, ROLE_TEXT,
                   "The conversation is kept, and so are its keys and values: nothing is "
                   "evaluated again.");
        return;
    }
    talk_cost_again(t, then, &cost);
    numbers_count(count, sizeof count, cost.n_again);
    if (cost.seconds > 0)
        numbers_time(time, sizeof time, cost.seconds);
    snprintf(line, sizeof line,
             "The conversation is kept, but its keys and values are computed again: the next "
             "message evaluates %s token%s%s%s.",
             count, cost.n_again == 1 ? "" : "s",
             time[0] == '\0'    ? ""
             : cost.is_at_least ? ", which takes at least "
                                : ", which takes about ",
             time);
    sheet_text(s, cost.n_again > 0 ? ROLE_WARN : ROLE_TEXT, line);
}

/* The time at which a change applies, while an answer is made. */
static void say_when(const struct talk *t, struct sheet *s, const struct mw_chat_options *o)
{
    if (talk_is_answering(t))
        sheet_text(s, ROLE_TEXT,
                   talk_would_wait(t, o)
                       ? "It applies after this answer."
                       : "It applies at the next token, and the answer goes on.");
}

/* ---- the proposal ---- */

/* A proposal that Enter applies. */
struct proposal {
    struct talk *t;
    struct mw_chat_options options;
    char what[60];
};

static void apply(void *ctx, long row)
{
    const struct proposal *p = ctx;

    (void)row;
    talk_change(p->t, &p->options, THEN_ANNOUNCE, p->what);
}

/* ", /kv q8_0": the first smaller type of keys and values that makes room for the rest, or "". */
static const char *fitting_kv(struct talk *t, const struct mw_options *wanted, char *buf, size_t n)
{
    static const enum mw_kv smaller[] = { MW_KV_Q8_0, MW_KV_Q4_0 };
    struct mw_options o = *wanted;
    struct err ignored = ERR_INIT;
    struct plan plan;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof smaller / sizeof *smaller && buf[0] == '\0'; i++) {
        o.kv_k = o.kv_v = smaller[i];
        if (talk_try_plan(t, &o, &plan, &ignored) == 0)
            snprintf(buf, n, ", /kv %s", mw_kv_name(smaller[i]));
    }
    return buf;
}

/* The error of the planner names the budget that its plan needs.  Buffers grow with the budget,
 * so that budget may be refused as well: name one that fits instead. */
static void say_why_not(struct talk *t, const struct mw_options *wanted, const struct err *e)
{
    uint64_t smallest = 0, budget = wanted->memory_bytes;
    uint32_t largest = 0;
    char has[16], fits[24], kv[24];

    if (e->code != ERR_BUDGET || !talk_try_fit(t, wanted, &smallest, &largest) ||
        largest == 0 || smallest == 0) {
        talk_report(t, e);
        return;
    }
    if (budget == 0)
        budget = talk_plan(t)->budget_bytes;
    talk_error(t, "this needs more than the budget of %s: /memory %s%s or /ctx %u would fit",
               units_size(has, sizeof has, budget), units_option(fits, sizeof fits, smallest),
               fitting_kv(t, wanted, kv, sizeof kv), largest);
}

static struct sheet *proposal_sheet(struct talk *t, const struct mw_chat_options *wanted,
                                    const char *what)
{
    char title[90];
    struct sheet *s;
    struct proposal *p = malloc(sizeof *p);

    snprintf(title, sizeof title, "Change: %s", what);
    s = p == NULL ? NULL : sheet_new(title, "Enter: apply   Esc: close");
    if (s == NULL) {
        free(p);
        talk_error(t, "not enough memory to show the change");
        return NULL;
    }
    *p = (struct proposal){ .t = t, .options = *wanted };
    snprintf(p->what, sizeof p->what, "%s", what);
    sheet_on_enter(s, apply, free, p);
    snprintf(title, sizeof title, "%s was not applied", what);
    sheet_on_drop(s, title);
    return s;
}

void change_propose(struct talk *t, const struct mw_chat_options *wanted, const char *what,
                    const char *note)
{
    const struct mw_options *b = &wanted->engine;
    char has[24], holds[24];
    struct err e = ERR_INIT;
    struct plan then;
    struct sheet *s;
    char line[160];

    if (talk_state(t) == TALK_SWITCHING) {
        talk_error(t, "another model is being opened: wait until it is loaded");
        return;
    }
    if (talk_try_plan(t, b, &then, &e) != 0) {
        say_why_not(t, b, &e);
        return;
    }
    talk_predict_again(t); /* both columns from the same limits */
    if (talk_tokens(t) > then.n_ctx && !b->ctx_shift) {
        talk_error(t,
                   "the conversation has %s tokens, more than a context of %s holds: take some "
                   "back (/undo, /rewind) or let the oldest turns be dropped (/shift on) first",
                   numbers_count(has, sizeof has, talk_tokens(t)),
                   numbers_count(holds, sizeof holds, then.n_ctx));
        return;
    }
    s = proposal_sheet(t, wanted, what);
    if (s == NULL)
        return;
    if (note[0] != '\0')
        sheet_text(s, ROLE_WARN, note);
    option_rows(t, s, b, &then);
    sheet_line(s, ROLE_TEXT, "%s", "");
    say_when(t, s, wanted);
    say_what_is_kept(t, s, b, &then);
    if (talk_info(t)->n_ctx_train > 0 && then.n_ctx > talk_info(t)->n_ctx_train) {
        snprintf(line, sizeof line,
                 "The model was trained for %s tokens, fewer than this context.",
                 numbers_count(has, sizeof has, talk_info(t)->n_ctx_train));
        sheet_text(s, ROLE_WARN, line);
    }
    if (b->io == MW_IO_MMAP) {
        snprintf(line, sizeof line, "With io mmap %s.", mw_mmap_notice());
        sheet_text(s, ROLE_WARN, line);
    }
    sheet_line(s, ROLE_TEXT, "%s", "");
    memory_rows(s, talk_plan(t), &then);
    talk_show(t, s);
}

bool change_price(struct talk *t, const struct mw_chat_options *wanted, char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    struct plan then;
    char pinned[24], rate[24], time[32], count[24], speed[40] = "", again[64] = "";
    struct mw_options o = wanted->engine;
    struct mw_diagnosis d;
    struct mw_cost cost = { 0 };

    if (talk_try_plan(t, &wanted->engine, &then, &ignored) != 0)
        return false;
    difference(pinned, sizeof pinned, talk_plan(t)->pinned_bytes, then.pinned_bytes);
    o.memory_bytes = then.budget_bytes;
    if (talk_diagnose(t, &o, &d))
        snprintf(speed, sizeof speed, ", about %s tok/s",
                 numbers_rough(rate, sizeof rate, d.tps));
    if (!mw_keeps_kv(talk_model(t), &talk_options(t)->engine, &wanted->engine)) {
        talk_cost_again(t, &then, &cost);
        snprintf(again, sizeof again, "; %s tokens again: %s",
                 numbers_count(count, sizeof count, cost.n_again),
                 numbers_time(time, sizeof time, cost.seconds));
    }
    snprintf(buf, n, "%s tokens, %s%s%s%s", numbers_count(count, sizeof count, then.n_ctx),
             pinned[0] != '\0' ? pinned : "as many",
             pinned[0] != '\0' ? " of pinned weights" : " weights pinned", speed, again);
    return true;
}
