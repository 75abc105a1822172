/*
 * Interleaved weights (engine/compute/interleave.h): every block comes back as it was, and every
 * set of kernels multiplies them to the bits of those in the file.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/compute/ways.h"
#include "engine/compute/interleave.h"
#include "engine/compute/kernels.h"
#include "tests/lib/kernel_data.h"

enum { MOST_COL = 70, WAY_COL = 130 };

struct block {
    enum tensor_type type;
    size_t n_row, n_k, row_bytes, bytes;
    uint8_t *file, *laid; /* end at a page that cannot be read */
};

static void make(struct block *b, enum tensor_type type, size_t n_row, size_t n_k)
{
    uint64_t seed = 5 + n_row + n_k;
    void *scratch;

    *b = (struct block){ .type = type, .n_row = n_row, .n_k = n_k };
    b->row_bytes = (size_t)tensor_row_bytes(type, n_k);
    b->bytes = n_row * b->row_bytes;
    b->file = fenced_new(b->bytes);
    b->laid = fenced_new(b->bytes);
    random_blocks(type, b->file, n_row * n_k, &seed);
    scratch = fenced_new(INTERLEAVED_ROWS * b->row_bytes);
    interleave(type, b->row_bytes, n_row, b->file, b->laid, scratch);
    fenced_free(scratch, INTERLEAVED_ROWS * b->row_bytes);
}

static void drop(struct block *b)
{
    fenced_free(b->file, b->bytes);
    fenced_free(b->laid, b->bytes);
}

/* Lengths of rows: of one span, several, and, for blocks of 32, one that ends within a span. */
static size_t length(enum tensor_type type, int i)
{
    const size_t n = tensor_type_info(type)->block_elems == 32 ? (size_t[]){ 32, 256, 1152 }[i]
                                                               : (size_t[]){ 256, 512, 1280 }[i];

    return n;
}

static enum tensor_type type_of(void **state)
{
    return *(const enum tensor_type *)*state;
}

static void values_come_back(void **state)
{
    for (int i = 0; i < 3; i++)
        for (size_t n_row = 15; n_row <= 49; n_row += 17) {
            const size_t unit = tensor_type_info(type_of(state))->block_elems;
            uint8_t *row;
            struct block b;

            make(&b, type_of(state), n_row, length(type_of(state), i));
            row = fenced_new(b.row_bytes);
            for (size_t r = 0; r < n_row; r++) {
                interleaved_values(b.type, b.row_bytes, n_row, b.laid, r, 0, b.n_k, row);
                assert_memory_equal(row, b.file + r * b.row_bytes, b.row_bytes);
                interleaved_values(b.type, b.row_bytes, n_row, b.laid, r, b.n_k - unit, unit,
                                   row);
                assert_memory_equal(row, b.file + (r + 1) * b.row_bytes - b.row_bytes * unit / b.n_k,
                                    b.row_bytes * unit / b.n_k);
            }
            fenced_free(row, b.row_bytes);
            drop(&b);
        }
}

/* Pinned blocks are laid out where they were read, which may be some bytes further on. */
static void blocks_are_laid_out_in_place(void **state)
{
    struct block b;
    uint8_t *place, *scratch;
    const size_t lead = 4095;

    make(&b, type_of(state), 37, length(type_of(state), 2));
    place = fenced_new(b.bytes + lead);
    scratch = fenced_new(INTERLEAVED_ROWS * b.row_bytes);
    for (size_t at = 0; at <= lead; at += lead) {
        memcpy(place + at, b.file, b.bytes);
        interleave(b.type, b.row_bytes, b.n_row, place + at, place, scratch);
        assert_memory_equal(place, b.laid, b.bytes);
    }
    fenced_free(scratch, INTERLEAVED_ROWS * b.row_bytes);
    fenced_free(place, b.bytes + lead);
    drop(&b);
}

static void check_products(const struct kernels *set, const struct block *b, const uint8_t *x,
                           size_t x_stride, size_t n_col)
{
    const size_t n_row = b->n_row / INTERLEAVED_ROWS * INTERLEAVED_ROWS;
    float *want = calloc(n_row * n_col, sizeof *want), *y = calloc(n_row * n_col, sizeof *y);

    struct matmul m = { .type = b->type,
                        .form = ACT_Q8,
                        .n_row = n_row,
                        .n_k = b->n_k,
                        .n_col = n_col,
                        .w = b->file,
                        .x = x,
                        .x_stride = x_stride,
                        .y = want,
                        .ldy = n_row };

    set->mul(&m);
    m.w = b->laid;
    m.y = y;
    set->mul_interleaved(&m);
    for (size_t i = 0; i < n_row * n_col; i++)
        if (memcmp(&y[i], &want[i], sizeof y[i]) != 0)
            fail_msg("%s, %zu x %zu, %zu columns: column %zu, row %zu is %.9g instead of %.9g",
                     set->name, n_row, b->n_k, n_col, i / n_row, i % n_row, (double)y[i],
                     (double)want[i]);
    free(want);
    free(y);
}

