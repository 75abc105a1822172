/*
 * The kernels of the set `amx`, on processors without AMX: they are compiled again with its tile
 * instructions in C (tests/lib/tiles.h), and have to give the bits of the other AVX-512 sets, which
 * test_kernels compares with the definition.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SET tiles
#include "engine/compute/interleave.h"
#include "engine/compute/kernel_set.h"
#include "engine/compute/ways.h"
#include "tests/lib/kernel_data.h"
#include "tests/lib/tiles.h"

struct problem {
    struct matmul m;
    size_t w_bytes, n_y;
    uint8_t *w, *laid, *x;
    float *want, *y;
};

/* The same products by the kernels that the processor has; NULL: none with these vectors. */
static const struct kernels *other;

static void make(struct problem *p, enum tensor_type type, size_t n_row, size_t n_k, size_t n_col)
{
    const size_t row_bytes = (size_t)tensor_row_bytes(type, n_k), stride = act_bytes(ACT_Q8, n_k);
    uint64_t seed = n_row * 1000003 + n_k * 1009 + n_col;
    float *column = calloc(n_k, sizeof *column);
    void *scratch = calloc(INTERLEAVED_ROWS, row_bytes);

    *p = (struct problem){ .w_bytes = n_row * row_bytes, .n_y = n_row * n_col };
    p->w = fenced_new(p->w_bytes);
    p->laid = fenced_new(p->w_bytes);
    p->x = fenced_new(n_col * stride);
    p->want = calloc(p->n_y, sizeof *p->want);
    p->y = calloc(p->n_y, sizeof *p->y);
    random_blocks(type, p->w, n_row * n_k, &seed);
    for (size_t c = 0; c < n_col; c++) {
        for (size_t k = 0; k < n_k; k++)
            column[k] = random_float(&seed);
        other->act_pack(ACT_Q8, column, n_k, p->x + c * stride);
    }
    if (interleave_takes(type) && n_row % INTERLEAVED_ROWS == 0)
        interleave(type, row_bytes, n_row, p->w, p->laid, scratch);
    p->m = (struct matmul){ .type = type,
                            .form = ACT_Q8,
                            .n_row = n_row,
                            .n_k = n_k,
                            .n_col = n_col,
                            .w = p->w,
                            .x = p->x,
                            .x_stride = stride,
                            .y = p->want,
                            .ldy = n_row };
    other->mul(&p->m);
    p->m.y = p->y;
    free(column);
    free(scratch);
}

static void drop(struct problem *p)
{
    fenced_free(p->w, p->w_bytes);
    fenced_free(p->laid, p->w_bytes);
    fenced_free(p->x, p->m.n_col * p->m.x_stride);
    free(p->want);
    free(p->y);
}

/* Run kernels, and compare.  Returns how many tiles they multiplied. */
static unsigned long check(const struct problem *p, void (*mul)(const struct matmul *m))
{
    struct tiles_report r;

    (void)tiles_report();
    memset(p->y, 0x55, p->n_y * sizeof *p->y);
    mul(&p->m);
    r = tiles_report();
    if (r.fault != NULL)
        fail_msg("%s", r.fault);
    assert_false(r.is_shaped); /* a thread that keeps shapes keeps their registers */
    assert_memory_equal(p->y, p->want, p->n_y * sizeof *p->y);
    return r.product;
}

static bool is_block(enum tensor_type type)
{
    return act_form_of(type, false) == ACT_Q8;
}

/* With scales for 16 values, or minima, vectors are as fast. */
static bool is_multiplied_by_tiles(enum tensor_type type)
{
    return type == TYPE_Q4_0 || type == TYPE_Q8_0;
}

/* Rows and columns of every remainder: parts of tiles, several panels, and ends of rows. */
static void rows_of_the_file_have_the_bits_of_vectors(void **state)
{
    static const size_t rows[] = { 16, 17, 35, 61 }, lengths[] = { 32, 256, 288, 1280 },
                        cols[] = { 1, 4, 5, 16, 17, 33, 137 };
    unsigned long n[2] = { 0, 0 };

    (void)state;
    if (other == NULL)
        skip();
    for (const enum tensor_type *t = computed_types; *t != TYPE_COUNT; t++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
                for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
                    struct problem p;

                    if (!is_block(*t) || lengths[k] % tensor_type_info(*t)->block_elems != 0)
                        continue;
                    make(&p, *t, rows[r], lengths[k], cols[c]);
                    n[cols[c] > 4] += check(&p, set_mul_q8);
                    drop(&p);
                }
    assert_int_equal(n[0], 0); /* four rows at a time are faster */
    assert_true(n[1] > 0);
}

