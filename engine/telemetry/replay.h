/*
 * replay.h - a recording, read back as the samples it was made from.
 *
 * Each line changes what is known; a sample holds all that was recorded up to its line.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_REPLAY_H
#define MEMWALL_ENGINE_TELEMETRY_REPLAY_H

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_replay;

/* Reads the start line.  Returns 0, or -1 with *e: not a recording, or another version. */
int mw_replay_open(struct mw_replay **out, const char *path, struct err *e);
void mw_replay_close(struct mw_replay *r); /* NULL is fine */

/* The next recorded sample: 1 and *out (its reasons live as long as r), 0 at the end, -1
 * with *e, whose field is "line N"; it stays so. */
int mw_replay_next(struct mw_replay *r, struct mw_sample *out, struct err *e);

#endif
