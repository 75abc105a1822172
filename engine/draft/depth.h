/*
 * depth.h - how many tokens to draft for the next pass.
 *
 * A pass over d drafts costs more than one over none, and yields 1 + a + a^2 + … + a^d tokens
 * if each draft is accepted with the probability a.  The depth with the most tokens per second
 * is chosen, by these measured values:
 *
 *     narrow_s   a pass for one token; not the first one, which may read weights that stay in
 *                memory from then on
 *     column     what each drafted token adds to it: next to nothing while the disk is the
 *                limit, much if all weights are in memory and arithmetic is the limit
 *     draft      what it takes to draft a token, for each quality of drafts
 *     a          for each quality of drafts; a long match is right more often than a short one
 *
 * A pass or a draft may be slow for another reason: memory is touched first, the disk is busy.
 * So a cost moves towards the median of its last three measurements, and is the smallest one
 * until there are three.  A first measurement counts as one pass for each draft at most.  So a
 * drafter that takes several passes for a draft makes two drafts before it stops, and the sums
 * below count the first one as a single pass.
 *
 * A pass for one token that was measured as too long makes drafts look cheap, and while there are
 * drafts, none is measured.  So there is one now and then where drafts gain little.
 *
 * The depth falls to 0 where drafting loses.  If fewer than three measurements say so, one token
 * is soon drafted again, while there is a stake (below).  Otherwise the estimate for this quality
 * returns slowly to where it began, and the costs fall as slowly, so that drafts are tried again
 * one day.
 *
 * Estimates may be wrong, so there is a stake besides: what drafting may lose yet, in tokens that
 * the session would have without the drafter.  Each pass takes its costs from the stake and gives
 * its tokens to it:
 *
 *     stake += 1 + accepted - (1 + cost / narrow_s) / share + DEPTH_SHARE
 *     cost   = d * (column + draft) + follow
 *
 * follow is what the drafter takes to evaluate the pass before, drafts or not: a model that drafts
 * little, and a head with keys and values of its own.  Without a stake it does not.
 *
 * share is the time of a token without the drafter, whose memory then has pinned weights, for
 * each narrow_s.  It is 1 for a drafter that takes next to no memory.  No more is drafted than
 * the stake pays if all drafts are wrong.  A drafter with a share below 1 is to be closed once
 * the stake just pays for that: the next pass still reads as much as with the drafter, which
 * loses 1 / share - 1 tokens.  So the first 100 tokens lose DEPTH_STAKE + 100 * DEPTH_SHARE = 2.6
 * tokens, or less than 3, since the last pass may take more than is left.  Gains may be lost
 * again, up to DEPTH_BANK, also in later answers: bad luck would end nearly all drafters of a
 * long session otherwise.
 *
 * Bad luck still closes some that would gain, and the next text may be another one.  So a closed
 * drafter is opened again, with a new stake, at the beginning of the first answer after a gap of
 *
 *     DEPTH_GAP * (DEPTH_STAKE + price) * 2^(losses - 1)    tokens without it
 *
 * where losses counts how often it was closed since it last gained DEPTH_BANK, and price is what
 * opening takes, in tokens: a pass that drafts nothing, reading weights and text again, and
 * making copies of weights, as long as that took before.  An attempt loses its price and its
 * stake.  All attempts after the first one together lose at most 1 / DEPTH_GAP of the tokens of
 * the gaps before them, so a session loses at most
 *
 *     DEPTH_STAKE + DEPTH_SHARE * tokens with the drafter + 1 / DEPTH_GAP * tokens without it
 *
 * which is less than 3 % from 100 tokens on, and next to nothing in a long session, because gaps
 * double.
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

#define DEPTH_STAKE 2.13  /* tokens, at the beginning */
#define DEPTH_BANK  10.0  /* tokens at most, by what drafts have gained */
#define DEPTH_SHARE 0.005 /* of a token, that a pass adds */
#define DEPTH_GAP   100   /* tokens without a closed drafter, for each that it may lose next */

struct depth_cost {
    double s;
    double measured[COST_MEASURED]; /* the newest ones */
    uint32_t n;                     /* how many there were */
};

struct depth {
    double narrow_s; /* 0: not measured yet */
    bool is_warm;    /* there was a pass with these weights in memory */
    struct depth_cost column; /* until both were measured, `trial` are drafted */
    struct depth_cost draft[DEPTH_CLASSES];
    double accept[DEPTH_CLASSES];
    uint32_t n_idle;    /* choices of 0 one after the other */
    uint32_t n_wide;    /* passes over drafts one after the other */
    uint32_t wide_most; /* of them, where drafts gain little */
    double share;       /* set by the session */
    uint32_t trial;     /* set by the session: more than 1 where the plan predicts a gain */
    double stake;       /* in tokens */
    bool has_gained;    /* the stake was DEPTH_BANK once */
};

/* A drafter that was closed. */
struct depth_gap {
    uint32_t n_lost;  /* how often, since it gained */
    uint64_t n_token; /* that were evaluated without it */
};

/* Begin with estimates; nothing is measured. */
void depth_begin(struct depth *d);

/* Other weights are in memory now: forget what passes cost. */
void depth_forget_costs(struct depth *d);

/* Other settings were chosen: whatever was lost, drafts are tried again. */
void depth_try_again(struct depth *d);

/* The budget has changed a little, and passes are predicted to take `times` as long. */
void depth_scale(struct depth *d, double times);

/* A pass over one sampled token and n_draft drafted ones took this long. */
void depth_pass(struct depth *d, uint32_t n_draft, double seconds);

/* Drafting n tokens of this quality took this long. */
void depth_drafted(struct depth *d, uint32_t quality, uint32_t n, double seconds);

/* The drafter took so long to evaluate the text that drafts would follow. */
void depth_followed(struct depth *d, double seconds);

/* Drafts of this quality were verified: n_accepted were what was sampled, and one was not, if
 * is_rejected. */
void depth_result(struct depth *d, uint32_t quality, uint32_t n_accepted, bool is_rejected);

/* Returns how many of at most `most` tokens of this quality to draft.  0 until a pass over one
 * token was measured. */
uint32_t depth_choose(struct depth *d, uint32_t quality, uint32_t most);

/* Whether the drafter, which has a share below 1, is to be closed. */
bool depth_is_lost(const struct depth *d);

/* Returns what the first pass with other weights in memory loses at this share, in tokens. */
double depth_moving(double share);

/* The drafter of *d was closed. */
void depth_gap_begin(struct depth_gap *g, const struct depth *d);

/* Whether it may be opened again at this price, in tokens. */
bool depth_gap_is_over(const struct depth_gap *g, double price);

#endif
