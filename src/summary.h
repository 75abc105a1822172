/*
 * summary.h - what an answer cost, in words and for machines.
 */
#ifndef MEMWALL_SRC_SUMMARY_H
#define MEMWALL_SRC_SUMMARY_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* "stop", "length", "cancelled", "context", "error". */
const char *summary_done_name(enum mw_done done);

/* Four lines; s: the counters at the end (its os part as far as it is known). */
void summary_print(FILE *to, const struct mw_receipt *r, const struct mw_sample *s);

/* The same as members of the open JSON object. */
void summary_json(struct json *j, const struct mw_receipt *r, const struct mw_sample *s);

#endif
