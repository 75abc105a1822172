/*
 * opening.h - opens a model on a thread of its own.
 *
 * Reading the header of a large model and measuring the disk take seconds.  The screen and the
 * keys work meanwhile, and the program can end.
 */
#ifndef MEMWALL_UI_TALK_OPENING_H
#define MEMWALL_UI_TALK_OPENING_H

#include "engine/memwall.h"

/* An engine with all that belongs to it; any may be NULL. */
struct engine {
    struct mw_chat *chat;
    struct mw_watch *watch;
    struct mw_model *model;
};

/* Close all of e.  If its disk does not answer, the engine's thread keeps chat and model. */
void engine_close(struct engine *e);

struct opening_job {
    const char *path;         /* of the model */
    struct mw_options engine; /* memory_bytes limits the header */
    /* NULL, or gives the model the limits of this machine. */
    void (*limits)(struct mw_model *m, const char *path, const struct mw_options *o);
    struct engine old; /* closed first, so that its memory is free */
};

struct opening;

/* Start the thread.  -1 with *e: nothing has happened, and the caller still has job->old. */
int opening_start(struct opening **out, const struct opening_job *job, struct err *e);
/* A descriptor that is readable when the thread has ended. */
int opening_fd(const struct opening *o);
bool opening_is_over(const struct opening *o);
/* Wait for the thread and free o.  Returns the model, or NULL with *e. */
struct mw_model *opening_take(struct opening *o, struct err *e);
/* Wait at most ms milliseconds and free o with the model; a thread that is stuck keeps them. */
void opening_abandon(struct opening *o, int ms);

#endif
