/*
 * recorder.h - a running session, written to a file of JSON lines (memwall-telemetry(5)).
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_RECORDER_H
#define MEMWALL_ENGINE_TELEMETRY_RECORDER_H

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_recorder;

/* Takes a whole sample, from any thread; *out is zeroed before. */
typedef void mw_take_fn(void *ctx, struct mw_sample *out);

/*
 * Start writing to fd, which the recorder takes over and closes, also on failure; name is
 * what messages call it.  It writes a start line as soon as there is a plan, then one line
 * for each token and each second, on a thread of its own that calls take(ctx, &sample).
 * Returns 0, or -1 with *e.
 */
int mw_recorder_open(struct mw_recorder **out, int fd, const char *name, mw_take_fn *take,
                     void *ctx, struct err *e);

/* Writes what is left and frees r (NULL is fine).  Returns 0, or -1 with *e if any write
 * failed (full disk): the file then ends where that happened. */
int mw_recorder_close(struct mw_recorder *r, struct err *e);

#endif
