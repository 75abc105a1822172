/*
 * Index keys: which blocks of positions a token attends to.
 *
 *   k = K.h, q = Q.h                         one key, several heads of queries
 *   key of a block = rope(norm(mean of k))   at the block's first position, once it is complete
 *   q = rope(norm(q))
 *   score of a block = sum over heads of max(0, q.key)
 *
 * In models whose queries' heads have weights, keys are pools (pools.c), and the weights multiply
 * the heads' parts of a score.
 *
 * A token sees the n_block blocks with the highest scores, of equal ones the first, and the
 * positions after the last complete block.  Keys of complete blocks are in the KV store.  Those
 * of the open block's positions are in the recurrent state, so they are committed and copied
 * together with it.
 */
#include "config.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

#define TILE_BLOCKS 64   /* whose scores are computed together */
#define RANGE_MIN   1024 /* blocks that are worth a thread of their own */

struct index_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct index_hparams *x;
    const float *from; /* [block - 1][head_dim] keys of the open block before the pass */
    uint32_t first;    /* column */
    uint32_t col, n;   /* a column whose blocks 0 … n - 1 the workers share */
};

static struct index_job job_of(struct forward *f, const struct layer_desc *layer)
{
    return (struct index_job){ .f = f, .layer = layer, .x = &f->p.desc->hp->index };
}

/* --- keys that are pools, for queries whose heads have weights --- */

#define POOL_EPS 1e-6f /* of the norm of keys before they are pooled */

static void norm_score_col(void *ctx, uint32_t c)
{
    const struct index_job *j = ctx;
    float *x = j->f->pool_x + (size_t)c * j->x->head_dim;

    forward_mean_norm(x, j->layer->score_k_norm.w, j->layer->score_k_bias.w, j->x->head_dim,
                      POOL_EPS, x);
}

/* Store the key of the block that ends with column c. */
static void store_score_col(void *ctx, uint32_t c)
{
    const struct index_job *j = ctx;
    struct forward *f = j->f;
    const struct kernels *kern = f->p.kernels;
    uint32_t n = j->x->head_dim, block = f->pos[c] / j->x->block;
    float *key = f->pooled + (size_t)c * n;

    if ((f->pos[c] + 1) % j->x->block != 0)
        return;
    if (j->layer->score_norm.w != NULL)
        kern->rms_norm(key, j->layer->score_norm.w, n, f->p.desc->rms_eps, key);
    if (!j->layer->is_ropeless)
        forward_rope_end_at(f, j->layer, block * j->x->block, key, n);
    kv_index_write(f->p.kv, kern, j->layer->kv_layer, block, key);
}

static void pool_scores(const struct index_job *j)
{
    struct forward *f = j->f;
    const float *from;
    float *to;

    recurrent_others(kv_recurrent(f->p.kv), &from, &to);
    forward_pool(&(struct pooling){ .f = f,
                                    .x = f->pool_x,
                                    .g = f->pool_g,
                                    .ld = j->layer->score_pool.n_row,
                                    .place = j->layer->score_place.w,
                                    .from = from + j->layer->index_state,
                                    .to = to + j->layer->index_state,
                                    .out = f->pooled,
                                    .n = j->x->head_dim,
                                    .block = j->x->block,
                                    .overlaps = j->x->overlaps });
}

void forward_score_again(struct forward *f, const struct layer_desc *layer)
{
    struct index_job j = job_of(f, layer);

    pool_scores(&j);
}

int forward_score_store(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct index_job j = job_of(f, layer);
    const struct product p[2] = { { &layer->score_pool, f->pool_x, layer->score_pool.n_row },
                                  { &layer->score_gate, f->pool_g, layer->score_gate.n_row } };

    if (forward_mul_all(f, p, 2, f->h, f->p.desc->n_embd, e) != 0)
        return -1;
    if (layer->score_k_norm.w != NULL)
        forward_each_col(f, norm_score_col, &j);
    forward_keep_pool(f, layer, &layer->score_pool);
    pool_scores(&j);
    forward_each_col(f, store_score_col, &j);
    return 0;
}

static uint64_t open_at(const struct index_job *j)
{
    return j->f->p.desc->others.index +
           (uint64_t)j->layer->kv_layer * (j->x->block - 1) * j->x->head_dim;
}

/* --- keys --- */

static const float *key_at(const struct index_job *j, uint32_t pos)
{
    uint32_t start = j->f->pos[0];

    return pos >= start ? j->f->index_k + (size_t)(pos - start) * j->x->head_dim
                        : j->from + (size_t)(pos % j->x->block) * j->x->head_dim;
}

