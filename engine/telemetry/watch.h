/*
 * watch.h - a thread that reads the figures of Linux twice per second.
 *
 * Reading /proc and counting a model's pages in the page cache takes up to a millisecond,
 * which is too long for a thread that draws.  Other threads copy the last figures.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_WATCH_H
#define MEMWALL_ENGINE_TELEMETRY_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_watch;

struct watch_file {
    int fd; /* owned by the caller; open until the watch is freed */
    uint64_t size;
};

/*
 * Read all figures once, then start the thread.  files is copied.  root is "", or a tree that
 * replaces the system in tests.  Returns 0, or -1 with *e.
 */
int watch_start(struct mw_watch **out, const char *root, const struct watch_file *files,
                size_t n_file, struct err *e);
void mw_watch_free(struct mw_watch *w);

/* Let fn complete each sample, after its verdict; drop(ctx) when the watch is freed. */
void watch_diagnose(struct mw_watch *w, void (*fn)(void *ctx, struct mw_sample *s),
                    void (*drop)(void *ctx), void *ctx);

/* Fill os with the last figures, and the verdict.  Any thread may call it. */
void mw_watch_complete(struct mw_watch *w, struct mw_sample *sample);

/* Measure the largest memory of an answer. */
void mw_watch_begin_answer(struct mw_watch *w);
/* 0: unknown.  The peak of resident memory only replaces that of the charge. */
void mw_watch_end_answer(struct mw_watch *w, uint64_t *peak_charged, uint64_t *peak_resident);

/* Read all figures once, as the thread does; for tests and benchmarks. */
void watch_read(struct mw_watch *w, struct mw_os *out);

#endif
