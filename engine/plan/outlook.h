/*
 * outlook.h - predict how a run will stand after some tokens: its charge, and the speed of
 * its prompt and its answer.  Arithmetic only.
 *
 * The plan is a promise for the full context.  A run with few tokens has touched fewer pages of
 * keys and values, keeps fewer lookup rows, and pins more weights in the memory that keys and
 * values do not need yet.
 */
#ifndef MEMWALL_ENGINE_PLAN_OUTLOOK_H
#define MEMWALL_ENGINE_PLAN_OUTLOOK_H

#include "engine/plan/plan.h"
#include "engine/plan/times.h"

/* p is the plan for *in.  The numbers of tokens are limited to its context. */
void plan_outlook(const struct plan_input *in, const struct plan *p, const struct plan_run *run,
                  struct plan_outlook *out);

#endif
