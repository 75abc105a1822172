/* The memory plan: sums, refusals, predictions. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/compute/kernels.h"
#include "engine/plan/advice.h"
#include "engine/plan/explain.h"
#include "engine/plan/outlook.h"
#include "engine/plan/plan.h"
#include "engine/plan/speed.h"
#include "tests/lib/plan_example.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t random_below(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return n > 0 ? seed % n : 0;
}

static struct plan_input random_input(void)
{
    struct plan_input in = plan_example();

    in.n_ctx = (uint32_t)(1 + random_below(40000));
    in.chunk_max = random_below(2) ? 0 : (uint32_t)(1 + random_below(600));
    in.n_slot = (uint32_t)(2 + random_below(10));
    in.n_thread = (int)(1 + random_below(16));
    in.act_col_bytes = random_below(MIB);
    in.n_block = (uint32_t)random_below(3000);
    in.slot_bytes = 4096 * (1 + random_below(2048));
    in.hot_bytes = in.n_block > 0 ? in.n_block * random_below(in.slot_bytes) : 0;
    in.prompt_bytes = random_below(in.hot_bytes + 1);
    if (random_below(3) == 0) {
        in.saved_bytes = random_below(in.hot_bytes / 4 + 1);
        in.landing_bytes = random_below(8) * in.slot_bytes;
    }
    if (random_below(3) == 0)
        in.tokenizer_build_bytes = random_below(300 * MIB);
    in.kv_page_tokens = 1u << random_below(10);
    in.n_near = in.n_swa = (uint32_t)random_below(2000);
    in.streams = random_below(8) != 0;
    if (random_below(4) == 0)
        in.disk_bytes_s = 0;
    if (random_below(4) == 0)
        in.weights[0].chunk_flops_s = 0;
    in.budget_bytes = random_below(8 * GIB);
    return in;
}

/* cmocka's own macro compares floats. */
static void assert_near(double got, double want)
{
    assert_true(got > want - 1e-9 && got < want + 1e-9);
}

static void assert_sums(const struct plan *p)
{
    uint64_t sum = 0;

    for (int i = 0; i < MW_PLAN_ROWS; i++)
        sum += p->row[i];
    assert_int_equal(sum, p->sum_bytes);
}

static void assert_sound(const struct plan_input *in, const struct plan *p)
{
    uint64_t others = p->sum_bytes - p->row[MW_ROW_RESERVE];

    assert_sums(p);
    assert_true(p->sum_bytes <= in->budget_bytes);
    assert_int_equal(p->row[MW_ROW_RESERVE], plan_reserve_bytes(others, in->n_thread));
    assert_int_equal(p->row[MW_ROW_PINNED], in->resident_bytes + p->pinned_bytes);
    /* Before the other items are allocated, building the tokenizer takes their memory. */
    assert_true(others - p->row[MW_ROW_PROGRAM] >=
                in->tokenizer_bytes + in->tokenizer_build_bytes + in->resident_bytes);
    assert_true(p->chunk >= 1 && p->chunk <= in->n_ctx);
    if (in->chunk_max != 0)
        assert_true(p->chunk <= in->chunk_max);
    if (!in->streams) {
        assert_int_equal(p->row[MW_ROW_RING], 0);
        assert_int_equal(p->pinned_bytes, 0);
    } else if (p->n_slot == 0) {
        assert_int_equal(p->streamed_bytes - p->kv_read_bytes, 0);
    } else {
        assert_true(p->n_slot >= 2);
        assert_int_equal(p->row[MW_ROW_RING],
                         in->ring_fixed_bytes + whole_huge_pages(p->n_slot * in->slot_bytes));
    }
}

/* Two forms of all types, some pinned: no other formula has as many terms. */
static void the_longest_formula_is_complete(void **state)
{
    static struct plan_basis b;
    struct err e = ERR_INIT;
    char *text = NULL, *line, *end;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);

    (void)state;
    assert_non_null(to);
    b.in = plan_example();
    b.in.n_weights = PLAN_WEIGHTS;
    for (int i = 0; i < PLAN_WEIGHTS; i++) {
        struct plan_weights *w = &b.in.weights[i];

        *w = b.in.weights[0];
        snprintf(w->type, sizeof w->type, "Q%d_K", i);
        snprintf(w->laid_type, sizeof w->laid_type, "Q%d_K-x16", i);
        w->token_bytes[PLAN_PROMPT] = 1234567890.1 + i;
        w->token_flops = 12345678901.2;
        w->column_bytes_s = w->laid_column_bytes_s = 10987654321.9;
        w->chunk_flops_s = w->laid_chunk_flops_s = 109876543219.8;
    }
    b.in.budget_bytes = plan_smallest_budget(&b.in) + b.in.hot_bytes / 2;
    assert_int_equal(plan_make(&b.in, &b.plan, &e), 0);
    assert_true(b.plan.pinned_bytes > 0 && b.plan.streamed_share > 0);
    plan_explain(to, &b, 0);
    fclose(to);
    line = strstr(strstr(text, "The first chunk of a prompt"), "products       = ");
    assert_non_null(line);
    end = strchr(line, '\n');
    assert_true(end - line > 1000);
    assert_true(strncmp(end - 2, " s", 2) == 0);
    for (n = 0; line < end; line++)
        n += strncmp(line, "max(", 4) == 0;
    assert_int_equal(n, 2 * PLAN_WEIGHTS);
    free(text);
}

static void the_sum_never_exceeds_the_budget(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct plan_input in = random_input();
        struct err e = ERR_INIT;
        struct plan p;

        if (plan_make(&in, &p, &e) == 0) {
            assert_sound(&in, &p);
        } else {
            assert_int_equal(e.code, ERR_BUDGET);
            assert_sums(&p);
            assert_true(p.sum_bytes > in.budget_bytes);
        }
    }
}

static void the_smallest_budget_is_tight(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        struct plan_input in = random_input();
        struct err e = ERR_INIT;
        struct plan p;

        in.budget_bytes = plan_smallest_budget(&in);
        assert_int_equal(plan_make(&in, &p, &e), 0);
        assert_sound(&in, &p);
        in.budget_bytes--;
        assert_int_equal(plan_make(&in, &p, &e), -1);
        assert_int_equal(p.sum_bytes, in.budget_bytes + 1);
    }
}

