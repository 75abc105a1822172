/*
 * expert_policy.h - estimates when an expert is used next, to choose what the cache keeps.
 *
 * The experts of a layer are used at most once per pass, and layers follow each other.  So the
 * expected time to the next use, in passes, is
 *
 *     distance to the layer (0 to 1)  +  (1 - q) / q      q: probability of a use in a pass
 *
 * and the expert with the longest expected time is evicted first.  q is estimated from two
 * shares of the tokens that chose the expert.  The weight of a token halves after a few hundred
 * tokens in the first share, and after a few in the second.  The first knows the experts that
 * are popular, the second those that the text needs now.  An expert that is seldom used is
 * evicted soon after it was read, so no other rule of admission is needed.  Between the chunks
 * of a prompt, which use nearly all experts, q is close to 1 and the distance decides, which is
 * the best order for a loop over everything.  After the last chunk come single tokens, so it
 * leaves the experts that those need.
 *
 * Hits in percent with an eighth and a half of all experts in memory (tests/bench/expert_sim,
 * 30 layers, 8 of 128 experts per token; `optimum` knows the future):
 *
 *              an eighth                            a half
 *   router     LRU    LFU   slow   this  optimum    LRU    LFU   slow   this  optimum
 *   uniform   12.1   12.1   12.3   12.2     43.1   47.8   49.6   50.0   49.9     80.6
 *   Zipf      36.6   54.2   54.2   53.1     64.7   77.9   83.3   83.3   82.3     91.4
 *   topics    36.3   31.8   36.2   44.2     64.3   77.3   73.8   75.4   77.0     91.1
 *   sticky    65.9   52.8   53.0   61.2     80.5   88.5   84.1   84.3   90.3     95.5
 *
 * `slow` is this without the second share.  LRU is better only where half of the experts stay
 * from token to token and the cache is small, and much worse where some are popular.
 */
#ifndef MEMWALL_ENGINE_STREAM_EXPERT_POLICY_H
#define MEMWALL_ENGINE_STREAM_EXPERT_POLICY_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/limits/limits.h"

struct expert_policy {
    uint32_t n_layer;
    uint32_t *first; /* [n_layer + 1] index of a layer's first expert */
    float *uses;     /* [first[n_layer]] weighted tokens that chose the expert */
    float *tokens;   /* [n_layer] weighted tokens */
    float *prior;    /* [n_layer] share of the experts that a token uses */
    float weight;    /* of a token now; grows, so that earlier ones count less */
    float *recent;   /* [first[n_layer]] share of the last few tokens, when it was last used */
    uint32_t *seen;  /* [first[n_layer]] the clock then */
    uint32_t clock;  /* tokens */
    float decay[64]; /* of recent, by age in tokens; 0 after that */
    uint32_t layer, n_token; /* of the pass that is computed */
    uint32_t n_next;         /* tokens of the next pass */
};

/* n_expert and n_used of each layer; n_expert 0: a dense layer.  Returns 0, or -1 with *e. */
int expert_policy_open(struct expert_policy *p, const uint32_t *n_expert,
                       const uint32_t *n_used, uint32_t n_layer, struct err *e);
void expert_policy_close(struct expert_policy *p); /* safe on a zeroed struct */
uint64_t expert_policy_bytes(uint32_t n_expert_all, uint32_t n_layer);

/* Passes after this one have n_token tokens; 1 at first. */
void expert_policy_expect(struct expert_policy *p, uint32_t n_token);

/* A pass of n_token tokens gets to this layer. */
void expert_policy_layer(struct expert_policy *p, uint32_t layer, uint32_t n_token);

/* n of those tokens chose this expert of the layer. */
void expert_policy_use(struct expert_policy *p, uint32_t expert, uint32_t n);

/* Expected passes until the expert is used, seen from the current layer. */
float expert_policy_wait(const struct expert_policy *p, uint32_t layer, uint32_t expert);

/* Share of recent tokens of the layer that chose the expert, relative to even use. */
float expert_policy_heat(const struct expert_policy *p, uint32_t layer, uint32_t expert);

/*
 * Take over which experts earlier sessions chose: use[first[n_layer]], each relative to the most
 * popular expert of its layer, from 0 to 255.  They count as EXPERT_SEED_TOKENS tokens before the
 * first one, so what this text needs soon counts more.  With 32, texts that have popular experts in
 * common gained half a percent more, and those that have none lost 2 %; with 8 they lose nothing
 * (tests/bench/expert_sim --start).
 */
#define EXPERT_SEED_TOKENS 8
void expert_policy_seed(struct expert_policy *p, const uint8_t *use);

/* Write what was chosen so far in the same form. */
void expert_policy_uses(const struct expert_policy *p, uint8_t *use);

/* Set *out to what the tokens so far have chosen, the last few hundred above all. */
void expert_policy_observed(const struct expert_policy *p, struct mw_expert_use *out);

#endif
