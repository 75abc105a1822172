/*
 * machine.h - the processors and the memory that this process can use now.
 */
#ifndef MEMWALL_ENGINE_MACHINE_MACHINE_H
#define MEMWALL_ENGINE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MW_THREADS_MOST 256 /* that compute */
#define MW_THREADS_WHY  128

struct mw_machine {
    int n_cpu;                /* that this process may use under its affinity and quota */
    /* The same with the threads of a core as one, and without efficient cores.  Cores are efficient
     * if others that may be used have more than twice their capacity. */
    int n_core;
    int n_efficient;          /* such cores in addition */
    int n_low_power;          /* those of them that the system lists as using the least power */
    /* That compute by default: n_core, at most MW_THREADS_MOST, or what machine_choose_threads()
     * says. */
    int n_thread;
    char threads_why[MW_THREADS_WHY];
    uint64_t memory_bytes;    /* of the machine, or the limit of the control group if less */
    uint64_t available_bytes; /* now, under the same limit */
    uint64_t own_bytes;       /* anonymous and shared memory of this process */
    /* The largest budget that can be kept now: available_bytes and own_bytes.  0 if neither
     * /proc nor the system call reports it. */
    uint64_t budget_bytes;
    uint64_t budget_of;   /* the limit that budget_bytes comes from */
    char budget_why[200]; /* name of that limit: "memory.max of the control group /a" */
    char budget_short[64]; /* the same for a sentence: "the control group's limit of 1 GiB" */
    /* Parts of the difference that no program uses: 0 if the limit does not count them. */
    uint64_t zfs_stays, huge_free;
    char cpu[64];
    /* Family, model and stepping of the processor, as "6-143-8".  Many virtual machines, and all
     * of ARM, give processors of different kinds one name. */
    char cpu_kind[24];
};

/* Read all figures now. */
void mw_machine_read(struct mw_machine *out);

/*
 * Lower a budget that is more than this machine can provide.  Returns true if *bytes was
 * lowered, with a sentence in why[0 .. n) that names both budgets and the limit.  Returns false
 * if *bytes is possible or the memory of the machine is unknown.
 */
bool mw_budget_lower(uint64_t *bytes, char *why, size_t n);

/* Let n_thread threads compute by default, for the reason `why`, where a process may use so many
 * cores and processors.  Any thread. */
void machine_choose_threads(int n_core, int n_cpu, int n_thread, const char *why);

/* The same for the system below root, which is "" for the real one; for tests. */
void machine_read(const char *root, struct mw_machine *out);
bool machine_budget_lower(const char *root, uint64_t *bytes, char *why, size_t n);

#endif