static void the_largest_context_is_tight(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        struct plan_input in = random_input();
        uint32_t n_ctx = plan_largest_ctx(&in);
        struct err e = ERR_INIT;
        struct plan p;

        if (n_ctx > 0) {
            in.n_ctx = n_ctx;
            assert_int_equal(plan_make(&in, &p, &e), 0);
        }
        in.n_ctx = n_ctx + 1;
        assert_int_equal(plan_make(&in, &p, &e), -1);
    }
}

static void a_larger_budget_never_pins_less(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct plan_input in = random_input();
        struct plan before = { 0 };
        struct err e = ERR_INIT;

        in.budget_bytes = plan_smallest_budget(&in);
        for (int k = 0; k < 200; k++) {
            struct plan p;

            assert_int_equal(plan_make(&in, &p, &e), 0);
            assert_true(p.pinned_bytes >= before.pinned_bytes);
            assert_true(k == 0 || p.streamed_bytes <= before.streamed_bytes);
            before = p;
            in.budget_bytes += random_below(in.hot_bytes / 100 + 100 * KIB);
        }
        in.budget_bytes = 1ull << 50;
        assert_int_equal(plan_make(&in, &before, &e), 0);
        if (in.streams)
            assert_int_equal(before.streamed_bytes, 0);
    }
}

/* When ring and chunk have their sizes, at most a page remains. */
static void pinned_weights_take_all_remaining_memory(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    for (in.budget_bytes = GIB; in.budget_bytes < 4 * GIB; in.budget_bytes += 123456789) {
        assert_int_equal(plan_make(&in, &p, &e), 0);
        assert_true(in.budget_bytes - p.sum_bytes <= 1);
        assert_true(p.pinned_bytes > 0);
    }
}

static void gemma_4_e2b_fits_256_mib(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_slot >= 2);
    assert_int_equal(p.binds, MW_BINDS_DISK);
    assert_true(p.decode_tps > 0.3 && p.decode_tps < 0.4);
}

static void a_refusal_names_settings_that_fit(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;
    char size[24];

    (void)state;
    in.n_ctx = 65536;
    assert_int_equal(plan_make(&in, &p, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_non_null(strstr(e.what, "the budget is 256 MiB."));
    assert_non_null(strstr(e.what, "or a context of "));
    /* Both proposals work. */
    assert_int_equal(sscanf(e.what, "needs %23[0-9.KMGiB ]for", size), 1);
    size[strlen(size) - 1] = '\0'; /* a blank */
    assert_int_equal(units_parse_size(size, 0, &in.budget_bytes, &e), 0);
    assert_int_equal(plan_make(&in, &p, &e), 0);

    in = plan_example();
    in.n_ctx = plan_largest_ctx(&in);
    assert_int_equal(plan_make(&in, &p, &e), 0);
    in.budget_bytes = MIB;
    assert_int_equal(plan_make(&in, &p, &e), -1);
    assert_null(strstr(e.what, "context of 0"));
    assert_int_equal(plan_largest_ctx(&in), 0);
}

static void sums_that_overflow_are_refused(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    in.kv_global_token_bytes = UINT64_MAX / 2;
    assert_int_equal(plan_make(&in, &p, &e), -1);
    assert_int_equal(p.sum_bytes, UINT64_MAX);
    in = plan_example();
    in.hot_bytes = UINT64_MAX - 5;
    in.n_block = UINT32_MAX;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_sound(&in, &p);
}

/* They come last: only when everything else is in memory and all of them fit. */
static void lookup_rows_are_kept_if_everything_else_is(void **state)
{
    struct plan_input in = plan_example();
    struct plan without, p;
    struct err e = ERR_INIT;

    (void)state;
    in.budget_bytes = 6 * GIB;
    assert_int_equal(plan_make(&in, &without, &e), 0);
    assert_int_equal(without.streamed_bytes, 0);
    in.tables_bytes = in.budget_bytes - without.sum_bytes;
    assert_int_equal(plan_make(&in, &p, &e), 0); /* there is no room for their page tables */
    assert_false(p.keeps_rows);
    assert_memory_equal(p.row, without.row, sizeof p.row);
    in.tables_bytes = in.tables_bytes / 513 * 512;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.keeps_rows && p.sum_bytes <= in.budget_bytes);
    assert_int_equal(p.row[MW_ROW_ROWS], without.row[MW_ROW_ROWS] + in.tables_bytes);
    assert_int_equal(p.chunk, without.chunk);
    assert_int_equal(p.pinned_bytes, without.pinned_bytes);
    in.streams = false; /* mapped: nothing is kept */
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_false(p.keeps_rows);
}

/* Experts of a token are read at the same time before a chunk becomes wider or a block is
 * pinned. */
static void experts_are_read_together_before_anything_grows(void **state)
{
    struct plan_input in = plan_example();
    uint32_t n_fewer = 0, n_wider = 0;

    (void)state;
    in.expert_slot_bytes = 3 * MIB;
    in.n_expert_min = 2;
    in.n_expert_read = 8;
    in.n_expert_all = 400;
    for (in.budget_bytes = 128 * MIB; in.budget_bytes < 6 * GIB;
         in.budget_bytes += in.budget_bytes / 50) {
        struct err e = ERR_INIT;
        struct plan p;

        if (plan_make(&in, &p, &e) != 0)
            continue;
        assert_true(p.n_expert >= 2);
        n_fewer += p.n_expert < 8;
        n_wider += p.chunk > PLAN_CHUNK_MIN;
        if (p.n_expert < 8) { /* no room for another expert */
            assert_true((p.chunk - PLAN_CHUNK_MIN) * in.act_col_bytes < in.expert_slot_bytes);
            assert_true(p.pinned_bytes == 0 || p.n_slot == 0);
        }
    }
    assert_true(n_fewer > 0 && n_wider > 0);
}

/* Computing a chunk takes as long as reading its weights.  A larger chunk would only delay the
 * first token. */
static void the_chunk_balances_disk_and_arithmetic(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    in.budget_bytes = 2 * GIB;
    in.disk_bytes_s = 0.5e9;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.chunk, (uint32_t)(1.128 / 0.5 / speed_prompt_token(&in)));
    assert_true(p.chunk >= 90 && p.chunk <= 1.128 / 0.5 * 60 / 1.2);
    assert_true(p.prefill_tps > 0 && p.prefill_tps <= 60e9 / 1.2e9);
    in.disk_bytes_s = 5e9;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.chunk, PLAN_CHUNK_EVEN);

    /* There is nothing to balance: everything is in memory, or the amount to read is
     * unknown. */
    in.budget_bytes = 8 * GIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.n_slot, 0);
    assert_int_equal(p.chunk, PLAN_CHUNK_DEFAULT);
    in.budget_bytes = 2 * GIB;
    in.expert_slot_bytes = MIB;
    in.n_expert_min = in.n_expert_all = 1;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.chunk, PLAN_CHUNK_DEFAULT);
    in.n_expert_min = in.n_expert_all = 0;
    in.weights[0].chunk_flops_s = 0;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.chunk, PLAN_CHUNK_DEFAULT);
    in.chunk_max = 100;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.chunk, 100);
}

