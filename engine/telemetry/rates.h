/*
 * rates.h - compute speeds and shares from a sample.
 *
 * The dashboard, the recorder, the progress line and the verdict all use these rates, so they
 * cannot differ.  A rate that was not measured is negative.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_RATES_H
#define MEMWALL_ENGINE_TELEMETRY_RATES_H

#include <stdbool.h>

#include "engine/telemetry/sample.h"

#define MW_RATE_UNKNOWN (-1.0)

struct mw_rates {
    double decode_last;  /* tokens per second of the newest passes, at most 16: 1 / token_s */
    double decode_mean;  /* the same from the first to the last token of the answer */
    double prefill;      /* prompt tokens per second */
    double first_s;      /* from the question to the first token */
    double read_bytes_s; /* bytes per second from disk in the last passes */
    double wall_s;       /* mean time of these passes */
    double token_s;      /* and with the sampler's: what a token takes */
    double stall_share;  /* share of wall_s spent waiting for the disk */
    double attention_share;
    double wait_share;     /* share of wall_s in which a thread waited for a processor */
    double overlap;        /* reading and computing at the same time, as a share of the shorter
                              of the two; based on the measured disk limit */
    double read_per_token; /* mean bytes streamed per token in these passes */
    double loading;     /* share of the pinned weights that are read ahead of the first token */
    double expert_hits; /* share of the chosen experts that were in memory */
    double expert_bytes; /* mean bytes of experts read per token */
    uint32_t n_token; /* tokens of these passes; 0 for the last pass of a prompt alone */
    double passes_per_token; /* below 1 with accepted drafts */
};

/* Gain and cost of the drafts of an answer. */
struct mw_draft_rates {
    double tokens_per_pass;
    uint32_t depth;                    /* the most drafts of a pass; 0: nothing was drafted */
    double accepted_at[MW_DRAFT_MOST]; /* share of the drafts at this place of a pass, from 0 */
    uint32_t usual; /* drafts of the most common pass that had some */
    /* Time of a pass over i drafts, as a multiple of one over none. */
    double cost[MW_DRAFT_MOST + 1];
    double usual_cost; /* that of `usual`; unknown if either mean is of few passes, which may be
                          slow for another reason */
    double drafter_share; /* of the time from the first token to the last */
};

/* d: of an answer that took decode_ns from its first token to its last. */
void mw_draft_rates(const struct mw_drafts *d, uint64_t decode_ns, struct mw_draft_rates *out);

/* Whether a token was an accepted draft, whose time is in the pass of a token before it. */
bool mw_token_is_draft(const struct mw_token *k);

void mw_rates(const struct mw_sample *s, struct mw_rates *out);

/*
 * Returns the memory to compare with the budget: the charge of the control group, or the memory of
 * the process if other processes share the group.  Pages of mapped files are not part of the
 * budget, so they are left out; then it is not the charge.  is_charge may be NULL.
 */
struct mw_os_value mw_memory(const struct mw_sample *s, bool *is_charge);

#endif