/* However weights are prefetched, also past the end of their memory, and at whatever numbers of
 * columns the path changes.  test_kernels has more of the rows in the file. */
static void ways_change_no_bit(void **state)
{
    enum { N_ROW = 64, N_K = 1280 };
    static const size_t cols[] = { 1, 3, 24, 49, WAY_COL };

    for (const char *const *name = kernels_names(); *name != NULL; name++) {
        const struct kernels *set = kernels_by_name(*name);
        const size_t x_stride = act_bytes(ACT_Q8, N_K), y_bytes = N_ROW * WAY_COL * sizeof(float);
        uint8_t *x = calloc(WAY_COL, x_stride);
        float f[N_K], *want = malloc(y_bytes), *y = malloc(y_bytes);
        uint64_t seed = 9;
        struct block b;
        struct matmul m = { .type = type_of(state), .form = ACT_Q8, .n_row = N_ROW, .n_k = N_K,
                            .x = x, .x_stride = x_stride, .y = y, .ldy = N_ROW };

        make(&b, m.type, m.n_row, m.n_k);
        for (size_t c = 0; c < WAY_COL; c++) {
            for (size_t k = 0; k < m.n_k; k++)
                f[k] = random_float(&seed);
            set->act_pack(ACT_Q8, f, m.n_k, x + c * x_stride);
        }
        for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++)
            for (int j = 0; j < WAY_CHOICES; j++) {
                const enum way_choice choice = (enum way_choice)j;
                const bool is_laid = (choice >= WAY_INTERLEAVED_5 && choice < WAY_FEW_COLS) ||
                                     choice >= WAY_LANE_COLS;
                const int before = ways_chosen(choice);

                if (is_laid && set->mul_interleaved == NULL)
                    continue;
                m.n_col = cols[k];
                m.w = is_laid ? b.laid : b.file;
                for (int i = 0; i < ways_count(choice); i++) {
                    ways_choose(choice, i);
                    assert_int_equal(ways_chosen(choice), i);
                    memset(y, 0x55, y_bytes);
                    (is_laid ? set->mul_interleaved : set->mul)(&m);
                    if (i == 0)
                        memcpy(want, y, y_bytes);
                    assert_memory_equal(y, want, y_bytes);
                }
                ways_choose(choice, before);
            }
        drop(&b);
        free(x);
        free(want);
        free(y);
    }
}

static void products_have_the_same_bits(void **state)
{
    static const size_t cols[] = { 1, 2, 5, 33, MOST_COL };

    for (const char *const *name = kernels_names(); *name != NULL; name++) {
        const struct kernels *set = kernels_by_name(*name);

        if (set->mul_interleaved == NULL)
            continue;
        for (int i = 0; i < 3; i++)
            for (size_t n_row = 16; n_row <= 112; n_row += 48) {
                uint64_t seed = 3;
                struct block b;
                size_t stride;
                float *column;
                uint8_t *x;

                make(&b, type_of(state), n_row, length(type_of(state), i));
                stride = act_bytes(ACT_Q8, b.n_k);
                x = fenced_new(MOST_COL * stride);
                column = calloc(b.n_k, sizeof *column);
                for (size_t c = 0; c < MOST_COL; c++) {
                    for (size_t k = 0; k < b.n_k; k++)
                        column[k] = random_float(&seed);
                    set->act_pack(ACT_Q8, column, b.n_k, x + c * stride);
                }
                for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++)
                    check_products(set, &b, x, stride, cols[c]);
                free(column);
                fenced_free(x, MOST_COL * stride);
                drop(&b);
            }
    }
}

int main(void)
{
    struct CMUnitTest tests[4 * TYPE_COUNT];
    static char names[4 * TYPE_COUNT][64];
    static enum tensor_type types[TYPE_COUNT];
    size_t n = 0;

    for (size_t t = 0; t < TYPE_COUNT; t++) {
        types[t] = (enum tensor_type)t;
        if (!interleave_takes(types[t]))
            continue;

        static const struct {
            const char *name;
            CMUnitTestFunction fn;
        } kinds[] = { { "values come back", values_come_back },
                      { "laid out in place", blocks_are_laid_out_in_place },
                      { "ways", ways_change_no_bit },
                      { "products have the same bits", products_have_the_same_bits } };

        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++, n++) {
            snprintf(names[n], sizeof names[n], "%s: %s", tensor_type_info((uint32_t)t)->name,
                     kinds[k].name);
            tests[n] = (struct CMUnitTest){ .name = names[n],
                                            .test_func = kinds[k].fn,
                                            .initial_state = &types[t] };
        }
    }
    return _cmocka_run_group_tests("interleave", tests, n, NULL, NULL);
}
