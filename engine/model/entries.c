/*
 * Attention to a window and to entries.
 *
 *   k = rope(norm(K.h))                  one head, whose keys are values, too; the end rotates
 *   entries                              pools of as many positions as the layer's ratio (pools.c),
 *                                        normed; they rotate at their first position
 *   q = rope(norm(Q_b.norm(Q_a.h)))      without weights of the second norm
 *   u = softmax(q.[window, entries]) . [window, entries], which rotates back
 *   o = O.(A.u)                          A has a part for each group of heads
 *
 * A token sees the entries of complete blocks up to its position.  In layers with the shortest
 * ones it chooses some of them by index keys, which are pools of their own (index.c).
 *
 * Positions and entries are attended to in runs, which are cut as attend_item.h says.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/attend_item.h"
#include "engine/model/forward_internal.h"

struct entries_job {
    struct forward *f;
    const struct layer_desc *layer;
};

/* --- rotation: the last values of a head --- */

static uint32_t table_of(const struct layer_desc *layer)
{
    return layer->has_base_rope ? 1 : 0;
}

/* Rotate the end of n values with these angles, or back. */
static void rotate_end(const struct rope *rope, const float *cosine, const float *sine, bool back,
                       float *x, uint32_t n)
{
    float turned[MAX_ROPE_FACTOR];

    for (uint32_t i = 0; back && i < rope->n_rot / 2; i++)
        turned[i] = -sine[i];
    rope_apply(rope, cosine, back ? turned : sine, x + n - rope->n_rot);
}

void forward_rope_end(const struct forward *f, const struct layer_desc *layer, uint32_t c,
                      bool back, float *x, uint32_t n)
{
    const uint32_t kind = table_of(layer);
    const size_t at = (size_t)c * (f->rope[kind].n_rot / 2);

    rotate_end(&f->rope[kind], f->cosine[kind] + at, f->sine[kind] + at, back, x, n);
}

void forward_rope_end_at(const struct forward *f, const struct layer_desc *layer, uint32_t pos,
                         float *x, uint32_t n)
{
    const struct rope *rope = &f->rope[table_of(layer)];
    float cosine[MAX_ROPE_FACTOR], sine[MAX_ROPE_FACTOR];

    rope_angles(rope, pos, cosine, sine);
    rotate_end(rope, cosine, sine, false, x, n);
}

/* --- keys and entries --- */

static void store_key_col(void *ctx, uint32_t c)
{
    const struct entries_job *j = ctx;
    struct forward *f = j->f;
    uint32_t n = j->layer->head_dim_k;
    float *k = f->k + (size_t)c * n;

    f->p.kernels->rms_norm(k, j->layer->kv_norm.w, n, f->p.desc->rms_eps, k);
    forward_rope_end(f, j->layer, c, false, k, n);
    kv_write(f->p.kv, f->p.kernels, j->layer->kv_layer, f->pos[c], k, NULL);
}

/* Store the entry that ends with column c. */
static void store_entry_col(void *ctx, uint32_t c)
{
    const struct entries_job *j = ctx;
    struct forward *f = j->f;
    uint32_t n = j->layer->head_dim_k, block = f->pos[c] / j->layer->ratio;
    float *x = f->pooled + (size_t)c * n;

    if ((f->pos[c] + 1) % j->layer->ratio != 0)
        return;
    f->p.kernels->rms_norm(x, j->layer->entry_norm.w, n, f->p.desc->rms_eps, x);
    forward_rope_end_at(f, j->layer, block * j->layer->ratio, x, n);
    kv_entry_write(f->p.kv, f->p.kernels, j->layer->kv_layer, block, x);
}

void forward_entries_again(struct forward *f, const struct layer_desc *layer)
{
    const struct hparams *hp = f->p.desc->hp;
    const float *from;
    float *to;

    recurrent_others(kv_recurrent(f->p.kv), &from, &to);
    forward_pool(&(struct pooling){ .f = f,
                                    .x = f->pool_x,
                                    .g = f->pool_g,
                                    .ld = layer->entry_pool.n_row,
                                    .place = layer->entry_place.w,
                                    .from = from + layer->entry_state,
                                    .to = to + layer->entry_state,
                                    .out = f->pooled,
                                    .n = layer->head_dim_k,
                                    .block = layer->ratio,
                                    .overlaps = hparams_overlaps(hp, layer->ratio) });
}

static void store_entries(struct forward *f, const struct layer_desc *layer)
{
    struct entries_job j = { .f = f, .layer = layer };

    forward_keep_pool(f, layer, &layer->entry_pool);
    forward_entries_again(f, layer);
    forward_each_col(f, store_entry_col, &j);
}

