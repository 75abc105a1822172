/* Without a disk: spans are cut into blocks, blocks are chosen for pinning, lookups are cut
 * into reads. */
#include "config.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/plan/plan.h"
#include "engine/stream/lookup.h"
#include "engine/stream/pinned.h"
#include "engine/stream/schedule.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/stream_model.h"

enum { SPANS = 200 };

struct layout {
    struct stream_span spans[SPANS];
    struct schedule_span memory[SPANS];
    struct schedule schedule;
    uint32_t n_span;
};

static void random_layout(struct layout *l, uint64_t row_bytes_max)
{
    l->n_span = (uint32_t)(1 + model_random(SPANS));
    for (uint32_t i = 0; i < l->n_span; i++)
        l->spans[i] = (struct stream_span){
            .offset = model_random(1u << 30),
            .row_bytes = 1 + model_random(row_bytes_max),
            .n_row = model_random(10) == 0 ? 0 : model_random(3000),
            .layer = i / 9,
            .in_prompt = i < l->n_span / 2,
        };
}

static void cut(struct layout *l, size_t target)
{
    struct err e = ERR_INIT;

    assert_int_equal(schedule_make(&l->schedule, l->memory, l->spans, l->n_span, target, &e),
                     0);
}

static void blocks_cover_the_spans_in_order(void **state)
{
    static struct layout l;

    (void)state;
    model_seed(1);
    for (int round = 0; round < 200; round++) {
        size_t target = (size_t)(1 + model_random(200000));
        struct schedule_at at;
        uint32_t n_block, span = 0, layers = 0;
        uint64_t slot;
        uint64_t row = 0;

        random_layout(&l, 10000);
        cut(&l, target);
        slot = schedule_measure(l.spans, l.n_span, target, &n_block);
        assert_int_equal(n_block, l.schedule.n_block);
        for (at = schedule_begin(&l.schedule); at.block < n_block;
             schedule_next(&l.schedule, &at)) {
            struct schedule_block b;

            schedule_get(&l.schedule, &at, &b);
            while (row == l.spans[span].n_row)
                span++, row = 0;
            assert_int_equal(b.span, span);
            assert_int_equal(b.row, row);
            assert_int_equal(b.offset, l.spans[span].offset + row * l.spans[span].row_bytes);
            assert_int_equal(b.bytes, b.n_row * l.spans[span].row_bytes);
            assert_true(b.n_row == 1 || b.bytes <= target);
            assert_true(b.read_offset % 4096 == 0 && b.read_bytes % 4096 == 0);
            assert_true(b.read_offset <= b.offset && b.offset - b.read_offset < 4096);
            assert_true(b.read_offset + b.read_bytes >= b.offset + b.bytes);
            assert_true(b.read_bytes <= slot);
            assert_true(b.read_bytes <= b.bytes + PLAN_BLOCK_ROUNDING);
            assert_true(at.block < l.schedule.n_prompt_block || !l.spans[span].in_prompt);
            layers += b.begins_layer;
            row += b.n_row;
        }
        while (span < l.n_span && row == l.spans[span].n_row)
            span++, row = 0;
        assert_int_equal(span, l.n_span);
        assert_true(layers <= l.spans[l.n_span - 1].layer + 1);
    }
}

/* Blocks of a span have about the same size: a small rest would cost a read of its own. */
static void no_block_is_a_small_rest(void **state)
{
    struct layout l = { .n_span = 1 };

    (void)state;
    l.spans[0] = (struct stream_span){ .row_bytes = 3072, .n_row = 1366 + 20 };
    cut(&l, 4 << 20);
    assert_int_equal(l.schedule.n_block, 2);
    assert_true(l.memory[0].block_rows >= 690 && l.memory[0].block_rows <= 720);
}

static void impossible_spans_are_refused(void **state)
{
    static const struct stream_span bad[] = {
        { .row_bytes = 0, .n_row = 5 },
        { .row_bytes = 1ull << 40, .n_row = 1ull << 40 },
        { .offset = UINT64_MAX - 10, .row_bytes = 4, .n_row = 5 },
        { .offset = INT64_MAX - 10, .row_bytes = 1, .n_row = 5 },
        { .row_bytes = 1, .n_row = 1ull << 62 },
    };
    struct layout l = { .n_span = 2 };
    struct err e = ERR_INIT;

    (void)state;
    l.spans[0] = (struct stream_span){ .row_bytes = 1, .n_row = 1 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t n;

        l.spans[1] = bad[i];
        assert_int_equal(schedule_make(&l.schedule, l.memory, l.spans, 2, 1, &e), -1);
        assert_int_equal(e.code, ERR_FORMAT);
        schedule_measure(l.spans, 2, 1, &n);
    }
}

