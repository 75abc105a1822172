/*
 * page_stop.h - Ctrl-C while a report is being measured.
 *
 * A thread waits for signals.  The first one ends the measurement that runs, so that the page
 * is written with what there is.  The second one ends the program.  The thread also ends a
 * session that takes too long.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_STOP_H
#define MEMWALL_SRC_REPORT_PAGE_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "engine/memwall.h"

struct page_stop {
    _Atomic bool cancelled;
    _Atomic bool timed_out; /* the session was cancelled by page_stop_limit() */
    int signal;             /* the first one; 0: none */

    pthread_t thread;
    pthread_mutex_t lock;
    struct mw_session *session; /* the one to cancel, under lock */
    int signals, quit, timer;   /* descriptors; -1: closed */
    sigset_t before;
};

/* Block the signals and start the thread; call it before any other thread is started.  s is
 * zeroed at first and must stay where it is.  It can be opened again after page_stop_close(),
 * and `cancelled` and `signal` stay. */
int page_stop_open(struct page_stop *s, struct err *e);
void page_stop_close(struct page_stop *s);

/* Cancel the session this many seconds from now; 0: never. */
void page_stop_limit(struct page_stop *s, uint32_t seconds);

/* Cancel this session at a signal; NULL: none any longer. */
void page_stop_use(struct page_stop *s, struct mw_session *session);

#endif
