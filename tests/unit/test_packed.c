/*
 * Packed BF16: any bits come back, blocks keep to their bound, and every set of kernels gives
 * the bits of the plain weights.
 */
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

#include "engine/compute/kernels.h"
#include "engine/compute/packed.h"
#include "tests/lib/kernel_data.h"

typedef uint16_t weight_fn(uint64_t *seed, size_t i);

static uint16_t bf16_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static uint16_t normal(uint64_t *seed, size_t i)
{
    (void)i;
    return bf16_of(random_float(seed));
}

static uint16_t any_bits(uint64_t *seed, size_t i)
{
    (void)i;
    return (uint16_t)random_u32(seed);
}

static uint16_t zeros_and_subnormals(uint64_t *seed, size_t i)
{
    return (uint16_t)((random_u32(seed) & 0x8000) | (i % 3 == 0 ? 0 : random_u32(seed) & 0x7f));
}

static uint16_t nan_and_infinity(uint64_t *seed, size_t i)
{
    return i % 50 == 7 ? (uint16_t)(0x7f80 | (random_u32(seed) & 0x80ff)) : normal(seed, i);
}

/* Every other span has a large weight, so all others are far below it. */
static uint16_t outliers(uint64_t *seed, size_t i)
{
    return i % 512 == 300 ? 0x7000 : normal(seed, i);
}

/* 30, 31 or 32 far weights in a span: the most that a list of patches takes, and one more. */
static uint16_t near_the_limit(uint64_t *seed, size_t i)
{
    uint16_t w = bf16_of(1 + fabsf(random_float(seed)));

    return i % 256 < 30 + i / 256 % 3 ? (uint16_t)(w - (30u << 7)) : w;
}

static uint16_t small_exponents(uint64_t *seed, size_t i)
{
    (void)i;
    return (uint16_t)((random_u32(seed) & 0x807f) | random_u32(seed) % 20 << 7);
}

static struct kind {
    const char *name;
    weight_fn *weight;
} kinds[] = {
    { "normal", normal },
    { "any bits", any_bits },
    { "zeros and subnormals", zeros_and_subnormals },
    { "nan and infinity", nan_and_infinity },
    { "outliers", outliers },
    { "near the limit", near_the_limit },
    { "small exponents", small_exponents },
};

enum { N_KIND = sizeof kinds / sizeof kinds[0] };

static uint16_t *make_weights(const struct kind *kind, size_t n)
{
    uint16_t *w = calloc(n, sizeof *w);
    uint64_t seed = 12;

    assert_non_null(w);
    for (size_t i = 0; i < n; i++)
        w[i] = kind->weight(&seed, i);
    return w;
}

/* In memory of exactly its size.  Free it with fenced_free(). */
static void *pack(const uint16_t *w, size_t n_row, size_t n_k, size_t *bytes)
{
    size_t most = n_row * packed_row_most(n_k);
    void *room = fenced_new(most), *exact;

    *bytes = packed_make(w, n_row, n_k, room, most);
    assert_true(*bytes > 0);
    exact = fenced_new(*bytes);
    assert_int_equal(packed_make(w, n_row, n_k, exact, *bytes), *bytes);
    assert_memory_equal(exact, room, *bytes);
    fenced_free(room, most);
    return exact;
}

static const size_t lengths[] = { 64, 192, 256, 320, 768, 1536 };

enum { N_LENGTH = sizeof lengths / sizeof lengths[0] };

static void any_bits_come_back(void **state)
{
    for (size_t l = 0; l < N_LENGTH; l++) {
        size_t n_k = lengths[l], n_row = 11, bytes;
        uint16_t *w = make_weights(*state, n_row * n_k), got[PACKED_SPAN];
        void *block = pack(w, n_row, n_k, &bytes);
        struct packed_block b = packed_open(block, n_row, n_k);

        assert_true(bytes <= n_row * (n_k * sizeof *w + packed_spans(n_k) * 4));
        if (n_k % PACKED_SPAN == 0)
            assert_true(bytes * 100 <= n_row * n_k * sizeof *w * 101);
        for (size_t r = 0; r < n_row; r++)
            for (size_t k = 0, n; k < n_k; k += n) {
                n = packed_span(&b, r, k / PACKED_SPAN, got);
                assert_memory_equal(got, w + r * n_k + k, n * sizeof *w);
            }
        for (size_t less = 1; less <= bytes; less += 1 + bytes / 50) {
            /* One more word, which is not room.  It ends at the fence, so it is aligned. */
            size_t all = (bytes - less) / 4 * 4 + 4;
            void *room = fenced_new(all);

            assert_int_equal(packed_make(w, n_row, n_k, room, bytes - less), 0);
            fenced_free(room, all);
        }
        fenced_free(block, bytes);
        free(w);
    }
}

