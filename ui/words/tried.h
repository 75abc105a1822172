/*
 * tried.h - the settings with which a model answered, as a table.
 *
 *       budget context kv        tok/s   gain wait tokens     peak
 *     >  600 MiB    4096 f16        2.05      - 68 %     70  626 MiB just now
 *     * 1.13 GiB    4096 f16        3.67  +79 % 41 %    112 1.15 GiB 3 min ago
 *
 * With two more columns for a mark, a row fits a sheet on a screen of 80 columns.
 */
#ifndef MEMWALL_UI_WORDS_TRIED_H
#define MEMWALL_UI_WORDS_TRIED_H

#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/* Everything that the rows of a table have in common. */
struct tried_table {
    const struct mw_tried *slowest; /* NULL: no row */
    bool has_threads;               /* they differ */
    bool has_io;                    /* some rows do not read in the usual way */
    int64_t now_s;
};

/* The records of list[n] stay the caller's. */
void tried_table(struct tried_table *out, const struct mw_tried *list, size_t n, int64_t now_s);

#define TRIED_LINE 160
const char *tried_heading(void);
/* Both return buf. */
char *tried_row(char *buf, size_t n, const struct tried_table *table, const struct mw_tried *t);
/* "budget 600 MiB, context 4096, kv q8_0" */
char *tried_settings(char *buf, size_t n, const struct tried_table *table,
                     const struct mw_tried *t);

/* The rules of a table, in two sentences. */
#define TRIED_NOTE                                                                             \
    "tok/s is the mean of the newest answer with these settings, of 8 tokens or more "         \
    "without drafts.",                                                                         \
        "The gain is against the slowest line; wait is the share of waiting for the disk."

#endif
