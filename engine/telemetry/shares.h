/*
 * shares.h - how the time of a token divides, and which part is the bound.
 *
 * The verdict about measured tokens and the predictions of the plan use the same rule, so they
 * cannot name two bounds for the same division.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_SHARES_H
#define MEMWALL_ENGINE_TELEMETRY_SHARES_H

#include "engine/telemetry/sample.h"

/* A smaller share of stalls is noise from handing blocks over. */
#define SHARES_DISK 0.10
/* Daemons, and the own threads that do not compute, take less than this share. */
#define SHARES_OTHERS 0.15
/* If reading weights from memory takes this share of their time, more cores would not help. */
#define SHARES_MEMORY 0.7

/* Divide all by their sum. */
void mw_shares_scale(struct mw_shares *s);

/* The bound, and the share of the time that it takes (*share may be NULL). */
enum mw_binds mw_shares_bind(const struct mw_shares *s, double *share);

#endif
