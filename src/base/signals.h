/*
 * signals.h - the signals that stop a command, as a descriptor to poll.
 */
#ifndef MEMWALL_SRC_BASE_SIGNALS_H
#define MEMWALL_SRC_BASE_SIGNALS_H

#include <signal.h>

/* How long work may go on after a signal that stops it.  It usually ends at the next block, but
 * a call of a library may never return. */
#define SIGNALS_STOP_S 4

/* Block SIGINT, SIGTERM and SIGHUP and return a descriptor that delivers them; later threads
 * inherit the mask.  Without a descriptor (-1) signals are not blocked and end the program at
 * once. */
int signals_block(sigset_t *before);

/* Take the next signal from the descriptor; 0: there is none. */
int signals_take(int fd);

/* End the process with the status of this signal once no call of OpenBLAS returns for
 * SIGNALS_STOP_S seconds while there is one.  All other work ends by itself, which takes long on a
 * busy machine.  May be called by the handler of a signal. */
void signals_end_soon(int signo);
/* The work has ended: call off signals_end_soon(). */
void signals_end_off(void);

#endif
