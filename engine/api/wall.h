/*
 * wall.h - the wall: predicted tokens per second over the budget and over the context, and the
 * settings that were tried.
 *
 *     tok/s │            .-----        every point is a diagnosis (mw_diagnose), so the curve
 *           │       @.--'              goes through what the newest tokens measured, and a
 *           │  o.--'                   change sheet shows the same figure
 *           └──────────────────
 *              budget
 */
#ifndef MEMWALL_ENGINE_API_WALL_H
#define MEMWALL_ENGINE_API_WALL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/limits/tried.h"

enum mw_wall_axis { MW_WALL_BUDGET, MW_WALL_CTX, MW_WALL_AXES };

#define MW_WALL_POINTS 56

struct mw_wall_point {
    uint64_t at;     /* bytes, or tokens */
    double tps;      /* at this place of the conversation; 0: it does not fit, or is unknown */
    double full_tps; /* with a full context; 0: unknown, and for budgets */
    uint64_t kv_bytes; /* keys and values of this context in the plan; 0: unknown, and for budgets */
};

struct mw_wall_mark {
    uint64_t at[MW_WALL_AXES];
    double tps;
    bool is_session;            /* measured in this run of the program */
    bool is_same[MW_WALL_AXES]; /* nothing but this axis differs from the settings in use */
};

struct mw_wall {
    struct mw_wall_point point[MW_WALL_AXES][MW_WALL_POINTS]; /* in order of `at` */
    uint32_t n[MW_WALL_AXES];
    uint32_t n_done;             /* points of all axes that are predicted */
    uint64_t here[MW_WALL_AXES]; /* the settings in use; each is a point */
    bool is_measured;            /* the point in use */
    bool is_doubtful;
    uint64_t nothing_bytes; /* budget from which on nothing is read for each token; 0: none */
    struct mw_wall_mark mark[MW_TRIED_MOST];
    uint32_t n_mark;
};

struct mw_model;
struct mw_options;
struct mw_sample;

/* Choose the points around the settings of the sample s, which a session of m with the options
 * *o has taken.  False: there is nothing to choose. */
bool mw_wall_begin(struct mw_wall *w, struct mw_model *m, const struct mw_options *o,
                   const struct mw_sample *s);
/* Predict the next points, n at most: each makes some dozen plans.  *o and *s are the same.
 * Returns whether there are more. */
bool mw_wall_step(struct mw_wall *w, struct mw_model *m, const struct mw_options *o,
                  const struct mw_sample *s, uint32_t n);
/* The tried settings of m as marks, with the settings in use as *o. */
void mw_wall_marks(struct mw_wall *w, const struct mw_model *m, const struct mw_options *o);

/* Returns the index of the point nearest to a value; -1: there is none. */
int mw_wall_nearest(const struct mw_wall *w, enum mw_wall_axis axis, uint64_t at);

#endif