/* By hand: 4096 tokens of 6144 bytes are promised, 768 (three pages of 256) are used after 576;
 * pinned weights borrow the rest. */
static void the_outlook_counts_the_memory_of_a_short_run(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan_outlook o;
    struct plan p;
    uint64_t rows = 0;

    (void)state;
    in.budget_bytes = 1 * GIB;
    in.program_now_bytes = 7 * MIB;
    in.tables_bytes = 2 * GIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    plan_outlook(&in, &p, &PLAN_USUAL_RUN, &o);
    assert_int_equal(o.row[MW_ROW_PROGRAM], 7 * MIB);
    assert_int_equal(o.row[MW_ROW_KV_GLOBAL], 768 * 6144);
    assert_int_equal(o.row[MW_ROW_RING], p.row[MW_ROW_RING]);
    assert_int_equal(o.row[MW_ROW_KV_SLIDING],
                     p.row[MW_ROW_KV_SLIDING] - p.n_copy * plan_copy_bytes(&in));
    assert_int_equal(o.pinned_bytes, p.pinned_bytes + (4096 - 768) * 6144);
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        rows += o.row[i];
    assert_int_equal(o.peak_bytes, rows);
    assert_true(o.peak_bytes < p.sum_bytes && o.streamed_bytes < p.streamed_bytes);
    /* The middle of the 64 decoded tokens, and a window of 512. */
    assert_near(o.token.kv_bytes / 1e6, (576 - 32) * 0.012288 + 512 * 0.035);

    /* With everything in memory, only the rows that were read are kept. */
    in.budget_bytes = 8 * GIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.keeps_rows);
    plan_outlook(&in, &p, &PLAN_USUAL_RUN, &o);
    assert_int_equal(o.row[MW_ROW_ROWS],
                     p.row[MW_ROW_ROWS] - in.tables_bytes + 576 * in.rows_col_bytes);
    assert_int_equal(o.pinned_bytes, in.hot_bytes + 1200 * 4096);
    assert_int_equal(o.streamed_bytes, 0);
    assert_near(o.prompt_s, speed_prompt(&in, &o.pass, 0, 512));
    plan_outlook(&in, &p, &(struct plan_run){ .n_token = 99999 }, &o); /* at most the context */
    assert_int_equal(o.n_token, 4096);
    assert_near(o.token.kv_bytes / 1e6, 4096 * 0.012288 + 512 * 0.035);
}

/* A model that fits three quarters of the free memory is held completely. */
static void the_default_budget_holds_the_complete_model(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    uint64_t all;
    struct plan p;

    (void)state;
    in.tables_bytes = 1 * GIB;
    all = plan_default_budget(&in, 64 * GIB);
    assert_true(all > in.hot_bytes + in.tables_bytes && all < 6 * GIB);
    in.budget_bytes = all;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.n_slot, 0);
    assert_int_equal(p.sum_bytes, all);
    assert_int_equal(p.chunk, PLAN_CHUNK_DEFAULT);
    assert_true(p.keeps_rows);
    in.budget_bytes = all - 1; /* a byte less does not */
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.sum_bytes < all);
    /* Without the tables it fits 7 GiB, of which others keep a quarter; 4 GiB are too few. */
    assert_int_equal((all - plan_default_budget(&in, 7 * GIB)) / MIB, 1026);
    assert_int_equal(plan_default_budget(&in, 4 * GIB), 3 * GIB);
    assert_int_equal(plan_default_budget(&in, 0), 0);
}

/* From one budget on, a token reads nothing but rows of the tables, however large these are. */
static void one_budget_is_the_first_that_reads_nothing(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    uint64_t nothing;
    struct plan p;

    (void)state;
    in.tables_bytes = 2 * GIB;
    nothing = plan_reads_nothing_budget(&in);
    in.budget_bytes = nothing;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.streamed_bytes, 0);
    assert_false(p.keeps_rows); /* they are a cache above it */
    in.budget_bytes = nothing - 1;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.streamed_bytes > 0);
    in.tables_bytes = 0;
    assert_int_equal(plan_reads_nothing_budget(&in), nothing);
    in.streams = false;
    assert_true(plan_reads_nothing_budget(&in) == UINT64_MAX);
}

static void sliding_rings_are_whole_blocks_of_attention(void **state)
{
    (void)state;
    assert_int_equal(PLAN_ATTN_BLOCK, ATTN_BLOCK);
    assert_int_equal(plan_sliding_slots(0, 16, 4096), 0);
    assert_int_equal(plan_sliding_slots(512, 1, 4096), 512);
    assert_int_equal(plan_sliding_slots(512, 2, 4096), 544);
    assert_int_equal(plan_sliding_slots(512, 16, 4096), 544);
    assert_int_equal(plan_sliding_slots(512, 16, 100), 128);
    for (uint32_t n = 1; n < 300; n++)
        assert_int_equal(plan_sliding_slots(n, n, 1000) % ATTN_BLOCK, 0);
}

/* 4.5 GB in BF16 fit 4 GiB if they are packed, and then a token reads fewer bytes. */
static void packed_weights_take_less(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan plain, packed;

    (void)state;
    in.budget_bytes = 4 * GIB;
    assert_int_equal(plan_make(&in, &plain, &e), 0);
    assert_true(plain.streamed_bytes > 0);
    assert_int_equal(plain.saved_bytes, 0);
    in.saved_bytes = in.hot_bytes / 4;
    in.landing_bytes = 5 * in.slot_bytes;
    in.weights[0].saved_share = 0.25;
    strcpy(in.weights[0].laid_type, MW_RATE_PACKED);
    in.weights[0].laid_chunk_flops_s = 0.8 * in.weights[0].chunk_flops_s;
    assert_int_equal(plan_make(&in, &packed, &e), 0);
    assert_sound(&in, &packed);
    assert_int_equal(packed.streamed_bytes, 0);
    assert_int_equal(packed.n_slot, 2);
    assert_int_equal(packed.pinned_bytes, plan_pinned_most(&in));
    assert_int_equal(packed.saved_bytes, in.saved_bytes);
    /* Both in memory. */
    in.budget_bytes = 8 * GIB;
    assert_int_equal(plan_make(&in, &packed, &e), 0);
    in.saved_bytes = in.landing_bytes = 0;
    in.weights[0].saved_share = 0;
    in.weights[0].laid_type[0] = '\0';
    assert_int_equal(plan_make(&in, &plain, &e), 0);
    assert_true(packed.decode_tps > 1.2 * plain.decode_tps);
    assert_true(packed.prefill_tps < plain.prefill_tps); /* widened first */
    assert_true(packed.prefill_tps > 0.75 * plain.prefill_tps);
}

