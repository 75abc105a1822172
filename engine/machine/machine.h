/*
 * machine.h - what this computer offers to this process, at one moment.
 */
#ifndef MEMWALL_ENGINE_MACHINE_MACHINE_H
#define MEMWALL_ENGINE_MACHINE_MACHINE_H

#include <stdint.h>

struct mw_machine {
    int n_cpu;                /* that this process may use, cgroup quota included */
    uint64_t memory_bytes;    /* of the machine, or the cgroup's limit if that is less */
    uint64_t available_bytes; /* now, under the same limit */
    char cpu[64];
};

/* Read it now. */
void mw_machine_read(struct mw_machine *out);

/* The same of the system below root ("" is the real one), for tests. */
void machine_read(const char *root, struct mw_machine *out);

#endif
