/*
 * Attention over the positions of the store, block by block with a running maximum and sum, so
 * that each position is read once, even in a long context.
 *
 *     positions |      span 0      |      span 1      | ...     with all key heads of a
 * position columns   |   tile 0   |   tile 1   | ...                 with their query heads
 *
 * An item of work is a tile of columns and some groups of query heads that share a key head,
 * and either one span or all spans one after the other.  Items of one span are for few columns:
 * all threads read keys and values then, each of them in the order of memory.  Items of all
 * spans are for many columns, which share the loading of keys and values.
 *
 * A span has a maximum, a sum and weighted values of its own, and spans are added in rising
 * order.  The result of a query does not depend on how the work is cut, because spans start at
 * multiples of SPAN and blocks at multiples of ATTN_BLOCK.
 *
 * If the store has rotated rows, an item rotates its copy of the queries, and the results are
 * rotated at the end.
 */
#include "config.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

#define SPAN        512   /* positions; a multiple of ATTN_BLOCK and of KV_PAGE */
#define ITEM_FLOATS 16384 /* of the queries of an item, and of their weighted values */
#define ITEM_Q      256   /* queries of an item */
#define CALL_Q      64    /* queries that a kernel call has at most, if it can be chosen */
#define ITEMS_EACH  4     /* items for each thread, so that threads end together */

static_assert(SPAN % KV_PAGE == 0, "a span has whole pages");

struct attend_job {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t n_q;          /* query heads of a group */
    uint32_t n_group;      /* of a column */
    uint32_t item_group;   /* of an item */
    uint32_t n_part;       /* items that have all groups of a tile together */
    uint32_t tile, n_tile; /* columns of a tile, and the number of tiles */
    uint32_t from, to;     /* the spans of a round */
    uint32_t n_span;       /* the end of the last one */
    bool is_whole;         /* an item has all spans of a round */
    float *all_m, *all_l;  /* [column][head] of the results */
    float *records;        /* of a round, if items have one span */
};

/* Queries are [group][column][head of the group]. */
struct item {
    uint32_t col, n_col, group, n_group;
    _Alignas(64) float q[ITEM_FLOATS], sum[ITEM_FLOATS];
    float m[ITEM_Q], l[ITEM_Q]; /* of a span */
};

float attend_factor(const struct layer_desc *layer, uint32_t head, float m, float l)
{
    float sink, top;

    if (layer->sinks.w == NULL)
        return 1 / l;
    sink = layer->sinks.w[head];
    top = fmaxf(m, sink);
    return expf(m - top) / (l * expf(m - top) + expf(sink - top));
}

