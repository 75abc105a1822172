/* See outlook.h. */
#include "config.h"

#include "engine/plan/outlook.h"

#include <string.h>

/* Kernel memory: a page table entry has 8 bytes per 4 KiB, and stacks, files and the rings of
 * system calls took some 0.5 MB in runs of 0.2 to 1.6 GB. */
#define KERNEL_FIXED ((uint64_t)1 << 19)
#define KERNEL_SHARE 512

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

double plan_kv_read_bytes(const struct plan_input *in, uint32_t n_token)
{
    uint32_t seen_less = n_token < in->n_ctx ? in->n_ctx - n_token : 0;
    double bytes = in->kv_read_token_bytes - (double)seen_less * in->kv_far_read_bytes;

    /* Windows that are not full yet read less, too; they are short. */
    return bytes > 0 ? bytes : 0;
}

static uint64_t global_bytes(const struct plan_input *in, uint32_t n_token)
{
    uint64_t page = in->kv_page_tokens > 0 ? in->kv_page_tokens : 1;

    return (n_token + page - 1) / page * page * in->kv_global_token_bytes;
}

/* Pinned blocks with what they borrow.  On average a block wastes half of its rounding. */
static uint64_t pinned_now(const struct plan_input *in, const struct plan *p,
                           uint64_t borrowed_bytes)
{
    uint64_t all = in->hot_bytes + (uint64_t)in->n_block * (PLAN_BLOCK_ROUNDING / 2);

    return in->streams ? least(p->pinned_bytes + borrowed_bytes, all) : 0;
}

void plan_outlook(const struct plan_input *in, const struct plan *p, uint32_t n_token,
                  struct plan_outlook *out)
{
    struct plan_input then = *in;
    uint64_t *row = out->row, rows = 0, all;
    uint64_t missed = (uint64_t)((1 - p->expert_hits) * (double)in->experts_token_bytes);

    n_token = (uint32_t)least(n_token, p->n_ctx);
    *out = (struct plan_outlook){ .n_token = n_token };
    memcpy(row, p->row, sizeof p->row);
    row[MW_ROW_PROGRAM] = in->program_now_bytes;
    if (p->keeps_rows)
        row[MW_ROW_ROWS] -=
            in->tables_bytes - least(in->tables_bytes, in->rows_col_bytes * n_token);
    row[MW_ROW_KV_GLOBAL] = least(row[MW_ROW_KV_GLOBAL], global_bytes(in, n_token));
    row[MW_ROW_KV_SLIDING] -= plan_copy_bytes(in) * p->n_copy;
    out->pinned_bytes = pinned_now(in, p, p->row[MW_ROW_KV_GLOBAL] - row[MW_ROW_KV_GLOBAL]);
    row[MW_ROW_PINNED] = in->resident_bytes + out->pinned_bytes;
    row[MW_ROW_RESERVE] = 0;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        rows += row[i];
    row[MW_ROW_RESERVE] = KERNEL_FIXED + rows / KERNEL_SHARE;
    out->peak_bytes = rows + row[MW_ROW_RESERVE];

    all = in->hot_bytes + (uint64_t)in->n_block * (PLAN_BLOCK_ROUNDING / 2);
    if (all > 0 && out->pinned_bytes < all)
        out->streamed_bytes =
            (uint64_t)((1 - (double)out->pinned_bytes / (double)all) * (double)in->hot_bytes);
    out->kv_bytes = then.kv_read_token_bytes = plan_kv_read_bytes(in, n_token);
    out->decode_s =
        plan_decode_s(&then, out->streamed_bytes, missed, p->keeps_rows, &out->binds);
    out->streamed_bytes += missed;
}
