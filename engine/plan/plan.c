#include "config.h"

#include "engine/base/numbers.h"
#include "engine/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/plan/speed.h"

#define DRAFT_SHARE        100 /* of the weights that a token reads, for drafts */
#define LOW_SLACK_SHARE    64  /* of copies of streamed blocks, for what they may take more */
#define LOW_SLACK_BLOCKS   8  /* of them, or fewer if the model has few blocks */
#define KV_DISK_GAIN       1.02 /* in tokens a second, for pages that would fit memory */
#define KV_DISK_LEAST      0.95 /* of the rate of tokens, for faster prompts */
#define RESERVE_BASE       (2 * MIB)
#define RESERVE_THREAD     (224 * KIB) /* attention touches 192 of its own: test_stacks */
#define RESERVE_PAGE_SHARE 512 /* a page table entry has 8 bytes per 4096 */

/* Terms come from a file.  A sum that overflows stays at the maximum, which no budget reaches,
 * instead of wrapping to a small number. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t r;

    return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t r;

    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    uint64_t rest = to > 1 ? n % to : 0;

    return rest == 0 ? n : sum(n, to - rest);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t fixed_reserve(int n_thread)
{
    return RESERVE_BASE + product(RESERVE_THREAD, n_thread > 0 ? (uint64_t)n_thread : 1);
}

uint64_t plan_reserve_bytes(uint64_t rows_bytes, int n_thread)
{
    return sum(fixed_reserve(n_thread),
               round_up(rows_bytes, RESERVE_PAGE_SHARE) / RESERVE_PAGE_SHARE);
}

/* The largest sum of the other items that fits the budget together with its reserve: the
 * inverse of plan_reserve_bytes(). */
static uint64_t largest_sum(uint64_t budget_bytes, int n_thread)
{
    uint64_t fixed = fixed_reserve(n_thread);
    uint64_t rest;

    if (budget_bytes <= fixed)
        return 0;
    rest = budget_bytes - fixed;
    /* The largest x with x + ceil(x / 512) <= rest: 512 of each 513 bytes, and all but one of
     * those that are left. */
    uint64_t x = rest / (RESERVE_PAGE_SHARE + 1) * RESERVE_PAGE_SHARE;
    uint64_t tail = rest % (RESERVE_PAGE_SHARE + 1);

    return x + (tail > 0 ? tail - 1 : 0);
}

uint32_t plan_sliding_slots(uint32_t n_swa, uint32_t chunk, uint32_t n_ctx)
{
    uint64_t want, most = round_up(n_ctx, PLAN_ATTN_BLOCK);

    if (n_swa == 0)
        return 0;
    want = (uint64_t)n_swa + (chunk > 0 ? chunk : 1) - 1;
    return (uint32_t)smaller(smaller(round_up(want, PLAN_ATTN_BLOCK), most),
                             UINT32_MAX / PLAN_ATTN_BLOCK * PLAN_ATTN_BLOCK);
}

uint64_t plan_copy_bytes(const struct plan_input *in)
{
    uint64_t seen = in->n_swa > 0 ? in->n_swa - 1 : 0;
    uint64_t bytes = sum(product(in->kv_sliding_token_bytes, smaller(seen, in->n_ctx)),
                         in->recurrent_copy_bytes);

    return bytes > 0 ? round_up(sum(bytes, 128), 4096) : 0;
}

enum mw_plan_row plan_copy_row(const struct plan_input *in)
{
    return in->recurrent_bytes > 0 ? MW_ROW_KV_RECURRENT : MW_ROW_KV_SLIDING;
}

static uint32_t copy_target(const struct plan_input *in)
{
    uint64_t bytes = plan_copy_bytes(in);

    return bytes > 0 ? (uint32_t)smaller(PLAN_COPIES, PLAN_COPIES_BYTES / bytes) : 0;
}

uint64_t plan_pinned_most(const struct plan_input *in)
{
    if (in->n_block == 0)
        return 0;
    return sum(sum(in->hot_bytes - in->saved_bytes, product(in->n_block, PLAN_BLOCK_ROUNDING)),
               in->landing_bytes);
}

/* How a plan divides the budget; everything else follows from the input. */
struct division {
    uint32_t n_ctx, chunk, n_draft, n_slot, n_copy;
    uint32_t n_expert;
    uint64_t pinned_bytes, low_bytes, low_beside_bytes;
    uint32_t low; /* the type of copies, of the input's */
    bool keeps_rows;
    bool has_head;
    uint64_t head_pinned_bytes;
    uint32_t n_head_expert;
    bool has_kv_disk;
    uint32_t kv_keep_pages; /* of the classes of layers in turn */
};

static uint32_t larger_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* --- keys and values on the disk --- */

/* Pages on their way from the disk: 12 MiB of them, because eight reads of 1 MiB are in flight
 * (stream/fetch.h) and a round of attention has two pages. */
#define KV_SLOTS_BYTES (12 * MIB)
#define KV_SLOTS_LEAST 4
#define KV_SLOTS_MOST  32

static uint32_t kv_slots(const struct plan_input *in)
{
    uint64_t n = in->kv_slot_bytes > 0 ? KV_SLOTS_BYTES / in->kv_slot_bytes : 0;

    return n < KV_SLOTS_LEAST ? KV_SLOTS_LEAST : (uint32_t)smaller(n, KV_SLOTS_MOST);
}

/* In whole huge pages, because reads into small ones are slow. */
static uint64_t kv_slots_bytes(const struct plan_input *in)
{
    return whole_huge_pages(product(in->kv_slot_bytes, kv_slots(in)));
}

static uint32_t kv_pages(const struct plan_input *in, uint32_t n_ctx)
{
    return (uint32_t)(round_up(n_ctx, in->kv_page_tokens) / in->kv_page_tokens);
}