/* Copies in few bits and pinned blocks together cover all blocks, if that is faster. */
static void a_model_drafts_for_itself_where_it_reads(void **state)
{
    struct plan_input in = plan_example(), off;
    struct err e = ERR_INIT;
    struct plan p, without;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    in.n_draft = 15;
    in.draft_bytes = 1 * MIB;
    in.low[0] = (struct plan_low){ 2, "Q4_0", in.hot_bytes / 32 * 9, PLAN_ACCEPTANCE };
    in.n_low = 1;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.n_draft, 15);
    assert_true(p.sum_bytes <= p.budget_bytes);
    assert_true(p.low_bytes >= (uint64_t)(p.streamed_share * (double)in.low[0].all_bytes));
    assert_true(p.row[MW_ROW_DRAFTER] >= p.low_bytes);
    assert_true(p.drafted_tps > 1.5 * p.undrafted_tps && p.draft_depth > 0);
    /* Keys and values could go to the disk, which gains less than drafts do. */
    in.kv_slot_bytes = 512 * KIB;
    in.kv_disk_free = UINT64_MAX;
    in.n_kv_class = 1;
    in.kv_class[0] = (struct plan_kv_class){ 1, 6144, 1536 * KIB, { 1536 * KIB, 0 } };
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 15 && !p.has_kv_disk && p.low_bytes > 0);
    in.n_kv_class = 0;
    /* The ring cannot have what it should have, but copies fit. */
    in.n_slot = 1000;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 15 && p.n_slot == 2 && p.sum_bytes <= p.budget_bytes);
    assert_true(p.low_bytes >= (uint64_t)(p.streamed_share * (double)in.low[0].all_bytes));
    assert_true(p.drafted_tps > 1.5 * p.undrafted_tps);
    in.disk_bytes_s = 0; /* not measured */
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 15 && p.low_bytes > 0);
    in.disk_bytes_s = 1.5e9;
    in.n_slot = 8;
    /* Nothing is read, or the copies do not fit. */
    in.budget_bytes = 8192 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 0 && p.low_bytes == 0 && p.streamed_share == 0);
    in.budget_bytes = 1024 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 0 && p.low_bytes == 0 && p.pinned_bytes > 0);
    /* Then nothing is kept for drafts either. */
    for (uint64_t mib = 300; mib < 1100; mib += 50) {
        in.budget_bytes = mib * MIB;
        assert_int_equal(plan_make(&in, &p, &e), 0);
        off = in;
        off.n_low = off.n_draft = 0;
        assert_int_equal(plan_make(&off, &without, &e), 0);
        if (p.n_draft == 0)
            assert_memory_equal(p.row, without.row, sizeof p.row);
    }
}

/* The type of copies is the one with which answers are the fastest. */
static void copies_have_fewer_bits_where_that_is_faster(void **state)
{
    struct plan_input in = plan_example(), one;
    struct err e = ERR_INIT;
    uint64_t seen = 0;
    struct plan p, one_less;

    (void)state;
    in.n_draft = 15;
    in.draft_bytes = 1 * MIB;
    in.low[0] = (struct plan_low){ 2, "Q4_0", in.hot_bytes / 32 * 9, 0.7 };
    in.low[1] = (struct plan_low){ 11, "Q3_K", in.hot_bytes / 512 * 110, 0.65 };
    in.low[2] = (struct plan_low){ 10, "Q2_K", in.hot_bytes / 512 * 84, 0.5 };
    in.n_low = 3;
    for (in.budget_bytes = 512 * MIB; in.budget_bytes < 8192 * MIB; in.budget_bytes += 64 * MIB) {
        double best = 0, tps;

        one = in;
        one.n_low = 1;
        for (int i = 0; i < 3; i++) {
            one.low[0] = in.low[i];
            assert_int_equal(plan_make(&one, &p, &e), 0);
            tps = p.decode_tps;
            best = tps > best ? tps : best;
        }
        assert_int_equal(plan_make(&in, &p, &e), 0);
        assert_sound(&in, &p);
        tps = p.decode_tps;
        assert_near(tps, best);
        if (p.low_bytes == 0)
            continue;
        seen |= 1ull << p.low.type;
        assert_true(p.low_bytes >= (uint64_t)(p.streamed_share * (double)p.low.all_bytes));
        assert_near(p.acceptance, p.low.acceptance);
        /* Less memory: the copies stay as they are. */
        assert_true(plan_with_budget(&in, &p, in.budget_bytes - MIB, &one_less));
        assert_int_equal(one_less.low.type, p.low.type);
        assert_int_equal(one_less.low_bytes, p.low_bytes);
    }
    /* Q4_0 where there is memory, Q2_K where it is tight. */
    assert_true((seen & 1u << 2) != 0 || (seen & 1u << 11) != 0);
    assert_true((seen & 1u << 10) != 0);
    /* Where nothing is known of the disk, those with the most bits that fit. */
    in.disk_bytes_s = 0;
    in.budget_bytes = 2048 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 15 && p.low.type == 2);
    in.budget_bytes = 1100 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 15 && p.low.type != 2);
}

/* 4.5 GB in BF16 with 2 GB, and 1 GB/s: copies with fewer bits make a pass shorter.  They would
 * win if as many of their drafts were right; where fewer are, those with more bits win. */
