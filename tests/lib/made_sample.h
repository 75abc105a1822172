/*
 * made_sample.h - samples for tests, as a session would give them.
 *
 * A Gemma 4 E2B shape of 35 layers at a budget of 2 GiB, streamed directly: pinned blocks
 * is spread over the layers, the disk binds.  Every figure follows from the arguments, so
 * pictures and recordings made from it never change by themselves.
 */
#ifndef MEMWALL_TESTS_LIB_MADE_SAMPLE_H
#define MEMWALL_TESTS_LIB_MADE_SAMPLE_H

#include "engine/telemetry/sample.h"

/* Loaded, nothing asked yet. */
void made_idle(struct mw_sample *s);

/* n_done tokens of a prompt of 2048 are evaluated. */
void made_prefill(struct mw_sample *s, uint64_t n_done);

/* n tokens of the answer are decoded, one each 320 ms, 250 ms of them stall. */
void made_decode(struct mw_sample *s, uint64_t n);

#endif
