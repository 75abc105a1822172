/*
 * replay.h - read a recording as the samples from which it was made.
 *
 * Each line changes some figures.  A sample has all figures recorded up to its line.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_REPLAY_H
#define MEMWALL_ENGINE_TELEMETRY_REPLAY_H

#include <stddef.h>

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_replay;

/* Open a recording and read its start line.  Returns 0, or -1 with *e if it is not a recording
 * or has another version. */
int mw_replay_open(struct mw_replay **out, const char *path, struct err *e);
void mw_replay_close(struct mw_replay *r); /* NULL is fine */

/* Read the next sample.  Returns 1 with *out, whose reasons are valid until r is closed; 0 at
 * the end; or -1 with *e, whose field is "line N".  After an error every call fails. */
int mw_replay_next(struct mw_replay *r, struct mw_sample *out, struct err *e);

/* Begin a recording whose lines come one by one from somewhere else, name in errors. */
int mw_replay_begin(struct mw_replay **out, const char *name, struct err *e);
/* Take its next line of n bytes, without its end.  Returns 1 with *out, as above; 0 if the line
 * makes no sample; or -1 with *e. */
int mw_replay_line(struct mw_replay *r, const char *line, size_t n, struct mw_sample *out,
                   struct err *e);

#endif
