/*
 * rates.h - what follows from a sample: speeds and shares, computed in one place.
 *
 * The dashboard, the lines of the recorder, the progress line and the verdict all take
 * their rates from here, so they cannot differ.  A rate that was not measured is negative.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_RATES_H
#define MEMWALL_ENGINE_TELEMETRY_RATES_H

#include "engine/telemetry/sample.h"

#define MW_RATE_UNKNOWN (-1.0)

struct mw_rates {
    double decode_last;  /* tokens a second, over the newest tokens of the last 2 seconds,
                            at least two of them */
    double decode_mean;  /* of the answer, first token to last */
    double prefill;      /* prompt tokens a second */
    double first_s;      /* from the question to the first token */
    double read_bytes_s; /* from disk, during the last passes */
    double wall_s;       /* of a token, mean over the same passes */
    double stall_share;  /* of that: waited for the disk */
    double attention_share;
    double overlap;        /* share of reading or computing, whichever is shorter, that went on
                              beside the other; from the measured disk limit */
    double read_per_token; /* bytes streamed for a token, mean over the same passes */
    uint32_t n_pass;       /* how many passes those are; 0: the last one, of a prompt */
};

void mw_rates(const struct mw_sample *s, struct mw_rates *out);

#endif
