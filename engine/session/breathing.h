/*
 * breathing.h - a thread that reads how much memory is free, and follows it with a budget.
 *
 *     /proc/meminfo, control group, pressure --> plan/breath.h --> budget --> the session's thread
 *
 * The thread only decides.  The session's thread gives memory back, and takes it, at a moment when
 * it uses none of it: session_breath.c.
 */
#ifndef MEMWALL_ENGINE_SESSION_BREATHING_H
#define MEMWALL_ENGINE_SESSION_BREATHING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/telemetry/telemetry.h"

/* The budgets between which it moves, and the first one. */
struct breathing_bounds {
    uint64_t least, most, budget; /* bytes */
    uint64_t free_bytes;          /* that the budget was chosen from */
};

struct breathing;

/* Memory that is charged for the thread and its tables. */
#define BREATHING_BYTES (64 * (uint64_t)1024)

/*
 * Start the thread.  root is "", or a tree that replaces the system in tests.  Its figures go to
 * t.  Returns 0, or -1 with *e.
 */
int breathing_start(struct breathing **out, const char *root, const struct breathing_bounds *to,
                    struct telemetry *t, struct err *e);
void breathing_stop(struct breathing *b); /* joins the thread; NULL is fine */

/* Other bounds, because the plan changed: the reserve stays, and so does what was given back. */
void breathing_rebound(struct breathing *b, const struct breathing_bounds *to);

/* The budget to have now, and when it was decided (clock_ns()). */
uint64_t breathing_budget(const struct breathing *b);
uint64_t breathing_decided_ns(const struct breathing *b);

/* Call fn(ctx) on the thread after each change of the budget; NULL: no longer, and no call is
 * running when this returns. */
void breathing_wakes(struct breathing *b, void (*fn)(void *ctx), void *ctx);

#endif
