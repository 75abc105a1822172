/*
 * verdict.h - find the limit of the speed, and a change that would help.
 *
 * With S bytes streamed per token, a measured disk rate D for the last tokens and a time C for
 * computing, a token takes max(S / D, C) if reading and computing overlap.  The verdict is the
 * larger term with its measured share.  Lookups of single rows do not overlap, so if nothing
 * else is read, the larger share of the time binds.  The advice evaluates the same formula with
 * less to read or less to compute.
 *
 * Other programs that use the processors make every part slower.  The scheduler counts how long
 * a thread was ready to run and had no processor, and a virtual machine how much of their time
 * the host took.  If both together are a larger share than the stalls, they are the verdict.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_VERDICT_H
#define MEMWALL_ENGINE_TELEMETRY_VERDICT_H

#include "engine/telemetry/sample.h"

/* Fill s->verdict from the measured figures of s. */
void verdict_fill(struct mw_sample *s);

#endif
