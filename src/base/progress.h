/*
 * progress.h - one line on standard error that shows the progress.
 *
 * It is redrawn with a carriage return and blanks only, so that it works on every terminal.
 * Nothing is written if standard error is not a terminal, or with --quiet.  The line is cleared
 * before an answer is printed to a terminal.
 */
#ifndef MEMWALL_SRC_BASE_PROGRESS_H
#define MEMWALL_SRC_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/memwall.h"

#define PROGRESS_EVERY_MS 500

struct progress {
    bool is_on;
    bool is_about;     /* totals are estimates, marked with ~ */
    bool is_drawn;     /* the line is not empty */
    uint64_t drawn_ns; /* time of the last drawing */
    int width;         /* columns of the last text */
    uint64_t from_ns;  /* start of the count */
    uint64_t n_from;   /* items counted before from_ns */
};

void progress_open(struct progress *p, bool quiet);

/* Is it time to draw again? */
bool progress_is_due(const struct progress *p);

void progress_text(struct progress *p, const char *text);

/* Draw "prompt  45 % of 2140 tokens, 12.1 tok/s, about 1:38 left".  With total 0 (unknown),
 * only the count is shown. */
void progress_count(struct progress *p, const char *what, const char *unit, uint64_t n,
                    uint64_t total);

/* The same for bytes: "fetching  45 % of 3.18 GiB, 31.2 MiB/s, about 1:38 left". */
void progress_bytes(struct progress *p, const char *what, uint64_t n, uint64_t total);

/* Restart the rate: count from n on. */
void progress_restart(struct progress *p, uint64_t n);

/* Draw "31 tokens, 2.1 tok/s, 1.48 GiB of 1.50 GiB, disk-bound (71 %)". */
void progress_sample(struct progress *p, const struct mw_sample *s, bool is_thinking);

/* Clear the line. */
void progress_clear(struct progress *p);

#endif
