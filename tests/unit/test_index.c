/*
 * The choice of blocks by index keys, and attention to the positions of these blocks.
 *
 * Keys and queries are small integers, so scores are exact, many of them are equal, and the choice
 * is compared with a search for the best block, one after the other.  Attention is compared with
 * sums in double precision.  Both are the same with any number of threads and of columns.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/attend_item.h"
#include "engine/model/forward_internal.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kernel_data.h"

enum { N_POS = 26001, BLOCK = 4, N_KEY = N_POS / BLOCK, N_COL = 5 };
enum { N_HEAD = 3, INDEX_DIM = 24, N_QUERY = 6, N_KV = 2, DIM = 32, MOST_THREADS = 3 };
enum { MOST_BLOCKS = 700 };

static float index_keys[N_KEY][INDEX_DIM], index_queries[N_COL][N_HEAD][INDEX_DIM];
static bool has_weights;
static float index_weights[N_COL][N_HEAD];
static float keys[N_POS][N_KV][DIM], values[N_POS][N_KV][DIM], queries[N_COL][N_QUERY][DIM];

/* Whole numbers, most of them 0. */
static void fill_small(void *x, size_t bytes, uint64_t seed)
{
    float *value = x;

    for (size_t i = 0; i < bytes / sizeof *value; i++)
        value[i] = truncf(random_float(&seed));
}

static int fill(void **state)
{
    (void)state;
    fill_small(index_keys, sizeof index_keys, 1);
    fill_small(index_queries, sizeof index_queries, 2);
    fill_small(keys, sizeof keys, 3);
    fill_small(values, sizeof values, 4);
    fill_small(queries, sizeof queries, 5);
    fill_small(index_weights, sizeof index_weights, 6);
    return 0;
}

/* --- the definition --- */

static float score_of(uint32_t col, uint32_t block)
{
    float sum = 0;

    for (int h = 0; h < N_HEAD; h++) {
        float dot = 0;

        for (int k = 0; k < INDEX_DIM; k++)
            dot += index_queries[col][h][k] * index_keys[block][k];
        sum += (has_weights ? index_weights[col][h] : 1) * (dot > 0 ? dot : 0);
    }
    return sum;
}

/* Mark the n best of the first n_key blocks. */
static void choose(uint32_t col, uint32_t n_key, uint32_t n, bool *chosen)
{
    static float score[N_KEY];

    memset(chosen, 0, N_KEY * sizeof *chosen);
    for (uint32_t i = 0; i < n_key; i++)
        score[i] = score_of(col, i);
    while (n-- > 0) {
        uint32_t best = 0;

        while (chosen[best])
            best++;
        for (uint32_t i = best + 1; i < n_key; i++)
            if (!chosen[i] && score[i] > score[best])
                best = i;
        chosen[best] = true;
    }
}

static void check_attention(const struct forward *f, uint32_t col, uint32_t n_key,
                            const bool *chosen)
{
    static double weight[N_POS];

    for (uint32_t head = 0; head < N_QUERY; head++) {
        uint32_t kv = head / (N_QUERY / N_KV);
        double sum = 0;

        for (uint32_t p = 0; p <= f->pos[col]; p++) {
            double dot = 0;

            for (int k = 0; k < DIM; k++)
                dot += queries[col][head][k] * keys[p][kv][k];
            weight[p] = p / BLOCK >= n_key || chosen[p / BLOCK] ? exp(dot / 8) : 0;
            sum += weight[p];
        }
        for (int d = 0; d < DIM; d++) {
            double want = 0;

            for (uint32_t p = 0; p <= f->pos[col]; p++)
                want += weight[p] / sum * values[p][kv][d];
            assert_float_equal(f->att[(col * N_QUERY + head) * DIM + d], want, 1e-3);
        }
    }
}

/* --- what is tested --- */

static struct kv *store_new(const struct kernels *set)
{
    struct kv_spec spec = { .n_head_kv = N_KV,
                            .head_dim_k = DIM,
                            .head_dim_v = DIM,
                            .index_dim = INDEX_DIM,
                            .index_block = BLOCK };
    struct err e = ERR_INIT;
    struct kv *kv;

