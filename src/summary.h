/*
 * summary.h - what an answer cost, in words and for machines.
 */
#ifndef MEMWALL_SRC_SUMMARY_H
#define MEMWALL_SRC_SUMMARY_H

#include <stdio.h>

#include "engine/memwall.h"

/* "stop", "length", "cancelled", "context", "error". */
const char *summary_done_name(enum mw_done done);

/* Four lines; s: the counters at the end (its os part as far as it is known). */
void summary_print(FILE *to, const struct mw_receipt *r, const struct mw_sample *s);

/* The members of a JSON object, without its braces. */
void summary_json(FILE *to, const struct mw_receipt *r, const struct mw_sample *s);

#endif