/* --- shape --- */

static void a_shape_fits_its_blocks_and_bounds(void **state)
{
    static struct layout l;

    (void)state;
    model_seed(3);
    for (int round = 0; round < 200; round++) {
        size_t target = shape_target((uint64_t)1 << (20 + model_random(12)));
        struct stream_shape shape;

        random_layout(&l, 3000);
        shape_make(&shape, l.spans, l.n_span, target);
        cut(&l, target);
        assert_int_equal(shape.target, target);
        assert_int_equal(shape.n_block, l.schedule.n_block);
        assert_true(shape.slot_bytes > 0 && shape.slot_bytes % 4096 == 0);
        assert_true(shape.slot_bytes <= target + (size_t)2 * 4096); /* rows are small */
        assert_true(shape.n_slot >= 2 && shape.n_slot <= 12);
        assert_true(shape.n_slot == 2 || shape.n_slot <= shape.n_block);
        assert_true(shape.depth > 0 && shape.depth <= 8);
        assert_true(shape.depth < shape.n_slot || shape.n_slot == 2);
    }
}

/* --- pinned --- */

static uint32_t chosen(const struct pinned *p, unsigned char *set)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->schedule->n_block; i++) {
        set[i] = pinned_state(p, i) != BLOCK_STREAMED;
        n += set[i];
    }
    return n;
}

static struct populator populator;

static int open_populator(void **state)
{
    (void)state;
    populator_open(&populator);
    return 0;
}

static int close_populator(void **state)
{
    (void)state;
    populator_close(&populator);
    return 0;
}

static void populated(const struct populate_range *r, uint64_t bytes)
{
    while (populate_ready(r) != bytes)
        sched_yield();
}

/* Memory is resident before it is used, never more than was asked for, and falls at once. */
static void memory_is_populated_ahead_and_given_back(void **state)
{
    struct populate_range small = { 0 }, large = { 0 };
    struct area a, b;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(area_reserve(&a, "a", 3 * MIB, &e), 0);
    assert_int_equal(area_reserve(&b, "b", 64 * MIB, &e), 0);
    assert_int_equal(area_hold(&a, 3 * MIB, false, &e), 0);
    assert_int_equal(area_hold(&b, 64 * MIB, false, &e), 0);
    populate_to(&populator, &small, a.base, a.held);
    assert_int_equal(populate_ready(&small), 3 * MIB); /* by this thread */
    assert_int_equal(area_resident(&a), 3 * MIB);
    populate_to(&populator, &large, b.base, 41 * MIB + 4096);
    populated(&large, 41 * MIB + 4096);
    assert_true(area_resident(&b) >= 41 * MIB + 4096 && area_resident(&b) <= 42 * MIB);
    for (int i = 0; i < 50; i++) { /* in the middle of the work */
        populate_to(&populator, &large, b.base, 64 * MIB);
        populate_to(&populator, &large, b.base, 10 * MIB);
        assert_true(populate_ready(&large) <= 10 * MIB);
        assert_int_equal(area_hold(&b, 10 * MIB, false, &e), 0);
        assert_true(area_resident(&b) <= 10 * MIB);
        assert_int_equal(area_hold(&b, 64 * MIB, false, &e), 0);
        assert_true(area_resident(&b) <= 10 * MIB);
    }
    populate_to(&populator, &large, b.base, 64 * MIB);
    populated(&large, 64 * MIB);
    assert_int_equal(area_resident(&b), 64 * MIB);
    populate_forget(&populator, &small);
    populate_forget(&populator, &large);
    assert_int_equal(populate_ready(&large), 0);
    area_unmap(&a);
    area_unmap(&b);
}

/* An area that ends inside a huge page holds all of its memory, but not the content of this
 * page. */