int forward_entries_store(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct entries_job j = { .f = f, .layer = layer };
    const struct product p[3] = { { &layer->kv_a, f->k, layer->head_dim_k },
                                  { &layer->entry_pool, f->pool_x, layer->entry_pool.n_row },
                                  { &layer->entry_gate, f->pool_g, layer->entry_gate.n_row } };

    if (forward_mul_all(f, p, layer->ratio > 0 ? 3 : 1, f->h, f->p.desc->n_embd, e) != 0)
        return -1;
    forward_each_col(f, store_key_col, &j);
    if (layer->ratio > 0)
        store_entries(f, layer);
    return layer->has_index ? forward_score_store(f, layer, e) : 0;
}

/* --- queries and outputs --- */

static void query_col(void *ctx, uint32_t c)
{
    const struct entries_job *j = ctx;
    const struct forward *f = j->f;
    uint32_t n = j->layer->head_dim_k;
    float *q = f->q + (size_t)c * j->layer->n_head * n;

    for (uint32_t h = 0; h < j->layer->n_head; h++, q += n) {
        f->p.kernels->rms_norm(q, NULL, n, f->p.desc->rms_eps, q);
        forward_rope_end(f, j->layer, c, false, q, n);
    }
}

int forward_entries_queries(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct entries_job j = { .f = f, .layer = layer };

    if (forward_low_queries(f, layer, f->q, e) != 0)
        return -1;
    forward_each_col(f, query_col, &j);
    return 0;
}

static void turn_back_col(void *ctx, uint32_t c)
{
    const struct entries_job *j = ctx;
    uint32_t n = j->layer->head_dim_v;
    float *u = j->f->att + (size_t)c * j->layer->n_head * n;

    for (uint32_t h = 0; h < j->layer->n_head; h++, u += n)
        forward_rope_end(j->f, j->layer, c, true, u, n);
}

int forward_entries_values(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    const struct out_hparams *out = &f->p.desc->hp->out;
    struct entries_job j = { .f = f, .layer = layer };
    const struct by_head groups = { .n_row = out->rank,
                                    .from = 0,
                                    .to = out->rank,
                                    .n_in = layer->n_head * layer->head_dim_v / out->n_group,
                                    .n_out = out->rank };

    forward_each_col(f, turn_back_col, &j);
    return forward_mul_heads(f, &layer->out_a, &groups, f->att, f->wide, e);
}

/* --- attention --- */

/* A key is its value, too. */
static void attend_rows(struct forward *f, const struct layer_desc *layer, struct attend_item *a,
                        const void *rows, size_t stride, uint32_t n)
{
    attend_item_run(f, layer, a, rows, stride, rows, stride, n);
}

static void attend_window(struct forward *f, const struct layer_desc *layer, struct attend_item *a)
{
    const uint32_t end = f->pos[a->col] + 1, window = layer->window;

    for (uint32_t at = end > window ? end - window : 0, next; at < end; at = next) {
        size_t stride;
        const void *rows = kv_keys(f->p.kv, layer->kv_layer, at, 0, &stride);

        next = attend_run_end(at, end);
        attend_rows(f, layer, a, rows, stride, next - at);
    }
}

/* Entries at .. end - 1 */
static void attend_entries(struct forward *f, const struct layer_desc *layer,
                           struct attend_item *a, uint32_t at, uint32_t end)
{
    for (uint32_t next; at < end; at = next) {
        size_t stride;
        const void *rows = kv_entries(f->p.kv, layer->kv_layer, at, &stride);

        next = attend_run_end(at, end);
        attend_rows(f, layer, a, rows, stride, next - at);
    }
}

static void attend_chosen(struct forward *f, const struct layer_desc *layer, struct attend_item *a)
{
    const uint32_t n = f->p.desc->hp->index.n_block;
    const uint32_t *chosen = f->chosen + (size_t)a->col * n;

    for (uint32_t i = 0; i < n; i++) {
        size_t stride;
        const void *row = kv_entries(f->p.kv, layer->kv_layer, chosen[i], &stride);

        attend_item_gather(f, layer, a, row, stride, row, stride, 1);
    }
}

static void attend_all(struct forward *f, const struct layer_desc *layer, struct attend_item *a)
{
    uint32_t n_seen = layer->ratio > 0 ? (f->pos[a->col] + 1) / layer->ratio : 0;

    attend_window(f, layer, a);
    if (layer->has_index && n_seen > f->p.desc->hp->index.n_block)
        attend_chosen(f, layer, a);
    else
        attend_entries(f, layer, a, 0, n_seen);
}

void forward_attend_entries(struct forward *f, const struct layer_desc *layer)
{
    uint32_t n_dense = forward_index_dense(f);

    if (layer->has_index && n_dense < f->n_col)
        forward_index_choose(f, layer, n_dense);
    attend_items(f, layer, 0, attend_all);
}