static void copies_with_more_bits_may_be_worth_longer_passes(void **state)
{
    struct plan_input in = plan_example(), off;
    struct err e = ERR_INIT;
    struct plan p, same, without;
    struct plan_outlook first;
    double acceptance;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    in.disk_bytes_s = 1e9;
    in.n_draft = 15;
    in.draft_bytes = 1 * MIB;
    in.low[0] = (struct plan_low){ 2, "Q4_0", in.hot_bytes / 32 * 9, 0.8 };
    in.low[1] = (struct plan_low){ 11, "Q3_K", in.hot_bytes / 512 * 110, 0.7 };
    in.low[2] = (struct plan_low){ 10, "Q2_K", in.hot_bytes / 512 * 84, 0.5 };
    in.n_low = 3;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft == 15 && p.low.type == 2);
    /* The first token of a conversation has drafts, too. */
    plan_outlook(&in, &p, &(struct plan_run){ 1, 0, 1 }, &first);
    assert_true(first.tps > 0.9 * p.drafted_tps);
    /* The proposal of such copies is against no drafter, not against one without luck. */
    off = in;
    off.n_low = off.n_draft = 0;
    assert_int_equal(plan_make(&off, &without, &e), 0);
    assert_near(advice_copies(&in, &acceptance), p.drafted_tps / without.decode_tps);
    assert_near(acceptance, 0.8);
    assert_true(p.drafted_tps > 1.5 * without.decode_tps);
    assert_near(advice_copies(&off, &acceptance), 0);
    off = in;
    off.budget_bytes = 8192 * MIB; /* where all is pinned */
    assert_near(advice_copies(&off, &acceptance), 0);
    off.budget_bytes = 64 * MIB; /* where the model does not fit */
    assert_near(advice_copies(&off, &acceptance), 0);
    for (uint32_t i = 0; i < in.n_low; i++)
        in.low[i].acceptance = 0.7;
    assert_int_equal(plan_make(&in, &same, &e), 0);
    assert_true(same.n_draft == 15 && same.low.type == 10);
    assert_true(same.streamed_bytes < p.streamed_bytes && same.drafted_tps < p.drafted_tps);
}

static void a_model_that_drafts_is_left_out_if_that_is_faster(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    in.n_draft = 15;
    in.draft_bytes = 1 * MIB;
    in.drafter_bytes = 300 * MIB;
    in.drafter_hot_bytes = 250 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.n_draft > 0 && p.row[MW_ROW_DRAFTER] >= 300 * MIB);
    assert_true(p.drafted_tps > p.undrafted_tps);
    in.drafter_hot_bytes = 200000 * MIB; /* a draft takes seconds */
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.n_draft, 0);
    assert_int_equal(p.row[MW_ROW_DRAFTER], 0);
    assert_true(p.pinned_bytes > 1500 * MIB);
}

/* Whatever the budget becomes, a session can tell what its drafter costs. */
static void another_budget_shows_what_a_drafter_costs(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    in.n_draft = 15;
    in.draft_bytes = 1 * MIB;
    for (int is_self = 0; is_self < 2; is_self++) {
        struct plan p, q;

        in.drafter_bytes = is_self ? 0 : 300 * MIB;
        in.drafter_hot_bytes = is_self ? 0 : 250 * MIB;
        in.low[0] = (struct plan_low){ 2, "Q4_0", in.hot_bytes / 32 * 9, PLAN_ACCEPTANCE };
        in.n_low = (uint32_t)is_self;
        assert_int_equal(plan_make(&in, &p, &e), 0);
        assert_true(p.n_draft > 0 && p.undrafted_tps > 1.05 * p.pass_tps);
        for (uint64_t mib = 1900; mib <= 2200; mib += 100) {
            assert_true(plan_with_budget(&in, &p, mib * MIB, &q));
            assert_true(q.n_draft == p.n_draft && q.undrafted_tps > 1.05 * q.pass_tps);
            if (mib > 2048)
                assert_true(q.undrafted_tps > p.undrafted_tps);
            else
                assert_true(q.undrafted_tps < p.undrafted_tps);
        }
        assert_true(plan_with_budget(&in, &p, in.budget_bytes, &q));
        assert_true(fabs(q.undrafted_tps / p.undrafted_tps - 1) < 0.02);
        in.n_draft = 0; /* nobody drafts */
        in.n_low = 0;
        in.drafter_hot_bytes = 0;
        assert_int_equal(plan_make(&in, &p, &e), 0);
        assert_true(plan_with_budget(&in, &p, in.budget_bytes - MIB, &q));
        assert_true(q.undrafted_tps <= 0);
        in.n_draft = 15;
    }
}

/* The prediction reads the head's weights for each draft: from memory, or what of them is not
 * pinned from disk. */
static void a_draft_head_is_predicted_with_an_acceptance(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan pinned, streamed, without;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    in.n_draft = 15;
    in.draft_bytes = 64 * KIB;
    assert_int_equal(plan_make(&in, &without, &e), 0);
    assert_false(without.has_head);
    assert_true(without.drafted_tps <= 0);
    in.head = (struct plan_head){ .fixed_bytes = 4 * MIB,
                                  .ring_bytes = 8 * MIB,
                                  .hot_bytes = 100 * MIB,
                                  .pinned_most = 100 * MIB };
    assert_int_equal(plan_make(&in, &pinned, &e), 0);
    assert_true(pinned.has_head);
    assert_true(pinned.drafted_tps > 1.5 * pinned.pass_tps && pinned.draft_depth > 0);
    assert_true(pinned.undrafted_tps > pinned.pass_tps);
    assert_true(fabs(speed_draft(&in, &pinned) - 100.0 * MIB / in.memory_bytes_s) < 1e-9);

    streamed = pinned;
    streamed.head_pinned_bytes = 25 * MIB;
    plan_predict(&in, &streamed);
    assert_true(fabs(speed_draft(&in, &streamed) - 100.0 * MIB / in.memory_bytes_s -
                     75.0 * MIB / in.disk_bytes_s) < 1e-9);
    assert_true(streamed.drafted_tps < pinned.drafted_tps);
    /* The jobs of its layers take their time, too, and so do rows of tables. */
    in.draft_steps[PLAN_PROMPT].n_round = 40;
    in.costs.round_s = 1e-5;
    in.n_lookup = 1;
    in.lookup_s = 2e-4;
    assert_true(fabs(speed_draft(&in, &pinned) - 100.0 * MIB / in.memory_bytes_s - 4e-4 - 2e-4) <
                1e-9);
    pinned.keeps_rows = true;
    assert_true(fabs(speed_draft(&in, &pinned) - 100.0 * MIB / in.memory_bytes_s - 4e-4) < 1e-9);
}