/* Pages that a pass may write after complete ones, the first of which has its last positions. */
static uint32_t kv_tail_pages(const struct plan_input *in, const struct division *c)
{
    return kv_pages(in, larger_u32(c->chunk, c->n_draft + 1) + in->kv_page_tokens - 1);
}

/* Pages of a class that can be on the disk. */
static uint32_t kv_far_pages(const struct plan_input *in, const struct division *c)
{
    uint32_t all = kv_pages(in, c->n_ctx), tail = kv_tail_pages(in, c);

    return all > tail ? all - tail : 0;
}

/* Pages from the first on that class i keeps in memory. */
static uint32_t kv_keep(const struct plan_input *in, const struct division *c, uint32_t i)
{
    uint64_t far = kv_far_pages(in, c), before = far * i;

    if (c->kv_keep_pages <= before)
        return 0;
    return (uint32_t)smaller(c->kv_keep_pages - before, far);
}

static uint32_t kv_keep_most(const struct plan_input *in, const struct division *c)
{
    return (uint32_t)smaller(product(kv_far_pages(in, c), in->n_kv_class), UINT32_MAX);
}

/* Memory of the layers that see all positions. */
static uint64_t kv_global_bytes(const struct plan_input *in, const struct division *c)
{
    uint64_t bytes = kv_slots_bytes(in);

    if (!c->has_kv_disk)
        return product(in->kv_global_token_bytes, round_up(c->n_ctx, in->kv_page_tokens));
    for (uint32_t i = 0; i < in->n_kv_class; i++)
        bytes = sum(bytes, product(product(in->kv_class[i].token_bytes, in->kv_page_tokens),
                                   smaller(kv_keep(in, c, i) + kv_tail_pages(in, c),
                                           kv_pages(in, c->n_ctx))));
    return bytes;
}

static uint64_t kv_disk_bytes(const struct plan_input *in, const struct division *c)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; c->has_kv_disk && i < in->n_kv_class; i++)
        bytes = sum(bytes, product(in->kv_class[i].page_bytes,
                                   kv_pages(in, c->n_ctx) - kv_keep(in, c, i)));
    return bytes;
}

static bool can_use_disk(const struct plan_input *in)
{
    return in->kv_disk_why[0] == '\0' && in->n_kv_class > 0 && in->kv_page_tokens > 0 &&
           in->streams;
}

/* How many bytes a byte of memory keeps from being read for each token: a pinned block is read
 * once, and takes less if it is packed and more where it is rounded. */
static double pinned_value(const struct plan_input *in)
{
    uint64_t most = plan_pinned_most(in);

    return most > 0 ? (double)in->hot_bytes / (double)most : 0;
}

static void fill_kv(const struct plan_input *in, const struct division *c, struct plan *out)
{
    out->has_kv_disk = c->has_kv_disk;
    out->kv_keep_pages = c->kv_keep_pages;
    if (!c->has_kv_disk)
        return;
    out->n_kv_slot = kv_slots(in);
    out->kv_tail = kv_tail_pages(in, c) * in->kv_page_tokens;
    out->kv_disk_bytes = kv_disk_bytes(in, c);
    for (uint32_t i = 0; i < in->n_kv_class; i++) {
        uint32_t keep = kv_keep(in, c, i);

        out->kv_keep[i] =
            keep == kv_far_pages(in, c) ? UINT32_MAX : keep * in->kv_page_tokens;
    }
}

static uint32_t head_slots(const struct plan_input *in, const struct division *c)
{
    return c->has_head && c->head_pinned_bytes < in->head.pinned_most ? 2 : 0;
}

/* The item of the draft head. */
static uint64_t head_bytes(const struct plan_input *in, const struct division *c)
{
    const struct plan_head *h = &in->head;
    uint64_t pages = 0, bytes = h->fixed_bytes;

    if (!c->has_head)
        return 0;
    if (in->kv_page_tokens > 0)
        pages = round_up(c->n_ctx, in->kv_page_tokens) / in->kv_page_tokens;
    bytes = sum(bytes, product(h->col_bytes, c->chunk));
    bytes = sum(bytes, product(product(h->kv_token_bytes, in->kv_page_tokens), pages));
    bytes = sum(bytes, product(h->kv_index_page_bytes, pages));
    bytes = sum(bytes, head_slots(in, c) > 0 ? h->ring_bytes : 0);
    bytes = sum(bytes, product(h->expert_slot_bytes, c->n_head_expert));
    return sum(bytes, c->head_pinned_bytes);
}

/* The tokenizer is built before most items are allocated, in their memory.  If building needs
 * more than that, the rest counts as memory of the tokenizer. */
static void add_building(const struct plan_input *in, uint64_t *row)
{
    uint64_t later = row[MW_ROW_PINNED] - in->resident_bytes;

    for (int i = 0; i < MW_PLAN_ROWS; i++)
        if (i != MW_ROW_PROGRAM && i != MW_ROW_TOKENIZER && i != MW_ROW_PINNED)
            later = sum(later, row[i]);
    if (in->tokenizer_build_bytes > later)
        row[MW_ROW_TOKENIZER] =
            sum(row[MW_ROW_TOKENIZER], in->tokenizer_build_bytes - later);
}

/* The item `drafter`. */
static uint64_t drafter_bytes(const struct plan_input *in, const struct division *c)
{
    if (c->n_draft == 0)
        return 0;
    return sum(c->low_bytes, sum(sum(in->drafter_bytes, product(in->drafter_token_bytes, c->n_ctx)),
               product(in->replay_col_bytes, c->n_draft + 1)));
}

