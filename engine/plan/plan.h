/*
 * plan.h - how much memory the options take and how fast they are: arithmetic only.
 *
 * Allocation follows this table; `memwall plan`, the message of a refusal and the meter of
 * the dashboard show it.  Its items are enum mw_plan_row (engine/telemetry/sample.h).
 *
 * The floor comes first: program, tokenizer, logits, the smallest chunk, a ring of two slots,
 * lookup rows, KV for the requested context, and the weights that are always resident.  The
 * rest of the budget goes, in this order, to
 *
 *   1. the ring, up to the number of slots that adds bandwidth (engine/stream/shape.h);
 *   2. the chunk, until computing it takes as long as reading its weights;
 *   3. copies of the sliding rings, one per turn, for going back;
 *   4. pinned weights, up to the hot bytes (the weights that one decoded token reads);
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

/* Copies of the sliding rings, one per turn, and the most that all of them may take. */
#define PLAN_COPIES       4
#define PLAN_COPIES_BYTES ((uint64_t)64 << 20)

/* Weights of one type, and how fast they are multiplied. */
struct plan_weights {
    char type[16];         /* "Q4_K"; "": all types with few weights */
    double token_bytes;    /* that a decoded token multiplies with, without experts */
    double expert_bytes;   /* of the experts that it uses */
    double prompt_flops;   /* operations of a prompt token */
    double column_bytes_s; /* rates of struct mw_rate; 0: not measured */
    double chunk_flops_s;
    double speedup; /* of prompts, by the library that multiplies this type */
};
#define PLAN_WEIGHTS 5

/* The input of a plan: sums over the model, and the user's choices. */
struct plan_input {
    uint64_t budget_bytes;
    uint32_t n_ctx;
    uint32_t chunk_max; /* the requested chunk; 0: the plan chooses */
    int n_thread;

    uint64_t program_bytes;    /* the allowance */
    uint64_t program_now_bytes; /* measured when the model was opened */
    uint64_t blas_bytes;       /* of OpenBLAS, part of the row "program"; 0: not used */
    uint64_t text_token_bytes; /* of texts and ids, per token of the context */
    uint64_t tokenizer_bytes;  /* upper bound, from the counts */
    uint64_t logits_bytes;
    uint64_t act_fixed_bytes; /* activations(chunk) = fixed + chunk * col */
    uint64_t act_col_bytes;
    uint64_t rows_col_bytes;   /* lookup rows of one token, rounded out */
    uint64_t resident_bytes;   /* norms and other small weights, always in memory */
    uint64_t hot_bytes;        /* of weights that a decoded token reads, without resident */
    uint64_t prompt_bytes;     /* of those, the part that a prompt chunk reads */
    uint64_t slot_bytes;       /* of one ring slot (struct stream_shape) */
    uint32_t n_slot;           /* slots that the ring grows to, at least 2 */
    uint64_t ring_fixed_bytes; /* stream_overhead_bytes(): besides the slots */
    uint64_t rows_fixed_bytes; /* of the item `rows`, independent of the chunk */
    uint32_t n_block;          /* blocks of a full pass; each is rounded when pinned */
    bool streams;              /* false: --io mmap, no ring and nothing pinned */

    uint64_t kv_global_token_bytes;  /* of all global layers that own KV, K and V */
    uint32_t kv_page_tokens;         /* positions per page */
    uint64_t kv_sliding_token_bytes; /* of all sliding layers that own KV */
    uint32_t n_swa;
    /* The cache of experts takes fixed + n * slot bytes, with n from the minimum to all
     * experts; n_expert_all 0: a dense model. */
    uint64_t expert_fixed_bytes, expert_slot_bytes;
    uint32_t n_expert_min, n_expert_all;
    uint64_t experts_token_bytes; /* of experts that a decoded token uses */
    /* Measured: share of the used experts that had to be read, relative to the share of all
     * experts that was not in memory.  1 for an even choice; 0: not measured, 1 is assumed. */
    double expert_miss;
    uint64_t tables_bytes; /* to keep every lookup row once it was read */

