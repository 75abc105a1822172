/*
 * opening.h - opens a model on a thread of its own.
 *
 * Reading the header of a large model and measuring the disk take seconds.  The screen and the
 * keys work meanwhile, and the program can end.
 */
#ifndef MEMWALL_UI_TALK_OPENING_H
#define MEMWALL_UI_TALK_OPENING_H

#include "ui/engine/engine.h"

struct opening_job {
    const struct engine_calls *calls;
    struct engine_model model; /* path is copied */
    struct engine *old;        /* NULL, or closed first, so that its memory is free */
};

struct opening;

/* Start the thread.  -1 with *e: nothing has happened, and the caller still has job->old. */
int opening_start(struct opening **out, const struct opening_job *job, struct err *e);
/* A descriptor that is readable when the thread has ended. */
int opening_fd(const struct opening *o);
bool opening_is_over(const struct opening *o);
/* Wait for the thread and free o.  Returns the engine, or NULL with *e. */
struct engine *opening_take(struct opening *o, struct err *e);
/* Wait at most ms milliseconds and free o with the engine.  A stuck thread keeps both. */
void opening_abandon(struct opening *o, int ms);

#endif