static uint32_t first_seen(const struct layer_desc *layer, uint32_t pos)
{
    return layer->window > 0 && pos + 1 > layer->window ? pos + 1 - layer->window : 0;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Query i of group g of the item, or its weighted values: n values each. */
static size_t place(const struct attend_job *j, const struct item *a, uint32_t g, uint32_t col,
                    size_t n)
{
    return ((size_t)g * a->n_col + col) * j->n_q * n;
}

static void take_queries(const struct attend_job *j, struct item *a)
{
    const struct forward *f = j->f;
    size_t n = (size_t)j->n_q * j->layer->head_dim_k;
    uint32_t run = kv_run_k(f->p.kv, j->layer->kv_layer);

    for (uint32_t g = 0; g < a->n_group; g++)
        for (uint32_t c = 0; c < a->n_col; c++) {
            float *q = a->q + place(j, a, g, c, j->layer->head_dim_k);

            memcpy(q, f->q + ((size_t)(a->col + c) * j->n_group + a->group + g) * n,
                   n * sizeof *q);
            if (run > 0)
                f->p.kernels->rotate(q, n, run);
        }
}

/* Positions at .. end - 1 of one block, for n_col columns of a group. */
static void attend_block(const struct attend_job *j, struct item *a, uint32_t g, uint32_t c,
                         uint32_t n_col, uint32_t at, uint32_t end)
{
    const struct layer_desc *layer = j->layer;
    const struct model_desc *d = j->f->p.desc;
    const struct kv *kv = j->f->p.kv;
    uint32_t head_kv = (a->group + g) * j->n_q / (layer->n_head / layer->n_head_kv);
    size_t i = place(j, a, g, c, 1);
    struct attn_block b = { .k_type = kv_type_k(kv),
                            .v_type = kv_type_v(kv, layer->kv_layer),
                            .n_pos = end - at,
                            .n_q = (size_t)n_col * j->n_q,
                            .dk = layer->head_dim_k,
                            .dv = layer->head_dim_v,
                            .q = a->q + i * layer->head_dim_k,
                            .scale = d->attn_scale,
                            .cap = d->softcap_attn,
                            .m = a->m + i,
                            .l = a->l + i,
                            .acc = a->sum + i * layer->head_dim_v };

    b.k = kv_keys(kv, layer->kv_layer, at, head_kv, &b.k_stride);
    b.v = kv_values(kv, layer->kv_layer, at, head_kv, &b.v_stride);
    j->f->p.kernels->attn(&b);
}

/* The columns of a tile see the same positions of most blocks. */
static void attend_span(const struct attend_job *j, struct item *a, uint32_t span)
{
    const struct layer_desc *layer = j->layer;
    const uint32_t *pos = j->f->pos + a->col;
    uint32_t last = pos[a->n_col - 1], n = a->n_group * a->n_col * j->n_q;
    uint32_t from = max_u32(first_seen(layer, pos[0]), span * SPAN);
    uint32_t to = min_u32(last + 1, (span + 1) * SPAN);

    for (uint32_t i = 0; i < n; i++) {
        a->m[i] = -INFINITY;
        a->l[i] = 0;
    }
    memset(a->sum, 0, (size_t)n * layer->head_dim_v * sizeof *a->sum);
    for (uint32_t at = from, end; at < to; at = end) {
        end = min_u32((at / ATTN_BLOCK + 1) * ATTN_BLOCK, to);
        for (uint32_t g = 0; g < a->n_group; g++) {
            if (pos[0] + 1 >= end && first_seen(layer, last) <= at) {
                attend_block(j, a, g, 0, a->n_col, at, end);
                continue;
            }
            for (uint32_t c = 0; c < a->n_col; c++) {
                uint32_t first = max_u32(at, first_seen(layer, pos[c]));
                uint32_t past = min_u32(end, pos[c] + 1);

                if (first < past)
                    attend_block(j, a, g, c, 1, first, past);
            }
        }
    }
}

/* The state of a query after some positions: the maximum of its scores, the sum of
 * exp(score - maximum), and the sum of the values with these weights. */
struct seen {
    float *m, *l, *sum;
};

/* Changes more->sum. */
static void add_seen(const struct kernels *kern, const struct seen *to, const struct seen *more,
                     size_t n)
{
    float top = fmaxf(*to->m, *more->m), before, after;

    if (*more->l == 0)
        return;
    if (*to->l == 0) {
        memcpy(to->sum, more->sum, n * sizeof *to->sum);
        *to->m = *more->m;
        *to->l = *more->l;
        return;
    }
    before = expf(*to->m - top);
    after = expf(*more->m - top);
    kern->scale(to->sum, before, n);
    kern->scale(more->sum, after, n);
    kern->add(to->sum, more->sum, n);
    *to->m = top;
    *to->l = *to->l * before + *more->l * after;
}

static void finish(const struct attend_job *j, uint32_t head, const struct seen *s)
{
    const struct kernels *kern = j->f->p.kernels;
    uint32_t run = kv_run_v(j->f->p.kv, j->layer->kv_layer);

    kern->scale(s->sum, attend_factor(j->layer, head, *s->m, *s->l), j->layer->head_dim_v);
    if (run > 0)
        kern->rotate(s->sum, j->layer->head_dim_v, run);
}

/* The result of a query. */
static struct seen result_of(const struct attend_job *j, size_t col, size_t head)
{
    size_t i = col * j->layer->n_head + head;

    return (struct seen){ j->all_m + i, j->all_l + i, j->f->att + i * j->layer->head_dim_v };
}

/* The record of a span has m, l and sum of all queries of all columns. */
static struct seen record_of(const struct attend_job *j, uint32_t span, size_t query)
{
    size_t n_query = (size_t)j->f->n_col * j->layer->n_head, n = j->layer->head_dim_v;
    float *record = j->records + (span - j->from) * n_query * (n + 2);

    return (struct seen){ record + query, record + n_query + query,
                          record + 2 * n_query + query * n };
}

/* Add a span of an item to the results, or keep it as a record of the span. */
static void take_span(const struct attend_job *j, struct item *a, uint32_t span, bool is_last)
{
    size_t n = j->layer->head_dim_v;

    for (uint32_t g = 0; g < a->n_group; g++)
        for (uint32_t c = 0; c < a->n_col; c++)
            for (uint32_t h = 0; h < j->n_q; h++) {
                size_t i = place(j, a, g, c, 1) + h, col = a->col + c;
                uint32_t head = (a->group + g) * j->n_q + h;
                struct seen more = { a->m + i, a->l + i, a->sum + i * n };
                struct seen to = result_of(j, col, head);

                if (!j->is_whole) {
                    to = record_of(j, span, col * j->layer->n_head + head);
                    *to.l = 0;
                }
                add_seen(j->f->p.kernels, &to, &more, n);
                if (is_last)
                    finish(j, head, &to);
            }
}

static void attend_item(const struct attend_job *j, uint32_t tile, uint32_t part, uint32_t span,
                        uint32_t end)
{
    struct item a; /* not initialised, because it is large */

    a.col = tile * j->tile;
    a.group = part * j->item_group;
    a.n_col = min_u32(j->f->n_col - a.col, j->tile);
    a.n_group = min_u32(j->n_group - a.group, j->item_group);
    take_queries(j, &a);
    for (; span < end; span++) {
        attend_span(j, &a, span);
        take_span(j, &a, span, j->is_whole && span + 1 == j->n_span);
    }
}

/*
 * Later columns see more, so they come first.  The items of the same key heads follow each
 * other, because they read the same memory.
 */
static void attend_items(void *ctx, int part, int n_part)
{
    const struct attend_job *j = ctx;
    uint32_t n_span = j->is_whole ? 1 : j->to - j->from;
    uint32_t n_item = j->n_part * n_span * j->n_tile;

    for (uint32_t i = (uint32_t)part; i < n_item; i += (uint32_t)n_part) {
        uint32_t tile = j->n_tile - 1 - i % j->n_tile, at = i / j->n_tile;
        uint32_t span = j->from + at % n_span;

        attend_item(j, tile, at / n_span, span, j->is_whole ? j->to : span + 1);
    }
}

/* Add the records of this round to the results. */
static void add_records(void *ctx, int part, int n_part)
{
    const struct attend_job *j = ctx;
    size_t n_head = j->layer->n_head, n = j->f->n_col * n_head;

    for (size_t i = (size_t)part; i < n; i += (size_t)n_part) {
        struct seen to = result_of(j, i / n_head, i % n_head);

        for (uint32_t span = j->from; span < j->to; span++) {
            struct seen more = record_of(j, span, i);

            add_seen(j->f->p.kernels, &to, &more, j->layer->head_dim_v);
        }
        if (j->to == j->n_span)
            finish(j, (uint32_t)(i % n_head), &to);
    }
}

/* Spans whose records fit.  Nothing else uses the memory of the gates during attention. */
static uint32_t spans_that_fit(const struct attend_job *j)
{
    size_t n = (size_t)j->f->n_col * j->layer->n_head;

    return (uint32_t)(j->f->gate_floats / (n * (j->layer->head_dim_v + 2)));
}

/* Cut the work of a round into items of query heads and columns. */
static void cut_heads(struct attend_job *j, bool has_many)
{
    const struct layer_desc *layer = j->layer;
    uint32_t n_thread = (uint32_t)pool_threads(j->f->p.pool);
    uint32_t wanted = n_thread > 1 ? n_thread * ITEMS_EACH : 1;
    uint32_t most = ITEM_FLOATS / max_u32(layer->head_dim_k, layer->head_dim_v);
    uint32_t n_cut = j->n_tile * (j->is_whole ? 1 : j->to - j->from);

    most = min_u32(most, ITEM_Q);
    for (;;) {
        j->n_group = layer->n_head / j->n_q;
        j->n_part = has_many ? j->n_group : min_u32((wanted + n_cut - 1) / n_cut, j->n_group);
        j->item_group =
            min_u32((j->n_group + j->n_part - 1) / j->n_part, most / (j->n_q * j->tile));
        j->n_part = (j->n_group + j->item_group - 1) / j->item_group;
        if (j->n_part * n_cut >= n_thread || j->n_q % 2 != 0)
            return;
        j->n_q /= 2;
    }
}

static void run_round(struct attend_job *j)
{
    uint32_t n_cut = j->n_part * j->n_tile * (j->is_whole ? 1 : j->to - j->from);

    pool_run(j->f->p.pool, (int)min_u32(n_cut, INT_MAX), attend_items, j);
    if (!j->is_whole)
        pool_run(j->f->p.pool, pool_parts(j->f->p.pool, j->f->n_col * j->layer->n_head),
                 add_records, j);
}

/* Spans from j->from to the end of a round of positions. */
static void attend_round(struct attend_job *j, uint32_t end, uint32_t most, bool has_many)
{
    while (j->from < end) {
        j->to = min_u32(j->from + most, end);
        cut_heads(j, has_many);
        run_round(j);
        j->from = j->to;
    }
}

int forward_attend(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct attend_job j = { .f = f, .layer = layer, .n_q = layer->n_head / layer->n_head_kv };
    uint32_t most = ITEM_FLOATS / max_u32(layer->head_dim_k, layer->head_dim_v), fit, end;
    uint32_t n_thread = (uint32_t)pool_threads(f->p.pool), n = f->pos[f->n_col - 1] + 1;
    bool has_many;

    while (j.n_q > min_u32(most, CALL_Q))
        j.n_q = j.n_q % 2 == 0 ? j.n_q / 2 : 1;
    j.tile = min_u32(f->n_col, min_u32(most, CALL_Q) / j.n_q);
    j.n_tile = (f->n_col + j.tile - 1) / j.tile;
    j.from = first_seen(layer, f->pos[0]) / SPAN;
    j.n_span = (n - 1) / SPAN + 1;
    j.all_m = f->attend_state;
    j.all_l = j.all_m + (size_t)f->n_col * layer->n_head;
    j.records = f->gate;
    has_many = j.n_tile > 1 && j.n_tile * (layer->n_head / j.n_q) >= n_thread * ITEMS_EACH;
    fit = spans_that_fit(&j);
    j.is_whole = has_many || j.n_span - j.from == 1 || fit == 0;
    memset(j.all_l, 0, (size_t)f->n_col * layer->n_head * sizeof *j.all_l);
    kv_walk_layer(f, layer);
    while (j.from < j.n_span) {
        if (kv_walk_round(f, j.from * SPAN, SPAN, n, &end, e) != 0)
            return -1;
        end = (end + SPAN - 1) / SPAN;
        attend_round(&j, end, j.is_whole ? j.n_span : fit, has_many);
        kv_walk_give(f, end * SPAN);
    }
    return 0;
}
