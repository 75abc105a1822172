/*
 * cage.h - a memory control group for one other process, to measure it or to limit it.
 *
 *     mw_cage_open(&c, limit, &e)
 *     fork: the child calls mw_cage_enter(c), then exec
 *     wait for the child, then mw_cage_peak(c), mw_cage_close(c)
 *
 * The group is made below our own one.  Version 2 allows that only if our group has no
 * processes or is the root; so, for a group with a limit, a process that is alone in its group
 * moves itself one level down until the cage is closed.  Root may also use a group above our
 * own one.
 *
 * A process that is killed cannot close its cage.  A second child, which calls
 * mw_cage_outlive(), does it instead.
 */
#ifndef MEMWALL_ENGINE_MACHINE_CAGE_H
#define MEMWALL_ENGINE_MACHINE_CAGE_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/machine/os_value.h"

struct mw_cage;

/* The memory of a group at this moment. */
struct mw_cage_use {
    struct mw_os_value charged;
    struct mw_os_value cached; /* part of it: page cache, mapped or not */
    struct mw_os_value reread; /* bytes of files that were dropped and then read again */
};

/*
 * Make a group whose processes may be charged limit_bytes, without swap; 0: no limit, and only
 * if the group can be made without a move.  Returns 0, or -1 with *e, which explains what
 * prevents it.  Groups that a killed memwall left are removed first.
 */
int mw_cage_open(struct mw_cage **out, uint64_t limit_bytes, struct err *e);
/* The same below root, a tree that replaces the system in tests. */
int cage_open(struct mw_cage **out, const char *root, uint64_t limit_bytes, struct err *e);
/* Move the calling process into the group.  For a child after fork(): calls only write(2).
 * Returns 0 or -1. */
int mw_cage_enter(const struct mw_cage *c);
/* The largest charge of the group so far; 0: unknown. */
uint64_t mw_cage_peak(const struct mw_cage *c);
/* Read what the group holds now. */
void mw_cage_use(const struct mw_cage *c, struct mw_cage_use *out);
/*
 * For a second child after fork(): wait until no process has the other end of the pipe `parent`
 * open, then remove the group as soon as the processes in it have ended.  The parent ends this
 * child before it closes the cage itself.
 */
void mw_cage_outlive(const struct mw_cage *c, int parent);
/* Remove the group, whose processes have ended.  c may be NULL. */
void mw_cage_close(struct mw_cage *c);

#endif
