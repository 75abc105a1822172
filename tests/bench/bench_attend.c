/*
 * bench_attend - attention of one token over 32,768 positions, beside what memory and
 * arithmetic allow.
 *
 *     bench_attend [--json] [SET [KV-TYPE]]
 *
 * Calls the attention of the forward pass on a store of keys and values, with one and with two
 * threads.  The store has so many layers that no cache keeps them, and each call takes the next
 * one.  Plain reading of as many bytes and a loop of multiply-adds take turns with it.  Prints
 * the bytes of keys and values per second, their share of the bandwidth, multiply-adds per
 * second, and their share of the peak; medians of the turns.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"
#include "tests/bench/turns.h"
#include "tests/lib/kernel_data.h"

enum { N_POS = 32768, TURNS = 9, MOST_THREADS = 2, N_ROW = 61, CHUNK = 512 };
#define STORE_BYTES ((size_t)192 << 20) /* at least, several times the largest cache */

struct shape {
    const char *name;
    uint32_t n_head, n_head_kv, head_dim;
};

static const struct shape shapes[] = {
    { "Gemma 4 E2B, global layer", 8, 1, 512 },
    { "Llama 3.2 1B", 32, 8, 64 },
};

struct result {
    double bytes_s, memory_bytes_s, macs_s, peak_macs_s;
};

struct reading {
    const uint8_t *p;
    size_t n;
    uint64_t seen[64 * MOST_THREADS];
};

static void read_part(void *ctx, int part, int n_part)
{
    struct reading *r = ctx;
    size_t n = r->n / (size_t)n_part;

    r->seen[64 * part] += read_streams(r->p + (size_t)part * n, n);
}

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define PEAK_SUMS   16 /* hide the latency of an addition */
#define PEAK_ROUNDS 200000

typedef float wide __attribute__((vector_size(64)));

/* Multiply-adds of the widest vectors of the CPU.  The compiler makes a version for each. */
#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static float
multiply_add(float by)
{
    const wide factor = (wide){ 0 } + by;
    wide sum[PEAK_SUMS];

    UNROLL
    for (int j = 0; j < PEAK_SUMS; j++)
        sum[j] = factor * (float)j;
    for (int i = 0; i < PEAK_ROUNDS; i++)
        UNROLL
    for (int j = 0; j < PEAK_SUMS; j++)
        sum[j] = sum[j] * factor + factor;
    UNROLL
    for (int j = 1; j < PEAK_SUMS; j++)
        sum[0] += sum[j];
    return sum[0][0];
}

struct peak {
    float by, seen[64 * MOST_THREADS];
};

static void peak_part(void *ctx, int part, int n_part)
{
    struct peak *p = ctx;

    (void)n_part;
    p->seen[64 * part] += multiply_add(p->by);
}

/* A store of keys and values with all positions, and a pass of one token over it. */
struct bench {
    const struct shape *shape;
    enum kv_type type;
    uint32_t n_layer, next;
    struct kv_spec *specs;
    struct kv *kv;
    struct layer_desc layer;
    struct forward f;
    uint32_t pos;
    float *queries;
    struct model_desc desc; /* its list of layers is empty */
};

static size_t layer_bytes(const struct bench *b)
{
    return N_POS * 2 * b->shape->n_head_kv * kv_row_bytes(b->type, b->shape->head_dim);
}

/* A few rows are repeated, because the transformation before storing takes long. */
static void fill(struct bench *b, const struct kernels *set)
{
    size_t n = (size_t)b->shape->n_head_kv * b->shape->head_dim;
    float *rows = calloc(N_ROW * n, sizeof *rows), *k = calloc(n, sizeof *k);
    float *v = calloc(n, sizeof *v);
    uint64_t seed = 1;

    for (size_t i = 0; i < N_ROW * n; i++)
        rows[i] = random_float(&seed);
    kv_begin(b->kv, N_POS);
    for (uint32_t layer = 0; layer < b->n_layer; layer++)
        for (uint32_t p = 0; p < N_POS; p++) {
            memcpy(k, rows + p % N_ROW * n, n * sizeof *k);
            memcpy(v, rows + (p + 1) % N_ROW * n, n * sizeof *v);
            kv_write(b->kv, set, layer, p, k, v);
        }
    kv_commit(b->kv, N_POS);
    free(rows);
    free(k);
    free(v);
}

static int open_bench(struct bench *b, const struct shape *shape, enum kv_type type,
                      const struct kernels *set, struct err *e)
{
    size_t n_q = (size_t)shape->n_head * shape->head_dim;
    uint64_t seed = 7;

    *b = (struct bench){ .shape = shape, .type = type, .pos = N_POS - 1 };
    b->n_layer = (uint32_t)(STORE_BYTES / layer_bytes(b)) + 1;
    b->specs = calloc(b->n_layer, sizeof *b->specs);
    for (uint32_t i = 0; i < b->n_layer; i++)
        b->specs[i] = (struct kv_spec){ .n_head_kv = shape->n_head_kv,
                                        .head_dim_k = shape->head_dim,
                                        .head_dim_v = shape->head_dim };
    if (kv_new(&b->kv, b->specs, b->n_layer, type, type, N_POS, ATTN_BLOCK, 0, e) != 0)
        return -1;
    fill(b, set);
    b->layer = (struct layer_desc){ .n_head = shape->n_head,
                                    .n_head_kv = shape->n_head_kv,
                                    .head_dim_k = shape->head_dim,
                                    .head_dim_v = shape->head_dim };
    b->desc.attn_scale = 0.05f;
    b->f.p.desc = &b->desc;
    b->f.p.kv = b->kv;
    b->f.p.kernels = set;
    b->f.p.chunk = CHUNK;
    b->f.pos = &b->pos;
    b->f.n_col = 1;
    b->queries = calloc(n_q, sizeof *b->queries);
    b->f.q = calloc(n_q, sizeof *b->f.q);
    b->f.att = calloc(n_q, sizeof *b->f.att);
    b->f.gate_floats = CHUNK * 4 * (size_t)shape->head_dim;
    b->f.gate = calloc(b->f.gate_floats, sizeof *b->f.gate);
    b->f.attend_state = calloc(2 * (size_t)shape->n_head, sizeof *b->f.attend_state);
    for (size_t i = 0; i < n_q; i++)
        b->queries[i] = random_float(&seed);
    return 0;
}

