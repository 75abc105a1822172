/* The way through a BLAS: right, and blind to how many columns and rows come at once. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/compute/blas.h"
#include "engine/compute/dequant.h"
#include "tests/unit/kernel_data.h"

enum { N_ROW = 150, N_COL = 70, MOST_K = 768 };

static void equals_the_plain_sum_however_it_is_cut(void **state)
{
    static const struct {
        enum tensor_type type;
        size_t n_k;
    } cases[] = {
        { TYPE_F32, 56 },
        { TYPE_BF16, 768 },
        { TYPE_Q4_K, 512 },
        { TYPE_Q8_0, 96 },
    };
    static float y[N_COL][N_ROW], part[N_COL][N_ROW], wide[MOST_K];
    const struct kernels *set = kernels_best();

    bool is_uniform = blas_start();

    (void)state;
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        enum tensor_type type = cases[t].type;
        size_t n_k = cases[t].n_k, row_bytes = (size_t)tensor_row_bytes(type, n_k);
        size_t stride = act_bytes(ACT_F32, n_k);
        uint8_t *w = fenced_new(N_ROW * row_bytes), *x = fenced_new(N_COL * stride);
        void *scratch = fenced_new(blas_scratch_bytes(n_k));
        uint64_t seed = t;

        random_blocks(type, w, N_ROW * n_k, &seed);
        random_blocks(TYPE_F32, x, N_COL * stride / 4, &seed);
        blas_mul(set, type, w, N_ROW, n_k, x, stride, N_COL, y[0], N_ROW, scratch);
        for (size_t r = 0; r < N_ROW; r++) {
            dequant_row(type, w + r * row_bytes, wide, n_k);
            for (size_t c = 0; c < N_COL; c++) {
                const float *column = (const void *)(x + c * stride);
                double sum = 0, size = 0;

                for (size_t k = 0; k < n_k; k++) {
                    sum += (double)wide[k] * column[k];
                    size += fabs((double)wide[k] * column[k]);
                }
                assert_true(fabs(y[c][r] - sum) <= 2e-6 * size);
            }
        }
        for (size_t r = 0; r < N_ROW; r += 37)
            for (size_t c = 0; c < N_COL; c += 9) {
                size_t n_r = N_ROW - r < 37 ? N_ROW - r : 37;
                size_t n_c = N_COL - c < 9 ? N_COL - c : 9;

                blas_mul(set, type, w + r * row_bytes, n_r, n_k, x + c * stride, stride, n_c,
                         &part[c][r], N_ROW, scratch);
            }
        if (is_uniform)
            assert_memory_equal(part, y, sizeof y);
        fenced_free(w, N_ROW * row_bytes);
        fenced_free(x, N_COL * stride);
        fenced_free(scratch, blas_scratch_bytes(n_k));
    }
    assert_non_null(strstr(blas_name(), "OpenBLAS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_plain_sum_however_it_is_cut),
    };

    return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}
