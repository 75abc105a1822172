/*
 * Measure how fast this machine multiplies the matrices of a model, which limits prompts.
 *
 * The matrices of the first layer are multiplied one after the other, in pieces of about a
 * block, using enough columns that memory bandwidth does not limit the rate.  A prompt also
 * needs time for attention, norms and waiting for other threads: prompts of 500 tokens reached
 * 0.65 (Gemma 4 E2B, BF16) to 0.9 (1 B, Q4_K) of this rate.
 */
#include "config.h"

#include "engine/base/clock.h"
#include "engine/compute/pool.h"
#include "engine/model/forward.h"

#define COLUMNS    64
#define MOST_BYTES ((uint64_t)4 << 20) /* of weights, about a block of the stream */
#define SHARE      0.75                /* of this rate that a prompt reaches */

struct product {
    const struct kernels *kernels;
    const struct mat *mat;
    enum act_form form;
    const unsigned char *w, *x;
    size_t n_row, row_bytes, x_stride;
    float *y;
};

static void multiply_part(void *ctx, int thread, int n_thread)
{
    const struct product *p = ctx;
    size_t from = p->n_row * (size_t)thread / (size_t)n_thread;
    size_t to = p->n_row * ((size_t)thread + 1) / (size_t)n_thread;

    if (from < to)
        p->kernels->mul(p->mat->tensor->type, p->form, p->w + from * p->row_bytes, to - from,
                        p->mat->n_k, p->x, p->x_stride, COLUMNS, p->y + from, p->n_row);
}

/* Returns the number of rows of m that are multiplied at once. */
static size_t rows_of(const struct mat *m)
{
    uint64_t row_bytes = tensor_row_bytes(m->tensor->type, m->n_k);
    uint64_t most = row_bytes > 0 && row_bytes < MOST_BYTES ? MOST_BYTES / row_bytes : 1;

    return m->n_row < most ? m->n_row : (size_t)most;
}

/* Bytes of the buffers for the largest matrix. */
struct sizes {
    size_t w, x, y;
};

static void widen(struct sizes *s, const struct mat *m, bool exact)
{
    size_t rows = rows_of(m), column = act_bytes(act_form_of(m->tensor->type, exact), m->n_k);
    size_t w = rows * tensor_row_bytes(m->tensor->type, m->n_k);

    s->w = w > s->w ? w : s->w;
    s->x = column * COLUMNS > s->x ? column * COLUMNS : s->x;
    s->y = rows * COLUMNS * sizeof(float) > s->y ? rows * COLUMNS * sizeof(float) : s->y;
}

/* Multiply with each of the matrices once.  Returns the operations. */
static double multiply_all(struct product *p, const struct layer_desc *layer, bool exact,
                           struct pool *pool)
{
    double flops = 0;

    for (int i = 0; i < N_LAYER_MAT; i++) {
        const struct mat *m = &layer->mats[i];

        if (m->tensor == NULL)
            continue;
        p->mat = m;
        p->form = act_form_of(m->tensor->type, exact);
        p->n_row = rows_of(m);
        p->row_bytes = tensor_row_bytes(m->tensor->type, m->n_k);
        p->x_stride = act_bytes(p->form, m->n_k);
        pool_run(pool, multiply_part, p);
        flops += 2.0 * (double)p->n_row * m->n_k * COLUMNS;
    }
    return flops;
}

int forward_measure(const struct model_desc *d, const struct kernels *kernels, bool exact,
                    int n_thread, double seconds, double *flops_s, struct err *e)
{
    const struct layer_desc *layer = &d->layers[0];
    struct product p = { .kernels = kernels };
    struct sizes sizes = { 0 };
    struct arena a = { 0 };
    struct pool *pool = NULL;
    double flops = 0, start, took = 0;
    int rc = -1;

    *flops_s = 0;
    for (int i = 0; i < N_LAYER_MAT; i++)
        if (layer->mats[i].tensor != NULL)
            widen(&sizes, &layer->mats[i], exact);
    /* Zero-filled buffers are as slow to multiply as other numbers.  They are touched first:
     * untouched anonymous pages all map the shared zero page. */
    if (arena_map(&a, "activations",
                  arena_size(sizes.w) + arena_size(sizes.x) + arena_size(sizes.y), true,
                  e) != 0)
        return -1;
    p.w = arena_take(&a, sizes.w, e);
    p.x = arena_take(&a, sizes.x, e);
    p.y = arena_take(&a, sizes.y, e);
    if (p.w == NULL || p.x == NULL || p.y == NULL || pool_new(&pool, n_thread, e) != 0)
        goto done;
    start = clock_s();
    do {
        flops += multiply_all(&p, layer, exact, pool);
        took = clock_s() - start;
    } while (took < seconds);
    if (took > 0)
        *flops_s = SHARE * flops / took;
    rc = 0;
done:
    pool_free(pool);
    arena_unmap(&a);
    return rc;
}

double forward_prompt_flops(const struct model_desc *d)
{
    double sum = 0;

    for (uint32_t l = 0; l <= d->last_kv_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        uint32_t n_mat = desc_n_prompt_mat(d, l);

        for (uint32_t i = 0; i < n_mat; i++)
            sum += 2.0 * layer->mats[i].n_row * layer->mats[i].n_k;
        if (n_mat == N_LAYER_MAT)
            sum += 6.0 * layer->experts.n_used * layer->experts.n_ff * d->n_embd;
    }
    return sum;
}