static void an_area_may_end_inside_a_huge_page(void **state)
{
    struct err e = ERR_INIT;
    struct area a;

    (void)state;
    assert_int_equal(area_reserve(&a, "a", 16 * MIB, &e), 0);
    for (uint64_t bytes = 15 * MIB + 4096; bytes > 4096; bytes -= 5 * MIB / 4) {
        uint64_t kept;

        no_error(area_hold(&a, 16 * MIB, true, &e), &e);
        memset(a.base, 7, 16 * MIB);
        kept = area_kept(&a, bytes);
        assert_true(kept <= bytes && bytes - kept < 2 * MIB);
        no_error(area_hold(&a, bytes, false, &e), &e);
        assert_int_equal(a.held, bytes);
        assert_true(area_resident(&a) <= bytes);
        for (uint64_t i = 0; i < bytes; i += 4096)
            assert_int_equal(a.base[i], i < kept ? 7 : 0);
        /* Small pages follow, so nothing more is lost. */
        assert_int_equal(area_kept(&a, bytes - 4096), bytes - 4096);
    }
    area_unmap(&a);
}

static void pinned_blocks_are_spread_evenly_and_nested(void **state)
{
    enum { BLOCKS = 1500, WINDOW = 50 };
    static unsigned char before[BLOCKS], set[BLOCKS];
    struct layout l = { .n_span = 1 };
    struct err e = ERR_INIT;
    struct pinned p;
    void *table;

    (void)state;
    l.spans[0] = (struct stream_span){ .row_bytes = 4096, .n_row = BLOCKS };
    cut(&l, 4096);
    assert_int_equal(l.schedule.n_block, BLOCKS);
    table = calloc(1, pinned_table_bytes(BLOCKS));
    assert_int_equal(pinned_open(&p, table, &l.schedule, &populator, &e), 0);
    memset(before, 0, sizeof before);
    for (uint32_t n = 0; n <= BLOCKS; n += 75) {
        assert_int_equal(pinned_set(&p, n * 4096, &e), 0);
        assert_int_equal(chosen(&p, set), n);
        for (uint32_t i = 0; i < BLOCKS; i++)
            assert_true(set[i] >= before[i]); /* a larger set contains a smaller one */
        for (uint32_t i = 0; i + WINDOW <= BLOCKS; i++) {
            int32_t sum = 0, want = (int32_t)(n * WINDOW / BLOCKS);

            for (uint32_t k = 0; k < WINDOW; k++)
                sum += set[i + k];
            assert_true(sum >= want - 2 && sum <= want + 3);
        }
        memcpy(before, set, sizeof set);
    }
    pinned_close(&p);
    free(table);
}

static void pinned_blocks_neither_overlap_nor_exceed_their_space(void **state)
{
    static struct layout l;
    struct err e = ERR_INIT;

    (void)state;
    model_seed(5);
    for (int round = 0; round < 30; round++) {
        struct pinned p;
        unsigned char *used;
        uint64_t pages, room;
        void *table;

        random_layout(&l, 300);
        cut(&l, (size_t)(1 + model_random(100000)));
        table = calloc(1, pinned_table_bytes(l.schedule.n_block) + 1);
        assert_int_equal(pinned_open(&p, table, &l.schedule, &populator, &e), 0);
        if (l.schedule.n_block == 0) {
            free(table);
            continue;
        }
        pages = p.area.reserved / 4096;
        used = calloc(1, pages);
        for (int k = 0; k < 5; k++) {
            room = model_random(pages * 4096 * 5 / 4);
            assert_int_equal(pinned_set(&p, room, &e), 0);
            assert_true(p.area.held <= room);
            memset(used, 0, pages);
            for (struct schedule_at at = schedule_begin(&l.schedule);
                 at.block < l.schedule.n_block; schedule_next(&l.schedule, &at)) {
                struct schedule_block b;
                uint64_t first = (uint64_t)(pinned_place(&p, at.block) - p.area.base) / 4096;

                schedule_get(&l.schedule, &at, &b);
                if (pinned_state(&p, at.block) == BLOCK_STREAMED)
                    continue;
                assert_true((first * 4096) + b.read_bytes <= p.area.held);
                for (uint64_t i = first; i < first + b.read_bytes / 4096; i++)
                    assert_int_equal(used[i]++, 0);
            }
        }
        assert_int_equal(pinned_set(&p, UINT64_MAX, &e), 0);
        for (uint32_t i = 0; i < l.schedule.n_block; i++)
            assert_true(pinned_state(&p, i) != BLOCK_STREAMED);
        pinned_close(&p);
        free(used);
        free(table);
    }
}

