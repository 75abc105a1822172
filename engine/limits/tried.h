/*
 * tried.h - the settings with which a model answered, and what its tokens measured.
 *
 * A record is of one combination of settings.  A newer answer with the same settings replaces
 * it.  Lists have the newest record first and a fixed size.
 */
#ifndef MEMWALL_ENGINE_LIMITS_TRIED_H
#define MEMWALL_ENGINE_LIMITS_TRIED_H

#include <stdbool.h>
#include <stddef.h>

struct limits_line;

#define MW_TRIED_MOST   64 /* records of a model */
#define MW_TRIED_TOKENS 8  /* fewer tokens are not a measurement */

/* Plain numbers, so that they can be kept as a line of the store. */
struct mw_tried {
    /* The settings, resolved: enum mw_kv, enum mw_io, bool; chunk and disk_rate are 0 if they
     * were not chosen. */
    double memory_bytes, n_ctx, kv_k, kv_v, n_thread, io, chunk, disk_rate, exact;
    /* The newest answer with them, or its part, without passes that verify drafts. */
    double n_token;    /* tokens after its first one */
    double tps;        /* their mean */
    double wait_share; /* of their time, spent waiting for the disk */
    double peak_bytes; /* largest memory of an answer; 0: unknown */
    double measured_s; /* Unix time */
    /* Not kept: */
    bool is_session; /* of this run of the program */
};

/* The count of numbers in the line of a record, and how many of them are settings. */
#define TRIED_VALUES   14
#define TRIED_SETTINGS 9

bool mw_tried_same_settings(const struct mw_tried *a, const struct mw_tried *b);
/* Whether these numbers can be a record: a file may have any. */
bool mw_tried_is_plausible(const struct mw_tried *t);

/* Put a record first in list[*n], an array of MW_TRIED_MOST.  It replaces the record with the
 * same settings, and takes the peak of that record if it has none.  The oldest record is
 * dropped if the array is full. */
void mw_tried_put(struct mw_tried *list, size_t *n, const struct mw_tried *t);

/* Returns the record with the smallest rate, to compare the others with; NULL if n is 0. */
const struct mw_tried *mw_tried_slowest(const struct mw_tried *list, size_t n);

/* A record as a line of the store and back; false: the line makes no sense.  The caller names
 * the model in the line. */
void tried_to_line(const struct mw_tried *t, struct limits_line *l);
bool tried_of_line(const struct limits_line *l, struct mw_tried *t);

#endif
