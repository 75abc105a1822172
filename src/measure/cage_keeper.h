/*
 * cage_keeper.h - a process that removes a memory cage if this one is killed before it can.
 */
#ifndef MEMWALL_SRC_MEASURE_CAGE_KEEPER_H
#define MEMWALL_SRC_MEASURE_CAGE_KEEPER_H

#include <sys/types.h>

struct mw_cage;

struct cage_keeper {
    pid_t pid; /* 0: none */
    int end;   /* of a pipe that closes when this process ends in any way */
};

/* Start one for the cage.  Without it (no process can be made) the next cage removes the
 * leftover. */
void cage_keeper_start(struct cage_keeper *k, const struct mw_cage *cage);
/* End it, before the cage is closed. */
void cage_keeper_stop(struct cage_keeper *k);

#endif
