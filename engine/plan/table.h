/*
 * table.h - the plan: how the budget is divided, and the speed that follows.  Plain data.
 *
 * Allocation follows this table; `memwall plan`, the message of a refusal and the meter of the
 * dashboard show it.  Its items are enum mw_plan_row (telemetry/sample.h); plan.h has their order.
 */
#ifndef MEMWALL_ENGINE_PLAN_TABLE_H
#define MEMWALL_ENGINE_PLAN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/telemetry/sample.h"

/* Share of the drafts of a model or a draft head that predictions assume to be accepted. */
#define PLAN_ACCEPTANCE 0.7

/* Copies of the blocks that stream in a type with few bits, with which the model drafts for itself.
 * If all blocks had one, they would take all_bytes. */
struct plan_low {
    int type;      /* enum tensor_type */
    char name[8];  /* "Q3_K" */
    uint64_t all_bytes;
    double acceptance; /* share of their drafts that predictions assume to be accepted */
};
#define PLAN_LOW_TYPES 3

/* Tokens of the prompt that prefill_tps is predicted for. */
#define PLAN_PROMPT_TOKENS 512

#define PLAN_KV_CLASSES 4

/* Why nothing drafts, although the options name a model or a head that could. */
enum mw_no_drafter {
    MW_DRAFTER_IS_USED,    /* or there is none */
    MW_DRAFTER_SLOWER,     /* drafted_tps would be less than undrafted_tps */
    MW_DRAFTER_NO_ROOM,    /* it does not fit the budget */
    MW_DRAFTER_ALL_PINNED, /* copies: a draft would take as long as a token */
    MW_DRAFTER_KV_DISK,    /* copies: a draft would read keys and values, as a token does */
    MW_DRAFTER_ONE_TOKEN,  /* chunks of one token: a pass verifies nothing */
    MW_DRAFTER_CLOSED,     /* the session closed it, since it lost */
};

struct plan {
    uint64_t budget_bytes;
    uint64_t row[MW_PLAN_ROWS]; /* bytes; the sum is at most the budget */
    uint64_t sum_bytes;
    uint32_t n_ctx;
    uint32_t chunk;        /* prompt tokens evaluated together */
    uint32_t n_draft;      /* drafted tokens that a pass verifies, at most */
    /* The draft head, if the plan has memory for it: its pinned weights, slots for the others, and
     * cached experts. */
    bool has_head;
    uint64_t head_pinned_bytes;
    uint32_t n_head_slot, n_head_expert;
    uint32_t n_slot;       /* of the ring; 0: everything is pinned */
    double streamed_share; /* of the blocks, at the full context */
    bool keeps_rows;       /* lookup rows stay in memory once they were read */
    uint32_t n_copy;       /* turns that are copied in memory; plan_copy_row() */
    uint32_t n_expert;     /* experts that the cache holds, */
    uint32_t n_expert_all; /* of all experts; 0: a dense model */
    double expert_hits;    /* predicted share of used experts that are in memory */
    bool hits_measured;    /* from observed use; otherwise even use is assumed */
    uint64_t
        pinned_bytes; /* for pinned blocks, rounding and landing included, without resident */
    /* Keys and values on the disk: the item kv_global has memory for the first kv_keep positions of
     * each class of layers (input.h; UINT32_MAX: all), for kv_tail that a pass writes, and for
     * n_kv_slot pages on their way. */
    bool has_kv_disk;
    uint32_t kv_keep[PLAN_KV_CLASSES], kv_keep_pages; /* the latter: of all classes in turn */
    uint32_t kv_tail, n_kv_slot;
    uint64_t kv_disk_bytes; /* on the disk, and */
    uint64_t kv_read_bytes; /* read for each token, part of streamed_bytes; at the full context */
    uint64_t low_bytes;      /* for copies of blocks, part of the item `drafter`, */
    struct plan_low low;     /* of this type, */
    uint64_t low_beside_bytes; /* beside this much pinned memory: budgets may change later */
    uint64_t saved_bytes;    /* more, if these blocks were not packed */
    uint64_t streamed_bytes; /* read from disk per decoded token, at the full context, with
                                experts and without lookup rows */
    bool is_doubtful;        /* the predictions; plan_is_doubtful() */
    /* Predictions (shown with `~`) by speed.h: tokens at the full context, and a prompt of
     * PLAN_PROMPT_TOKENS; 0 if a limit was not measured.  decode_tps assumes that this share of the
     * drafts is right; 0: none.  pass_tps: passes for one token. */
    double decode_tps, prefill_tps, assumed, pass_tps;
    /* If a model or a draft head drafts, or was left out: tokens a second with draft_depth drafts
     * for a pass, each of them accepted with the probability `acceptance`, and without it and its
     * memory. */
    double drafted_tps, undrafted_tps, acceptance;
    uint32_t draft_depth;
    enum mw_no_drafter no_drafter;
    enum mw_binds binds;
};

#endif