/* Store the key of the block that ends with column c. */
static void store_block_col(void *ctx, uint32_t c)
{
    const struct index_job *j = ctx;
    struct forward *f = j->f;
    const struct kernels *kern = f->p.kernels;
    uint32_t n = j->x->head_dim, end = f->pos[c] + 1, pos = end - j->x->block;
    float key[MAX_INDEX_DIM], cosine[MAX_ROPE_FACTOR], sine[MAX_ROPE_FACTOR];

    if (end % j->x->block != 0)
        return;
    memcpy(key, key_at(j, pos), n * sizeof *key);
    for (uint32_t p = pos + 1; p < end; p++)
        kern->add(key, key_at(j, p), n);
    kern->scale(key, 1 / (float)j->x->block, n);
    kern->rms_norm(key, j->layer->index_k_norm.w, n, f->p.desc->rms_eps, key);
    rope_angles(&f->rope[0], pos, cosine, sine);
    rope_apply(&f->rope[0], cosine, sine, key);
    kv_index_write(f->p.kv, kern, j->layer->kv_layer, pos / j->x->block, key);
}

static struct index_job keys_job(struct forward *f, const struct layer_desc *layer, float **to)
{
    struct index_job j = job_of(f, layer);

    recurrent_others(kv_recurrent(f->p.kv), &j.from, to);
    j.from += open_at(&j);
    *to += open_at(&j);
    return j;
}

/* Keep the keys of the block that is still open after the last column. */
static void keep_open(const struct index_job *j, float *to)
{
    uint32_t n = j->x->head_dim, end = j->f->pos[0] + j->f->n_col;

    for (uint32_t p = end / j->x->block * j->x->block; p < end; p++)
        memcpy(to + (size_t)(p % j->x->block) * n, key_at(j, p), n * sizeof *to);
}

void forward_index_again(struct forward *f, const struct layer_desc *layer)
{
    float *to;
    struct index_job j = keys_job(f, layer, &to);

    keep_open(&j, to);
}

void forward_index_store(struct forward *f, const struct layer_desc *layer)
{
    float *to;
    struct index_job j = keys_job(f, layer, &to);

    forward_keep_index(f, layer);
    forward_each_col(f, store_block_col, &j);
    keep_open(&j, to);
}

/* --- the choice --- */

static bool is_worse(struct scored a, struct scored b)
{
    return a.score < b.score || (a.score == b.score && a.block > b.block);
}

/* The worst of the best blocks is at the top of a heap of at most `most`. */
struct best {
    struct scored *v;
    uint32_t n, most;
};

static void sift_down(struct best *b, uint32_t i)
{
    for (uint32_t child; (child = 2 * i + 1) < b->n; i = child) {
        struct scored swap = b->v[i];

        if (child + 1 < b->n && is_worse(b->v[child + 1], b->v[child]))
            child++;
        if (!is_worse(b->v[child], swap))
            return;
        b->v[i] = b->v[child];
        b->v[child] = swap;
    }
}

static void offer(struct best *b, struct scored s)
{
    uint32_t i = b->n;

    if (b->n == b->most) {
        if (!is_worse(b->v[0], s))
            return;
        b->v[0] = s;
        sift_down(b, 0);
        return;
    }
    for (b->n++; i > 0 && is_worse(s, b->v[(i - 1) / 2]); i = (i - 1) / 2)
        b->v[i] = b->v[(i - 1) / 2];
    b->v[i] = s;
}

static void score_blocks(const struct index_job *j, uint32_t col, uint32_t from, uint32_t to,
                         struct best *best)
{
    const struct forward *f = j->f;
    uint32_t n_head = j->x->n_head, dim = j->x->head_dim;
    const float *q = f->index_q + (size_t)col * n_head * dim;
    const float *w = f->index_w + (size_t)col * n_head;
    bool has_weights = j->layer->score_weights.tensor != NULL;
    float scores[TILE_BLOCKS * MAX_INDEX_HEAD];

    for (uint32_t n; from < to; from += n) {
        n = to - from < TILE_BLOCKS ? to - from : TILE_BLOCKS;
        f->p.kernels->mul(
            &(struct matmul){ .type = kv_index_type(f->p.kv),
                              .form = ACT_F32,
                              .n_row = n,
                              .n_k = dim,
                              .n_col = n_head,
                              .w = kv_index_keys(f->p.kv, j->layer->kv_layer, from),
                              .x = q,
                              .x_stride = dim * sizeof *q,
                              .y = scores,
                              .ldy = n });
        for (uint32_t i = 0; i < n; i++) {
            struct scored s = { .block = from + i };

            for (uint32_t h = 0; h < n_head; h++)
                s.score += (has_weights ? w[h] : 1) * fmaxf(scores[(size_t)h * n + i], 0);
            offer(best, s);
        }
    }
}

