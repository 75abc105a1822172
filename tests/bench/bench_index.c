/*
 * bench_index - one token in a layer whose index keys choose the positions that it attends to.
 *
 *     bench_index [--json] [SET]
 *
 * The layer has the shape of those of Qwen3.8-Flash-Next, with keys and values in F16.  The store
 * is filled with random rows, and the choice and the attention of the forward pass are called for
 * the token after 4k to 256k positions, with one and with two threads.  Prints medians of their
 * times, and the bytes of index keys and of keys and values that were read.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/attend_item.h"
#include "engine/model/forward_internal.h"
#include "tests/bench/turns.h"
#include "tests/lib/kernel_data.h"

enum { TURNS = 15, MOST_THREADS = 2, N_ROW = 61 };
enum { N_HEAD = 24, N_HEAD_KV = 2, HEAD_DIM = 256, INDEX_HEAD = 4, INDEX_DIM = 128 };
enum { BLOCK = 4, N_BLOCK = 512 };

static const uint32_t contexts[] = { 4096, 16384, 65536, 262144 };
enum { N_CONTEXT = sizeof contexts / sizeof contexts[0], N_CTX = 262144 };

/* A store with all positions, and a pass of one token. */
struct bench {
    struct kv_spec spec;
    struct kv *kv;
    struct hparams hp;
    struct model_desc *desc;
    struct layer_desc *layer;
    struct vec norm;
    struct forward f;
    uint32_t pos;
    float *queries, *index_queries, *ones;
};

/* A few rows of keys and values are repeated; each index key is another one. */
static void fill(struct bench *b, const struct kernels *set)
{
    const size_t n = N_HEAD_KV * HEAD_DIM;
    float *rows = calloc(N_ROW * n, sizeof *rows), key[INDEX_DIM];
    uint64_t seed = 1;

    for (size_t i = 0; i < N_ROW * n; i++)
        rows[i] = random_float(&seed);
    kv_begin(b->kv, N_CTX);
    for (uint32_t p = 0; p < N_CTX; p++) {
        kv_write(b->kv, set, 0, p, rows + p % N_ROW * n, rows + (p + 1) % N_ROW * n);
        if (p % BLOCK != 0)
            continue;
        for (int i = 0; i < INDEX_DIM; i++)
            key[i] = random_float(&seed);
        kv_index_write(b->kv, set, 0, p / BLOCK, key);
    }
    kv_commit(b->kv, N_CTX);
    free(rows);
}

static float *floats(size_t n, uint64_t seed)
{
    float *x = calloc(n, sizeof *x);

    for (size_t i = 0; x != NULL && seed != 0 && i < n; i++)
        x[i] = random_float(&seed);
    return x;
}

static int open_bench(struct bench *b, const struct kernels *set, struct err *e)
{
    const size_t n_q = N_HEAD * HEAD_DIM, n_index = INDEX_HEAD * INDEX_DIM;

    *b = (struct bench){ .spec = { .n_head_kv = N_HEAD_KV,
                                   .head_dim_k = HEAD_DIM,
                                   .head_dim_v = HEAD_DIM,
                                   .index_dim = INDEX_DIM,
                                   .index_block = BLOCK } };
    if (kv_new(&b->kv, &b->spec, 1, KV_F16, KV_F16, N_CTX, ATTN_BLOCK, 0, e) != 0)
        return -1;
    fill(b, set);
    b->hp.index = (struct index_hparams){
        .n_head = INDEX_HEAD, .head_dim = INDEX_DIM, .block = BLOCK, .n_block = N_BLOCK
    };
    b->ones = floats(INDEX_DIM, 3);
    b->desc = calloc(1, sizeof *b->desc + sizeof *b->layer);
    b->layer = b->desc->layers;
    *b->layer = (struct layer_desc){ .n_head = N_HEAD,
                                    .n_head_kv = N_HEAD_KV,
                                    .head_dim_k = HEAD_DIM,
                                    .head_dim_v = HEAD_DIM,
                                    .is_indexed = true,
                                    .has_index = true,
                                    .index_q_norm = { .n = INDEX_DIM, .w = b->ones } };
    b->desc->n_layer = 1;
    b->desc->hp = &b->hp;
    b->desc->attn_scale = 1.0f / 16;
    b->queries = floats(n_q, 7);
    b->index_queries = floats(n_index, 9);
    b->f = (struct forward){ .p = { .desc = b->desc, .kv = b->kv, .kernels = set, .chunk = 1 },
                             .pos = &b->pos,
                             .n_col = 1,
                             .q = floats(n_q, 0),
                             .att = floats(n_q, 0),
                             .index_q = floats(n_index, 0),
                             .index_w = floats(INDEX_HEAD, 0),
                             .ranked = calloc((size_t)MOST_THREADS * 2 *
                                                  forward_index_room(N_BLOCK),
                                              sizeof(int32_t)),
                             .attend_rows = calloc(MOST_THREADS, attend_rows_bytes(b->desc)),
                             .chosen = calloc(N_BLOCK, sizeof(uint32_t)) };
    return 0;
}

