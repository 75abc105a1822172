/*
 * made_sample.h - samples for tests, as a session would report them.
 *
 * The shape is that of Gemma 4 E2B, 35 layers, at a budget of 2 GiB.  Weights are read
 * directly,
 * pinned blocks are spread over the layers, and the disk limits the speed.  All figures follow
 * from the arguments, so pictures and recordings that are made from them never change.
 */
#ifndef MEMWALL_TESTS_LIB_MADE_SAMPLE_H
#define MEMWALL_TESTS_LIB_MADE_SAMPLE_H

#include "engine/telemetry/sample.h"

/* The model is loaded and idle. */
void made_idle(struct mw_sample *s);

/* n_done tokens of a prompt of 2048 are evaluated. */
void made_prefill(struct mw_sample *s, uint64_t n_done);

/* n tokens of the answer are decoded.  Each takes 320 ms, of which 250 ms are a stall. */
void made_decode(struct mw_sample *s, uint64_t n);

#endif
