/*
 * basis.h - everything that a plan is made from, and what follows from it, as plain data: for
 * those who explain a plan.
 */
#ifndef MEMWALL_ENGINE_PLAN_BASIS_H
#define MEMWALL_ENGINE_PLAN_BASIS_H

#include "engine/limits/limits.h"
#include "engine/plan/outlook.h"

/* Layers whose keys and values have the same size. */
struct plan_kv_group {
    uint32_t n_layer;
    uint32_t n_head;                 /* of keys */
    uint64_t key_bytes, value_bytes; /* of a head and token */
    bool is_sliding;
};
#define PLAN_KV_GROUPS 16

struct plan_basis {
    struct plan_input in;
    struct plan plan;
    struct mw_limits limits;                 /* that the rates and costs of `in` come from */
    struct plan_kv_group kv[PLAN_KV_GROUPS]; /* [n_kv] */
    uint32_t n_kv;
};

#endif
