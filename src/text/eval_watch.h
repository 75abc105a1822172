/*
 * eval_watch.h - record the counters of a session while it evaluates.
 */
#ifndef MEMWALL_SRC_TEXT_EVAL_WATCH_H
#define MEMWALL_SRC_TEXT_EVAL_WATCH_H

#include "engine/memwall.h"
#include "ui/options/options.h"

struct eval_watch {
    struct mw_session *session;
    struct mw_watch *watch;
    struct mw_recorder *recorder;
};

/* Start recording if --telemetry was given. */
int eval_watch_open(struct eval_watch *w, struct mw_session *s, struct mw_model *m,
                    const struct options *o, struct err *e);
/* Write the rest and close.  Returns -1 with *e if writing failed.  w may be zeroed, e NULL. */
int eval_watch_close(struct eval_watch *w, struct err *e);

#endif
