/*
 * Weights that a snapshot does not keep in rows of blocks.
 *
 * A matrix of gpt-oss may be stored by columns.  MXFP4 and NVFP4 weights are stored as the values
 * of all blocks and, elsewhere, all scales; two neighbours share a byte, while the kernels read
 * blocks in which values 0 and 16 do, or 0 and 8.
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

/* n bytes with pairs of neighbours become n bytes with values i and i + n. */
static void pair_halves(const unsigned char *values, int n, unsigned char *to)
{
    for (int i = 0; i < n / 2; i++) {
        unsigned low = values[i], high = values[i + n / 2];

        to[2 * i] = (unsigned char)((low & 15) | (high & 15) << 4);
        to[2 * i + 1] = (unsigned char)(low >> 4 | (high & 0xf0));
    }
}

/* The scale, then the values. */
static void unpack_mxfp4(const unsigned char *values, const unsigned char *scale,
                         unsigned char *to)
{
    to[0] = scale[0];
    pair_halves(values, 16, to + 1);
}

/* The scales of four groups, then their values. */
static void unpack_nvfp4(const unsigned char *values, const unsigned char *scales,
                         unsigned char *to)
{
    memcpy(to, scales, 4);
    for (int g = 0; g < 4; g++)
        pair_halves(values + 8 * g, 8, to + 4 + 8 * g);
}

void unpack_rows(const struct tensor_info *t, const unsigned char *const *w, size_t row,
                 size_t n_row, unsigned char *to)
{
    const struct tensor_type_info *type = tensor_type_info(t->type);
    size_t n_block = n_row * t->ne[0] / type->block_elems;
    size_t first = row * t->ne[0] / type->block_elems;

    if (t->layout == LAYOUT_TRANSPOSED) {
        unpack_columns(t, w[0], row, n_row, to);
        return;
    }
    for (size_t i = 0; i < n_block; i++)
        if (t->type == TYPE_MXFP4)
            unpack_mxfp4(w[0] + (first + i) * 16, w[1] + first + i, to + i * type->block_bytes);
        else
            unpack_nvfp4(w[0] + (first + i) * 32, w[1] + (first + i) * 4,
                         to + i * type->block_bytes);
}