/* Fill the table for this division, whether or not it fits the budget. */
static void fill(const struct plan_input *in, const struct division *c, struct plan *out)
{
    uint64_t *row = out->row;
    uint64_t rows = 0;

    memset(out, 0, sizeof *out);
    row[MW_ROW_PROGRAM] =
        sum(sum(in->program_bytes, in->blas_bytes), product(in->text_token_bytes, c->n_ctx));
    row[MW_ROW_TOKENIZER] = in->tokenizer_bytes;
    row[MW_ROW_ACTIVATIONS] = sum(in->act_fixed_bytes, product(in->act_col_bytes, c->chunk));
    row[MW_ROW_LOGITS] = sum(in->logits_bytes, product(in->draft_bytes, c->n_draft));
    if (in->streams)
        row[MW_ROW_RING] = sum(in->ring_fixed_bytes,
                                whole_huge_pages(product(in->slot_bytes, c->n_slot)));
    row[MW_ROW_ROWS] = sum(in->rows_fixed_bytes, product(in->rows_col_bytes, c->chunk));
    if (c->keeps_rows)
        row[MW_ROW_ROWS] = sum(row[MW_ROW_ROWS], in->tables_bytes);
    row[MW_ROW_KV_GLOBAL] = kv_global_bytes(in, c);
    row[MW_ROW_KV_SLIDING] =
        product(in->kv_sliding_token_bytes, plan_sliding_slots(in->n_swa, c->chunk, c->n_ctx));
    row[MW_ROW_KV_RECURRENT] = in->recurrent_bytes;
    if (in->kv_page_tokens > 0)
        row[MW_ROW_KV_INDEX] =
            product(in->kv_index_page_bytes,
                    round_up(c->n_ctx, in->kv_page_tokens) / in->kv_page_tokens);
    row[MW_ROW_DRAFTER] = sum(drafter_bytes(in, c), head_bytes(in, c));
    row[plan_copy_row(in)] =
        sum(row[plan_copy_row(in)], product(plan_copy_bytes(in), c->n_copy));
    row[MW_ROW_EXPERTS] =
        sum(in->expert_fixed_bytes, product(in->expert_slot_bytes, c->n_expert));
    row[MW_ROW_PINNED] = sum(in->resident_bytes, c->pinned_bytes);
    add_building(in, row);
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        rows = sum(rows, row[i]);
    row[MW_ROW_RESERVE] = plan_reserve_bytes(rows, in->n_thread);

    out->budget_bytes = in->budget_bytes;
    out->sum_bytes = sum(rows, row[MW_ROW_RESERVE]);
    out->n_ctx = c->n_ctx;
    out->chunk = c->chunk;
    out->n_draft = c->n_draft;
    out->has_head = c->has_head;
    out->head_pinned_bytes = c->head_pinned_bytes;
    out->n_head_slot = head_slots(in, c);
    out->n_head_expert = c->n_head_expert;
    out->n_slot = c->n_slot;
    out->n_copy = c->n_copy;
    out->keeps_rows = c->keeps_rows;
    out->n_expert = c->n_expert;
    out->n_expert_all = in->n_expert_all;
    out->pinned_bytes = c->pinned_bytes;
    out->low_bytes = c->low_bytes;
    out->low_beside_bytes = c->low_beside_bytes;
    if (in->n_low > 0)
        out->low = in->low[c->low];
    out->acceptance = in->n_low > 0 ? out->low.acceptance : PLAN_ACCEPTANCE;
    fill_kv(in, c, out);
}

static bool fits(const struct plan *p)
{
    return p->sum_bytes <= p->budget_bytes;
}

static uint32_t chunk_limit(const struct plan_input *in, uint32_t n_ctx, uint32_t chunk)
{
    if (in->chunk_max != 0 && chunk > in->chunk_max)
        chunk = in->chunk_max;
    if (chunk > n_ctx)
        chunk = n_ctx;
    return chunk > 0 ? chunk : 1;
}

/*
 * The smallest plan that works: a ring of two slots, or everything pinned without a ring if
 * that is less (a model smaller than two slots).
 */
static void floor_with(const struct plan_input *in, uint32_t n_ctx, bool has_kv_disk,
                       struct plan *out)
{
    struct division c = { .has_kv_disk = has_kv_disk,
                          .n_ctx = n_ctx,
                          .chunk = chunk_limit(in, n_ctx, PLAN_CHUNK_MIN),
                          .n_slot = in->streams && in->n_block > 0 ? 2 : 0,
                          .n_expert = in->n_expert_min,
                          .has_head = in->head.is_needed,
                          .n_head_expert = in->head.n_expert_min };
    struct plan pinned;

    fill(in, &c, out);
    if (c.n_slot == 0 || in->saved_bytes > 0)
        return;
    c.n_slot = 0;
    c.pinned_bytes = plan_pinned_most(in);
    fill(in, &c, &pinned);
    if (pinned.sum_bytes < out->sum_bytes)
        *out = pinned;
}

/* The same with keys and values on the disk, if that takes less. */
static void smallest_floor(const struct plan_input *in, uint32_t n_ctx, struct plan *out)
{
    struct plan disk;

    floor_with(in, n_ctx, false, out);
    if (!can_use_disk(in))
        return;
    floor_with(in, n_ctx, true, &disk);
    if (disk.sum_bytes < out->sum_bytes && disk.kv_disk_bytes <= in->kv_disk_free)
        *out = disk;
}

/* With keys and values in memory, if it fits. */
static void fill_floor(const struct plan_input *in, uint32_t n_ctx, struct plan *out)
{
    floor_with(in, n_ctx, false, out);
    if (!fits(out))
        smallest_floor(in, n_ctx, out);
}

