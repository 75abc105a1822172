/*
 * measure_all.h - plan and measure the points of a result, each in a process of its own.
 *
 * All points are planned before the first is measured, so that no prediction knows a
 * measurement.  The runs go round: every point once, then every point again.  A disturbance of
 * the machine then hits all points alike.
 */
#ifndef MEMWALL_SRC_MEASURE_MEASURE_ALL_H
#define MEMWALL_SRC_MEASURE_MEASURE_ALL_H

#include "src/measure/results.h"

/* Called after each run.  Returns -1 with *e to stop. */
typedef int measure_done_fn(void *ctx, const struct results *r, struct err *e);

struct measure_all {
    const struct options *o;
    struct results *results;
    measure_done_fn *done; /* or NULL */
    void *ctx;
    bool is_plan_only;
    bool announces; /* say how long it will take, and, if no terminal shows progress, each run */
};

/*
 * Measure what is missing in m->results.  Shows progress on standard error and reports errors
 * there.  Returns an exit code; results->is_complete is set if all was measured.  Ctrl-C
 * keeps the runs that were finished.  Without a plan of any point there is
 * nothing to print.
 */
int measure_all(struct measure_all *m);

/* Lower budgets that this machine cannot give, with a notice. */
void measure_lower_budgets(struct results *r);

#endif
