/*
 * Attention of a long prompt through OpenBLAS: tiles of BLAS_COLS queries of one head times
 * tiles of as many positions, with a running maximum and sum as in attend.c.
 *
 *     scores = queries . keys     P = exp(scores - maximum)     out = out * shrink + P . values
 *
 * A query has the place (position % BLAS_COLS), and tiles of positions start at multiples of
 * BLAS_COLS.  Positions that a query does not see have a P of 0 and change nothing, so its
 * result does not depend on which other queries and positions are in the tiles.
 */
#include "config.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/compute/kv_types.h"
#include "engine/model/forward_internal.h"

#define N BLAS_COLS

static_assert(KV_PAGE % N == 0, "a round ends with whole tiles of positions");

struct attend_tiles {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t n_tile; /* of columns */
    uint32_t from, to; /* positions of a round */
};

/* The buffers of one item. */
struct item {
    const struct forward *f;
    const struct layer_desc *layer;
    uint32_t head, head_kv;
    uint32_t pos;              /* of place 0 */
    uint32_t col, n_col;       /* of the chunk: first and number */
    uint32_t place;            /* of the first */
    float *q, *rows, *out, *p; /* [N][dk], [N][dk or dv], [N][dv], [N][N] */
    float top[N], sum[N];
};

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

uint64_t attend_tiles_bytes(const struct model_desc *d)
{
    uint64_t most = 0;

    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        uint64_t floats = layer->head_dim_k + layer->head_dim_v +
                          max_u32(layer->head_dim_k, layer->head_dim_v) + N;

        most = floats > most ? floats : most;
    }
    return most * N * sizeof(float);
}

static uint32_t first_seen(const struct layer_desc *layer, uint32_t pos)
{
    return layer->window > 0 && pos + 1 > layer->window ? pos + 1 - layer->window : 0;
}

/* Keys or values of the positions at .. at + N - 1 that some query sees, else zeros. */
static void load_rows(struct item *a, uint32_t at, bool is_value)
{
    const struct kv *kv = a->f->p.kv;
    enum kv_type type = is_value ? kv_type_v(kv, a->layer->kv_layer) : kv_type_k(kv);
    size_t n = is_value ? a->layer->head_dim_v : a->layer->head_dim_k, stride;
    uint32_t from = first_seen(a->layer, a->pos + a->place);
    uint32_t to = a->pos + a->place + a->n_col; /* the position after the last */

    for (uint32_t i = 0; i < N; i++) {
        const void *row;

        if (at + i < from || at + i >= to) {
            memset(a->rows + i * n, 0, n * sizeof *a->rows);
            continue;
        }
        row = is_value ? kv_values(kv, a->layer->kv_layer, at + i, a->head_kv, &stride)
                       : kv_keys(kv, a->layer->kv_layer, at + i, a->head_kv, &stride);
        if (type == KV_F16)
            a->f->p.kernels->dequant(TYPE_F16, row, a->rows + i * n, n);
        else
            kv_row_load(type, row, 0, a->rows + i * n, n);
    }
}

/* Scores of the query at a place become weights; out is scaled to the new maximum. */
static void soften(struct item *a, uint32_t place, uint32_t at)
{
    const struct model_desc *d = a->f->p.desc;
    const struct kernels *kern = a->f->p.kernels;
    uint32_t pos = a->pos + place, from = first_seen(a->layer, pos);
    float *p = a->p + (size_t)place * N, *out = a->out + (size_t)place * a->layer->head_dim_v;
    uint32_t i0 = from > at ? from - at : 0, i1 = pos + 1 > at ? pos + 1 - at : 0;
    float top = a->top[place], sum = 0, shrink;

    i1 = i1 < N ? i1 : N;
    if (i0 >= i1) {
        memset(p, 0, N * sizeof *p);
        return;
    }
    kern->scale(p + i0, d->attn_scale, i1 - i0);
    if (d->softcap_attn > 0)
        kern->softcap(p + i0, d->softcap_attn, i1 - i0);
    for (uint32_t i = i0; i < i1; i++)
        top = fmaxf(top, p[i]);
    shrink = expf(a->top[place] - top);
    for (uint32_t i = 0; i < N; i++) {
        p[i] = i >= i0 && i < i1 ? expf(p[i] - top) : 0;
        sum += p[i];
    }
    a->top[place] = top;
    a->sum[place] = a->sum[place] * shrink + sum;
    kern->scale(out, shrink, a->layer->head_dim_v);
}

static void attend_positions(struct item *a, uint32_t at)
{
    load_rows(a, at, false);
    blas_scores(a->q, a->rows, a->layer->head_dim_k, a->p);
    for (uint32_t c = 0; c < N; c++)
        if (c >= a->place && c < a->place + a->n_col)
            soften(a, c, at);
        else
            memset(a->p + (size_t)c * N, 0, N * sizeof *a->p);
    load_rows(a, at, true);
    blas_gather(a->p, a->rows, a->layer->head_dim_v, a->out);
}