uint32_t plan_chunk_target(const struct plan_input *measured)
{
    struct plan_input formula = *measured;
    const struct plan_input *in = &formula;
    double chunk, token_s;

    /* A measurement comes with each answer.  The chunk must not change with it: all buffers
     * would have to be allocated again. */
    formula.factors = (struct plan_factors){ 0 };
    token_s = speed_prompt_token(in);

    /* Every chunk of a mixture of experts reads most experts, so it is as wide as it can be. */
    if (in->n_expert_all > 0 || !(token_s > 0) || !(in->disk_bytes_s > 0))
        return PLAN_CHUNK_DEFAULT;
    chunk = (double)in->prompt_bytes / in->disk_bytes_s / token_s;
    if (!(chunk > PLAN_CHUNK_EVEN))
        return PLAN_CHUNK_EVEN;
    return chunk < PLAN_CHUNK_MAX ? (uint32_t)chunk : PLAN_CHUNK_MAX;
}

/* The widest chunk if weights are read from disk. */
static uint32_t widest_chunk(const struct plan_input *in)
{
    if (in->chunk_max != 0)
        return chunk_limit(in, in->n_ctx, in->chunk_max);
    return chunk_limit(in, in->n_ctx,
                       in->chunk_target != 0 ? in->chunk_target : plan_chunk_target(in));
}

static bool division_fits(const struct plan_input *in, const struct division *c)
{
    struct plan p;

    fill(in, c, &p);
    return fits(&p);
}

/* Choose the largest chunk from the current one up to `most` with which the table fits. */
static void widen_chunk(const struct plan_input *in, uint32_t most, struct division *c)
{
    uint32_t least = c->chunk;

    while (least < most) {
        c->chunk = least + (most - least + 1) / 2;
        if (division_fits(in, c))
            least = c->chunk;
        else
            most = c->chunk - 1;
    }
    c->chunk = least;
}

/* The most tokens that may be drafted: a pass verifies them in one chunk.  If weights are read
 * from disk, drafts take their memory from pinned ones: a token reads at most a hundredth more,
 * or more than that if a model drafts, see plan_make(). */
static uint32_t draft_target(const struct plan_input *in, const struct division *now, bool reads)
{
    struct division c = *now;

    c.n_draft = in->n_draft < c.chunk ? in->n_draft : c.chunk - 1;
    if (!reads && in->n_low > 0) /* a draft would cost as much as a token */
        return 0;
    while (reads && in->drafter_hot_bytes == 0 && in->n_low == 0 && c.n_draft > 0 &&
           sum(drafter_bytes(in, &c), product(in->draft_bytes, c.n_draft)) >
               in->hot_bytes / DRAFT_SHARE)
        c.n_draft--;
    return c.n_draft;
}

/*
 * Give the draft head memory: for all of its weights, or, if the plan needs it, as much as fits.
 * A weight of the head is read for each drafted token, one of the model for each pass, so the
 * head's come first.  Returns false if the head is needed and does not fit.
 */
static bool add_head(const struct plan_input *in, struct division *c)
{
    uint64_t least = 0, most = in->head.pinned_most;

    if (in->head.fixed_bytes == 0)
        return true;
    c->has_head = true;
    c->head_pinned_bytes = most;
    c->n_head_expert = in->head.n_expert_all;
    if (division_fits(in, c))
        return true;
    c->n_head_expert = in->head.n_expert_min;
    if (division_fits(in, c))
        return true;
    if (!in->head.is_needed) {
        c->has_head = false;
        c->head_pinned_bytes = c->n_head_expert = 0;
        return true;
    }
    while (least < most) {
        c->head_pinned_bytes = least + (most - least + 1) / 2;
        if (division_fits(in, c))
            least = c->head_pinned_bytes;
        else
            most = c->head_pinned_bytes - 1;
    }
    c->head_pinned_bytes = least;
    return division_fits(in, c);
}

/* Verify as many drafted tokens as fit, up to n. */
static void add_drafts(const struct plan_input *in, uint32_t n, struct division *c)
{
    for (c->n_draft = n; c->n_draft > 0; c->n_draft--)
        if (division_fits(in, c))
            return;
}

/* Choose as many copies as fit, up to n. */
static void add_copies(const struct plan_input *in, uint32_t n, struct division *c)
{
    for (c->n_copy = n; c->n_copy > 0; c->n_copy--)
        if (division_fits(in, c))
            return;
}

/* Cache as many experts as fit, up to `most`. */
static void add_experts(const struct plan_input *in, uint32_t most, struct division *c)
{
    uint32_t least = c->n_expert;

    while (least < most) {
        c->n_expert = least + (most - least + 1) / 2;
        if (division_fits(in, c))
            least = c->n_expert;
        else
            most = c->n_expert - 1;
    }
    c->n_expert = least;
}

/* Keep as many pages as fit, up to `most`. */
static void add_pages(const struct plan_input *in, uint32_t most, struct division *c)
{
    uint32_t least = c->kv_keep_pages;

    while (least < most) {
        c->kv_keep_pages = least + (most - least + 1) / 2;
        if (division_fits(in, c))
            least = c->kv_keep_pages;
        else
            most = c->kv_keep_pages - 1;
    }
    c->kv_keep_pages = least;
}

