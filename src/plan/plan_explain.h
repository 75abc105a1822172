/*
 * plan_explain.h - every formula of a plan with its numbers, for memwall plan --explain.
 *
 * A line has the form "NAME = FORMULA = VALUE UNIT".  The value comes from the plan itself, and
 * the formula has the numbers that it was made from, so that a person or a test can compare the
 * two.
 */
#ifndef MEMWALL_SRC_PLAN_PLAN_EXPLAIN_H
#define MEMWALL_SRC_PLAN_PLAN_EXPLAIN_H

#include <stdint.h>
#include <stdio.h>

#include "engine/memwall.h"

/* now_s: Unix time, from which the age of the limits follows. */
void plan_explain(FILE *to, const struct plan_basis *b, int64_t now_s);

#endif
