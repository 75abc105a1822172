/*
 * diagnose.h - what limits answers, and what would make them faster.
 *
 * wall.h has the same answer for all budgets and contexts, as curves.
 */
#ifndef MEMWALL_ENGINE_API_DIAGNOSE_H
#define MEMWALL_ENGINE_API_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/api/options.h"
#include "engine/telemetry/shares.h"

struct mw_model;

/*
 * The one answer to both questions: every command, panel and report prints this.  Measured
 * values come first, and predictions begin at them.
 */
struct mw_diagnosis {
    bool is_measured; /* by the newest tokens; otherwise predicted */
    bool is_prompt;   /* measured while a prompt is evaluated */
    bool is_fast;     /* people cannot read faster: there is no advice */
    bool is_doubtful; /* the limits are, and no token was measured: there is no advice */
    double tps;       /* tokens per second of answers; 0: unknown */
    double full_tps;  /* predicted for the same settings with a full context; 0: unknown */
    double assumed;   /* share of the drafts that a predicted tps assumes to be right; 0: none */
    enum mw_binds binds;
    double share;          /* of the time of a token that the bound takes */
    struct mw_shares part; /* how this time divides; all 0: unknown */
    uint64_t read_bytes;   /* predicted: what a pass reads from the disk: weights, */
    bool reads_kv;         /* and keys and values */
    /* "more_budget", "less_budget" (of budget_bytes), "smaller_kv" (q8_0), "direct_io",
     * "self_drafts", "smaller_type", "shorter_context", "rows_only", "other_programs";
     * "": none */
    char advice[24];
    uint64_t budget_bytes; /* the proposed one */
    double to_tps;         /* with the proposal; 0: not predicted */
    double acceptance;     /* of "self_drafts": the share of right drafts that to_tps assumes */
    char held_back[96];    /* the limit that allows no larger budget: "MemAvailable"; or "" */
};

/*
 * Diagnose answers of m with options o.  s is a sample of a session of m, whose verdict
 * mw_watch_complete() filled in: if it has these options, its tokens are the measurement, and
 * else they are where the prediction begins.  NULL: predict for a full context.
 * *out is the diagnosis before, or zeroed: a proposed size that changes little stays.
 * A proposal gains 10 % or more, and no budget is proposed that this machine cannot give now.
 */
int mw_diagnose(struct mw_model *m, const struct mw_options *o, const struct mw_sample *s,
                struct mw_diagnosis *out, struct err *e);

/* Write a diagnosis to the verdict and the predictions of a sample, and read it from there, as
 * it is recorded. */
void mw_diagnosis_to_sample(const struct mw_diagnosis *d, struct mw_sample *s);
void mw_diagnosis_of_sample(const struct mw_sample *s, struct mw_diagnosis *d);

/* "disk-bound: 68 % of each token waits; --memory 1152M for ~3.6 tok/s"; "" if nothing is known.
 * before is what comes before a setting: "--", or "F10: /".  All return buf. */
#define MW_DIAGNOSIS_TEXT 256
char *mw_diagnosis_text(const struct mw_diagnosis *d, const char *before, char *buf, size_t n);
/* The advice alone, and the reason why there is none. */
char *mw_diagnosis_advice(const struct mw_diagnosis *d, const char *before, char *buf, size_t n);
char *mw_diagnosis_why_not(const struct mw_diagnosis *d, char *buf, size_t n);
/* Are answers so fast that nobody waits, whatever their bound is? */
bool mw_diagnosis_needs_nothing(const struct mw_diagnosis *d);
/* Returns the name of the bound, "disk-bound", or "fast" if nothing is worth a change. */
const char *mw_diagnosis_label(const struct mw_diagnosis *d);
/* The same where space is short: "disk". */
const char *mw_diagnosis_word(const struct mw_diagnosis *d);
/* The setting alone: "memory 1152M", "kv q8_0"; "" if the advice is not one. */
char *mw_diagnosis_command(const struct mw_diagnosis *d, char *buf, size_t n);

#endif