/* Pin everything and have no ring, or the smallest one, if that fits.  Nothing is faster. */
static bool pin_everything(const struct plan_input *in, struct plan *out)
{
    uint32_t most =
        chunk_limit(in, in->n_ctx, in->chunk_max != 0 ? in->chunk_max : PLAN_CHUNK_DEFAULT);
    struct division c = { .n_ctx = in->n_ctx,
                          .chunk = chunk_limit(in, in->n_ctx, PLAN_CHUNK_MIN),
                          .n_slot = in->saved_bytes > 0 ? 2 : 0,
                          .n_expert = in->n_expert_min,
                          .pinned_bytes = in->streams ? plan_pinned_most(in) : 0 };

    if (!division_fits(in, &c) || !add_head(in, &c))
        return false;
    add_experts(in, in->n_expert_read, &c);
    add_drafts(in, draft_target(in, &c, false), &c);
    widen_chunk(in, most, &c);
    add_copies(in, copy_target(in), &c);
    add_experts(in, in->n_expert_all, &c);
    c.keeps_rows = in->streams && in->tables_bytes > 0;
    if (!division_fits(in, &c))
        c.keeps_rows = false;
    fill(in, &c, out);
    return true;
}

/* The order of the blocks decides which of them are pinned.  So the copies of the others may take
 * a little more than their share: a few average blocks, and the largest one if it just does not
 * fit. */
static double copies_slack(const struct plan_input *in, double low_all)
{
    double largest = (double)in->slot_bytes * low_all / (double)plan_pinned_most(in);
    double n = (double)smaller(in->n_block / LOW_SLACK_BLOCKS, LOW_SLACK_BLOCKS);

    return low_all / LOW_SLACK_SHARE + largest + (n + 1) * low_all / (in->n_block + 1);
}

/*
 * Divide `rest` between pinned blocks and copies of the others:
 *
 *     pinned + (all - pinned) / (all - landing) * copies of all + slack = rest
 *
 * because the landing is a part of pinned memory that holds no block.
 */
static void share_with_copies(const struct plan_input *in, uint64_t rest, struct division *c)
{
    double all = (double)plan_pinned_most(in), low_all = (double)in->low[c->low].all_bytes;
    double places = all - (double)in->landing_bytes;
    double pinned = ((double)rest - low_all * all / places - copies_slack(in, low_all)) /
                    (1 - low_all / places);

    if (!(low_all < places) || !(pinned >= 0) || pinned > all) {
        c->n_draft = 0;
        return;
    }
    c->pinned_bytes = c->low_beside_bytes = (uint64_t)pinned;
    c->low_bytes = rest - c->pinned_bytes;
}

static uint64_t room_left(const struct plan_input *in, const struct division *c)
{
    uint64_t room = largest_sum(in->budget_bytes, in->n_thread), used;
    struct plan p;

    fill(in, c, &p);
    used = p.sum_bytes - p.row[MW_ROW_RESERVE];
    return room > used ? room - used : 0;
}

/*
 * Divide the rest of the budget between pinned blocks and pages of keys and values.  The one that
 * saves more reads for each byte comes first.  If several layers read the same pages, each of them
 * reads those from the disk.  If both save as much, pages come first: they need no writing then.
 */
static void share_with_pages(const struct plan_input *in, struct division *c)
{
    double value = pinned_value(in);
    uint32_t n_first = 0;

    while (n_first < in->n_kv_class && in->kv_class[n_first].n_reader >= value)
        n_first++;
    add_pages(in, kv_far_pages(in, c) * n_first, c);
    c->pinned_bytes = smaller(room_left(in, c), plan_pinned_most(in));
    if (c->pinned_bytes == plan_pinned_most(in))
        c->n_slot = in->saved_bytes > 0 ? 2 : 0;
    add_pages(in, kv_keep_most(in, c), c);
    if (c->kv_keep_pages == kv_keep_most(in, c))
        add_experts(in, in->n_expert_all, c);
}

/*
 * Give memory to the ring, then the experts that are read at the same time, then drafts, then
 * the chunk, then copies of turns, and pin with the rest.  If any of the others is below its
 * target, leave the remainder unused; otherwise a larger budget could pin less.
 */
static void give_in_order(const struct plan_input *in, uint32_t low, bool has_kv_disk,
                          struct plan *out)
{
    struct division c = { .has_kv_disk = has_kv_disk,
                          .low = low,
                          .n_ctx = in->n_ctx,
                          .chunk = chunk_limit(in, in->n_ctx, PLAN_CHUNK_MIN),
                          .n_slot = in->n_slot,
                          .n_expert = in->n_expert_min };
    uint32_t most = widest_chunk(in), copies = copy_target(in), drafts;
    uint64_t used, room;

    c.has_head = in->head.is_needed;
    c.n_head_expert = in->head.is_needed ? in->head.n_expert_min : 0;
    while (c.n_slot > 2 && !division_fits(in, &c))
        c.n_slot--;
    add_experts(in, in->n_expert_read, &c);
    /* A draft of the model itself would read the pages, too. */
    drafts = has_kv_disk && in->n_low > 0 ? 0 : draft_target(in, &c, true);
    add_drafts(in, drafts, &c);
    (void)add_head(in, &c);
    widen_chunk(in, most, &c);
    add_copies(in, copies, &c);
    fill(in, &c, out);
    used = out->sum_bytes - out->row[MW_ROW_RESERVE];
    room = largest_sum(in->budget_bytes, in->n_thread);
    if (c.n_slot == in->n_slot && c.n_expert >= in->n_expert_read && c.chunk == most &&
        c.n_draft == drafts && c.n_copy == copies && room > used) {
        c.pinned_bytes = smaller(room - used, plan_pinned_most(in));
        if (has_kv_disk) {
            c.pinned_bytes = 0;
            share_with_pages(in, &c);
        } else if (in->n_low > 0 && c.n_draft > 0) {
            share_with_copies(in, room - used, &c);
        }
    } else if (in->n_low > 0) {
        c.n_draft = 0;
    }
    fill(in, &c, out);
}

static bool drafts_with_model(const struct plan_input *in)
{
    return in->drafter_hot_bytes > 0 || in->n_low > 0;
}