/* Answers are predicted with the drafts that the plan has, at the end of the context and before. */
static void answers_are_predicted_with_drafts(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan_outlook o;
    struct plan p;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    in.n_draft = 15;
    in.draft_bytes = 64 * KIB;
    assert_int_equal(plan_make(&in, &p, &e), 0); /* from earlier text: nobody knows how many */
    assert_true(p.n_draft > 0 && p.assumed <= 0);
    assert_near(p.decode_tps, p.pass_tps);
    plan_outlook(&in, &p, &PLAN_USUAL_RUN, &o);
    assert_near(o.tps * o.token.wall_s, 1);
    in.head = (struct plan_head){ .fixed_bytes = 4 * MIB,
                                  .ring_bytes = 8 * MIB,
                                  .hot_bytes = 100 * MIB,
                                  .pinned_most = 100 * MIB };
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_near(p.decode_tps, p.drafted_tps);
    assert_near(p.assumed, PLAN_ACCEPTANCE);
    assert_true(p.decode_tps > 1.5 * p.pass_tps);
    plan_outlook(&in, &p, &PLAN_USUAL_RUN, &o);
    assert_true(o.tps * o.token.wall_s > 1.5);
    assert_near(o.assumed, PLAN_ACCEPTANCE);
    plan_outlook(&in, &p, &(struct plan_run){ .n_token = in.n_ctx }, &o);
    assert_true(fabs(o.tps / p.decode_tps - 1) < 0.02);
}

/* A head that nobody asked for is weighed as the other drafters are, also where it does not fit
 * beside all weights. */
static void a_head_may_take_the_place_of_pinned_weights(void **state)
{
    struct plan_input in = plan_example(), without;
    struct err e = ERR_INIT;
    struct plan p, q;

    (void)state;
    in.n_draft = 15;
    in.draft_bytes = 64 * KIB;
    without = in;
    without.budget_bytes = 16 * GIB;
    assert_int_equal(plan_make(&without, &p, &e), 0);
    assert_true(p.streamed_share <= 0);
    /* Just enough for all weights. */
    in.budget_bytes = without.budget_bytes = plan_reads_nothing_budget(&in) + 8 * MIB;
    assert_int_equal(plan_make(&without, &q, &e), 0);
    assert_true(q.streamed_share <= 0);
    in.head = (struct plan_head){ .fixed_bytes = 4 * MIB,
                                  .ring_bytes = 8 * MIB,
                                  .hot_bytes = 100 * MIB,
                                  .pinned_most = 100 * MIB };
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.has_head && p.head_pinned_bytes == 100 * MIB);
    assert_true(p.streamed_share > 0 && p.sum_bytes <= p.budget_bytes);
    assert_true(p.decode_tps > q.decode_tps);
    assert_near(p.undrafted_tps, q.decode_tps);
    assert_int_equal(p.no_drafter, MW_DRAFTER_IS_USED);
    /* Not if reading those is slower, or where nothing is known of the disk. */
    in.disk_bytes_s = 20e6;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_false(p.has_head);
    assert_int_equal(p.no_drafter, MW_DRAFTER_SLOWER);
    assert_true(p.undrafted_tps > p.drafted_tps && p.drafted_tps > 0);
    assert_near(p.undrafted_tps, p.decode_tps);
    in.disk_bytes_s = in.memory_bytes_s = 0;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_false(p.has_head);
    assert_int_equal(p.no_drafter, MW_DRAFTER_NO_ROOM);
}

