/*
 * depth.h - how many tokens to draft for the next pass.
 *
 * A pass over d drafts costs more than one over none, and yields 1 + a + a^2 + … + a^d tokens
 * if each draft is accepted with the probability a.  The depth with the most tokens per second
 * is chosen, by these measured values:
 *
 *     narrow_s   a pass for one token
 *     column     what each drafted token adds to it: next to nothing while the disk is the
 *                limit, much if all weights are in memory and arithmetic is the limit
 *     draft      what it takes to draft a token, for each quality of drafts
 *     a          for each quality of drafts; a long match is right more often than a short one
 *
 * A pass or a draft may be slow for another reason: memory is touched first, the disk is busy.
 * So a cost moves towards the median of its last three measurements, and is the smallest one
 * until there are three.
 *
 * The depth falls to 0 where drafting loses.  If fewer than three measurements say so, one token
 * is soon drafted again.  Otherwise the estimate for this quality returns slowly to where it
 * began, and the costs fall as slowly, so that drafts are tried again one day.
 */
#ifndef MEMWALL_ENGINE_DRAFT_DEPTH_H
#define MEMWALL_ENGINE_DRAFT_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#define DRAFT_MOST    15 /* tokens for one pass, so that it has at most 16 columns */
/* Qualities of drafts: 0 to 3 for matches in earlier text, and one for those of a head. */
#define DEPTH_CLASSES 5
#define DEPTH_HEAD    4

#define COST_MEASURED 3 /* measurements of a cost whose median counts */

struct depth_cost {
    double s;
    double measured[COST_MEASURED]; /* the newest ones */
    uint32_t n;                     /* how many there were */
};

struct depth {
    double narrow_s; /* 0: not measured yet */
    struct depth_cost column; /* until it was measured, few are drafted */
    struct depth_cost draft[DEPTH_CLASSES];
    double accept[DEPTH_CLASSES];
    uint32_t n_idle; /* choices of 0 one after the other */
};

/* Begin with estimates; nothing is measured. */
void depth_begin(struct depth *d);

/* Other weights are in memory now: forget what passes cost. */
void depth_forget_costs(struct depth *d);

/* A pass over one sampled token and n_draft drafted ones took this long. */
void depth_pass(struct depth *d, uint32_t n_draft, double seconds);

/* Drafting n tokens of this quality took this long. */
void depth_drafted(struct depth *d, uint32_t quality, uint32_t n, double seconds);

/* Drafts of this quality were verified: n_accepted were what was sampled, and one was not, if
 * is_rejected. */
void depth_result(struct depth *d, uint32_t quality, uint32_t n_accepted, bool is_rejected);

/* Returns how many of at most `most` tokens of this quality to draft.  0 until a pass over one
 * token was measured. */
uint32_t depth_choose(struct depth *d, uint32_t quality, uint32_t most);

#endif