/*
 * Give memory to copies of the blocks before the ring and the chunk have what they should have:
 * a pass over few drafted tokens needs neither.  Returns whether it fits.
 */
static bool give_to_copies(const struct plan_input *in, uint32_t low, struct plan *out)
{
    struct division c = { .n_ctx = in->n_ctx,
                          .low = low,
                          .chunk = chunk_limit(in, in->n_ctx, PLAN_CHUNK_MIN),
                          .n_slot = 2,
                          .n_expert = in->n_expert_min };

    if (in->n_low == 0 || !in->streams)
        return false;
    c.n_draft = draft_target(in, &c, true);
    if (!division_fits(in, &c))
        return false;
    share_with_copies(in, room_left(in, &c), &c);
    fill(in, &c, out);
    plan_predict(in, out);
    return c.n_draft > 0;
}

/* The share of used experts that are in memory, once the cache has settled. */
static void predict_hits(const struct plan_input *in, struct plan *out)
{
    struct plan_pass pass = speed_pass(in, out);

    if (in->n_expert_all == 0)
        return;
    out->hits_measured = in->expert_use.observed_s > 0;
    out->expert_hits = 1 - speed_missed_experts(in, &pass, 0, 1);
}

void plan_predict(const struct plan_input *in, struct plan *p)
{
    uint64_t all = plan_pinned_most(in);
    uint32_t n_prompt = (uint32_t)smaller(PLAN_PROMPT_TOKENS, p->n_ctx);
    struct plan_pass pass;
    struct plan_time t;
    double s;

    /* The rounding is in both numbers. */
    p->streamed_share = p->pinned_bytes < all ? 1 - (double)p->pinned_bytes / (double)all : 0;
    p->saved_bytes = (uint64_t)((double)in->saved_bytes * (1 - p->streamed_share));
    predict_hits(in, p);
    pass = speed_pass(in, p);
    s = speed_token(in, &pass, p->n_ctx, &t);
    p->kv_read_bytes = (uint64_t)t.paged_bytes;
    p->streamed_bytes = (uint64_t)(t.streamed_bytes + t.missed_bytes + t.paged_bytes);
    p->binds = t.binds;
    p->decode_tps = p->pass_tps = s > 0 ? 1 / s : 0;
    p->assumed = 0;
    s = speed_prompt(in, &pass, 0, n_prompt);
    p->prefill_tps = s > 0 ? n_prompt / s : 0;
    p->is_doubtful = plan_is_doubtful(in);
    if ((!drafts_with_model(in) && !p->has_head) || p->n_draft == 0)
        return;
    p->drafted_tps = speed_drafted(in, p, p->n_draft, p->acceptance, &p->draft_depth);
    if (p->drafted_tps > p->pass_tps) {
        p->decode_tps = p->drafted_tps;
        p->assumed = p->acceptance;
    }
}

bool plan_is_doubtful(const struct plan_input *in)
{
    return in->factors.is_set ? in->factors.is_doubtful : in->is_doubtful;
}

uint64_t plan_smallest_budget(const struct plan_input *in)
{
    struct plan p;

    smallest_floor(in, in->n_ctx, &p);
    return p.sum_bytes;
}

/* The sum of the plan that leaves nothing out. */
static uint64_t complete_sum(const struct plan_input *in)
{
    struct plan_input all = *in;
    struct plan p;

    all.budget_bytes = UINT64_MAX;
    if (!pin_everything(&all, &p))
        return UINT64_MAX;
    return p.sum_bytes;
}

uint64_t plan_auto_limit(uint64_t free_bytes)
{
    return free_bytes / 4 * 3;
}

static uint64_t sum_without_tables(const struct plan_input *in)
{
    struct plan_input without = *in;

    without.tables_bytes = 0;
    return complete_sum(&without);
}

/* Experts come after the chunk and copies of turns, blocks come before. */
uint64_t plan_reads_nothing_budget(const struct plan_input *in)
{
    const struct division c = { .n_ctx = in->n_ctx,
                                .chunk = chunk_limit(in, in->n_ctx, PLAN_CHUNK_MIN),
                                .n_slot = in->saved_bytes > 0 ? 2 : 0,
                                .pinned_bytes = plan_pinned_most(in),
                                .has_head = in->head.is_needed,
                                .head_pinned_bytes = in->head.pinned_most,
                                .n_head_expert = in->head.n_expert_all };
    struct plan p;

    if (!in->streams)
        return UINT64_MAX;
    if (in->n_expert_all > 0)
        return sum_without_tables(in);
    fill(in, &c, &p);
    return p.sum_bytes;
}

uint64_t plan_default_budget(const struct plan_input *in, uint64_t free_bytes)
{
    uint64_t most = plan_auto_limit(free_bytes), all = complete_sum(in);

    if (all > most && in->streams)
        all = sum_without_tables(in);
    return smaller(all, most);
}

uint32_t plan_largest_ctx(const struct plan_input *in)
{
    uint32_t least = 0, most = 1u << 30;

    while (least < most) {
        uint32_t middle = least + (most - least + 1) / 2;
        struct plan p;

        fill_floor(in, middle, &p);
        if (fits(&p))
            least = middle;
        else
            most = middle - 1;
    }
    return least;
}

/* Why a refused plan has its keys and values in memory; "" if that does not matter. */
static const char *why_in_memory(const struct plan_input *in, const struct plan *p, char *buf,
                                 size_t n)
{
    char free_size[16];
    struct plan disk;

    buf[0] = '\0';
    if (p->has_kv_disk || p->row[MW_ROW_KV_GLOBAL] <= p->sum_bytes - in->budget_bytes)
        return buf;
    if (in->kv_disk_why[0] != '\0') {
        snprintf(buf, n, "; its keys and values stay in memory: %s", in->kv_disk_why);
        return buf;
    }
    if (!can_use_disk(in))
        return buf;
    floor_with(in, in->n_ctx, true, &disk);
    if (disk.kv_disk_bytes > in->kv_disk_free)
        snprintf(buf, n, "; the disk has no space for its keys and values: %s are free",
                 units_size(free_size, sizeof free_size, in->kv_disk_free));
    return buf;
}

