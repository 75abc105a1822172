/*
 * recorder.h - write a running session to a file of JSON lines (memwall-telemetry(5)).
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_RECORDER_H
#define MEMWALL_ENGINE_TELEMETRY_RECORDER_H

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_recorder;

/* Fill *out, which is zeroed, with a complete sample.  Called from any thread. */
typedef void mw_take_fn(void *ctx, struct mw_sample *out);

/*
 * Start a thread that records to fd and calls take(ctx, &sample) for its samples.  The
 * recorder owns fd and closes it, also on failure.  name is used in messages.  is_new: the caller
 * has created this file, which is deleted if nothing can be written to it.  The recorder
 * writes the start line as soon as there is a plan, then a line for each token and each second.
 * Returns 0, or -1 with *e.
 */
int mw_recorder_open(struct mw_recorder **out, int fd, const char *name, bool is_new,
                     mw_take_fn *take, void *ctx, struct err *e);

/* Write the last lines and free r, which may be NULL.  Returns 0, or -1 with *e if any write
 * failed, for example because the disk is full.  The file ends at the failed write. */
int mw_recorder_close(struct mw_recorder *r, struct err *e);

#endif
