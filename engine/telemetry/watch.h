/*
 * watch.h - the slow sampler: figures of the kernel, twice a second, on its own thread.
 *
 * Reading /proc and asking for the page cache of a model takes up to a millisecond, too
 * long for a thread that draws; so it is done here, and whoever wants the figures copies
 * the last ones.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_WATCH_H
#define MEMWALL_ENGINE_TELEMETRY_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_watch;

struct watch_file {
    int fd; /* stays open as long as the watch; not the watch's */
    uint64_t size;
};

/*
 * Read once now, then start the thread.  files are copied.  root is "" or a tree that
 * stands for the system (tests).  Returns 0, or -1 with *e.
 */
int watch_start(struct mw_watch **out, const char *root, const struct watch_file *files,
                size_t n_file, struct err *e);
void mw_watch_free(struct mw_watch *w);

/* Any thread: fill os with what was read last, and the verdict. */
void mw_watch_complete(struct mw_watch *w, struct mw_sample *sample);

/* What one reading does, for tests and benchmarks. */
void watch_read(struct mw_watch *w, struct mw_os *out);

#endif
