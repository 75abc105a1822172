/*
 * outlook.h - predict how a run will stand after some tokens: its charge, and the speed of
 * its prompt and its answer.  Arithmetic only.
 *
 * The plan is a promise for the full context.  A run with few tokens has touched fewer pages of
 * keys and values, keeps fewer lookup rows, and pins more weights in the memory that keys and
 * values do not need yet.
 */
#ifndef MEMWALL_ENGINE_PLAN_OUTLOOK_H
#define MEMWALL_ENGINE_PLAN_OUTLOOK_H

#include "engine/plan/plan.h"
#include "engine/plan/speed.h"

/* The length of a usual run: a prompt of 512 tokens and an answer of 64. */
#define PLAN_USUAL_RUN ((struct plan_run){ 576, PLAN_PROMPT_TOKENS, 64 })

struct plan_outlook {
    uint32_t n_token;           /* in the context */
    uint64_t row[MW_PLAN_ROWS]; /* bytes that are charged for each item of the plan */
    uint64_t peak_bytes;        /* their sum */
    uint64_t files_bytes;  /* part of it: pages of the program's files, which are charged to the
                              process that read them first */
    uint64_t pinned_bytes; /* of blocks, in borrowed memory, too */
    uint64_t streamed_bytes; /* by one token, with experts */
    struct plan_pass pass;   /* where the weights are */
    struct plan_time token;  /* of the middle one of the decoded tokens */
    double prompt_s;         /* of a prompt of n_prompt tokens; 0: a limit was not measured */
};

/* The length of the run that is predicted: the last n_prompt of the first n_token - n_gen
 * tokens are a prompt, and n_gen tokens are decoded. */
struct plan_run {
    uint32_t n_token, n_prompt, n_gen;
};

/* p is the plan for *in.  The numbers of tokens are limited to its context. */
void plan_outlook(const struct plan_input *in, const struct plan *p, const struct plan_run *run,
                  struct plan_outlook *out);

#endif
