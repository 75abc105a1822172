/*
 * plan.h - how much memory the options take and how fast they are: arithmetic only.
 *
 * Allocation follows this table; `memwall plan`, the message of a refusal and the meter of
 * the dashboard show it.  Its items are enum mw_plan_row (engine/telemetry/sample.h).
 *
 * The floor comes first: program, tokenizer, logits, the smallest chunk, a ring of two slots,
 * lookup rows, KV for the requested context, recurrent state, and the weights that are always
 * resident.  The rest of the budget goes, in this order, to
 *
 *   1. the ring, up to the number of slots that adds bandwidth (engine/stream/shape.h);
 *   2. the chunk, until computing it takes as long as reading its weights;
 *   3. copies of the sliding rings and the recurrent state, one per turn, for going back;
 *   4. pinned weights, up to the hot bytes (the weights that one decoded token reads).  Packed
 *      ones take less; the size of their blocks is a prediction, so a ring of two slots stays
 *      for blocks that turn out larger;
 *   5. cached experts, up to all of them.  A pinned byte saves a byte per token, but a byte of
 *      an expert is used only by the tokens that choose it, so pinned weights come first;
 *   6. lookup rows that stay in memory once they were read, if there is room for all of them:
 *      then a token reads nothing that was read before.
 */
#ifndef MEMWALL_ENGINE_PLAN_PLAN_H
#define MEMWALL_ENGINE_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/limits/limits.h"
#include "engine/telemetry/sample.h"

/* A pinned block takes the complete pages that it is read in, at most this much more than its
 * bytes. */
#define PLAN_BLOCK_ROUNDING 8192

/*
 * Tokens of a prompt chunk: the smallest chunk; the size from which more tokens hardly make
 * one cheaper to compute; the size if nothing is read or the machine was not measured; and
 * the largest.  Tokens per second of a model of 1 B in Q4_K by chunk: 16: 80, 32: 108,
 * 64: 109, 128: 113, 512: 116.
 */
#define PLAN_CHUNK_MIN     16
#define PLAN_CHUNK_EVEN    64
#define PLAN_CHUNK_DEFAULT 512
#define PLAN_CHUNK_MAX     2048

/* Copies of rings and recurrent state, one per turn, and the most that all of them may take. */
#define PLAN_COPIES       4
#define PLAN_COPIES_BYTES ((uint64_t)64 << 20)

/* Tokens of the prompt that prefill_tps is predicted for. */
#define PLAN_PROMPT_TOKENS 512

/*
 * The layers of a pass have two parts: every token of a prompt runs through the first, which
 * ends with the last keys and values, and only tokens whose logits are needed go on.
 */
enum plan_part { PLAN_PROMPT, PLAN_REST, PLAN_PARTS };

/* Weights of one type, and how fast they are multiplied. */
struct plan_weights {
    char type[16];                    /* "Q4_K"; "": all types with few weights */
    double token_bytes[PLAN_PARTS];   /* that a token multiplies with, without experts */
    double expert_bytes[PLAN_PARTS];  /* of the experts that it uses */
    double token_flops, expert_flops; /* operations for them in the part PLAN_PROMPT */
    double column_bytes_s;            /* rates of struct mw_rate; 0: not measured */
    double chunk_flops_s;
    double speedup;     /* of prompts, by the library that multiplies this type */
    double saved_share; /* of its bytes, by packing, once they are pinned */
    char laid_type[16];         /* the form of pinned weights: "Q4_K-x16"; "": as in the file */
    double laid_column_bytes_s; /* its rates; the bytes are those in this form */
    double laid_chunk_flops_s;
};
#define PLAN_WEIGHTS 5

/* Work of a part besides products, counted from the shape of the model.  Values are floats. */
struct plan_steps {
    double n_round;   /* jobs that the threads share in a pass of one token, without products */
    double n_product; /* products; matrices of the same input are one */
    double n_block;   /* blocks in which their matrices are read */
    double n_value; /* values of a token in norms, sums, rope, packing and checks */
    double n_curve; /* values of a token in activation functions and soft-caps */
    /* Attention of a token, for each position that it sees: values of keys and values that are
     * loaded, and multiply-adds.  far: layers that see all positions; near: those with a
     * window. */
    double far_load, far_mac, near_load, near_mac;
};

/* The costs of these steps on this machine: struct mw_steps with the types of the context. */
struct plan_costs {
    double round_s, wake_s;
    double value_s, curve_s; /* of a thread */
    double load_s, mac_s;    /* of a thread */
    double read_cpu_s;       /* processor time to read a byte from disk */
    double contention;       /* of reading and computing; speed.h */
};

