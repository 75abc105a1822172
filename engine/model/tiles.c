/*
 * Columns of a long prompt, laid out in tiles for OpenBLAS.  The column of position p has place
 * p % BLAS_COLS of its tile (see blas.h).  Each thread has a scratch buffer of its own.
 */
#include "config.h"

#include <string.h>

#include "engine/compute/quants.h"
#include "engine/model/forward_internal.h"

#define COL_BYTES (BLAS_ROWS * sizeof(float)) /* of a thread's scratch */

uint64_t tiles_scratch_bytes(uint32_t n_col)
{
    return blas_scratch_bytes(0) + n_col * COL_BYTES;
}

bool tiles_take(const struct forward *f, enum tensor_type type)
{
    return f->in_tiles && !f->is_tail && f->p.products->by_blas[type];
}

struct layout {
    struct forward *f;
    enum act_form form;
    const float *x;
    size_t ldx, n_k, stride; /* stride of a packed column */
    struct tiles *t;
};

/* If the kernels would round a column to 8 bits, it has the rounded values here, too. */
static void lay_col(void *ctx, uint32_t c)
{
    const struct layout *l = ctx;
    float *to = l->f->tile_cols + (l->t->first + c) * l->t->ldx;
    unsigned char *packed = l->f->packed + c * l->stride;

    if (l->form == ACT_F32) {
        memcpy(to, l->x + c * l->ldx, l->n_k * sizeof *to);
        return;
    }
    l->f->p.kernels->act_pack(l->form, l->x + c * l->ldx, l->n_k, packed);
    for (size_t k = 0; k < l->n_k; k++)
        to[k] = act_q8_value((const void *)packed, k);
}

void tiles_lay(struct forward *f, enum act_form form, const float *x, size_t ldx, size_t n_k,
               struct tiles *out)
{
    struct layout l = { f, form, x, ldx, n_k, act_bytes(form, n_k), out };
    size_t n;

    *out = (struct tiles){ .first = f->pos[0] % BLAS_COLS,
                           .n_col = f->n_col,
                           .ldx = act_bytes(ACT_F32, n_k) / sizeof(float) };
    n = blas_tiles(out->first, out->n_col) * BLAS_COLS;
    memset(f->tile_cols, 0, out->first * out->ldx * sizeof(float));
    memset(f->tile_cols + (out->first + out->n_col) * out->ldx, 0,
           (n - out->first - out->n_col) * out->ldx * sizeof(float));
    forward_each_col(f, lay_col, &l);
}

void tiles_multiply(const struct forward *f, const struct tiles *t, struct blas_product *p,
                    int part, int n_part)
{
    uint32_t n_col = f->p.chunk + TILES_SPARE;

    p->set = f->p.kernels;
    p->x = f->tile_cols;
    p->ldx = t->ldx;
    p->first = t->first;
    p->n_col = t->n_col;
    if (part < BLAS_THREADS)
        blas_multiply(p, part, n_part,
                      f->tile_scratch + (size_t)part * tiles_scratch_bytes(n_col));
}
