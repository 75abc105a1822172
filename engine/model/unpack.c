/*
 * Weights of experts that a snapshot does not keep in rows: those of gpt-oss.
 *
 * A matrix may be stored by columns.  MXFP4 weights may be stored as the values of all blocks
 * and, elsewhere, all scales; in such a block two neighbours share a byte, while the kernels
 * read blocks in which values 0 and 16 do.
 */
#include "config.h"

#include <string.h>

#include "engine/model/forward_internal.h"

/* w: [n_k][all rows] */
static void unpack_columns(const struct tensor_info *t, const unsigned char *w, size_t row,
                           size_t n_row, unsigned char *to)
{
    size_t n_k = t->ne[0], stride = t->ne[1];
    size_t n = (size_t)tensor_row_bytes(t->type, 1);

    for (size_t k = 0; k < n_k; k++)
        for (size_t r = 0; r < n_row; r++)
            memcpy(to + (r * n_k + k) * n, w + (k * stride + row + r) * n, n);
}

/* The scale, then bytes with values i and i + 16 of the block. */
static void unpack_mxfp4(const unsigned char *values, unsigned char scale, unsigned char *to)
{
    to[0] = scale;
    for (int i = 0; i < 8; i++) {
        unsigned low = values[i], high = values[i + 8];

        to[1 + 2 * i] = (unsigned char)((low & 15) | (high & 15) << 4);
        to[2 + 2 * i] = (unsigned char)(low >> 4 | (high & 0xf0));
    }
}

void unpack_rows(const struct tensor_info *t, const unsigned char *const *w, size_t row,
                 size_t n_row, unsigned char *to)
{
    size_t n_byte = (size_t)tensor_row_bytes(TYPE_MXFP4, 32); /* of a block */
    size_t n_block = n_row * t->ne[0] / 32, first = row * t->ne[0] / 32;

    if (t->layout == LAYOUT_TRANSPOSED) {
        unpack_columns(t, w[0], row, n_row, to);
        return;
    }
    for (size_t i = 0; i < n_block; i++)
        unpack_mxfp4(w[0] + (first + i) * 16, w[1][first + i], to + i * n_byte);
}