static void interleaved_rows_have_the_bits_of_vectors(void **state)
{
    static const size_t rows[] = { 16, 48, 80 }, lengths[] = { 32, 256, 288, 1280 },
                        cols[] = { 1, 31, 32, 49, 64, 101 };
    unsigned long n = 0;

    (void)state;
    if (other == NULL)
        skip();
    for (const enum tensor_type *t = computed_types; *t != TYPE_COUNT; t++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
                for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
                    struct problem p;

                    if (!is_block(*t) || !interleave_takes(*t) ||
                        lengths[k] % tensor_type_info(*t)->block_elems != 0)
                        continue;
                    make(&p, *t, rows[r], lengths[k], cols[c]);
                    p.m.w = p.laid;
                    n += check(&p, set_mul_interleaved);
                    drop(&p);
                }
    assert_true(n > 0);
}

/* At whatever numbers of columns the path changes. */
static void ways_change_no_bit(void **state)
{
    static const size_t cols[] = { 3, 6, 24, 49, 130, 300 };

    (void)state;
    if (other == NULL)
        skip();
    for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++)
        for (int i = WAY_FEW_COLS; i < WAY_CHOICES; i++) {
            const enum way_choice c = (enum way_choice)i;
            const int before = ways_chosen(c);
            struct problem p;

            make(&p, TYPE_Q4_0, 48, 544, cols[k]);
            for (int way = 0; way < ways_count(c); way++) {
                ways_choose(c, way);
                p.m.w = p.w;
                (void)check(&p, set_mul_q8);
                p.m.w = p.laid;
                (void)check(&p, set_mul_interleaved);
            }
            ways_choose(c, before);
            drop(&p);
        }
}

/* So the tests above would not pass without tiles. */
static void tiles_multiply_the_types_that_gain(void **state)
{
    (void)state;
    if (other == NULL)
        skip();
    for (const enum tensor_type *t = computed_types; *t != TYPE_COUNT; t++) {
        struct problem p;
        unsigned long n;

        if (!is_block(*t))
            continue;
        make(&p, *t, 32, 256, 64);
        n = check(&p, set_mul_q8);
        if (is_multiplied_by_tiles(*t))
            assert_true(n > 0);
        if (*t == TYPE_Q4_K || *t == TYPE_Q6_K)
            assert_int_equal(n, 0);
        drop(&p);
    }
}

/* The emulation itself: a product by hand, and uses that a processor refuses. */
static void tiles_do_what_the_manual_says(void **state)
{
    static const int8_t left[2][4] = { { 1, 2, 3, 4 }, { -128, 127, 0, 1 } },
                        right[1][8] = { { 5, 6, 7, 8, -1, -128, 0, 127 } };
    static const int32_t want[2][2] = { { 5 + 12 + 21 + 32, -1 - 256 + 508 },
                                        { -640 + 762 + 8, 128 - 16256 + 127 } };
    uint8_t shapes[64] = { 1 };
    int32_t y[2][2];

    (void)state;
    for (int t = 0; t < 3; t++) {
        shapes[16 + 2 * t] = t == 1 ? 4 : 8;
        shapes[48 + t] = t == 2 ? 1 : 2;
    }
    (void)tiles_report();
    tiles_zero(0);
    assert_non_null(tiles_report().fault); /* no shapes */
    tiles_shape(shapes);
    tiles_load(1, left, sizeof left[0]);
    tiles_load(2, right, sizeof right[0]);
    tiles_zero(0);
    tiles_multiply(0, 1, 2);
    tiles_store(0, y, sizeof y[0]);
    assert_null(tiles_report().fault);
    assert_memory_equal(y, want, sizeof y);
    tiles_multiply(0, 2, 1);
    assert_non_null(tiles_report().fault); /* shapes that do not fit */
    tiles_load(3, left, sizeof left[0]);
    assert_non_null(tiles_report().fault); /* a tile without a shape */
    shapes[48] = 17;
    tiles_shape(shapes);
    assert_non_null(tiles_report().fault); /* more rows than a tile has */
    tiles_release();
    assert_false(tiles_report().is_shaped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_do_what_the_manual_says),
        cmocka_unit_test(rows_of_the_file_have_the_bits_of_vectors),
        cmocka_unit_test(interleaved_rows_have_the_bits_of_vectors),
        cmocka_unit_test(ways_change_no_bit),
        cmocka_unit_test(tiles_multiply_the_types_that_gain),
    };

    other = kernels_by_name("avx512vnni");
    return cmocka_run_group_tests_name("amx", tests, NULL, NULL);
}
