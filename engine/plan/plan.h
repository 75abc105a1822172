/*
 * plan.h - how much memory the options take and how fast they are: arithmetic only.
 *
 * struct plan (table.h) is made from struct plan_input (input.h).
 *
 * The floor comes first: program, tokenizer, logits, the smallest chunk, a ring of two slots,
 * lookup rows, KV and index keys for the requested context, recurrent state, and the weights
 * that are always resident.  The rest of the budget goes, in this order, to
 *
 *   1. the ring, up to the number of slots that adds bandwidth (engine/stream/shape.h);
 *   2. the drafter and the scores of drafted tokens, and the chunk, until computing it takes as
 *      long as reading its weights;
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
#include "engine/plan/input.h"
#include "engine/plan/table.h"

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

/*
 * The plan of a session whose budget became budget_bytes while it works: *from with another
 * amount of what may come and go between two passes.  The least is a ring of two slots and the
 * experts that a request needs.  More goes to the ring, to the experts that a token uses of a
 * layer, to copies of turns, to pinned weights, to all experts, and to lookup rows if all of them
 * fit; less is given back in the opposite order.  Everything else stays: context, chunk, drafts.
 * Returns false, with the least in *out, if the budget is below it.  Mapped weights, which are
 * not part of the budget, stay as they are.
 */
bool plan_with_budget(const struct plan_input *in, const struct plan *from,
                      uint64_t budget_bytes, struct plan *out);

/* The item that such a plan would give back next; MW_PLAN_ROWS: none. */
enum mw_plan_row plan_next_to_give(const struct plan_input *in, const struct plan *p);

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
