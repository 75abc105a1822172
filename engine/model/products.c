/* See products.h. */
#include "config.h"

#include "engine/model/products.h"

#include "engine/base/arena.h"
#include "engine/base/clock.h"

/* All models are measured with one shape, because rates are stored by weight type. */
#define ROWS    128
#define N_K     2048
#define SECONDS 0.02 /* for each weight type */
#define ROUNDS  3    /* at least */

/* One product, for both ways to compute it. */
struct trial {
    const struct kernels *kernels;
    enum tensor_type type;
    enum act_form form;
    size_t n_k, n_col;
    const uint8_t *w, *x; /* x: floats, or packed */
    float *y, *scratch;
};

static double multiply_s(const struct trial *t, bool by_blas)
{
    double start = clock_s();

    if (by_blas)
        blas_multiply(&(struct blas_product){ .set = t->kernels,
                                              .type = t->type,
                                              .w = t->w,
                                              .n_row = ROWS,
                                              .n_k = t->n_k,
                                              .x = (const float *)(const void *)t->x,
                                              .ldx = act_bytes(ACT_F32, t->n_k) / sizeof(float),
                                              .n_col = t->n_col,
                                              .y = t->y,
                                              .ldy = ROWS },
                      0, 1, t->scratch);
    else
        t->kernels->mul(&(struct matmul){ .type = t->type,
                                          .form = t->form,
                                          .n_row = ROWS,
                                          .n_k = t->n_k,
                                          .n_col = t->n_col,
                                          .w = t->w,
                                          .x = t->x,
                                          .x_stride = act_bytes(t->form, t->n_k),
                                          .y = t->y,
                                          .ldy = ROWS });
    return clock_s() - start;
}

/* Returns the shortest of the times: other processes can only lengthen them. */
static void compare(const struct trial *t, bool has_blas, struct product_rate *out)
{
    double flops = 2.0 * ROWS * (double)t->n_k * (double)t->n_col;
    double best[2] = { 0 }, start = clock_s();

    for (int round = 0; round < ROUNDS || clock_s() - start < SECONDS; round++)
        for (int way = 0; way < (has_blas ? 2 : 1); way++) {
            double s = multiply_s(t, way == 1);

            if (s > 0 && (best[way] == 0 || s < best[way]))
                best[way] = s;
        }
    out->type = t->type;
    out->kernels = best[0] > 0 ? flops / best[0] : 0;
    out->blas = best[1] > 0 ? flops / best[1] : 0;
}

/* Zeros are as slow as other numbers. */
static int measure_type(const struct kernels *kernels, bool exact, bool has_blas,
                        uint32_t n_col, struct product_rate *out, struct err *e)
{
    struct trial t = { .kernels = kernels,
                       .type = out->type,
                       .form = act_form_of(out->type, exact),
                       .n_k = N_K,
                       .n_col = n_col };
    size_t n_tile = blas_tiles(0, n_col);
    size_t w = ROWS * tensor_row_bytes(t.type, t.n_k), y = ROWS * n_col * sizeof(float);
    size_t x = n_tile * BLAS_COLS * act_bytes(ACT_F32, t.n_k);
    struct arena a = { 0 };
    int rc = -1;

    if (arena_map(&a, "activations",
                  arena_size(w) + arena_size(x) + arena_size(y) +
                      arena_size(blas_scratch_bytes(n_tile)),
                  true, e) != 0)
        return -1;
    t.w = arena_take(&a, w, e);
    t.x = arena_take(&a, x, e);
    t.y = arena_take(&a, y, e);
    t.scratch = arena_take(&a, blas_scratch_bytes(n_tile), e);
    if (t.w != NULL && t.x != NULL && t.y != NULL && t.scratch != NULL) {
        compare(&t, has_blas, out);
        rc = 0;
    }
    arena_unmap(&a);
    return rc;
}

static bool has_type(const struct model_desc *d, enum tensor_type type)
{
    for (uint32_t l = 0; l < d->n_layer; l++)
        for (int i = 0; i < N_LAYER_MAT; i++) {
            const struct mat *m = &d->layers[l].mats[i];

            if (m->tensor != NULL && m->tensor->type == type)
                return true;
        }
    return false;
}

uint32_t products_list(const struct model_desc *d, struct product_rate *rates, uint32_t most)
{
    uint32_t n = 0;

    /* OpenBLAS gets no scales. */
    for (int type = 0; type < TYPE_COUNT && n < most; type++)
        if (type != TYPE_F8_E4M3 && has_type(d, (enum tensor_type)type))
            rates[n++] = (struct product_rate){ .type = (enum tensor_type)type };
    return n;
}

int products_measure(const struct kernels *kernels, bool exact, bool has_blas, uint32_t n_col,
                     struct product_rate *rates, uint32_t n, struct err *e)
{
    for (uint32_t i = 0; i < n; i++)
        if (measure_type(kernels, exact, has_blas, n_col, &rates[i], e) != 0)
            return -1;
    return 0;
}

bool products_tile_prompt(const struct products *p, uint32_t pos, uint32_t n)
{
    size_t n_tile = blas_tiles(pos % BLAS_COLS, n);

    return n > 1 && n >= p->n_col * n_tile;
}
