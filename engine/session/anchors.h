/*
 * anchors.h - what the tokens of a model measured, and the options of its session.
 *
 * The thread of the engine writes them while others plan with them, so they are copied under a
 * lock.
 */
#ifndef MEMWALL_ENGINE_SESSION_ANCHORS_H
#define MEMWALL_ENGINE_SESSION_ANCHORS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "engine/plan/input.h"

/* A text of options.  The options may be freed while another thread plans with a copy of them, so
 * their texts are kept as long as the model, each once. */
struct anchor_text {
    struct anchor_text *next;
    char text[];
};

struct anchor_box {
    pthread_mutex_t lock;
    struct plan_anchor now;
    struct mw_options in_use; /* resolved, of the newest session */
    bool is_used;
    struct anchor_text *texts;
};

/* Returns NULL without memory. */
struct anchor_box *anchors_new(void);
void anchors_free(struct anchor_box *b); /* NULL is allowed */

/* Give *in, which was filled for these options, the factors of the anchor if it holds. */
void anchors_apply(struct mw_model *m, const struct mw_options *o, struct plan_input *in);

/* Returns the seconds of a token of the anchor, or 0 without one.  *out gets the options that it
 * was measured with, besides those in *o, and *holds whether it holds for these. */
double anchors_measured(const struct mw_model *m, const struct mw_options *o,
                        struct mw_options *out, bool *holds);

/* The anchor as it counts now: other programs that took processors a while ago may be gone. */
struct plan_anchor anchors_now(const struct plan_anchor *a);

/* The options that the anchor was measured with, besides those in *o. */
struct mw_options anchors_options(const struct plan_anchor *a, const struct mw_options *o);

/* Give *in, for options o, the factors of an anchor that holds.  *then is the input for its own
 * options; disk_bytes_s is the measured rate of the disk. */
void anchors_correct(const struct plan_anchor *a, const struct plan_input *then,
                     double disk_bytes_s, const struct mw_options *o, struct plan_input *in);

/* Was the anchor measured with the kernels, I/O and `exact` of these options? */
bool anchors_hold(const struct plan_anchor *a, const struct mw_options *o);

/* The options of the newest session of m; false: there was none. */
bool anchors_in_use(const struct mw_model *m, struct mw_options *out);
void anchors_use(const struct mw_model *m, const struct mw_options *o);

/* mw_diagnose() with the options of the newest session; false if s is not of that one. */
bool anchors_diagnose(struct mw_model *m, const struct mw_sample *s, struct mw_diagnosis *d);

/*
 * Tokens of an answer, one pass each.  The first ones after a pause or a change are left out:
 * their passes read what will be pinned, or find the ring full.
 */
#define ANCHORS_KEPT    32 /* newest tokens whose mean counts */
#define ANCHORS_SKIPPED 2
#define ANCHORS_SHOWN   16 /* newest tokens of the rate on the screen: mw_rates() */

struct anchor_token {
    uint64_t token_ns; /* since the end of the pass before */
    uint64_t wall_ns, stall_ns, lookup_ns, attention_ns, wait_ns, bytes;
    uint64_t ran_ns; /* processor time of all threads */
};

struct anchor_tokens {
    struct anchor_token token[ANCHORS_KEPT]; /* token i is token[i % ANCHORS_KEPT] */
    uint32_t n;                              /* that count */
    uint32_t n_skipped;
    uint32_t n_seen; /* positions that the newest one saw */
    double crowding; /* now: pool_crowding() */
};

/* Begin again. */
void anchors_begin(struct anchor_tokens *t);
/* Add a token.  Returns whether it is time to take their mean. */
bool anchors_add(struct anchor_tokens *t, const struct anchor_token *token);
/* Let m remember the mean of the newest ones, at most `most` (up to ANCHORS_KEPT).  They ran
 * with options o, the plan p and its input *in without factors.  Allocates nothing. */
void anchors_take(const struct anchor_tokens *t, uint32_t most, struct mw_model *m,
                  const struct mw_options *o, const struct plan_input *in, const struct plan *p);

#endif
