/*
 * summary.h - print the figures of an answer as text or as JSON.
 */
#ifndef MEMWALL_SRC_TEXT_SUMMARY_H
#define MEMWALL_SRC_TEXT_SUMMARY_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* "stop", "length", "cancelled", "context", "error". */
const char *summary_done_name(enum mw_done done);

/* Print four lines.  s: the counters at the end; its os part may be incomplete. */
void summary_print(FILE *to, const struct mw_receipt *r, const struct mw_sample *s);

/* Print two lines about an answer of a server. */
void summary_server(FILE *to, const struct mw_receipt *r);

/* Write the figures as members of the open JSON object. */
void summary_json(struct json *j, const struct mw_receipt *r, const struct mw_sample *s);

#endif
