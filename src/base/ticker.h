/*
 * ticker.h - a line of progress for work that cannot say how far it is.
 *
 * The line has a text and the seconds since the work began.  A thread draws it, so that a person
 * sees that the program works.  As with all progress, nothing is drawn unless standard error is a
 * terminal.
 */
#ifndef MEMWALL_SRC_BASE_TICKER_H
#define MEMWALL_SRC_BASE_TICKER_H

#include <pthread.h>
#include <stdbool.h>

#include "src/base/progress.h"

struct ticker {
    struct progress line;
    const char *text;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
    bool has_thread;
    bool has_ended; /* under lock */
};

/* Draw the text, which stays the caller's, from a fifth of a second on until ticker_end(). */
void ticker_begin(struct ticker *t, bool quiet, const char *text);

/* Clear the line. */
void ticker_end(struct ticker *t);

#endif
