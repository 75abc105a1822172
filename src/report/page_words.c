/*
 * The summary of a report: what fits, what limits, and what to change first.
 *
 * Every sentence comes from a figure.  Advice is given only if the plan predicts that it helps.
 */
#include "config.h"

#include <string.h>

#include "engine/base/numbers.h"
#include "src/machine/limit_words.h"
#include "src/report/page.h"
#include "src/report/page_html.h"
#include "ui/words/markup.h"

struct text {
    char s[48];
};

static struct text size_of(uint64_t bytes)
{
    struct text t;

    units_size(t.s, sizeof t.s, bytes);
    return t;
}

static struct text rate_of(double tps)
{
    struct text t;

    numbers_measured(t.s, sizeof t.s, tps);
    return t;
}

/* A budget as --memory takes it, rounded up to MiB. */
static struct text option_of(uint64_t bytes)
{
    struct text t;
    char size[24];

    snprintf(t.s, sizeof t.s, "--memory %s", units_option(size, sizeof size, bytes));
    return t;
}

static void card(FILE *to, const char *name, const char *value)
{
    fputs("<div><dt>", to);
    markup_text(to, name);
    fputs("</dt><dd>", to);
    page_html_words(to, value);
    fputs("</dd></div>\n", to);
}

/* --- cards --- */

static void machine_cards(const struct page *p, FILE *to)
{
    char text[64];

    card(to, "memory", size_of(p->machine.memory_bytes).s);
    card(to, "available for a model", size_of(p->machine.budget_bytes).s);
    snprintf(text, sizeof text, "%d", p->machine.n_cpu);
    card(to, "processors", text);
}

bool page_decode(const struct page *p, double *measured, double *predicted)
{
    for (size_t i = 0; i < p->bench.n_point && p->plan != NULL; i++) {
        const struct point *point = &p->bench.point[i];

        if (point->budget_bytes != p->plan->plan.budget_bytes ||
            strcmp(p->bench.model.name, p->plan->info.name) != 0 ||
            strcmp(p->bench.model.type, p->plan->info.type) != 0)
            continue;
        *measured = point_median(point, METRIC_DECODE);
        *predicted = point->predicted.value[METRIC_DECODE];
        return *measured > 0;
    }
    return false;
}

static void model_cards(const struct page *p, FILE *to)
{
    const struct plan *plan = &p->plan->plan;
    double tps = plan->decode_tps, predicted = 0;
    bool is_measured = page_decode(p, &tps, &predicted);
    char text[96];

    card(to, "budget", size_of(plan->budget_bytes).s);
    if (!p->plan->fits) {
        card(to, "smallest budget", size_of(p->plan->smallest_budget).s);
        return;
    }
    if (tps > 0) {
        snprintf(text, sizeof text, "%s%s tok/s", is_measured ? "" : "~", rate_of(tps).s);
        card(to, is_measured ? "answers, measured" : "answers, predicted", text);
        card(to, "what limits answers", limit_words(p->plan->diagnosis.binds));
    }
    card(to, "read from disk for each token",
         plan->streamed_bytes > 0 ? size_of(plan->streamed_bytes).s : "nothing");
}

/* --- sentences --- */

static void machine_words(const struct page *p, FILE *to)
{
    page_html_text(
        to,
        "This machine has %s of memory, of which a model can use %s now (%s), and %d "
        "processor%s.",
        size_of(p->machine.memory_bytes).s, size_of(p->machine.budget_bytes).s,
        p->machine.budget_why, p->machine.n_cpu, p->machine.n_cpu == 1 ? "" : "s");
}

static void fit_words(const struct page *p, FILE *to)
{
    const struct page_plan *a = p->plan;
    const char *name = a->info.name[0] != '\0' ? a->info.name : a->info.arch;
    char ctx[24];

    if (!a->fits) {
        page_html_text(to,
                       "%s does not fit a budget of %s with a context of %s tokens: the "
                       "smallest budget for that is %s.",
                       name, size_of(a->plan.budget_bytes).s,
                       numbers_count(ctx, sizeof ctx, a->plan.n_ctx),
                       size_of(a->smallest_budget).s);
        return;
    }
    if (a->plan.streamed_bytes == 0)
        page_html_text(to,
                       "%s (%s) fits: with a budget of %s, all %s of weights that a token uses "
                       "stay in memory, and nothing is read from the disk between tokens.",
                       name, a->info.type, size_of(a->plan.budget_bytes).s,
                       size_of(a->info.hot_bytes).s);
    else
        page_html_text(
            to,
            "%s (%s) streams: a token uses %s of weights. A budget of %s keeps %s of "
            "them in memory, and each %s reads %s from the disk.",
            name, a->info.type, size_of(a->info.hot_bytes).s, size_of(a->plan.budget_bytes).s,
            size_of(a->plan.pinned_bytes < a->info.hot_bytes ? a->plan.pinned_bytes
                                                             : a->info.hot_bytes).s,
            a->plan.assumed > 0 ? "pass" : "token",
            size_of(a->plan.streamed_bytes).s);
}

