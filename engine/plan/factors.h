/*
 * factors.h - the factors that an anchor (anchor.h) gives to the law of speed.  Arithmetic only.
 */
#ifndef MEMWALL_ENGINE_PLAN_FACTORS_H
#define MEMWALL_ENGINE_PLAN_FACTORS_H

#include "engine/plan/anchor.h"
#include "engine/plan/input.h"

/* With a larger share of stalls, the time of tokens shows how fast the disk is.  A verdict names it
 * as the bound from a larger share on (SHARES_DISK of telemetry/shares.h). */
#define ANCHOR_STALLS 0.04

/* The factors that the measurement gives.  *in has the settings of the measurement and no
 * factors.  Without a measurement, or if a limit is unknown, there are none. */
struct plan_factors plan_factors_of(const struct plan_input *in, const struct plan_anchor *a);

/* Complete a measurement whose means and settings are filled in: the rate of the disk.  before
 * is the anchor until now, of the same model; it may be empty. */
void plan_anchor_finish(const struct plan_input *in, const struct plan_anchor *before,
                        struct plan_anchor *a);

#endif
