/*
 * page_record.h - record a short run of a model for the curves of a report.
 *
 * A prompt of arbitrary tokens is evaluated, then tokens are decoded one after the other, for a
 * limited time.  Each of them writes a line with all figures, so that the map of layers has a
 * column for each pass.  No text is made.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_RECORD_H
#define MEMWALL_SRC_REPORT_PAGE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/memwall.h"

struct page_record {
    uint32_t n_prompt, n_token;
    double seconds; /* of decoding; at least 3 tokens are decoded */
    /* Called after the prompt and after each token: tokens decoded so far. */
    void (*token)(void *ctx, uint32_t n);
    FILE *to; /* the recording; the caller checks it for errors */
    const _Atomic bool *cancelled;
    /* Called with the session when it is open, and with NULL before it is closed. */
    void (*use)(void *ctx, struct mw_session *s);
    void *ctx;
};

/* Run m with the options.  -1 with *e; the recording then has the part that was reached. */
int page_record(struct mw_model *m, const struct mw_options *o, const struct page_record *how,
                struct err *e);

#endif