/* Maximum and sum of a query between two rounds; its values are where the results will be. */
static float *state_of(const struct item *a, uint32_t c)
{
    return a->f->attend_state + 2 * ((size_t)(a->col + c) * a->layer->n_head + a->head);
}

static float *values_of(const struct item *a, uint32_t c)
{
    return a->f->att +
           ((size_t)(a->col + c) * a->layer->n_head + a->head) * a->layer->head_dim_v;
}

/* Queries in, zeros at the other places. */
static void take_queries(struct item *a, bool is_first)
{
    size_t dk = a->layer->head_dim_k;
    uint32_t run = kv_run_k(a->f->p.kv, a->layer->kv_layer);

    memset(a->q, 0, N * dk * sizeof *a->q);
    memset(a->out, 0, N * a->layer->head_dim_v * sizeof *a->out);
    for (uint32_t c = 0; c < a->n_col; c++) {
        float *q = a->q + (a->place + c) * dk;

        memcpy(q, a->f->q + ((size_t)(a->col + c) * a->layer->n_head + a->head) * dk,
               dk * sizeof *q);
        if (run > 0)
            a->f->p.kernels->rotate(q, dk, run);
        a->top[a->place + c] = is_first ? -INFINITY : state_of(a, c)[0];
        a->sum[a->place + c] = is_first ? 0 : state_of(a, c)[1];
        if (!is_first)
            memcpy(a->out + (a->place + c) * a->layer->head_dim_v, values_of(a, c),
                   a->layer->head_dim_v * sizeof *a->out);
    }
}

/* The state for the next round. */
static void keep_state(const struct item *a)
{
    size_t dv = a->layer->head_dim_v;

    for (uint32_t c = 0; c < a->n_col; c++) {
        state_of(a, c)[0] = a->top[a->place + c];
        state_of(a, c)[1] = a->sum[a->place + c];
        memcpy(values_of(a, c), a->out + (a->place + c) * dv, dv * sizeof *a->out);
    }
}

static void give_results(const struct item *a)
{
    size_t dv = a->layer->head_dim_v;
    uint32_t run = kv_run_v(a->f->p.kv, a->layer->kv_layer);

    for (uint32_t c = 0; c < a->n_col; c++) {
        float *to = values_of(a, c);

        memcpy(to, a->out + (a->place + c) * dv, dv * sizeof *to);
        a->f->p.kernels->scale(
            to, attend_factor(a->layer, a->head, a->top[a->place + c], a->sum[a->place + c]),
            dv);
        if (run > 0)
            a->f->p.kernels->rotate(to, dv, run);
    }
}

static void attend_item(const struct attend_tiles *j, uint32_t tile, uint32_t head,
                        float *scratch)
{
    const struct layer_desc *layer = j->layer;
    const struct forward *f = j->f;
    uint32_t start = f->pos[0] / N * N + tile * N; /* of the tile */
    uint32_t from = max_u32(start, f->pos[0]), end = f->pos[0] + f->n_col, first;
    struct item a = { .f = f,
                      .layer = layer,
                      .head = head,
                      .head_kv = head / (layer->n_head / layer->n_head_kv),
                      .pos = start,
                      .col = from - f->pos[0],
                      .place = from - start };

    a.n_col = (end < start + N ? end : start + N) - from;
    a.q = scratch;
    a.out = a.q + (size_t)N * layer->head_dim_k;
    a.p = a.out + (size_t)N * layer->head_dim_v;
    a.rows = a.p + (size_t)N * N;
    first = first_seen(layer, from) / N * N;
    end = from + a.n_col;
    if (j->from >= end) /* an earlier round had all positions that it sees */
        return;
    take_queries(&a, j->from <= first);
    for (uint32_t at = max_u32(first, j->from); at < end && at < j->to; at += N)
        attend_positions(&a, at);
    if (j->to < end)
        keep_state(&a);
    else
        give_results(&a);
}

static void attend_part(void *ctx, int part, int n_part)
{
    const struct attend_tiles *j = ctx;
    uint32_t n_item = j->n_tile * j->layer->n_head;
    uint64_t bytes = attend_tiles_bytes(j->f->p.desc);

    /* Later tiles see more: dealing items out in turn keeps the workers even. */
    for (uint32_t i = (uint32_t)part; i < n_item; i += (uint32_t)n_part)
        attend_item(j, i / j->layer->n_head, i % j->layer->n_head,
                    (float *)(void *)(j->f->attend_scratch + (size_t)part * bytes));
}

int forward_attend_tiles(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct attend_tiles j = { .f = f,
                              .layer = layer,
                              .n_tile = (uint32_t)blas_tiles(f->pos[0] % N, f->n_col) };
    int n_thread = pool_threads(f->p.pool);
    uint32_t n = f->pos[0] + f->n_col;

    kv_walk_layer(f, layer);
    for (j.from = 0; j.from < n; j.from = j.to) {
        if (kv_walk_round(f, j.from, KV_PAGE, n, &j.to, e) != 0)
            return -1;
        pool_run(f->p.pool, n_thread < BLAS_THREADS ? n_thread : BLAS_THREADS, attend_part, &j);
        kv_walk_give(f, j.to);
    }
    return 0;
}
