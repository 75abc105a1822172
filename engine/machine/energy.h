/*
 * energy.h - the energy that the processors use, as the powercap interface of Linux reports it.
 *
 * The counters (RAPL of Intel and AMD) cover the whole processor package with everything that
 * runs on it, and memory where it has a counter of its own.  Only root can read them on many
 * systems.
 */
#ifndef MEMWALL_ENGINE_MACHINE_ENERGY_H
#define MEMWALL_ENGINE_MACHINE_ENERGY_H

#include <stdint.h>

#define MW_ENERGY_ZONES 16

struct mw_energy {
    int n; /* zones; 0: unknown */
    struct mw_energy_zone {
        char folder[96];
        uint64_t start_uj, range_uj; /* a counter starts again at 0 after range_uj */
    } zone[MW_ENERGY_ZONES];
    const char *why_not; /* the reason if n is 0; static */
};

/* Note the counters of all processor packages and of their memory. */
void mw_energy_start(struct mw_energy *m);
/* Returns the joules used since then, or -1 if the counters cannot be read.  A counter may have
 * started again once. */
double mw_energy_joules(const struct mw_energy *m);

/* The same for the system below root, for tests. */
void energy_start(struct mw_energy *m, const char *root);
double energy_joules(const struct mw_energy *m, const char *root);

#endif