    if (kv_new(&kv, &spec, 1, KV_F16, KV_F16, N_POS, ATTN_BLOCK, 0, &e) != 0)
        fail_with(&e);
    kv_begin(kv, N_POS);
    for (uint32_t p = 0; p < N_POS; p++)
        kv_write(kv, set, 0, p, keys[p][0], values[p][0]);
    for (uint32_t i = 0; i < N_KEY; i++)
        kv_index_write(kv, set, 0, i, index_keys[i]);
    kv_commit(kv, N_POS);
    return kv;
}

/* The last n_col of N_COL columns from a position on, together. */
static void check_call(struct forward *f, struct layer_desc *layer, uint32_t pos, uint32_t n_col)
{
    static bool chosen[N_KEY];
    const uint32_t n_block = f->p.desc->hp->index.n_block;

    f->n_col = n_col;
    for (uint32_t c = 0; c < n_col; c++)
        f->pos[c] = pos + c;
    memcpy(f->index_q, index_queries, n_col * sizeof index_queries[0]);
    memcpy(f->index_w, index_weights, n_col * sizeof index_weights[0]);
    memcpy(f->q, queries, n_col * sizeof queries[0]);
    forward_index_choose(f, layer, 0);
    forward_attend_chosen(f, layer, 0);
    for (uint32_t c = 0; c < n_col; c++) {
        uint32_t n_key = (f->pos[c] + 1) / BLOCK, i = 0;

        choose(c, n_key, n_block, chosen);
        for (uint32_t b = 0; b < n_key; b++)
            if (chosen[b])
                assert_int_equal(f->chosen[c * n_block + i++], b);
        check_attention(f, c, n_key, chosen);
    }
}

static void check(int n_thread, uint32_t n_block)
{
    static const struct tensor_info any;
    static const struct {
        uint32_t pos, n_col;
    } calls[] = { { N_POS - 1, 1 }, { 9000, 1 }, { 5001, N_COL }, { N_POS - N_COL, N_COL } };
    struct hparams hp = {
        .index = { .n_head = N_HEAD, .head_dim = INDEX_DIM, .block = BLOCK, .n_block = n_block }
    };
    struct model_desc *d = calloc(1, sizeof *d + sizeof *d->layers);
    const struct kernels *set = kernels_best();
    uint32_t pos[N_COL];
    struct err e = ERR_INIT;
    struct forward f = { .p = { .desc = d, .kernels = set, .chunk = N_COL }, .pos = pos };

    assert_non_null(d);
    d->n_layer = 1;
    d->hp = &hp;
    d->attn_scale = 1.0f / 8;
    d->layers[0] = (struct layer_desc){ .n_head = N_QUERY,
                                        .n_head_kv = N_KV,
                                        .head_dim_k = DIM,
                                        .head_dim_v = DIM,
                                        .is_ropeless = true,
                                        .is_indexed = true,
                                        .has_index = true };
    if (has_weights)
        d->layers[0].score_weights.tensor = &any;
    if (pool_new(&f.p.pool, n_thread, &e) != 0)
        fail_with(&e);
    f.p.kv = store_new(set);
    f.q = calloc(1, sizeof queries);
    f.att = calloc(1, sizeof queries);
    f.index_q = calloc(1, sizeof index_queries);
    f.index_w = calloc(N_COL, N_HEAD * sizeof(float));
    f.chosen = calloc(N_COL, n_block * sizeof *f.chosen);
    f.ranked = calloc((size_t)n_thread * 2, forward_index_room(n_block) * sizeof *f.ranked);
    f.attend_rows = calloc((size_t)n_thread, attend_rows_bytes(d));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        check_call(&f, &d->layers[0], calls[i].pos, calls[i].n_col);
    free(f.q);
    free(f.att);
    free(f.index_q);
    free(f.index_w);
    free(f.chosen);
    free(f.ranked);
    free(f.attend_rows);
    kv_free(f.p.kv);
    pool_free(f.p.pool);
    free(d);
}

static void the_best_blocks_are_chosen_and_read(void **state)
{
    static const uint32_t n_blocks[] = { 1, 17, 64, MOST_BLOCKS };

    has_weights = *state != NULL;
    for (int n_thread = 1; n_thread <= MOST_THREADS; n_thread++)
        for (size_t i = 0; i < sizeof n_blocks / sizeof n_blocks[0]; i++)
            check(n_thread, n_blocks[i]);
}

int main(void)
{
    static int weights = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_blocks_are_chosen_and_read),
        cmocka_unit_test_prestate(the_best_blocks_are_chosen_and_read, &weights),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
