/*
 * signals.h - the signals that stop a command, as a descriptor to poll.
 */
#ifndef MEMWALL_SRC_SIGNALS_H
#define MEMWALL_SRC_SIGNALS_H

#include <signal.h>

/* Block SIGINT, SIGTERM and SIGHUP and return a descriptor that delivers them; later threads
 * inherit the mask.  Without a descriptor (-1) signals are not blocked and end the program at
 * once. */
int signals_block(sigset_t *before);

/* Take the next signal from the descriptor; 0: there is none. */
int signals_take(int fd);

#endif
