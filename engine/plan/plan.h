/*
 * plan.h - how much memory and how fast: arithmetic only.
 *
 * The table below is what allocation follows, what refusal prints, what `memwall plan`
 * shows and what the dashboard's meter is made of.  No I/O and no allocation here.
 *
 * Order of giving: the floor first (program, tokenizer, logits, a chunk of the smallest
 * size, a ring of two slots, lookup rows, KV for the context asked, weights that are
 * always resident); then, while room is left, the ring up to the depth that adds
 * bandwidth, the chunk up to where computing takes as long as reading, copies of the
 * sliding rings for turns to go back to, and `pinned` takes all that remains, up to the
 * hot bytes.
 */
#ifndef MEMWALL_ENGINE_PLAN_PLAN_H
#define MEMWALL_ENGINE_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

/* A pinned block lies in whole pages and is read in whole pages: at most this much more
 * than its bytes. */
#define PLAN_BLOCK_ROUNDING 8192

/* Columns of a prompt chunk: what the smallest plan has; from where on more make a token
 * hardly cheaper to compute (a model of 1 B in Q4_K, tokens a second: 16: 80, 32: 108,
 * 64: 109, 128: 113, 512: 116); what it grows to where nothing is read or the limits of the
 * machine are not known; and the most. */
#define PLAN_CHUNK_MIN     16
#define PLAN_CHUNK_EVEN    64
#define PLAN_CHUNK_DEFAULT 512
#define PLAN_CHUNK_MAX     2048

/* Copies of what sliding layers see, one a turn; together they take at most so much. */
#define PLAN_COPIES       4
#define PLAN_COPIES_BYTES ((uint64_t)64 << 20)

/* What the plan is made from: sums of the model and choices of the person. */
struct plan_input {
    uint64_t budget_bytes;
    uint32_t n_ctx;
    uint32_t chunk_max; /* 0: the plan chooses; else the chunk asked for */
    int n_thread;

    uint64_t program_bytes;    /* measured, or the allowance */
    uint64_t text_token_bytes; /* of texts and ids, for each token of the context */
    uint64_t tokenizer_bytes; /* bound from the counts */
    uint64_t logits_bytes;
    uint64_t act_fixed_bytes; /* activations(chunk) = fixed + chunk * per_col */
    uint64_t act_col_bytes;
    uint64_t rows_col_bytes;   /* lookup rows of one token, rounded out */
    uint64_t resident_bytes;   /* norms and other small weights, always in memory */
    uint64_t hot_bytes;        /* of weights a decoded token streams, without resident */
    uint64_t prompt_bytes;     /* of those, what a prompt chunk reads */
    uint64_t slot_bytes;       /* of one ring slot (struct stream_shape) */
    uint32_t n_slot;           /* slots that the ring grows to, at least 2 */
    uint64_t ring_fixed_bytes; /* stream_overhead_bytes(): what it needs beside the slots */
    uint64_t rows_fixed_bytes; /* of the item `rows`, independent of the chunk */
    uint32_t n_block;          /* blocks of a full pass: rounding of pinned blocks */
    bool streams;              /* false: io mode mmap, no ring and nothing pinned */

    uint64_t kv_global_token_bytes;  /* all owning global layers, K and V */
    uint32_t kv_page_tokens;         /* positions of a page */
    uint64_t kv_sliding_token_bytes; /* all owning sliding layers */
    uint32_t n_swa;
    uint64_t experts_bytes; /* smallest cache of expert weights; 0: dense */

    /* Limits of this machine, bytes or operations a second; 0: not measured. */
    double disk_bytes_s, memory_bytes_s, flops_s;
    double flops_prompt_token;  /* of a prompt token */
    double kv_read_token_bytes; /* bytes of KV read by one decoded token at n_ctx */
};

struct plan {
    uint64_t budget_bytes;
    uint64_t row[MW_PLAN_ROWS]; /* bytes; the sum is at most the budget */
    uint64_t sum_bytes;
    uint32_t n_ctx;
    uint32_t chunk;          /* tokens of a prompt evaluated together */
    uint32_t n_slot;         /* of the ring; 0: everything is pinned */
    uint32_t n_copy;         /* turns whose rings are kept in memory, part of kv_sliding */
    uint64_t pinned_bytes;   /* for blocks that are kept, rounding included; no resident */
    uint64_t streamed_bytes; /* read from disk per decoded token, when all is lent back */
    /* Predictions (`~`); 0 where a limit was not measured. */
    double decode_tps, prefill_tps;
    enum mw_binds binds;
};

/*
 * What `reserve` holds beside rows of so many bytes: page tables (8 bytes for each page
 * of 4 KiB, the levels above it in the fixed part), the kernel's and the touched part of
 * each thread's stack, slack of the allocator.
 */
uint64_t plan_reserve_bytes(uint64_t rows_bytes, int n_thread);

/*
 * Fill *out.  Returns 0; or -1 with *e (ERR_BUDGET, a sentence with the sum, the
 * budget and the nearest budget and context that would fit) and *out holding the
 * table of the floor, whose sum is above the budget.
 */
int plan_make(const struct plan_input *in, struct plan *out, struct err *e);

/* The smallest budget that plan_make takes for this input, and the largest context that
 * fits the input's budget (0: none does). */
uint64_t plan_smallest_budget(const struct plan_input *in);
uint32_t plan_largest_ctx(const struct plan_input *in);

/* t_decode = max(S / D, (H + A) / M), seconds; the term that wins in *binds (may be
 * NULL).  0 and MW_BINDS_NONE where a limit that it needs was not measured. */
double plan_decode_s(const struct plan_input *in, uint64_t streamed_bytes,
                     enum mw_binds *binds);

/* t_prefill = max(S / D, flops(chunk) / F) of one chunk of the prompt, seconds; S: what
 * a prompt pass reads.  0 where a limit was not measured, and for a mixture of experts. */
double plan_prefill_s(const struct plan_input *in, uint64_t streamed_bytes, uint32_t chunk);

/* Sliding rings hold n_swa + chunk - 1 positions, or the whole context if that is less,
 * rounded up to whole blocks of attention (PLAN_ATTN_BLOCK, the ATTN_BLOCK of compute). */
#define PLAN_ATTN_BLOCK 32
uint32_t plan_sliding_slots(uint32_t n_swa, uint32_t chunk, uint32_t n_ctx);

/* A copy of what the sliding layers see from one position, in whole pages. */
uint64_t plan_copy_bytes(const struct plan_input *in);

#endif