static void speed_words(const struct page *p, FILE *to)
{
    const struct plan *plan = &p->plan->plan;
    double measured, predicted, at_end = p->plan->diagnosis.tps;
    char change[16], ctx[24];

    if (!p->plan->fits)
        return;
    if (page_decode(p, &measured, &predicted) && predicted > 0)
        page_html_text(to,
                       "Measured: answers come at %s tokens per second at the beginning of a "
                       "conversation, for which %s were predicted (%s).",
                       rate_of(measured).s, rate_of(predicted).s,
                       units_change(change, sizeof change, measured / predicted));
    if (at_end > 0)
        page_html_text(to,
                       "At the end of the context of %s tokens, answers are predicted to come at "
                       "about %s tokens per second. They are limited by %s.%s%s%s",
                       numbers_count(ctx, sizeof ctx, plan->n_ctx), rate_of(at_end).s,
                       limit_words(p->plan->diagnosis.binds),
                       plan->prefill_tps > 0 ? " Prompts are read at about " : "",
                       plan->prefill_tps > 0 ? rate_of(plan->prefill_tps).s : "",
                       plan->prefill_tps > 0 ? " tokens per second." : "");
    else
        page_html_text(to, "The speed is not predicted, since the machine was not measured.");
    for (size_t i = 0; i < p->bench.n_point; i++) {
        char why[DISTURBANCE_TEXT];

        if (point_disturbance(&p->bench.point[i], why, sizeof why)[0] != '\0') {
            page_html_text(to, "While it was measured, %s; the speed may be too low.", why);
            break;
        }
    }
    if (p->track != NULL && p->track->n_token > 1 && mw_run_is_mapped(&p->track->run))
        page_html_text(to, "In the recording, the kernel read mapped weights, so it is not known "
                           "how long tokens waited for the disk.");
    else if (p->track != NULL && p->track->n_token > 1)
        page_html_text(to,
                       "In the recording, tokens waited for the disk %.0f %% of their time.",
                       100 * track_stall_share(p->track));
}

static void doubt_words(const struct page *p, FILE *to)
{
    if (p->plan->plan.is_doubtful)
        page_html_text(to, "The limits are doubtful: " MW_DOUBT ". "
                           "Predictions can be off by more than usual; repeat the report on a "
                           "quiet machine.");
}

/* --- advice --- */

static void advice(FILE *to, const char *text)
{
    fputs("<p><strong>Change first:</strong> ", to);
    page_html_words(to, text);
    fputs("</p>\n", to);
}

static void advise(const struct page *p, FILE *to)
{
    const struct page_plan *a = p->plan;
    const struct mw_diagnosis *d = &a->diagnosis;
    char text[512], change[MW_DIAGNOSIS_TEXT];

    if (!a->fits) {
        snprintf(
            text, sizeof text, "the budget: %s is enough%s.", option_of(a->smallest_budget).s,
            a->smallest_budget <= p->machine.budget_bytes
                ? ", and this machine can give it"
                : ", but more than this machine can give now. A shorter context (--ctx) or "
                  "a smaller model needs less");
        advice(to, text);
        return;
    }
    if (!(d->tps > 0))
        return;
    if (mw_diagnosis_advice(d, "--", change, sizeof change)[0] == '\0') {
        mw_diagnosis_why_not(d, change, sizeof change);
        page_html_text(to, "Nothing to change: %s.", change);
    } else if (d->to_tps > 0) {
        snprintf(text, sizeof text, "%s instead of ~%s.", change, rate_of(d->tps).s);
        advice(to, text);
    } else {
        snprintf(text, sizeof text, "%s.", change);
        advice(to, text);
    }
}

void page_words(const struct page *p, FILE *to)
{
    if (p->plan != NULL) /* first, since the cards fill the screen of a phone */
        advise(p, to);
    fputs("<dl class=\"cards\">\n", to);
    machine_cards(p, to);
    if (p->plan != NULL)
        model_cards(p, to);
    fputs("</dl>\n", to);
    machine_words(p, to);
    if (p->plan == NULL)
        return;
    fit_words(p, to);
    speed_words(p, to);
    doubt_words(p, to);
}
