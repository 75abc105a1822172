/*
 * progress.h - one line on standard error that says how far the work is.
 *
 * Drawn over itself with a carriage return and blanks only, so that every terminal shows
 * it; nothing at all is written when standard error is no terminal or with --quiet.  While
 * the answer itself goes to a terminal the line stays away from it.
 */
#ifndef MEMWALL_SRC_PROGRESS_H
#define MEMWALL_SRC_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/memwall.h"

#define PROGRESS_EVERY_MS 500

struct progress {
    bool is_on;
    bool is_about;     /* totals are estimates, marked with ~ */
    bool is_drawn;     /* something stands on the line */
    uint64_t drawn_ns; /* when */
    int width;         /* columns that the last text took */
    uint64_t from_ns;  /* start of what is counted */
    uint64_t n_from;   /* counted before that */
};

void progress_open(struct progress *p, bool quiet);

/* Is it time to draw again? */
bool progress_is_due(const struct progress *p);

void progress_text(struct progress *p, const char *text);

/* "prompt  45 % of 2140 tokens, 12.1 tok/s, about 1:38 left": of any count.
 * total 0: not known, the count alone is shown. */
void progress_count(struct progress *p, const char *what, const char *unit, uint64_t n,
                    uint64_t total);

/* Forget the rate: counting begins again at n. */
void progress_restart(struct progress *p, uint64_t n);

/* "31 tokens, 2.1 tok/s, 1.48 GiB of 1.50 GiB, disk binds (71 %)". */
void progress_sample(struct progress *p, const struct mw_sample *s, bool is_thinking);

/* Take the line away. */
void progress_clear(struct progress *p);

#endif
