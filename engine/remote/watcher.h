/*
 * watcher.h - a thread that asks a server for its metrics every few seconds, and takes the
 * samples that a memwall server sends all the time (/memwall/telemetry: events whose data are
 * the lines of a recording).
 */
#ifndef MEMWALL_ENGINE_REMOTE_WATCHER_H
#define MEMWALL_ENGINE_REMOTE_WATCHER_H

#include "engine/remote/server.h"

struct watcher;

/* s must outlive it. */
int watcher_new(struct watcher **out, const struct server *s, struct err *e);
void watcher_free(struct watcher *w); /* w may be NULL */

/* Copy the newest sample of the server itself.  Returns false if it sends none.  w may be NULL.
 * Any thread. */
bool watcher_sample(struct watcher *w, struct mw_sample *out);

/* Copy what is known, without the part about the last answer.  w may be NULL.  Any thread. */
void watcher_figures(struct watcher *w, struct mw_server_figures *out);

#endif
