/*
 * explain.h - every formula of a plan with its numbers, for memwall plan --explain.
 *
 * A line has the form "NAME = FORMULA = VALUE UNIT".  The value comes from the plan itself, and
 * the formula has the numbers that it was made from, so that a person or a test can compare the
 * two.  Measured factors (anchor.h) are a part of the formulas that they apply to.
 */
#ifndef MEMWALL_ENGINE_PLAN_EXPLAIN_H
#define MEMWALL_ENGINE_PLAN_EXPLAIN_H

#include <stdint.h>
#include <stdio.h>

#include "engine/limits/limits.h"
#include "engine/plan/input.h"
#include "engine/plan/table.h"

/* Layers whose keys and values have the same size. */
struct plan_kv_group {
    uint32_t n_layer;
    uint32_t n_head;                 /* of keys */
    uint64_t key_bytes, value_bytes; /* of a head and token */
    bool is_sliding;
};
#define PLAN_KV_GROUPS 16

/* Everything that a plan is made from, and the plan. */
struct plan_basis {
    struct plan_input in;
    struct plan plan;
    struct mw_limits limits;                 /* that the rates and costs of `in` come from */
    struct plan_kv_group kv[PLAN_KV_GROUPS]; /* [n_kv] */
    uint32_t n_kv;
    int64_t answered_s; /* Unix time of the answer that in.factors come from */
};

/* Write the formulas to the caller's stream.  now_s: Unix time, from which the age of the limits
 * and factors follows. */
void plan_explain(FILE *to, const struct plan_basis *b, int64_t now_s);

#endif
