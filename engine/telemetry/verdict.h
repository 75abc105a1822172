/*
 * verdict.h - find the limit of the speed from measured figures.
 *
 * The time of the newest tokens is divided (shares.h): stalls, attention, time without a
 * processor, and the products, of which reading the weights from memory takes at least the time
 * that memory needs.  Other programs that use the processors make every part slower.  The
 * scheduler counts how long a thread was ready to run and had no processor, and a virtual
 * machine how much of their time the host took.
 *
 * Advice that needs no plan follows at once.  A change of settings is proposed by
 * mw_diagnose() of session/diagnose.c, which also fills in the rest of s->verdict.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_VERDICT_H
#define MEMWALL_ENGINE_TELEMETRY_VERDICT_H

#include "engine/telemetry/sample.h"

/* Fill s->verdict from the measured figures of s. */
void verdict_fill(struct mw_sample *s);

#endif
