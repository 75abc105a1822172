#include "config.h"

#include "ui/talk/change_sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/options/proposal.h"
#include "ui/text/sheet.h"

/* ---- lines ---- */

static void add_line(void *ctx, enum proposal_how how, enum ui_role role, const char *text)
{
    if (how == PROPOSAL_LINE)
        sheet_line(ctx, role, "%s", text);
    else if (how == PROPOSAL_MORE)
        sheet_more(ctx, role, "%s", text);
    else
        sheet_text(ctx, role, text);
}

void limits_line(const struct talk *t, struct sheet *s, uint64_t disk_rate)
{
    const struct proposal_out to = { add_line, s };
    struct plan_anchor anchor;
    struct mw_limits l;

    talk_limits(t, &l);
    talk_anchor(t, &anchor);
    proposal_limits(&l, &anchor, disk_rate, &to);
}

/* Rates are those at this place of the conversation. */
static void find_facts(struct talk *t, const struct mw_options *wanted, const struct plan *then,
                       struct proposal_facts *out)
{
    struct mw_options o = *wanted;

    *out = (struct proposal_facts){ .m = talk_model(t), .a = &talk_options(t)->engine,
                                    .b = wanted, .now = talk_plan(t), .then = then };
    o.memory_bytes = then->budget_bytes;
    talk_diagnose_now(t, &out->answers_now);
    talk_diagnose(t, &o, &out->answers_then);
    talk_limits(t, &out->limits);
    talk_anchor(t, &out->anchor);
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
struct pending {
    struct talk *t;
    struct mw_chat_options options;
    char what[60];
};

static void apply(void *ctx, long row)
{
    const struct pending *p = ctx;

    (void)row;
    talk_change(p->t, &p->options, THEN_ANNOUNCE, p->what);
}

static bool fit(void *ctx, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx)
{
    return talk_try_fit(ctx, o, smallest_budget, largest_ctx);
}

static bool fits(void *ctx, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct plan plan;

    return talk_try_plan(ctx, o, &plan, &ignored) == 0;
}

static void say_why_not(struct talk *t, const struct mw_options *wanted, const struct err *e)
{
    const struct proposal_fit ask = { fit, fits, t };
    uint64_t budget = wanted->memory_bytes != 0 ? wanted->memory_bytes
                                                : talk_plan(t)->budget_bytes;
    char text[200];

    if (e->code == ERR_BUDGET && proposal_why_not(wanted, budget, &ask, text, sizeof text))
        talk_error(t, "%s", text);
    else
        talk_report(t, e);
}

static struct sheet *proposal_sheet(struct talk *t, const struct mw_chat_options *wanted,
                                    const char *what)
{
    char title[90];
    struct sheet *s;
    struct pending *p = malloc(sizeof *p);

    snprintf(title, sizeof title, "Change: %s", what);
    s = p == NULL ? NULL : sheet_new(title, "Enter: apply   Esc: close");
    if (s == NULL) {
        free(p);
        talk_error(t, "not enough memory to show the change");
        return NULL;
    }
    *p = (struct pending){ .t = t, .options = *wanted };
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
    struct proposal_facts facts;
    struct proposal_out to = { .add = add_line };
    struct plan then;
    struct sheet *s;

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
    to.ctx = s = proposal_sheet(t, wanted, what);
    if (s == NULL)
        return;
    if (note[0] != '\0')
        sheet_text(s, ROLE_WARN, note);
    find_facts(t, b, &then, &facts);
    proposal_settings(&facts, &to);
    sheet_gap(s);
    say_when(t, s, wanted);
    say_what_is_kept(t, s, b, &then);
    proposal_warnings(&facts, talk_info(t)->n_ctx_train, &to);
    sheet_gap(s);
    proposal_memory(&facts, &to);
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
    proposal_difference(pinned, sizeof pinned, talk_plan(t)->pinned_bytes, then.pinned_bytes);
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
