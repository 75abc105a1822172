/*
 * doctor_walls.h - what each known model would do on this machine.
 */
#ifndef MEMWALL_SRC_DOCTOR_DOCTOR_WALLS_H
#define MEMWALL_SRC_DOCTOR_DOCTOR_WALLS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "src/doctor/doctor_print.h"

struct doctor_walls {
    const struct mw_options
        *engine;        /* of the plans; without a budget, the largest by default */
    const char *folder; /* where the models would be */
    bool no_disk;       /* measure no disk */
    const _Atomic bool *cancelled;
    void (*step)(void *ctx, const char *doing);
    void (*clear)(void *ctx); /* removes what step() printed */
    void *ctx;
};

/* The table in numbers. */
struct doctor_walls_count {
    uint64_t budget_bytes;
    uint32_t n, n_fits, n_streams, n_too_large;
    /* By what limits answers; models without a prediction are not in them. */
    uint32_t fits[MW_BINDS_COUNT], streams[MW_BINDS_COUNT];
};

/*
 * Print a table of all known models with their usual types: whether they fit, the memory they
 * take, the predicted speed, and the longest context.  Measures memory and arithmetic for each
 * weight type, and the disk of the folder, unless that was done within a day.  -1 with *e.
 */
int doctor_walls_print(struct doctor_print *p, const struct doctor_walls *w,
                       struct doctor_walls_count *count, struct err *e);

#endif
