/*
 * outlook.h - predict how a run will stand after some tokens: its charge, and the speed of the
 * next token.  Arithmetic only.
 *
 * The plan is a promise for the full context.  A run with few tokens has touched fewer pages of
 * keys and values, keeps fewer lookup rows, and pins more weights in the memory that keys and
 * values do not need yet.
 */
#ifndef MEMWALL_ENGINE_PLAN_OUTLOOK_H
#define MEMWALL_ENGINE_PLAN_OUTLOOK_H

#include "engine/plan/plan.h"

/* The length of a usual run: a prompt of 512 tokens and an answer of 64. */
#define PLAN_OUTLOOK_TOKENS 576

struct plan_outlook {
    uint32_t n_token;           /* in the context */
    uint64_t row[MW_PLAN_ROWS]; /* bytes that are charged for each item of the plan */
    uint64_t peak_bytes;        /* their sum */
    uint64_t pinned_bytes;      /* of blocks, in borrowed memory, too */
    uint64_t streamed_bytes;    /* by one token, with experts */
    double kv_bytes;            /* keys and values that a token reads */
    double decode_s;            /* of one token; 0: a limit was not measured */
    enum mw_binds binds;
};

/* p is the plan for *in.  n_token is limited to its context. */
void plan_outlook(const struct plan_input *in, const struct plan *p, uint32_t n_token,
                  struct plan_outlook *out);

/* Keys and values that a token reads at position n_token. */
double plan_kv_read_bytes(const struct plan_input *in, uint32_t n_token);

#endif