static void close_bench(struct bench *b)
{
    kv_free(b->kv);
    free(b->specs);
    free(b->queries);
    free(b->f.q);
    free(b->f.att);
    free(b->f.gate);
    free(b->f.attend_state);
}

static double attend_s(struct bench *b)
{
    struct err ignored = ERR_INIT;
    double start;

    memcpy(b->f.q, b->queries, (size_t)b->shape->n_head * b->shape->head_dim * sizeof *b->f.q);
    b->layer.kv_layer = b->next++ % b->n_layer;
    start = clock_s();
    (void)forward_attend(&b->f, &b->layer, &ignored);
    return clock_s() - start;
}

/* Each turn attends to all layers, and reads as many bytes of another memory. */
static struct result measure(struct bench *b, struct pool *pool, const uint8_t *memory)
{
    double attend[TURNS], read[TURNS], peak[TURNS];
    struct reading reading = { .p = memory, .n = STORE_BYTES };
    struct peak p = { .by = 0.5f };
    double macs = 2.0 * N_POS * b->shape->n_head * b->shape->head_dim;
    int n_thread = pool_threads(pool);

    b->f.p.pool = pool;
    for (int turn = -1; turn < TURNS; turn++) {
        double start, sum = 0;
        int at = turn < 0 ? 0 : turn;

        for (uint32_t i = 0; i < b->n_layer; i++)
            sum += attend_s(b);
        attend[at] = sum / b->n_layer;
        start = clock_s();
        pool_run(pool, n_thread, read_part, &reading);
        read[at] = clock_s() - start;
        start = clock_s();
        pool_run(pool, n_thread, peak_part, &p);
        peak[at] = clock_s() - start;
    }
    return (struct result){ .bytes_s = (double)layer_bytes(b) / median(attend, TURNS),
                            .memory_bytes_s = (double)STORE_BYTES / median(read, TURNS),
                            .macs_s = macs / median(attend, TURNS),
                            .peak_macs_s = 16.0 * PEAK_SUMS * PEAK_ROUNDS * n_thread /
                                           median(peak, TURNS) };
}

static void print(const struct bench *b, const struct result *r, int n_thread, bool json)
{
    double share = r->bytes_s / r->memory_bytes_s, of_peak = r->macs_s / r->peak_macs_s;

    if (json)
        printf("{\"shape\":\"%s\",\"kernels\":\"%s\",\"kv\":\"%s\",\"threads\":%d,"
               "\"kv_bytes_s\":%.0f,\"memory_bytes_s\":%.0f,\"share\":%.3f,\"macs_s\":%.0f,"
               "\"peak_macs_s\":%.0f,\"peak_share\":%.3f,\"tokens_s\":%.1f}\n",
               b->shape->name, b->f.p.kernels->name, kv_type_name(b->type), n_thread,
               r->bytes_s, r->memory_bytes_s, share, r->macs_s, r->peak_macs_s, of_peak,
               r->bytes_s / (double)layer_bytes(b));
    else
        printf("%-26s %-5s %8d %9.0f %8.1f %8.1f %7.2f %8.1f %8.1f %7.2f\n", b->shape->name,
               kv_type_name(b->type), n_thread, 1e6 * (double)layer_bytes(b) / r->bytes_s,
               1e-9 * r->bytes_s, 1e-9 * r->memory_bytes_s, share, 1e-9 * r->macs_s,
               1e-9 * r->peak_macs_s, of_peak);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *name = argc > 1 + json ? argv[1 + json] : NULL;
    int only = argc > 2 + json ? kv_type_parse(argv[2 + json]) : -1;
    const struct kernels *set = name != NULL ? kernels_by_name(name) : kernels_best();
    uint8_t *memory = aligned_alloc(4096, STORE_BYTES);
    struct pool *pools[MOST_THREADS];
    struct err e = ERR_INIT;

    if (set == NULL || memory == NULL) {
        fprintf(stderr, "bench_attend: no such set of kernels, or no memory\n");
        return 1;
    }
    memset(memory, 1, STORE_BYTES);
    for (int i = 0; i < MOST_THREADS; i++)
        if (pool_new(&pools[i], i + 1, &e) != 0)
            return 1;
    if (!json)
        printf("%s, one token, %d positions\n%-26s %-5s %8s %9s %8s %8s %7s %8s %8s %7s\n",
               set->name, N_POS, "shape", "kv", "threads", "us", "GB/s", "memory", "share",
               "GMAC/s", "peak", "share");
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int type = 0; type < KV_TYPE_COUNT; type++) {
            struct bench b;

            if (only >= 0 && type != only)
                continue;
            if (open_bench(&b, &shapes[s], (enum kv_type)type, set, &e) != 0)
                return 1;
            for (int i = 0; i < MOST_THREADS; i++) {
                struct result r = measure(&b, pools[i], memory);

                print(&b, &r, i + 1, json);
            }
            close_bench(&b);
        }
    for (int i = 0; i < MOST_THREADS; i++)
        pool_free(pools[i]);
    free(memory);
    return 0;
}
