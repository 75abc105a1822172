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
#include <string.h>

#include "engine/model/forward_internal.h"

#define TILE_SCORES 4096 /* of all heads, computed together: keys are long streams */
#define RANGE_MIN   1024 /* blocks that are worth a thread of their own */
#define LANES       16   /* blocks that a loop without branches works on */

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

/*
 * Candidates in rising order of blocks.  When there is no room, all but the best `most` are
 * dropped, and blocks with a lower rank than these are not entered from then on.  Blocks come in
 * rising order, so of equal ranks the first are kept.
 */
struct best {
    int32_t *rank;
    uint32_t *block; /* both [forward_index_room()] */
    uint32_t n, most;
    int64_t least; /* rank of a block that is entered */
};

uint32_t forward_index_room(uint32_t n_block)
{
    return (2 * n_block + LANES - 1) / LANES * LANES;
}

/* Integers in the order of the scores, which are never -0: they are sums that begin with 0. */
static int32_t rank_of(float score)
{
    int32_t bits;

    memcpy(&bits, &score, sizeof bits);
    return bits ^ (bits >> 31 & INT32_MAX);
}

/* How many of n ranks, a multiple of LANES, are at least `least`? */
static uint32_t count_ranks(const int32_t *rank, uint32_t n, int32_t least)
{
    uint32_t in_lane[LANES] = { 0 }, sum = 0;

    for (uint32_t i = 0; i < n; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            in_lane[lane] += rank[i + lane] >= least;
    for (uint32_t lane = 0; lane < LANES; lane++)
        sum += in_lane[lane];
    return sum;
}

/* The highest rank that at least k of them have: its bits are found one after the other. */
static int32_t lowest_of_best(const int32_t *rank, uint32_t n, uint32_t k)
{
    uint32_t found = 0;

    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        uint32_t n_more = count_ranks(rank, n, (int32_t)((found | bit) ^ 1u << 31));

        if (n_more >= k)
            found |= bit;
        if (n_more == k)
            break;
    }
    return (int32_t)(found ^ 1u << 31);
}

static void keep_best(struct best *b)
{
    uint32_t n = (b->n + LANES - 1) / LANES * LANES, n_kept = 0, n_equal;
    int32_t lowest;

    if (b->n <= b->most)
        return;
    for (uint32_t i = b->n; i < n; i++)
        b->rank[i] = INT32_MIN;
    lowest = lowest_of_best(b->rank, n, b->most);
    n_equal = b->most;
    for (uint32_t i = 0; i < b->n; i++)
        n_equal -= b->rank[i] > lowest;
    for (uint32_t i = 0; i < b->n; i++) {
        bool is_equal = b->rank[i] == lowest && n_equal > 0;

        b->rank[n_kept] = b->rank[i];
        b->block[n_kept] = b->block[i];
        n_kept += is_equal || b->rank[i] > lowest;
        n_equal -= is_equal;
    }
    assert(n_kept == b->most);
    b->n = n_kept;
    b->least = (int64_t)lowest + 1;
}

static void offer(struct best *b, int32_t rank, uint32_t block)
{
    if (rank < b->least)
        return;
    b->rank[b->n] = rank;
    b->block[b->n++] = block;
    if (b->n == forward_index_room(b->most))
        keep_best(b);
}

/* sum[i] += w * max(0, scores[i]) */
static void add_head(float *sum, const float *scores, uint32_t n, float w)
{
    for (uint32_t i = 0; i < n; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            sum[i + lane] += w * (scores[i + lane] > 0 ? scores[i + lane] : 0);
}

static void score_blocks(const struct index_job *j, uint32_t col, uint32_t from, uint32_t to,
                         struct best *best)
{
    const struct forward *f = j->f;
    const uint32_t n_head = j->x->n_head, dim = j->x->head_dim;
    const uint32_t most = TILE_SCORES / n_head / LANES * LANES;
    const float *q = f->index_q + (size_t)col * n_head * dim;
    const float *w = f->index_w + (size_t)col * n_head;
    bool has_weights = j->layer->score_weights.tensor != NULL;
    float scores[TILE_SCORES], sum[TILE_SCORES];

    memset(scores, 0, sizeof scores); /* lanes past the last block are added, too */
    for (uint32_t n; from < to; from += n) {
        uint32_t ld;

        n = to - from < most ? to - from : most;
        ld = (n + LANES - 1) / LANES * LANES;
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
                              .ldy = ld });
        memset(sum, 0, ld * sizeof *sum);
        for (uint32_t h = 0; h < n_head; h++)
            add_head(sum, scores + (size_t)h * ld, ld, has_weights ? w[h] : 1);
        for (uint32_t i = 0; i < n; i++)
            offer(best, rank_of(sum[i]), from + i);
    }
    keep_best(best);
}

static struct best best_of(const struct index_job *j, int part)
{
    size_t room = forward_index_room(j->x->n_block);
    int32_t *rank = j->f->ranked + 2 * room * (size_t)part;

    return (struct best){ .rank = rank,
                          .block = (uint32_t *)(rank + room),
                          .most = j->x->n_block,
                          .least = INT32_MIN };
}

static void list_blocks(const struct index_job *j, const struct best *best, uint32_t col)
{
    assert(best->n == j->x->n_block);
    memcpy(j->f->chosen + (size_t)col * best->n, best->block, best->n * sizeof *best->block);
}

static void choose_cols(void *ctx, int part, int n_part)
{
    const struct index_job *j = ctx;

    for (uint32_t c = j->first + (uint32_t)part; c < j->f->n_col; c += (uint32_t)n_part) {
        struct best best = best_of(j, part);

        score_blocks(j, c, 0, (j->f->pos[c] + 1) / j->x->block, &best);
        list_blocks(j, &best, c);
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
        for (int part = 1; part < n_part; part++) {
            struct best more = best_of(j, part);

            for (uint32_t i = 0; i < j->x->n_block; i++)
                offer(&best, more.rank[i], more.block[i]);
        }
        keep_best(&best);
    }
    list_blocks(j, &best, col);
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