static int refuse(const struct plan_input *in, const struct plan *p, struct err *e)
{
    uint32_t ctx = plan_largest_ctx(in);
    char other[64] = "", need[16], has[16], wants[24], largest[24], disk[160];

    /* A context below a page of positions is of no use. */
    if (ctx >= in->kv_page_tokens && ctx > 0 && ctx < in->n_ctx)
        snprintf(other, sizeof other, ", or a context of %s",
                 numbers_count(largest, sizeof largest, ctx));
    return err_set(e, ERR_BUDGET,
                   "needs %s for a context of %s, but the budget is %s. It fits a budget of "
                   "%s%s%s%s",
                   units_size_up(need, sizeof need, p->sum_bytes),
                   numbers_count(wants, sizeof wants, in->n_ctx),
                   units_size_down(has, sizeof has, in->budget_bytes), need, other,
                   in->blas_bytes > 0 ? "; OpenBLAS takes part of it (--blas never)"
                                           : "",
                   why_in_memory(in, p, disk, sizeof disk));
}

/*
 * Keys and values go to the disk if they do not fit memory, or if tokens become faster, since the
 * weights that are pinned instead save more, or if prompts do, since the other parts would have
 * less than they should have.
 */
static void divide_budget(const struct plan_input *in, uint32_t low, struct plan *out)
{
    struct plan floor, disk, other;
    double tps, disk_tps;

    if (pin_everything(in, out)) {
        plan_predict(in, out);
        if (out->n_head_slot == 0)
            return;
        /* A draft reads the rest of its head.  All of it, and fewer weights, may be faster. */
        give_in_order(in, low, false, &other);
        plan_predict(in, &other);
        if (fits(&other) && other.decode_tps > out->decode_tps)
            *out = other;
        return;
    }
    floor_with(in, in->n_ctx, false, &floor);
    give_in_order(in, low, false, out);
    plan_predict(in, out);
    if (!can_use_disk(in))
        return;
    give_in_order(in, low, true, &disk);
    if (!fits(&disk)) /* a model smaller than a ring */
        floor_with(in, in->n_ctx, true, &disk);
    plan_predict(in, &disk);
    if (!fits(&disk) || disk.kv_disk_bytes > in->kv_disk_free)
        return;
    tps = out->decode_tps;
    disk_tps = disk.decode_tps;
    if (!fits(&floor) || disk_tps > KV_DISK_GAIN * tps ||
        (out->pinned_bytes == 0 && disk.prefill_tps > out->prefill_tps &&
         disk_tps >= KV_DISK_LEAST * tps))
        *out = disk;
}

/* Why there is no model that drafts beside this plan without one. */
static enum mw_no_drafter why_not(const struct plan_input *in, const struct plan *p)
{
    if (chunk_limit(in, in->n_ctx, PLAN_CHUNK_MIN) == 1)
        return MW_DRAFTER_ONE_TOKEN;
    if (in->n_low > 0 && p->streamed_share == 0)
        return MW_DRAFTER_ALL_PINNED;
    return in->n_low > 0 && p->has_kv_disk ? MW_DRAFTER_KV_DISK : MW_DRAFTER_NO_ROOM;
}

/* Take the plan without what drafts, since it would be slower with that. */
static void leave_out(struct plan *out, const struct plan *without)
{
    const struct plan with = *out;

    *out = *without;
    out->undrafted_tps = without->decode_tps;
    out->drafted_tps = with.drafted_tps;
    out->draft_depth = with.draft_depth;
    out->acceptance = with.acceptance;
    out->no_drafter = MW_DRAFTER_SLOWER;
}

/* A model that drafts takes its memory from pinned weights: leave it out if that is faster. */
static void weigh_drafter(const struct plan_input *in, uint32_t low, struct plan *out)
{
    struct plan_input other = *in;
    struct plan without, tight;

    other.n_draft = 0;
    divide_budget(&other, low, &without);
    /* Where nothing is known of the disk, what the user asked for decides. */
    if (out->n_draft == 0 && out->streamed_share > 0 && give_to_copies(in, low, &tight) &&
        (tight.drafted_tps > without.decode_tps || without.decode_tps == 0))
        *out = tight;
    if (out->n_draft == 0) {
        without.no_drafter = why_not(in, &without);
        *out = without;
        return;
    }
    out->undrafted_tps = without.decode_tps;
    if (out->drafted_tps > 0 && out->drafted_tps < without.decode_tps)
        leave_out(out, &without);
}

/*
 * A draft head takes its memory from pinned weights, too.  One that nobody asked for is left out if
 * that is faster.  If no memory was left for all of it, a plan that needs it may still be faster:
 * with fewer pinned weights of the model, or of the head.
 */
static void weigh_head(const struct plan_input *in, struct plan *out)
{
    struct plan_input none = *in, needs = *in;
    struct plan without, with;

    none.head = (struct plan_head){ 0 };
    divide_budget(&none, 0, &without);
    if (!out->has_head) {
        without.no_drafter = MW_DRAFTER_NO_ROOM;
        *out = without;
        needs.head.is_needed = true;
        fill_floor(&needs, in->n_ctx, &with);
        if (fits(&with))
            divide_budget(&needs, 0, &with);
        /* Where nothing is known of the disk, it has to fit beside all the rest. */
        if (!fits(&with) || !(with.drafted_tps > 0))
            return;
        *out = with;
    }
    if (out->n_draft == 0) {
        out->no_drafter = MW_DRAFTER_ONE_TOKEN;
        return;
    }
    out->undrafted_tps = without.decode_tps;
    if (!in->head.is_needed && out->drafted_tps > 0 && out->drafted_tps < without.decode_tps)
        leave_out(out, &without);
}

