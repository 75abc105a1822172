#include "config.h"

#include "engine/compute/blas.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

static char name[128] = "no BLAS";

static void multiply_tile(const float *rows, const float *cols, size_t n_k, float *tile)
{
    cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, BLAS_ROWS, BLAS_COLS, (int)n_k, 1,
                rows, (int)n_k, cols, (int)n_k, 0, tile, BLAS_ROWS);
}

/* Equal rows and equal columns: are all sums equal? */
static bool is_uniform(size_t n_k)
{
    float *rows = malloc((BLAS_ROWS + BLAS_COLS) * n_k * sizeof *rows);
    float *cols, tile[BLAS_ROWS * BLAS_COLS];
    bool is_same = true;

    if (rows == NULL)
        return false;
    cols = rows + BLAS_ROWS * n_k;
    for (size_t i = 0; i < BLAS_ROWS * n_k; i++)
        rows[i] = 1.0f / (float)(1 + i % n_k * 7 % 61);
    for (size_t i = 0; i < BLAS_COLS * n_k; i++)
        cols[i] = 0.3f - 1.0f / (float)(1 + i % n_k * 5 % 67);
    multiply_tile(rows, cols, n_k, tile);
    for (size_t i = 1; i < BLAS_ROWS * BLAS_COLS; i++)
        is_same = is_same && memcmp(&tile[i], &tile[0], sizeof tile[0]) == 0;
    free(rows);
    return is_same;
}

bool blas_start(void)
{
    openblas_set_num_threads(1);
    snprintf(name, sizeof name, "%.90s, %.30s", openblas_get_config(), openblas_get_corename());
    return is_uniform(56) && is_uniform(1085);
}

const char *blas_name(void)
{
    return name;
}

size_t blas_scratch_bytes(size_t n_k)
{
    size_t floats = BLAS_ROWS * n_k + BLAS_COLS * n_k + BLAS_ROWS * BLAS_COLS;

    return (floats * sizeof(float) + 63) / 64 * 64;
}

/* dst[BLAS_COLS][n_k], zeros behind n_col */
static void copy_columns(float *dst, const uint8_t *x, size_t x_stride, size_t n_col,
                         size_t n_k)
{
    for (size_t c = 0; c < n_col; c++)
        memcpy(dst + c * n_k, x + c * x_stride, n_k * sizeof *dst);
    memset(dst + n_col * n_k, 0, (BLAS_COLS - n_col) * n_k * sizeof *dst);
}

/* dst[BLAS_ROWS][n_k], zeros behind n_row */
static void widen_rows(const struct kernels *set, enum tensor_type type, float *dst,
                       const uint8_t *w, size_t n_row, size_t n_k)
{
    set->dequant(type, w, dst, n_row * n_k); /* rows share no block */
    memset(dst + n_row * n_k, 0, (BLAS_ROWS - n_row) * n_k * sizeof *dst);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

void blas_mul(const struct kernels *set, enum tensor_type type, const void *w, size_t n_row,
              size_t n_k, const void *x, size_t x_stride, size_t n_col, float *y, size_t ldy,
              void *scratch)
{
    size_t row_bytes = (size_t)tensor_row_bytes(type, n_k);
    float *rows = scratch;                /* [BLAS_ROWS][n_k] */
    float *cols = rows + BLAS_ROWS * n_k; /* [BLAS_COLS][n_k] */
    float *tile = cols + BLAS_COLS * n_k; /* [BLAS_COLS][BLAS_ROWS] */

    for (size_t r = 0; r < n_row; r += BLAS_ROWS) {
        size_t n_r = min_size(BLAS_ROWS, n_row - r);

        widen_rows(set, type, rows, (const uint8_t *)w + r * row_bytes, n_r, n_k);
        for (size_t c = 0; c < n_col; c += BLAS_COLS) {
            size_t n_c = min_size(BLAS_COLS, n_col - c);

            copy_columns(cols, (const uint8_t *)x + c * x_stride, x_stride, n_c, n_k);
            multiply_tile(rows, cols, n_k, tile);
            for (size_t i = 0; i < n_c; i++)
                memcpy(y + (c + i) * ldy + r, tile + i * BLAS_ROWS, n_r * sizeof *y);
        }
    }
}
