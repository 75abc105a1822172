/*
 * plan_example.h - the input of a plan as of a real model.
 */
#ifndef MEMWALL_TESTS_LIB_PLAN_EXAMPLE_H
#define MEMWALL_TESTS_LIB_PLAN_EXAMPLE_H

#include "engine/base/units.h"
#include "engine/plan/plan.h"

/* About Gemma 4 E2B in BF16 at 4k with f16 keys and values. */
static inline struct plan_input plan_example(void)
{
    return (struct plan_input){
        .budget_bytes = 256 * MIB,
        .n_ctx = 4096,
        .n_thread = 2,
        .program_bytes = 40 * MIB,
        .tokenizer_bytes = 30 * MIB,
        .logits_bytes = 2 * MIB,
        .act_fixed_bytes = 1 * MIB,
        .act_col_bytes = 200 * KIB,
        .rows_col_bytes = 32 * KIB,
        .resident_bytes = 2 * MIB,
        .hot_bytes = 4531 * 1000000ull,
        .prompt_bytes = 1128 * 1000000ull,
        .slot_bytes = 4 * MIB + 8 * KIB,
        .n_slot = 8,
        .ring_fixed_bytes = 64 * KIB,
        .rows_fixed_bytes = 1 * MIB,
        .n_block = 1200,
        .streams = true,
        .kv_global_token_bytes = 3 * 2 * 512 * 2,
        .kv_page_tokens = 256,
        .kv_sliding_token_bytes = 12 * 2 * 256 * 2,
        .n_swa = 512,
        .n_near = 512,
        .disk_bytes_s = 1.5e9,
        .memory_bytes_s = 15e9,
        .kv_far_bytes = { 12288 },
        .kv_near_bytes = { 0, 35000 },
        .weights = { { .type = "BF16",
                       .token_bytes = { 1128e6, 3403e6 },
                       .token_flops = 1.2e9,
                       .chunk_flops_s = 60e9 } },
        .n_weights = 1,
    };
}

#endif