/* Where nothing is known of the disk, any drafts are better than none. */
static bool is_better(const struct plan *p, const struct plan *than)
{
    if (p->decode_tps != than->decode_tps)
        return p->decode_tps > than->decode_tps;
    return p->n_draft > 0 && than->n_draft == 0;
}

int plan_make(const struct plan_input *in, struct plan *out, struct err *e)
{
    fill_floor(in, in->n_ctx, out);
    if (!fits(out)) {
        plan_predict(in, out);
        return refuse(in, out, e);
    }
    divide_budget(in, 0, out);
    if (drafts_with_model(in))
        weigh_drafter(in, 0, out);
    else if (in->head.fixed_bytes > 0)
        weigh_head(in, out);
    /* Fewer bits leave more memory for pinned weights, and draft worse. */
    for (uint32_t low = 1; low < in->n_low; low++) {
        struct plan other;

        divide_budget(in, low, &other);
        weigh_drafter(in, low, &other);
        if (is_better(&other, out) ||
            (out->no_drafter == MW_DRAFTER_NO_ROOM && other.no_drafter == MW_DRAFTER_SLOWER))
            *out = other;
    }
    return 0;
}

/* --- another budget while a session works --- */

/* The part of a plan that stays, with the least of everything else. */
static struct division least_of(const struct plan_input *in, const struct plan *from)
{
    uint32_t low = 0;

    while (low + 1 < in->n_low && in->low[low].type != from->low.type)
        low++;
    return (struct division){ .n_ctx = from->n_ctx,
                              .chunk = from->chunk,
                              .n_draft = from->n_draft,
                              .n_slot = in->streams && in->n_block > 0 ? 2 : 0,
                              .n_expert = in->n_expert_min,
                              .low_bytes = from->low_bytes,
                              .low_beside_bytes = from->low_beside_bytes,
                              .low = low,
                              .has_head = from->has_head,
                              .head_pinned_bytes = from->head_pinned_bytes,
                              .n_head_expert = from->n_head_expert,
                              .has_kv_disk = from->has_kv_disk,
                              .kv_keep_pages = from->kv_keep_pages };
}

/* As pin_everything() does. */
static bool all_pinned(const struct plan_input *in, struct division *c)
{
    struct division all = *c;

    all.n_slot = in->saved_bytes > 0 ? 2 : 0;
    all.pinned_bytes = plan_pinned_most(in);
    if (!division_fits(in, &all))
        return false;
    *c = all;
    add_experts(in, in->n_expert_read, c);
    add_copies(in, copy_target(in), c);
    add_experts(in, in->n_expert_all, c);
    c->keeps_rows = in->tables_bytes > 0;
    if (!division_fits(in, c))
        c->keeps_rows = false;
    return true;
}

/* As give_in_order() does. */
static void some_pinned(const struct plan_input *in, struct division *c)
{
    uint64_t room = largest_sum(in->budget_bytes, in->n_thread), used;
    struct plan p;

    for (c->n_slot = in->n_slot > 2 ? in->n_slot : 2; c->n_slot > 2; c->n_slot--)
        if (division_fits(in, c))
            break;
    add_experts(in, in->n_expert_read, c);
    add_copies(in, copy_target(in), c);
    fill(in, c, &p);
    used = p.sum_bytes - p.row[MW_ROW_RESERVE];
    if (c->n_slot >= in->n_slot && c->n_expert >= in->n_expert_read &&
        c->n_copy == copy_target(in) && room > used)
        c->pinned_bytes = smaller(room - used, plan_pinned_most(in));
}

/* Returns whether the budget is enough for *from with the least of what may come and go. */
static bool follow_budget(const struct plan_input *then, const struct plan *from,
                          struct plan *out)
{
    struct division c = least_of(then, from);
    bool is_enough = division_fits(then, &c);

    if (is_enough && then->streams && !all_pinned(then, &c))
        some_pinned(then, &c);
    fill(then, &c, out);
    plan_predict(then, out);
    return is_enough;
}

bool plan_with_budget(const struct plan_input *in, const struct plan *from,
                      uint64_t budget_bytes, struct plan *out)
{
    struct plan_input then = *in;
    struct plan undrafted = *from, without;
    bool is_enough;

    then.budget_bytes = budget_bytes;
    is_enough = follow_budget(&then, from, out);
    if (from->n_draft > 0 && (drafts_with_model(in) || from->has_head)) {
        undrafted.n_draft = 0;
        undrafted.low_bytes = 0;
        undrafted.has_head = false;
        undrafted.head_pinned_bytes = 0;
        undrafted.n_head_expert = 0;
        (void)follow_budget(&then, &undrafted, &without);
        out->undrafted_tps = without.decode_tps;
    }
    out->no_drafter = from->no_drafter;
    return is_enough;
}

enum mw_plan_row plan_next_to_give(const struct plan_input *in, const struct plan *p)
{
    if (p->keeps_rows)
        return MW_ROW_ROWS;
    if (p->n_expert > in->n_expert_read)
        return MW_ROW_EXPERTS;
    if (p->pinned_bytes > 0)
        return MW_ROW_PINNED;
    if (p->n_copy > 0)
        return plan_copy_row(in);
    if (p->n_expert > in->n_expert_min)
        return MW_ROW_EXPERTS;
    return p->n_slot > 2 ? MW_ROW_RING : MW_PLAN_ROWS;
}
