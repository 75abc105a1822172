/*
 * count.c - one product of 8-bit columns, for run.sh --count, which counts its instructions.
 *
 *     count SET TYPE ROWS COLUMNS
 *
 * Rows have 4096 values.  Weights and columns are zeros, since kernels do not look at values, and
 * nothing but the product depends on ROWS.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compute/kernels.h"

enum { N_K = 4096, MOST_ROWS = 64, MOST_COLS = 64 };

static uint8_t weights[MOST_ROWS * N_K];
static float y[MOST_ROWS * MOST_COLS];

int main(int argc, char **argv)
{
    const struct kernels *set = argc == 5 ? kernels_by_name(argv[1]) : NULL;
    const size_t x_stride = act_bytes(ACT_Q8, N_K);
    size_t n_row, n_col;
    uint8_t *x;

    if (set == NULL)
        return 2;
    n_row = strtoul(argv[3], NULL, 10);
    n_col = strtoul(argv[4], NULL, 10);
    x = calloc(MOST_COLS, x_stride);
    if (x == NULL || n_row > MOST_ROWS || n_col > MOST_COLS)
        return 2;
    for (int t = 0; t < TYPE_COUNT; t++) {
        const struct tensor_type_info *info = tensor_type_info((enum tensor_type)t);

        if (info == NULL || strcmp(info->name, argv[2]) != 0)
            continue;
        set->mul(&(struct matmul){ .type = (enum tensor_type)t,
                                   .form = ACT_Q8,
                                   .n_row = n_row,
                                   .n_k = N_K,
                                   .n_col = n_col,
                                   .w = weights,
                                   .x = x,
                                   .x_stride = x_stride,
                                   .y = y,
                                   .ldy = MOST_ROWS });
        return 0;
    }
    return 2;
}