/* Factors on the terms of the time of a token, from a measurement (anchor.h). */
struct plan_factors {
    bool is_set;      /* false: the times are those of the formula */
    bool is_doubtful; /* the tokens were few */
    double disk, processors, attention, lookups;
    double others;  /* of the processors' time is added to that of prompts */
    double crowded; /* and this to that of tokens; not less */
    double whole;   /* on the time without fixed_s */
    double fixed_s; /* is added */
};

/* The input of a plan: sums over the model, and the user's choices. */
struct plan_input {
    uint64_t budget_bytes;
    uint32_t n_ctx;
    uint32_t chunk_max;    /* the requested chunk; 0: the plan chooses */
    uint32_t chunk_target; /* of plan_chunk_target() for earlier limits; 0: for these limits */
    int n_thread;

    uint64_t program_bytes;       /* the allowance */
    uint64_t program_now_bytes;   /* measured when the model was opened */
    uint64_t program_files_bytes; /* part of it: pages of files */
    uint64_t blas_bytes;          /* of OpenBLAS, part of the row "program"; 0: not used */
    uint64_t text_token_bytes;    /* of texts and ids, per token of the context */
    uint64_t tokenizer_bytes;     /* upper bound, from the counts */
    uint64_t tokenizer_build_bytes; /* in addition, before the items below are allocated */
    uint64_t logits_bytes;
    uint64_t act_fixed_bytes; /* activations(chunk) = fixed + chunk * col */
    uint64_t act_col_bytes;
    uint64_t rows_col_bytes; /* lookup rows of one token, rounded out */
    uint64_t resident_bytes; /* norms and other small weights, always in memory */
    uint64_t hot_bytes;      /* of weights that a decoded token reads, without resident */
    uint64_t prompt_bytes;   /* of those, the part that a prompt chunk reads */
    uint64_t saved_bytes;    /* of hot_bytes, by packing, once all are pinned; 0: not packed */
    uint64_t landing_bytes;  /* part of the pinned memory: where blocks arrive or are laid out */
    uint64_t slot_bytes;     /* of one ring slot (struct stream_shape) */
    uint32_t n_slot;         /* slots that the ring grows to, at least 2 */
    uint64_t ring_fixed_bytes; /* stream_overhead_bytes(): besides the slots */
    uint64_t rows_fixed_bytes; /* of the item `rows`, independent of the chunk */
    uint32_t n_block;          /* blocks of a full pass; each is rounded when pinned */
    bool streams;              /* false: --io mmap, no ring and nothing pinned */

    uint64_t kv_global_token_bytes;  /* of all global layers that own KV, K and V */
    uint32_t kv_page_tokens;         /* positions per page */
    int kv_k, kv_v;                  /* enum kv_type of the context */
    uint64_t kv_sliding_token_bytes; /* of all sliding layers that own KV */
    uint32_t n_swa;
    uint64_t recurrent_bytes;      /* state of layers without keys and values */
    uint64_t recurrent_copy_bytes; /* of a copy of it */
    /* The cache of experts takes fixed + n * slot bytes, with n from the minimum to all
     * experts; n_expert_all 0: a dense model.  With n_expert_read or more, all experts that a
     * token needs of a layer are read at the same time. */
    uint64_t expert_fixed_bytes, expert_slot_bytes;
    uint32_t n_expert_min, n_expert_read, n_expert_all;
    uint64_t experts_token_bytes; /* of experts that a decoded token uses */
    struct mw_expert_choice choice; /* an even one is assumed if it was never observed */
    uint64_t tables_bytes;   /* to keep every lookup row once it was read */

    /* Limits of this machine, in bytes or operations per second; 0: not measured. */
    double disk_bytes_s, memory_bytes_s;
    double lookup_s; /* to read the lookup rows of a token */
    /* KV that a token reads for each position in layers that see all, and in a window. */
    double kv_far_bytes[PLAN_PARTS], kv_near_bytes[PLAN_PARTS];
    uint32_t n_lookup;                      /* lookup tables of which a token reads a row */
    uint32_t n_expert_layer, n_expert_used; /* experts per layer, and used by a token */
    uint32_t n_moe_layer;                   /* layers with experts */
    struct plan_steps steps[PLAN_PARTS];
    struct plan_costs costs;
    struct plan_factors factors;
    struct plan_weights weights[PLAN_WEIGHTS]; /* [n_weights] */
    uint32_t n_weights;
    bool is_doubtful; /* a limit was measured in a bad moment */
};

