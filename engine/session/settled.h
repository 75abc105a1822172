/*
 * settled.h - choices of a session that stay when something else changes.
 *
 *     asked     --memory auto      --ctx 8k    no --threads
 *     settled   4 GiB are free     8192        4               blocks of 2 MiB, chunks of 460
 *
 * Free memory and measured limits are different each time they are read.  If a session chose
 * again by them whenever an option changes, "/threads 2" would move the budget, and with it
 * pinned weights.  So a choice stays until the person changes the very option that it is for.  A
 * budget that follows from the free memory may still grow with the context.  Memory that such a
 * budget gives back meanwhile does not change the choice: breathing.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_SETTLED_H
#define MEMWALL_ENGINE_SESSION_SETTLED_H

#include "engine/session/plan_input.h"

struct settled {
    struct mw_options asked, o; /* as requested, and complete */
    uint64_t free_bytes;        /* of the machine; 0: a budget was given */
    uint32_t chunk_target;      /* plan_chunk_target(); 0: not chosen yet */
};

/* Complete options *o.  before: the choices to keep; all zero: none.  -1 with *e. */
int settled_options(struct mw_model *m, const struct settled *before,
                    const struct mw_options *o, struct settled *out, struct err *e);

/*
 * Plan with them.  use: of experts, as observed; NULL: that of the limits.  Blocks keep their
 * size, unless the budget fits only the size that it would get by itself: then *s changes.
 */
int settled_plan(struct mw_model *m, struct settled *s, const struct mw_expert_use *use,
                 struct plan *plan, struct err *e);

#endif
