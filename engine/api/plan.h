/*
 * plan.h - ask what a session would take and how fast it would be, before there is one.
 */
#ifndef MEMWALL_ENGINE_API_PLAN_H
#define MEMWALL_ENGINE_API_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/err.h"
#include "engine/api/options.h"
#include "engine/plan/table.h"
#include "engine/plan/times.h"

/*
 * Plan the memory of a session with these options and predict its speed.  Allocates nothing. If
 * the smallest plan exceeds the budget, fails with ERR_BUDGET and stores that plan in *out.
 */
int mw_plan(struct mw_model *m, const struct mw_options *o, struct plan *out, struct err *e);

/* Make the plan and predict how a run is after n_token tokens (plan/times.h). */
int mw_plan_outlook(struct mw_model *m, const struct mw_options *o, const struct plan_run *run,
                    struct plan_outlook *out, struct err *e);

/* Predict the tokens per second of answers if this share of the drafts of a model or a draft head
 * is accepted, with at most as many drafts for a pass as the options say.  0: unknown, or neither
 * drafts. */
int mw_plan_drafted(struct mw_model *m, const struct mw_options *o, double acceptance,
                    double *tokens_per_s, struct err *e);

/* Write why nothing of what these options name drafts in the plan *p, in one line: "the draft head
 * does not draft: the budget has no memory for that".  "": it drafts, or nothing could.  m: NULL if
 * the model is not known.  Returns buf. */
#define MW_NO_DRAFTER_TEXT 320
char *mw_plan_no_drafter(const struct mw_model *m, const struct mw_options *o,
                         const struct plan *p, char *buf, size_t n);

/* Make the plan of mw_plan() and write every formula of it with its numbers to a stream: each
 * line is "NAME = FORMULA = VALUE UNIT".  now_s: Unix time, for the age of the limits. */
int mw_plan_explain(struct mw_model *m, const struct mw_options *o, FILE *to, int64_t now_s,
                    struct err *e);

/* Find the smallest budget for the context of these options, and the largest context for their
 * budget; 0 if none fits.  Budget 0, which is chosen for the context, is as large as it may
 * become. */
int mw_plan_fit(struct mw_model *m, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx, struct err *e);

/* The budget from which on nothing is read for each token but rows of lookup tables: advice,
 * charts and sweeps end there.  0: there is none, or the model cannot run with these options. */
uint64_t mw_reads_nothing_budget(struct mw_model *m, const struct mw_options *o);

/* The budget that is chosen with these options on a machine where this much memory is free
 * (plan_default_budget() in plan/plan.h). */
uint64_t mw_default_budget(struct mw_model *m, const struct mw_options *o, uint64_t free_bytes);

/* Bytes of keys and values that one token adds to all layers with full attention, and to all
 * with a sliding window, for the types of these options. */
void mw_kv_token_bytes(const struct mw_model *m, const struct mw_options *o, uint64_t *global,
                       uint64_t *sliding);

/*
 * Maximum bytes of text that are kept for the context of these options: of one message, of
 * queued messages, of a conversation.  Longer text cannot fit the context.  The plan counts it
 * in the item "program".
 */
uint64_t mw_text_bytes(const struct mw_model *m, const struct mw_options *o);

/* The way in which weights are read, and the reason for it. */
struct mw_io_choice {
    const char *name; /* "direct", "buffered" or "mmap"; static */
    char reason[MW_REASON_MAX];
};
int mw_io_choose(const struct mw_model *m, const struct mw_options *o, struct mw_io_choice *out,
                 struct err *e);

#endif