static void normal_weights_take_three_quarters(void **state)
{
    size_t n_row = 100, n_k = 2048, bytes;
    uint16_t *w = make_weights(&kinds[0], n_row * n_k);
    struct packed_count count = { 0 };
    uint64_t n = 0;
    void *block;

    (void)state;
    block = pack(w, n_row, n_k, &bytes);
    fenced_free(block, bytes);
    assert_true(bytes * 1000 <= n_row * n_k * sizeof *w * 760);
    packed_add(&count, w, n_row * n_k);
    assert_int_equal(count.n_weight, n_row * n_k);
    assert_int_equal(bytes, n_row * packed_row_least(n_k) + count.patch_bytes);
    assert_true(count.n_escape > 0 && count.n_escape < count.n_weight / 2000);
    for (int e = 0; e < 256; e++)
        n += count.exponents[e];
    assert_int_equal(n, count.n_weight);
    free(w);
}

static bool same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* Products of all rows in parts, as the threads cut them, for n_col columns. */
static void check_products(const struct kernels *set, const uint16_t *w,
                           const struct packed_block *b, size_t n_row, size_t n_col)
{
    static const size_t cuts[] = { 1, 5, 11 };
    size_t n_k = b->n_k, stride = act_bytes(ACT_F32, n_k);
    uint8_t *x = calloc(n_col, stride);
    float *want = calloc(n_row * n_col, sizeof *want),
          *got = calloc(n_row * n_col, sizeof *got);
    uint64_t seed = n_col;
    struct matmul m = { .type = TYPE_BF16,
                        .form = ACT_F32,
                        .n_row = n_row,
                        .n_k = n_k,
                        .n_col = n_col,
                        .w = w,
                        .x = x,
                        .x_stride = stride,
                        .ldy = n_row };

    for (size_t c = 0; c < n_col; c++)
        for (size_t k = 0; k < n_k; k++)
            ((float *)(void *)(x + c * stride))[k] = random_float(&seed);
    m.y = want;
    set->mul(&m);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        memset(got, 0xff, n_row * n_col * sizeof *got);
        for (size_t r = 0; r < n_row; r += cuts[i]) {
            m.n_row = n_row - r < cuts[i] ? n_row - r : cuts[i];
            m.y = got + r;
            set->mul_packed(b, r, &m);
        }
        if (!same_floats(want, got, n_row * n_col))
            fail_msg("%s: %zu values per row, %zu columns, parts of %zu rows", set->name, n_k,
                     n_col, cuts[i]);
    }
    free(got);
    free(want);
    free(x);
}

static void all_sets_give_the_bits_of_plain_weights(void **state)
{
    static const size_t columns[] = { 1, 2, 7, 30 };
    const char *const *names = kernels_names();

    for (size_t i = 0; names[i] != NULL; i++)
        for (size_t l = 0; l < N_LENGTH; l++) {
            const struct kernels *set = kernels_by_name(names[i]);
            size_t n_k = lengths[l], n_row = 11, bytes;
            uint16_t *w = make_weights(*state, n_row * n_k);
            void *block = pack(w, n_row, n_k, &bytes);
            struct packed_block b = packed_open(block, n_row, n_k);
            float *want = calloc(n_k, sizeof *want), *got = calloc(n_k, sizeof *got);

            for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
                check_products(set, w, &b, n_row, columns[c]);
            for (size_t r = 0; r < n_row; r++) {
                set->dequant(TYPE_BF16, w + r * n_k, want, n_k);
                set->unpack(&b, r, 0, n_k, got);
                assert_memory_equal(got, want, n_k * sizeof *want);
                if (n_k > PACKED_SPAN) {
                    set->unpack(&b, r, PACKED_SPAN, n_k - PACKED_SPAN, got);
                    assert_memory_equal(got, want + PACKED_SPAN,
                                        (n_k - PACKED_SPAN) * sizeof *want);
                }
            }
            free(got);
            free(want);
            fenced_free(block, bytes);
            free(w);
        }
}

int main(void)
{
    struct CMUnitTest tests[2 * N_KIND + 1];
    static char names[2 * N_KIND][64];
    size_t n = 0;

    for (size_t i = 0; i < N_KIND; i++) {
        snprintf(names[n], sizeof names[n], "%s: packed and back", kinds[i].name);
        tests[n] = (struct CMUnitTest){ names[n], any_bits_come_back, NULL, NULL, &kinds[i] };
        n++;
        snprintf(names[n], sizeof names[n], "%s: products", kinds[i].name);
        tests[n] = (struct CMUnitTest){ names[n], all_sets_give_the_bits_of_plain_weights, NULL,
                                        NULL, &kinds[i] };
        n++;
    }
    tests[n] = (struct CMUnitTest)cmocka_unit_test(normal_weights_take_three_quarters);
    return cmocka_run_group_tests_name("packed", tests, NULL, NULL);
}
