/*
 * measure_child.h - run one plan or measurement (measure.h) in a process of its own.
 */
#ifndef MEMWALL_SRC_MEASURE_MEASURE_CHILD_H
#define MEMWALL_SRC_MEASURE_MEASURE_CHILD_H

#include <signal.h>

#include "src/measure/point.h"

/* Called often while a process works. */
typedef void measure_stage_fn(void *ctx, const char *stage, uint32_t done, uint32_t total);

/* The memory and the reads of a process at this moment. */
struct measure_live {
    struct mw_cage_use use;
    struct mw_os_value read_bytes; /* from disks, since it started */
};
/* Called every MEASURE_TICK_MS, and when a descriptor can be read.  false: end the process. */
typedef bool measure_tick_fn(void *ctx, const struct measure_live *now);

#define MEASURE_TICK_MS 250

struct measure_child {
    const struct options *o; /* the model, and options that hold for all points */
    int signals;             /* of signals_block() */
    const sigset_t *before;  /* the mask that the process starts with */
    measure_stage_fn *stage;
    measure_tick_fn *tick; /* NULL: nobody watches */
    int watched[2];        /* descriptors that end a tick early, only with tick; -1: none */
    void *ctx;
    int stopped_by; /* the signal that ended it with ERR_CANCELLED */
    bool is_late;   /* --time-limit ended it with ERR_IO */
};

/* Write the options that hold for all points as on a command line: "--cold --blas never". */
void measure_child_options(const struct options *o, char *buf, size_t n);

/*
 * Plan or measure p.  A measurement gets a control group of its own if that is possible, with
 * the budget as its limit if p->is_caged.  *charge is the peak of that group, or 0.
 *
 * Returns 0 and the answer, which json_free() frees; or -1 with *e if the
 * process cannot be started, is killed or answers nothing (ERR_IO), or if a signal or tick asks
 * for its end (ERR_CANCELLED).  No process is left in any case.
 */
int measure_child(struct measure_child *c, const struct point *p, enum options_one part,
                  struct json_doc **out, uint64_t *charge, struct err *e);

#endif
