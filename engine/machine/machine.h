/*
 * machine.h - what this computer offers to this process, at one moment.
 */
#ifndef MEMWALL_ENGINE_MACHINE_MACHINE_H
#define MEMWALL_ENGINE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_machine {
    int n_cpu;                /* that this process may use, cgroup quota included */
    uint64_t memory_bytes;    /* of the machine, or the cgroup's limit if that is less */
    uint64_t available_bytes; /* now, under the same limit */
    uint64_t own_bytes;       /* of this process now, which others cannot take */
    /* The largest budget that can be kept now: what is available, and what this process has
     * already.  0: neither /proc nor the kernel's system call reports it. */
    uint64_t budget_bytes;
    uint64_t budget_of;   /* the limit that budget_bytes is a part of ... */
    char budget_why[200]; /* ... and its name: "memory.max of the control group /a" */
    char cpu[64];
};

/* Read it now. */
void mw_machine_read(struct mw_machine *out);

/*
 * Lower a budget that this machine cannot give.  Returns false if *bytes can be kept, or if
 * nothing is known of the machine; true if *bytes was lowered, with a sentence that names both
 * figures and the limit in why[0 .. n).
 */
bool mw_budget_lower(uint64_t *bytes, char *why, size_t n);

/* The same of the system below root ("" is the real one), for tests. */
void machine_read(const char *root, struct mw_machine *out);
bool machine_budget_lower(const char *root, uint64_t *bytes, char *why, size_t n);

#endif