/* --- lookups --- */

static void lookups_fetch_every_row_from_few_reads(void **state)
{
    static unsigned char file[1 << 20], dst[64][40000];
    static unsigned char memory[4 * LOOKUP_CELL_BYTES + LOOKUP_BATCH * sizeof(uint32_t)]
        __attribute__((aligned(4096)));
    static struct stream_lookup rows[64];
    static struct lookup l;

    (void)state;
    model_seed(9);
    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (unsigned char)model_random(256);
    lookup_init(&l, memory, 4);
    for (int round = 0; round < 300; round++) {
        size_t n = (size_t)(1 + model_random(64));
        struct read_op *flying[4], *op;
        uint32_t n_flying = 0;

        for (size_t i = 0; i < n; i++) {
            rows[i] =
                (struct stream_lookup){ .offset = model_random(sizeof file - 40000),
                                        .bytes = 1 + model_random(round % 2 ? 300 : 40000),
                                        .dst = dst[i] };
            if (i > 0 && model_random(2)) {
                rows[i].offset = rows[i - 1].offset;
                rows[i].bytes = rows[i - 1].bytes;
            }
        }
        memset(dst, 0, sizeof dst);
        lookup_begin(&l, rows, n, 0);
        while (!lookup_is_done(&l)) {
            while ((op = lookup_next(&l)) != NULL) {
                op->is_flying = true;
                flying[n_flying++] = op;
            }
            assert_true(n_flying > 0);
            op = flying[model_random(n_flying)];
            assert_true(op->offset % 4096 == 0 && op->bytes % 4096 == 0);
            assert_true(op->bytes <= LOOKUP_CELL_BYTES && op->need <= op->bytes);
            memcpy(op->dst, file + op->offset, op->need);
            lookup_finish(&l, op, true);
            op->is_flying = false;
            for (uint32_t i = 0, k = 0; i < n_flying; i++)
                if (flying[i] != op)
                    flying[k++] = flying[i];
            n_flying--;
        }
        for (size_t i = 0; i < n; i++)
            assert_memory_equal(dst[i], file + rows[i].offset, rows[i].bytes);
    }
}

static void neighbours_share_a_read(void **state)
{
    static unsigned char memory[4 * LOOKUP_CELL_BYTES + LOOKUP_BATCH * sizeof(uint32_t)]
        __attribute__((aligned(4096)));
    static unsigned char dst[5][3072];
    struct stream_lookup rows[5];
    static struct lookup l;
    struct read_op *op;

    (void)state;
    /* Out of order, and one of them twice. */
    for (uint64_t i = 0; i < 5; i++)
        rows[i] = (struct stream_lookup){ .offset = 1000000 + (i * 3 % 4) * 3072,
                                          .bytes = 3072,
                                          .dst = dst[i] };
    lookup_init(&l, memory, 4);
    lookup_begin(&l, rows, 5, 0);
    op = lookup_next(&l);
    assert_non_null(op);
    assert_int_equal(op->offset, align_down(1000000, 4096));
    assert_int_equal(op->offset + op->need, 1000000 + 4 * 3072);
    assert_null(lookup_next(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_cover_the_spans_in_order),
        cmocka_unit_test(no_block_is_a_small_rest),
        cmocka_unit_test(impossible_spans_are_refused),
        cmocka_unit_test(a_shape_fits_its_blocks_and_bounds),
        cmocka_unit_test(an_area_may_end_inside_a_huge_page),
        cmocka_unit_test_setup_teardown(memory_is_populated_ahead_and_given_back,
                                        open_populator, close_populator),
        cmocka_unit_test_setup_teardown(pinned_blocks_are_spread_evenly_and_nested,
                                        open_populator, close_populator),
        cmocka_unit_test_setup_teardown(pinned_blocks_neither_overlap_nor_exceed_their_space,
                                        open_populator, close_populator),
        cmocka_unit_test(lookups_fetch_every_row_from_few_reads),
        cmocka_unit_test(neighbours_share_a_read),
    };

    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
