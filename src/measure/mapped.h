/*
 * mapped.h - the same points with mapped weights, as other programs read them.
 *
 * Mapped pages are not memory of the process, so only a control group can limit them to the
 * budget (engine/machine/cage.h).
 */
#ifndef MEMWALL_SRC_MEASURE_MAPPED_H
#define MEMWALL_SRC_MEASURE_MAPPED_H

#include <stdbool.h>

#include "src/measure/results.h"

/* Can a control group with a limit be made here?  If not, report why what needs one, and how
 * "memwall command" gets one. */
bool mapped_can(const char *what, const char *command);

/* Follow each point by the same one, mapped and in a control group with the budget as its limit.
 * Returns -1 with *e. */
int mapped_add(struct results *r, struct err *e);

#endif