struct times {
    double choose[TURNS], attend[TURNS];
};

static void run(struct bench *b, uint32_t n_ctx, struct times *t)
{
    b->pos = n_ctx - 1;
    for (int turn = -1; turn < TURNS; turn++) {
        int at = turn < 0 ? 0 : turn;
        double start;

        memcpy(b->f.index_q, b->index_queries, INDEX_HEAD * INDEX_DIM * sizeof(float));
        memcpy(b->f.q, b->queries, (size_t)N_HEAD * HEAD_DIM * sizeof(float));
        start = clock_s();
        forward_index_choose(&b->f, b->layer, 0);
        t->choose[at] = clock_s() - start;
        start = clock_s();
        forward_attend_chosen(&b->f, b->layer, 0);
        t->attend[at] = clock_s() - start;
    }
}

static void print(const struct bench *b, uint32_t n_ctx, int n_thread, struct times *t, bool json)
{
    double choose = 1e6 * median(t->choose, TURNS), attend = 1e6 * median(t->attend, TURNS);
    double keys = (double)n_ctx / BLOCK * INDEX_DIM * 2;
    double kv = (double)N_BLOCK * BLOCK * N_HEAD_KV * HEAD_DIM * 2 * 2;

    if (json)
        printf("{\"kernels\":\"%s\",\"positions\":%u,\"threads\":%d,\"choose_us\":%.0f,"
               "\"attend_us\":%.0f,\"index_bytes\":%.0f,\"kv_bytes\":%.0f}\n",
               b->f.p.kernels->name, n_ctx, n_thread, choose, attend, keys, kv);
    else
        printf("%10u %8d %10.0f %10.0f %12.0f %12.0f\n", n_ctx, n_thread, choose, attend,
               keys / 1000, kv / 1000);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *name = argc > 1 + json ? argv[1 + json] : NULL;
    const struct kernels *set = name != NULL ? kernels_by_name(name) : kernels_best();
    struct err e = ERR_INIT;
    struct bench b;

    if (set == NULL) {
        fprintf(stderr, "bench_index: no such set of kernels\n");
        return 1;
    }
    if (open_bench(&b, set, &e) != 0)
        return bench_fail("bench_index", &e);
    if (!json)
        printf("%s, one token\n%10s %8s %10s %10s %12s %12s\n", set->name, "positions", "threads",
               "choice us", "attend us", "index KB", "KV KB");
    for (int n = 1; n <= MOST_THREADS; n++) {
        if (pool_new(&b.f.p.pool, n, &e) != 0)
            return bench_fail("bench_index", &e);
        for (int i = 0; i < N_CONTEXT; i++) {
            struct times t;

            run(&b, contexts[i], &t);
            print(&b, contexts[i], n, &t, json);
        }
        pool_free(b.f.p.pool);
    }
    kv_free(b.kv);
    free(b.desc);
    return 0;
}
