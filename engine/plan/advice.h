/*
 * advice.h - which budget, or which drafts, are worth proposing.  Arithmetic only.
 */
#ifndef MEMWALL_ENGINE_PLAN_ADVICE_H
#define MEMWALL_ENGINE_PLAN_ADVICE_H

#include "engine/plan/plan.h"
#include "engine/plan/speed.h"
#include "engine/plan/times.h"

/* A larger rate is worth a proposal if it is this much larger, and the smallest budget that
 * reaches this share of the best rate is proposed. */
#define ADVICE_GAIN   1.10
#define ADVICE_ENOUGH 0.95
/* People read about 5 tokens a second.  Six times that is fast enough to skim, too. */
#define ADVICE_READING_TPS 30.0

/* The seconds of the n_seen-th token of a conversation with the plan for *in, and with the drafts
 * that it assumes; 0: the plan is refused, or a limit is unknown.  *out gets the pass for it. */
double advice_token(const struct plan_input *in, uint32_t n_seen, struct plan_outlook *out);

/*
 * The shortest time that a larger budget is promised to give: a token without its stalls.  Reading
 * also slows the threads, but by how much is known too roughly for a promise.  Blocks that were
 * just read may come from the processor's cache, and pinned ones come from memory, so their
 * products take at least the time that memory needs; since its rate may be wrong, that takes away
 * at most half of the gain.
 */
double advice_least(const struct plan_input *in, const struct plan_time *now);

/* Returns the smallest budget, from that of *in up to `most`, that reaches ADVICE_ENOUGH of the
 * best rate of all these budgets at token n_seen.  A second proposal would then gain nothing.
 * Returns 0 if none is faster, or if the disk is not the bound. */
uint64_t advice_budget(const struct plan_input *in, uint32_t n_seen, uint64_t most);

/* How many times as fast answers are with the copies of *in that draft as without a drafter, if
 * *acceptance of their drafts are right.  0: none are made, or a limit is unknown. */
double advice_copies(const struct plan_input *in, double *acceptance);

/* Round a proposed budget up, in steps of 2 to 6 %.  From 1 GiB on, a step has the two or three
 * figures with which all panels write a budget, so that a command has the same ones. */
uint64_t advice_round_up(uint64_t bytes);
/* Returns the largest budget up to a limit that all panels write with these figures. */
uint64_t advice_within(uint64_t limit);

#endif
