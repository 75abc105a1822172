/* See outlook.h. */
#include "config.h"

#include "engine/plan/outlook.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/plan/speed.h"

/* Kernel memory: a page table entry has 8 bytes per 4 KiB, and stacks, files and the rings of
 * system calls took some 0.5 MB in runs of 0.2 to 1.6 GB. */
#define KERNEL_FIXED ((uint64_t)1 << 19)
#define KERNEL_SHARE 512

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The cache of experts fills as tokens choose them. */
static uint64_t experts_bytes(const struct plan_input *in, uint32_t n_token)
{
    double n = speed_expert_share(in, n_token) * in->n_expert_used * in->n_moe_layer;

    return in->expert_fixed_bytes + (uint64_t)(ceil(n) * (double)in->expert_slot_bytes);
}

static uint64_t global_bytes(const struct plan_input *in, const struct plan *p, uint32_t n_token)
{
    uint64_t page = in->kv_page_tokens > 0 ? in->kv_page_tokens : 1;

    return (n_token + page - 1) / page * page * in->kv_global_token_bytes +
           whole_huge_pages(p->n_kv_slot * in->kv_slot_bytes);
}

/* On average a block wastes half of its rounding. */
static uint64_t all_bytes(const struct plan_input *in)
{
    return in->hot_bytes - in->saved_bytes + (uint64_t)in->n_block * (PLAN_BLOCK_ROUNDING / 2) +
           in->landing_bytes;
}

/* Pinned blocks with what they borrow. */
static uint64_t pinned_now(const struct plan_input *in, const struct plan *p,
                           uint64_t borrowed_bytes)
{
    uint64_t all = all_bytes(in);

    return in->streams ? least(p->pinned_bytes + borrowed_bytes, all) : 0;
}

/* The parts of a run, within the context. */
static struct plan_run limited(const struct plan *p, const struct plan_run *run)
{
    struct plan_run r = *run;

    r.n_token = (uint32_t)least(r.n_token, p->n_ctx);
    r.n_gen = (uint32_t)least(r.n_gen, r.n_token);
    r.n_prompt = (uint32_t)least(r.n_prompt, r.n_token - r.n_gen);
    return r;
}

void plan_outlook(const struct plan_input *in, const struct plan *p, const struct plan_run *run,
                  struct plan_outlook *out)
{
    struct plan_run r = limited(p, run);
    uint64_t *row = out->row, rows = 0, all;

    *out = (struct plan_outlook){ .n_token = r.n_token, .pass = speed_pass(in, p) };
    memcpy(row, p->row, sizeof p->row);
    row[MW_ROW_PROGRAM] = in->program_now_bytes;
    out->files_bytes = in->program_files_bytes;
    if (p->keeps_rows)
        row[MW_ROW_ROWS] -=
            in->tables_bytes - least(in->tables_bytes, in->rows_col_bytes * r.n_token);
    row[MW_ROW_KV_GLOBAL] = least(row[MW_ROW_KV_GLOBAL], global_bytes(in, p, r.n_token));
    row[plan_copy_row(in)] -= plan_copy_bytes(in) * p->n_copy;
    if (in->n_moe_layer > 0)
        row[MW_ROW_EXPERTS] = least(row[MW_ROW_EXPERTS], experts_bytes(in, r.n_token));
    out->pinned_bytes = pinned_now(in, p, p->row[MW_ROW_KV_GLOBAL] - row[MW_ROW_KV_GLOBAL]);
    row[MW_ROW_PINNED] = in->resident_bytes + out->pinned_bytes;
    row[MW_ROW_RESERVE] = 0;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        rows += row[i];
    row[MW_ROW_RESERVE] = KERNEL_FIXED + rows / KERNEL_SHARE;
    out->peak_bytes = rows + row[MW_ROW_RESERVE];

    all = all_bytes(in);
    out->pass.streamed_share =
        out->pinned_bytes < all ? 1 - (double)out->pinned_bytes / (double)all : 0;
    out->pass.keeps_rows = false; /* a short run has few tokens twice */
    out->pass.starts_cold = true;
    (void)speed_token(in, &out->pass, r.n_token - r.n_gen / 2, &out->token);
    out->tps = speed_answer(in, p, &out->pass, r.n_token - r.n_gen / 2);
    out->assumed = p->assumed;
    out->streamed_bytes = (uint64_t)(out->token.streamed_bytes + out->token.missed_bytes +
                                     out->token.paged_bytes);
    out->prompt_s = speed_prompt(in, &out->pass, r.n_token - r.n_gen - r.n_prompt, r.n_prompt);
}
