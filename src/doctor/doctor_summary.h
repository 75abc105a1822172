/*
 * doctor_summary.h - the first lines of `memwall doctor`: what limits answers on this machine.
 *
 * The sentences are for people who know neither the machine nor the program, and each names the
 * figure that it comes from.
 */
#ifndef MEMWALL_SRC_DOCTOR_DOCTOR_SUMMARY_H
#define MEMWALL_SRC_DOCTOR_DOCTOR_SUMMARY_H

#include "src/doctor/doctor_advice.h"
#include "src/doctor/doctor_walls.h"

/* About all known models: how many fit, and what limits those that fit and the others. */
void summary_walls(const struct advice_facts *a, const struct doctor_walls_count *n,
                   advice_fn *fn, void *ctx);

/* About one model, from its plan.  name is safe to print; no_drafter as mw_plan_no_drafter(). */
void summary_model(const char *name, const struct mw_limits *l, const struct plan *p,
                   const char *no_drafter, advice_fn *fn, void *ctx);

#endif