struct plan {
    uint64_t budget_bytes;
    uint64_t row[MW_PLAN_ROWS]; /* bytes; the sum is at most the budget */
    uint64_t sum_bytes;
    uint32_t n_ctx;
    uint32_t chunk;        /* prompt tokens evaluated together */
    uint32_t n_slot;       /* of the ring; 0: everything is pinned */
    double streamed_share; /* of the blocks, at the full context */
    bool keeps_rows;       /* lookup rows stay in memory once they were read */
    uint32_t n_copy;       /* turns that are copied in memory; plan_copy_row() */
    uint32_t n_expert;     /* experts that the cache holds, */
    uint32_t n_expert_all; /* of all experts; 0: a dense model */
    double expert_hits;    /* predicted share of used experts that are in memory */
    bool hits_measured;    /* from an observed choice; otherwise an even one is assumed */
    uint64_t
        pinned_bytes; /* for pinned blocks, rounding and landing included, without resident */
    uint64_t saved_bytes;    /* more, if these blocks were not packed */
    uint64_t streamed_bytes; /* read from disk per decoded token, at the full context, with
                                experts and without lookup rows */
    bool is_doubtful;        /* the predictions; plan_is_doubtful() */
    /* Predictions (shown with `~`) by speed.h: a token at the full context, and a prompt of
     * PLAN_PROMPT_TOKENS; 0 if a limit was not measured. */
    double decode_tps, prefill_tps;
    enum mw_binds binds;
};

/*
 * The item `reserve` for other items of rows_bytes: page tables (8 bytes per page of 4 KiB;
 * the levels above are in the fixed part), the kernel's stack and the touched part of the
 * own stack of each thread, and slack of the allocator.
 */
uint64_t plan_reserve_bytes(uint64_t rows_bytes, int n_thread);

/*
 * Predict again for a plan that was made: *p gets the figures that follow from the limits in
 * *in.  Its memory does not change.
 */
void plan_predict(const struct plan_input *in, struct plan *p);

/*
 * Make the plan.  Returns 0; or -1 with *e (ERR_BUDGET: the sum, the budget, and the nearest
 * budget and context that would fit) and the floor in *out, whose sum is above the budget.
 */
int plan_make(const struct plan_input *in, struct plan *out, struct err *e);

/* The chunk that takes as long to compute as its weights take to read, by the limits.  A larger
 * one would only take memory from pinned weights. */
uint32_t plan_chunk_target(const struct plan_input *in);

/* The most that a budget may be if none is given: three quarters of free_bytes.  The rest is
 * left to other programs and to the page cache. */
uint64_t plan_auto_limit(uint64_t free_bytes);

/*
 * The budget if none is given: all that the plan has a use for, which is what keeps every block
 * and expert in memory, the usual chunk, and copies of turns.  Rows of lookup tables are a cache
 * above that, which saves little: they are left out unless all of them fit.  At most
 * plan_auto_limit().
 */
uint64_t plan_default_budget(const struct plan_input *in, uint64_t free_bytes);

/* The budget from which on nothing is read for each token but rows of lookup tables: all blocks
 * and experts are in memory.  UINT64_MAX: there is no such budget. */
uint64_t plan_reads_nothing_budget(const struct plan_input *in);

/* The smallest budget that plan_make() accepts for this input, and the largest context that
 * fits the input's budget (0: none does). */
uint64_t plan_smallest_budget(const struct plan_input *in);
uint32_t plan_largest_ctx(const struct plan_input *in);

/* Do predictions begin at a limit that was measured in a bad moment, or at few tokens? */
bool plan_is_doubtful(const struct plan_input *in);

/* Memory that pins every block, rounding and landing included. */
uint64_t plan_pinned_most(const struct plan_input *in);

/* Slots of a sliding ring: n_swa + chunk - 1 positions, or the context if that is less,
 * rounded up to blocks of attention (PLAN_ATTN_BLOCK is the ATTN_BLOCK of compute). */
#define PLAN_ATTN_BLOCK 32
uint32_t plan_sliding_slots(uint32_t n_swa, uint32_t chunk, uint32_t n_ctx);

/* Bytes of one copy of the sliding rings and the recurrent state, in complete pages. */
uint64_t plan_copy_bytes(const struct plan_input *in);
/* The item that copies are part of: that of the state, else that of the rings. */
enum mw_plan_row plan_copy_row(const struct plan_input *in);

#endif
