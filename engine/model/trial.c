/* See trial.h. */
#include "config.h"

#include "engine/model/trial.h"

#include "engine/base/clock.h"
#include "engine/base/cpu_cache.h"
#include "engine/base/units.h"
#include "engine/compute/packed.h"

#define N_K         TRIAL_N_K
#define MOST_WEIGHT (160 * MIB) /* more than most caches, where they cannot be dropped */

static void multiply_part(void *ctx, int part, int n_part)
{
    const struct trial *t = ctx;
    size_t from, to;

    struct matmul m;

    pool_rows(t->pool, t->n_row, part, n_part, &from, &to);
    if (from >= to)
        return;
    m = (struct matmul){ .type = t->type,
                         .form = t->form,
                         .n_row = to - from,
                         .n_k = N_K,
                         .n_col = t->n_col,
                         .w = t->w + t->at + from * t->row_bytes,
                         .x = t->x,
                         .x_stride = t->x_stride,
                         .y = t->y + from,
                         .ldy = t->n_row };
    if (t->weight_form == FORM_PACKED) {
        struct packed_block b = packed_open(t->w + t->at, t->n_row, N_K);

        t->kernels->mul_packed(&b, from, &m);
    } else if (t->weight_form == FORM_INTERLEAVED)
        t->kernels->mul_interleaved(&m);
    else
        t->kernels->mul(&m);
}

static void drop_part(void *ctx, int part, int n_part)
{
    const struct trial *t = ctx;
    size_t from, to;

    pool_rows(t->pool, t->w_bytes, part, n_part, &from, &to);
    (void)cpu_cache_drop(t->w + from, to - from);
}

double trial_next(struct trial *t)
{
    size_t bytes = t->n_row * t->row_bytes;
    double start_s;

    if (t->at + bytes > t->w_bytes)
        t->at = 0;
    if (t->at == 0)
        pool_run(t->pool, pool_threads(t->pool), drop_part, t);
    start_s = clock_s();
    pool_run(t->pool, pool_row_parts(t->pool, bytes * t->n_col), multiply_part, t);
    t->at += bytes;
    return clock_s() - start_s;
}

/* Zeros are as slow as other numbers, and they are valid weights in every form. */
void trial_set(struct trial *t, const struct trial_product *p)
{
    t->type = p->type;
    t->weight_form = p->form;
    t->form = act_form_of(p->type, p->exact);
    t->row_bytes = p->form == FORM_PACKED ? packed_row_least(N_K) : tensor_row_bytes(p->type, N_K);
    t->x_stride = act_bytes(t->form, N_K);
    t->n_col = p->n_col;
    t->n_row = p->piece / t->row_bytes / 16 * 16;
    if (t->n_row < 16)
        t->n_row = 16;
    t->at = 0;
}

static int map_buffers(struct trial *t, uint64_t buffer_bytes, size_t x, size_t y, struct err *e)
{
    t->w_bytes = buffer_bytes - arena_size(x) - arena_size(y);
    if (t->w_bytes > MOST_WEIGHT)
        t->w_bytes = MOST_WEIGHT;
    /* In huge pages, as pinned weights and the ring. */
    if (area_reserve(&t->weights, "pinned", t->w_bytes, e) != 0 ||
        area_hold(&t->weights, t->w_bytes, true, e) != 0 ||
        arena_map(&t->others, "activations", arena_size(x) + arena_size(y), true, e) != 0)
        return -1;
    t->w = t->weights.base;
    t->x = arena_take(&t->others, x, e);
    t->y = arena_take(&t->others, y, e);
    return t->x != NULL && t->y != NULL ? 0 : -1;
}

int trial_open(struct trial *t, const struct kernels *kernels, int n_thread,
               uint64_t buffer_bytes, size_t n_y, size_t most_cols, struct err *e)
{
    *t = (struct trial){ .kernels = kernels };
    if (map_buffers(t, buffer_bytes, most_cols * act_bytes(ACT_F32, N_K), n_y * sizeof(float),
                    e) != 0)
        return -1;
    return pool_new(&t->pool, n_thread, e);
}

void trial_close(struct trial *t)
{
    pool_free(t->pool);
    arena_unmap(&t->others);
    area_unmap(&t->weights);
}
