/*
 * anchor.h - predictions that begin at a measurement.  Arithmetic only.
 *
 * As soon as tokens were measured, a prediction is a correction of them:
 *
 *   predicted(new settings) = measured * formula(new settings) / formula(measured settings)
 *
 * where each part of a token's time is corrected by its own law, that of speed.h.  An anchor is
 * the measurement.  plan_factors_of() compares it with the formula under the settings of the
 * measurement, and gives the factors by which speed.h multiplies the terms of a token.  The
 * limits of the machine, which probes and work change at any time, cancel out.
 *
 *   disk        If tokens stalled for blocks, the disk was the bound, and its rate follows from
 *               the time.  If not, it is only known that the disk is at least that fast; then
 *               the rate of an earlier measurement counts, or that of the limits.
 *   processors  the time of a token without stalls, lookups, attention and what was lost:
 *               products, small weights, rounds, steps, reading and experts.  Blocks that were
 *               just read come from the processor's cache; if that made them faster than memory,
 *               the time that memory takes is put back, since tokens that read nothing need it.
 *               After a stall, threads lose time waking up; tokens that read nothing do not
 *   attention   its own time, as far as it is a considerable part of the processors' time;
 *               below that, it is as much slower than the formula as the rest
 *   lookups     their own time
 *   others      time in which a thread had no processor, as a share of the computing: other
 *               programs, or the host.  Threads that wait for the disk are woken onto a free
 *               processor, or late, so tokens that waited show less or more of it than tokens
 *               that do not wait will meet: then the crowding counts.
 *   whole       so that the formula gives exactly the measured time under the same settings
 *   fixed_s     between two passes: the sampler and the text
 *
 * Other threads change the formula (speed_scale_threads()), and so the parts of the processors;
 * the factors are those of the threads that were measured.
 *
 * Prompts have the factors of the disk and of other programs only.  Their products are limited
 * by arithmetic and those of tokens by memory, so the processors' factor of tokens says little
 * about prompts, and work corrects the rates of prompts anyway (observe.h of the session).
 */
#ifndef MEMWALL_ENGINE_PLAN_ANCHOR_H
#define MEMWALL_ENGINE_PLAN_ANCHOR_H

#include <stdbool.h>

/* Fewer tokens are a measurement with a doubt, which replaces none without; less than the least
 * are none. */
#define ANCHOR_TOKENS  8
#define ANCHOR_LEAST   3
#define ANCHOR_THREADS 65536 /* more are none */

/* Tokens of one answer, as measured, and their settings.  Plain numbers, so that a program can
 * keep them with the model; all 0: nothing was measured. */
struct plan_anchor {
    double measured_s; /* Unix time */
    double n_token;
    /* The settings of the measurement.  It holds for the last three of the first line: a number
     * for the kernels, enum mw_io, bool. */
    double n_thread, kernels, io, exact;
    double memory_bytes, n_ctx, chunk, kv_k, kv_v, disk_rate;
    /* Where its weights were (struct plan_pass), and the positions that its tokens saw. */
    double streamed_share, missed_share, keeps_rows, starts_cold, n_slot, n_seen;
    /* Means of a token, in seconds.  Stalls are those for blocks and experts. */
    double token_s, stall_s, lookup_s, attention_s, others_s, fixed_s;
    double disk_bytes;   /* read by a token */
    double disk_bytes_s; /* rate of the disk when it was the bound, perhaps earlier; 0: never */
    double crowding;     /* how much longer threads that never wait would take: see pool.h */
    double ran_s;        /* processor time of all threads in a token; 0: unknown */
};

/* Whether the tokens are a measurement, and all settings can be: an anchor from a file may have
 * any numbers. */
bool plan_anchor_is_plausible(const struct plan_anchor *a);

bool plan_anchor_is_doubtful(const struct plan_anchor *a);

/* The measurement as it would be without other programs, for another day. */
struct plan_anchor plan_anchor_alone(const struct plan_anchor *a);

#endif