    /* Limits of this machine, in bytes or operations per second; 0: not measured. */
    double disk_bytes_s, memory_bytes_s;
    double lookup_s;                           /* to read the lookup rows of a token */
    double kv_read_token_bytes;                /* KV that one decoded token reads at n_ctx */
    double kv_far_read_bytes;   /* that it reads less for each token less in the context */
    struct plan_weights weights[PLAN_WEIGHTS]; /* [n_weights] */
    uint32_t n_weights;
};

struct plan {
    uint64_t budget_bytes;
    uint64_t row[MW_PLAN_ROWS]; /* bytes; the sum is at most the budget */
    uint64_t sum_bytes;
    uint32_t n_ctx;
    uint32_t chunk;          /* prompt tokens evaluated together */
    uint32_t n_slot;         /* of the ring; 0: everything is pinned */
    bool keeps_rows;         /* lookup rows stay in memory once they were read */
    uint32_t n_copy;         /* turns whose rings are copied in memory, part of kv_sliding */
    uint32_t n_expert;       /* experts that the cache holds, */
    uint32_t n_expert_all;   /* of all experts; 0: a dense model */
    double expert_hits;      /* predicted share of used experts that are in memory */
    bool hits_measured;      /* by this session; otherwise an even choice is assumed */
    uint64_t pinned_bytes;   /* for pinned blocks, rounding included, without resident */
    uint64_t streamed_bytes; /* read from disk per decoded token, at the full context, with
                                experts and without lookup rows */
    /* Predictions (shown with `~`); 0 if a limit was not measured. */
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
 * Make the plan.  Returns 0; or -1 with *e (ERR_BUDGET: the sum, the budget, and the nearest
 * budget and context that would fit) and the floor in *out, whose sum is above the budget.
 */
int plan_make(const struct plan_input *in, struct plan *out, struct err *e);

/* The smallest budget that plan_make() accepts for this input, and the largest context that
 * fits the input's budget (0: none does). */
uint64_t plan_smallest_budget(const struct plan_input *in);
uint32_t plan_largest_ctx(const struct plan_input *in);

/*
 * Seconds to multiply the weights of a decoded token, without experts: the sum of H / K over
 * their types, with H the bytes that a token uses and K the rate of one column.  Without a
 * measured K, it is the rate of memory, which no kernel exceeds.  0: neither is known.
 */
double plan_multiply_s(const struct plan_input *in);
/* The same for the experts that a token uses. */
double plan_experts_s(const struct plan_input *in);

/*
 * Seconds per decoded token: max((S + N) / D, C + (B + A) / M + max(E, N / D) + R), with S
 * streamed bytes, D disk rate, C plan_multiply_s(), B bytes of norms and other small weights, A
 * bytes of KV read, M memory rate, E plan_experts_s(), N bytes of experts that have to be read,
 * and R the time of lookups (0 if rows are kept).  Experts are read when the router has chosen
 * them.  Meanwhile only other experts are computed; nothing is while lookup rows are read.
 * *binds (may be NULL) gets the larger term.  Returns 0 and MW_BINDS_NONE if a limit it needs
 * was not measured.
 */
double plan_decode_s(const struct plan_input *in, uint64_t streamed_bytes,
                     uint64_t missed_bytes, bool keeps_rows, enum mw_binds *binds);

/*
 * Seconds of arithmetic for one prompt token: the sum of its operations / F over the weight
 * types, F the rate of a chunk.  0: not measured, or a mixture of experts.  Machine limits
 * cannot predict those: neither the experts read nor the tokens per expert are known in
 * advance.
 */
double plan_prompt_token_s(const struct plan_input *in);

/* Seconds per chunk of a prompt: max(S / D, chunk * plan_prompt_token_s()), with S the bytes
 * that the chunk reads.  Returns 0 if a limit was not measured, and for a mixture of experts.
 */
double plan_prefill_s(const struct plan_input *in, uint64_t streamed_bytes, uint32_t chunk);

/* Slots of a sliding ring: n_swa + chunk - 1 positions, or the context if that is less,
 * rounded up to blocks of attention (PLAN_ATTN_BLOCK is the ATTN_BLOCK of compute). */
#define PLAN_ATTN_BLOCK 32
uint32_t plan_sliding_slots(uint32_t n_swa, uint32_t chunk, uint32_t n_ctx);

/* Bytes of one copy of the sliding rings, in complete pages. */
uint64_t plan_copy_bytes(const struct plan_input *in);

#endif