/* Write the chosen blocks of a column in rising order: a heap sort by block. */
static void list_blocks(struct best *best, uint32_t *out)
{
    uint32_t n = best->n;

    for (uint32_t i = 0; i < n; i++)
        best->v[i].score = 0; /* of equal scores, the last block is the worst */
    for (uint32_t i = n / 2; i > 0; i--)
        sift_down(best, i - 1);
    for (uint32_t i = n; i > 0; i--) {
        out[i - 1] = best->v[0].block;
        best->v[0] = best->v[--best->n];
        sift_down(best, 0);
    }
}

static struct best best_of(const struct index_job *j, int part)
{
    return (struct best){ .v = j->f->scored + (size_t)part * j->x->n_block,
                          .most = j->x->n_block };
}

static uint32_t *chosen_of(const struct index_job *j, uint32_t col)
{
    return j->f->chosen + (size_t)col * j->x->n_block;
}

static void choose_cols(void *ctx, int part, int n_part)
{
    const struct index_job *j = ctx;

    for (uint32_t c = j->first + (uint32_t)part; c < j->f->n_col; c += (uint32_t)n_part) {
        struct best best = best_of(j, part);

        score_blocks(j, c, 0, (j->f->pos[c] + 1) / j->x->block, &best);
        list_blocks(&best, chosen_of(j, c));
    }
}

static uint32_t range_end(uint32_t n, int part, int n_part)
{
    return (uint32_t)((uint64_t)n * (uint32_t)(part + 1) / (uint32_t)n_part);
}

static void score_range(void *ctx, int part, int n_part)
{
    const struct index_job *j = ctx;
    struct best best = best_of(j, part);

    score_blocks(j, j->col, range_end(j->n, part - 1, n_part), range_end(j->n, part, n_part),
                 &best);
    assert(best.n == j->x->n_block);
}

/* One column: the workers score ranges of its blocks, each of which has enough of them. */
static void choose_by_ranges(struct index_job *j, uint32_t col)
{
    struct best best = best_of(j, 0);
    int n_part;

    j->col = col;
    j->n = (j->f->pos[col] + 1) / j->x->block;
    n_part = (int)(j->n / (j->x->n_block > RANGE_MIN ? j->x->n_block : RANGE_MIN));
    if (n_part > pool_threads(j->f->p.pool))
        n_part = pool_threads(j->f->p.pool);
    if (n_part < 2) {
        score_blocks(j, col, 0, j->n, &best);
    } else {
        pool_run(j->f->p.pool, n_part, score_range, j);
        best.n = j->x->n_block;
        for (int part = 1; part < n_part; part++)
            for (uint32_t i = 0; i < j->x->n_block; i++)
                offer(&best, best_of(j, part).v[i]);
    }
    list_blocks(&best, chosen_of(j, col));
}

/* Norm and rope of the queries. */
static void query_col(void *ctx, uint32_t i)
{
    const struct index_job *j = ctx;
    struct forward *f = j->f;
    uint32_t c = j->first + i, n = j->x->head_dim, half = f->rope[0].n_rot / 2;

    for (uint32_t h = 0; h < j->x->n_head; h++) {
        float *q = f->index_q + ((size_t)c * j->x->n_head + h) * n;

        if (j->layer->index_q_norm.w == NULL) {
            if (!j->layer->is_ropeless)
                forward_rope_end(f, j->layer, c, false, q, n);
            continue;
        }
        f->p.kernels->rms_norm(q, j->layer->index_q_norm.w, n, f->p.desc->rms_eps, q);
        rope_apply(&f->rope[0], f->cosine[0] + (size_t)c * half, f->sine[0] + (size_t)c * half,
                   q);
    }
}

uint32_t forward_index_dense(const struct forward *f)
{
    const struct index_hparams *x = &f->p.desc->hp->index;
    uint32_t end = x->n_block * x->block + x->block - 1; /* positions that see all before */
    uint32_t pos = f->pos[0];

    return pos >= end ? 0 : end - pos < f->n_col ? end - pos : f->n_col;
}

void forward_index_choose(struct forward *f, const struct layer_desc *layer, uint32_t first)
{
    struct index_job j = job_of(f, layer);
    uint32_t n = f->n_col - first, n_thread = (uint32_t)pool_threads(f->p.pool);

    j.first = first;
    forward_each(f, n, query_col, &j);
    if (n >= n_thread) {
        pool_run(f->p.pool, (int)n_thread, choose_cols, &j);
        return;
    }
    for (uint32_t c = first; c < f->n_col; c++)
        choose_by_ranges(&j, c);
}