/* A plan without the drafter that was asked for says why. */
static void a_plan_says_why_nothing_drafts(void **state)
{
    struct plan_input in = plan_example(), self, model;
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    in.budget_bytes = 2048 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_IS_USED); /* there is none */
    in.n_draft = 15;
    in.draft_bytes = 64 * KIB;
    self = model = in;
    model.drafter_bytes = 300 * MIB;
    model.drafter_hot_bytes = 250 * MIB;
    assert_int_equal(plan_make(&model, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_IS_USED);
    model.chunk_max = 1;
    assert_int_equal(plan_make(&model, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_ONE_TOKEN);
    model.chunk_max = 0;
    model.budget_bytes = 300 * MIB;
    assert_int_equal(plan_make(&model, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_NO_ROOM);
    model.budget_bytes = 2048 * MIB;
    model.drafter_hot_bytes = 200000 * MIB;
    assert_int_equal(plan_make(&model, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_SLOWER);
    assert_near(p.undrafted_tps, p.decode_tps);
    assert_true(p.drafted_tps < p.decode_tps && p.assumed <= 0);
    self.low[0] = (struct plan_low){ 2, "Q4_0", in.hot_bytes / 32 * 9, PLAN_ACCEPTANCE };
    self.n_low = 1;
    assert_int_equal(plan_make(&self, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_IS_USED);
    self.budget_bytes = 8192 * MIB;
    assert_int_equal(plan_make(&self, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_ALL_PINNED);
    self.budget_bytes = 512 * MIB;
    assert_int_equal(plan_make(&self, &p, &e), 0);
    assert_int_equal(p.no_drafter, MW_DRAFTER_NO_ROOM);
}

/* The plan of a session whose budget changes keeps what cannot change, and is never larger. */
static void a_plan_follows_its_budget(void **state)
{
    uint32_t n_plan = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct plan_input in = random_input();
        struct plan p, least, most, same, before = { 0 };
        struct err e = ERR_INIT;

        if (random_below(3) == 0) {
            in.n_expert_min = 2;
            in.n_expert_read = 2 + (uint32_t)random_below(8);
            in.n_expert_all = in.n_expert_read + (uint32_t)random_below(500);
            in.expert_slot_bytes = 4096 * (1 + random_below(1000));
        }
        if (random_below(3) == 0)
            in.tables_bytes = random_below(GIB);
        if (!in.streams || plan_make(&in, &p, &e) != 0) /* mapped weights cannot be given back */
            continue;
        n_plan++;
        (void)plan_with_budget(&in, &p, 0, &least);
        assert_sums(&least);
        assert_true(plan_with_budget(&in, &p, UINT64_MAX, &most));
        assert_true(plan_next_to_give(&in, &least) == MW_PLAN_ROWS);
        if (plan_with_budget(&in, &p, p.budget_bytes, &same)) {
            assert_true(same.pinned_bytes >= p.pinned_bytes && same.n_copy >= p.n_copy);
            assert_int_equal(same.keeps_rows, p.keeps_rows);
        }
        for (uint64_t step = 0; step <= 40; step++) {
            struct plan_input then = in;
            struct plan q;

            then.budget_bytes = least.sum_bytes + (most.sum_bytes - least.sum_bytes) * step / 40;
            assert_true(plan_with_budget(&in, &p, then.budget_bytes, &q));
            assert_sound(&then, &q);
            assert_int_equal(q.chunk, p.chunk);
            assert_int_equal(q.n_ctx, p.n_ctx);
            assert_int_equal(q.n_draft, p.n_draft);
            assert_true(q.pinned_bytes >= before.pinned_bytes);
            before = q;
        }
        assert_int_equal(before.n_expert, in.n_expert_all);
        assert_int_equal(before.pinned_bytes, most.pinned_bytes);
        assert_false(plan_with_budget(&in, &p, least.sum_bytes - 1, &same));
    }
    assert_true(n_plan > 1000);
}

/* --- keys and values on the disk --- */

/* Two classes of layers, of which one is read by several, and weights that may be packed. */
static struct plan_input random_disk_input(void)
{
    struct plan_input in = random_input();

    in.n_ctx = (uint32_t)(1 + random_below(200000));
    in.budget_bytes = random_below(3 * GIB);
    in.kv_page_tokens = 256;
    in.kv_slot_bytes = 4096 * (1 + random_below(200));
    in.kv_disk_free = random_below(8) == 0 ? random_below(4 * GIB) : UINT64_MAX;
    in.kv_global_token_bytes = 0;
    in.n_kv_class = 1 + (uint32_t)random_below(2);
    for (uint32_t i = 0; i < in.n_kv_class; i++) {
        struct plan_kv_class *c = &in.kv_class[i];

        c->n_reader = in.n_kv_class - i == 1 ? 1 : 2 + (uint32_t)random_below(5);
        c->token_bytes = 64 * (1 + random_below(400));
        c->page_bytes = 256 * c->token_bytes;
        c->read_bytes[PLAN_PROMPT] = c->page_bytes;
        c->read_bytes[PLAN_REST] = c->page_bytes * (c->n_reader - 1);
        in.kv_global_token_bytes += c->token_bytes;
    }
    return in;
}

static uint64_t pages_bytes(const struct plan_input *in, const struct plan *p)
{
    uint64_t bytes = whole_huge_pages(p->n_kv_slot * in->kv_slot_bytes);
    uint64_t all = (in->n_ctx + 255) / 256 * 256;

    for (uint32_t i = 0; i < in->n_kv_class; i++) {
        uint64_t most = p->kv_keep[i] == UINT32_MAX ? all : p->kv_keep[i] + (uint64_t)p->kv_tail;

        bytes += in->kv_class[i].token_bytes * (most < all ? most : all);
    }
    return bytes;
}

static void pages_on_the_disk_are_within_the_budget(void **state)
{
    int n_disk = 0, n_refused = 0;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        struct plan_input in = random_disk_input();
        struct plan_input never = in;
        struct err e = ERR_INIT;
        struct plan p, q;
        int rc = plan_make(&in, &p, &e);

        strcpy(never.kv_disk_why, "a reason");
        if (rc != 0) {
            assert_true(plan_smallest_budget(&in) > in.budget_bytes);
            n_refused++;
            continue;
        }
        assert_sound(&in, &p);
        if (!p.has_kv_disk) {
            assert_int_equal(plan_make(&never, &q, &e), 0);
            assert_memory_equal(&q.row, &p.row, sizeof q.row);
            continue;
        }
        n_disk++;
        assert_int_equal(p.row[MW_ROW_KV_GLOBAL], pages_bytes(&in, &p));
        assert_true(p.kv_disk_bytes <= in.kv_disk_free);
        assert_true(p.kv_tail >= p.chunk && p.kv_tail >= p.n_draft + 1);
        in.budget_bytes = plan_smallest_budget(&in);
        assert_int_equal(plan_make(&in, &q, &e), 0);
        in.budget_bytes--;
        assert_int_not_equal(plan_make(&in, &q, &e), 0);
    }
    if (n_disk < 300 || n_refused < 300)
        fail_msg("%d plans with pages on the disk, %d refused", n_disk, n_refused);
}

/* Bytes that a token reads at the full context, with pages and blocks in this memory. */
static double reads_with(const struct plan_input *in, const uint32_t keep[2], double pinned)
{
    uint32_t all = (in->n_ctx - 1) / 256;
    double bytes = (double)in->hot_bytes * fmax(1 - pinned / (double)plan_pinned_most(in), 0);

    for (uint32_t i = 0; i < in->n_kv_class; i++)
        if (keep[i] < all)
            bytes += (double)(all - keep[i]) * (double)(in->kv_class[i].read_bytes[0] +
                                                        in->kv_class[i].read_bytes[1]);
    return bytes;
}

/* No other division of the memory of pages and blocks reads less. */
static void pages_and_blocks_divide_the_memory_so_that_least_is_read(void **state)
{
    int n_disk = 0;

    (void)state;
    for (int i = 0; i < 3000 && n_disk < 200; i++) {
        struct plan_input in = random_disk_input();
        uint32_t tail, all, far, keep[2];
        struct err e = ERR_INIT;
        double memory, least = INFINITY, most_page = 0, slack;
        struct plan p;

        in.n_ctx = 4000 + (uint32_t)random_below(16000);
        in.n_block = 100 + (uint32_t)random_below(900);
        in.slot_bytes = 4096 * (1 + random_below(300));
        in.hot_bytes = in.n_block * in.slot_bytes;
        in.prompt_bytes = in.hot_bytes / 2;
        in.saved_bytes = random_below(2) * in.hot_bytes / 4;
        in.landing_bytes = 0;
        in.streams = true;
        in.kv_disk_free = UINT64_MAX;
        in.budget_bytes = plan_smallest_budget(&in) + random_below(2 * GIB);
        if (plan_make(&in, &p, &e) != 0 || !p.has_kv_disk || p.n_slot == 0 ||
            p.pinned_bytes + p.kv_keep_pages == 0)
            continue;
        n_disk++;
        all = (in.n_ctx + 255) / 256;
        tail = p.kv_tail / 256;
        far = all > tail ? all - tail : 0;
        memory = (double)p.pinned_bytes;
        for (uint32_t k = 0; k < in.n_kv_class; k++) {
            double page = 256.0 * (double)in.kv_class[k].token_bytes;

            most_page = fmax(most_page, page * in.kv_class[k].n_reader);
            memory += page * (p.kv_keep[k] == UINT32_MAX ? far : p.kv_keep[k] / 256);
        }
        for (keep[0] = 0; keep[0] <= far; keep[0]++)
            for (keep[1] = 0; keep[1] <= (in.n_kv_class > 1 ? far : 0); keep[1]++) {
                uint32_t then[2];
                double pinned = memory;

                for (uint32_t k = 0; k < in.n_kv_class; k++) {
                    pinned -= 256.0 * (double)in.kv_class[k].token_bytes * keep[k];
                    then[k] = keep[k] == far ? all : keep[k];
                }
                if (pinned >= 0)
                    least = fmin(least, reads_with(&in, then, pinned));
            }
        /* A class of which all pages stay has those that a pass writes, too, and jumps by them. */
        slack = (tail + 2) * most_page + 0.01 * (double)in.hot_bytes;
        if ((double)p.streamed_bytes > least + slack)
            fail_msg("%llu bytes are read, %.0f would do: %u and %u of %u pages stay, "
                     "%llu of %llu bytes are pinned",
                     (unsigned long long)p.streamed_bytes, least, p.kv_keep[0] / 256,
                     p.kv_keep[1] / 256, far, (unsigned long long)p.pinned_bytes,
                     (unsigned long long)plan_pinned_most(&in));
    }
    assert_true(n_disk >= 100);
}

/* A layer that others read, too, stays in memory before layers of its own, and before blocks;
 * blocks that are packed stay before pages that are read once. */
static void pages_of_shared_layers_and_packed_blocks_stay_first(void **state)
{
    struct plan_input in = plan_example();
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    in.n_ctx = 131072;
    in.kv_global_token_bytes = 6144;
    in.kv_slot_bytes = 512 * KIB;
    in.kv_disk_free = UINT64_MAX;
    in.n_kv_class = 2;
    in.kv_class[0] = (struct plan_kv_class){ 5, 2048, 512 * KIB, { 512 * KIB, 2048 * KIB } };
    in.kv_class[1] = (struct plan_kv_class){ 1, 4096, 1024 * KIB, { 1024 * KIB, 0 } };
    in.budget_bytes = 700 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.has_kv_disk);
    assert_int_equal(p.kv_keep[0], UINT32_MAX);
    assert_true(p.kv_keep[1] > 0 && p.kv_keep[1] < 100000);
    assert_true(p.pinned_bytes < MIB); /* less than a page */
    in.saved_bytes = in.hot_bytes / 4;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.kv_keep[0], UINT32_MAX);
    assert_int_equal(p.kv_keep[1], 0);
    assert_true(p.pinned_bytes > 20 * MIB);
    in.budget_bytes = 400 * MIB;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.kv_keep[0] > 0 && p.kv_keep[0] < 131072);
    strcpy(in.kv_disk_why, "--kv-disk never");
    assert_int_equal(plan_make(&in, &p, &e), -1);
    assert_non_null(strstr(e.what, "--kv-disk never"));
    in.kv_disk_why[0] = '\0';
    in.kv_disk_free = GIB / 2;
    e = (struct err)ERR_INIT;
    assert_int_equal(plan_make(&in, &p, &e), -1);
    assert_non_null(strstr(e.what, "512 MiB are free"));
}

