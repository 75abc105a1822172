/*
 * watch.h - figures of the operating system, for programs that show a session.
 */
#ifndef MEMWALL_ENGINE_API_WATCH_H
#define MEMWALL_ENGINE_API_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

struct mw_model;

/*
 * A watcher reads the kernel's figures twice a second, on a thread of its own, and completes
 * samples with them.
 */
struct mw_watch;
int mw_watch_new(struct mw_watch **out, struct mw_model *m, struct err *e);
void mw_watch_free(struct mw_watch *w);
/* Fill in sample->os, and the diagnosis of the sample: its verdict, and its predictions. */
void mw_watch_complete(struct mw_watch *w, struct mw_sample *sample);
/* Measure the largest memory of an answer: peak_charged and peak_resident of its receipt. */
void mw_watch_begin_answer(struct mw_watch *w);
void mw_watch_end_answer(struct mw_watch *w, uint64_t *peak_charged, uint64_t *peak_resident);

#endif
