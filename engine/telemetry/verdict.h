/*
 * verdict.h - what binds, and what would help.
 *
 * With S = streamed bytes a token, C = time computed, a token takes max(S / D, C) as far
 * as reading and computing overlap; D is the rate at which the disk really fed the last
 * tokens.  The verdict is the term that wins, its share the measured one; the advice is
 * the derivative: the same formula with less to read, or less to compute.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_VERDICT_H
#define MEMWALL_ENGINE_TELEMETRY_VERDICT_H

#include "engine/telemetry/sample.h"

/* Fill s->verdict from the rest of s; everything is arithmetic on measured figures. */
void verdict_fill(struct mw_sample *s);

#endif