/* The cost of pages: their bytes at the rate of the disk. */
static void a_token_waits_for_its_pages(void **state)
{
    struct plan_input in = plan_example();
    struct plan_pass pass = { .has_kv_disk = true };
    struct plan_time t, without;

    (void)state;
    in.n_kv_class = 1;
    in.kv_class[0] = (struct plan_kv_class){ 1, 4096, 4096 * 256, { 4096 * 256, 0 } };
    pass.streamed_share = 1;
    pass.kv_keep[0] = 1024;
    speed_token(&in, &pass, 1024 + 256 * 100 + 7, &t);
    assert_true(t.paged_bytes == 100.0 * 4096 * 256);
    pass.has_kv_disk = false;
    speed_token(&in, &pass, 1024 + 256 * 100 + 7, &without);
    assert_true(fabs(t.disk_s - without.disk_s - t.paged_bytes / in.disk_bytes_s) < 1e-9);
    /* A chunk reads each page once, and none that it writes itself. */
    pass.has_kv_disk = true;
    speed_chunk(&in, &pass, 1024 + 256 * 100, 512, false, &t);
    assert_true(t.paged_bytes == 100.0 * 4096 * 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_formula_is_complete),
        cmocka_unit_test(the_sum_never_exceeds_the_budget),
        cmocka_unit_test(packed_weights_take_less),
        cmocka_unit_test(the_smallest_budget_is_tight),
        cmocka_unit_test(the_largest_context_is_tight),
        cmocka_unit_test(a_larger_budget_never_pins_less),
        cmocka_unit_test(pinned_weights_take_all_remaining_memory),
        cmocka_unit_test(gemma_4_e2b_fits_256_mib),
        cmocka_unit_test(a_refusal_names_settings_that_fit),
        cmocka_unit_test(sums_that_overflow_are_refused),
        cmocka_unit_test(lookup_rows_are_kept_if_everything_else_is),
        cmocka_unit_test(the_outlook_counts_the_memory_of_a_short_run),
        cmocka_unit_test(the_chunk_balances_disk_and_arithmetic),
        cmocka_unit_test(experts_are_read_together_before_anything_grows),
        cmocka_unit_test(the_default_budget_holds_the_complete_model),
        cmocka_unit_test(one_budget_is_the_first_that_reads_nothing),
        cmocka_unit_test(sliding_rings_are_whole_blocks_of_attention),
        cmocka_unit_test(a_model_drafts_for_itself_where_it_reads),
        cmocka_unit_test(a_draft_head_is_predicted_with_an_acceptance),
        cmocka_unit_test(copies_have_fewer_bits_where_that_is_faster),
        cmocka_unit_test(copies_with_more_bits_may_be_worth_longer_passes),
        cmocka_unit_test(a_model_that_drafts_is_left_out_if_that_is_faster),
        cmocka_unit_test(another_budget_shows_what_a_drafter_costs),
        cmocka_unit_test(answers_are_predicted_with_drafts),
        cmocka_unit_test(a_head_may_take_the_place_of_pinned_weights),
        cmocka_unit_test(a_plan_says_why_nothing_drafts),
        cmocka_unit_test(a_plan_follows_its_budget),
        cmocka_unit_test(pages_on_the_disk_are_within_the_budget),
        cmocka_unit_test(pages_and_blocks_divide_the_memory_so_that_least_is_read),
        cmocka_unit_test(pages_of_shared_layers_and_packed_blocks_stay_first),
        cmocka_unit_test(a_token_waits_for_its_pages),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
