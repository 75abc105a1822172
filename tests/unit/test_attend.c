/*
 * Attention over many positions: each query has the same bits with any number of threads and of
 * columns beside it, and with any memory for records of spans.  It is also compared with sums
 * in double precision.
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

#include "engine/compute/kv_types.h"
#include "engine/model/forward_internal.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kernel_data.h"

enum { N_POS = 1700, N_COL = 90, N_KV = 2, DIM = 32, MOST_HEAD = 64 };

struct shape {
    uint32_t n_head, window;
    enum kv_type type;
};

static const struct shape shapes[] = {
    { 8, 0, KV_F16 },  { 8, 600, KV_F16 },  { 2, 0, KV_F32 },
    { 6, 0, KV_Q8_0 }, { 64, 40, KV_Q4_0 }, { 64, 0, KV_F32 },
};

struct way {
    int n_thread;
    uint32_t n_col;     /* columns of a call */
    size_t gate_floats; /* memory for records */
};

static const struct way ways[] = {
    { 1, 1, 0 },     { 1, 1, 100000 }, { 3, 1, 100000 }, { 2, 1, 7000 },
    { 2, N_COL, 0 }, { 3, 7, 300000 }, { 1, 33, 0 },     { 2, 3, 20000 },
};

static float keys[N_POS][N_KV * DIM], values[N_POS][N_KV * DIM];
static float queries[N_COL][MOST_HEAD * DIM];

static struct kv *store_new(const struct shape *s, const struct kernels *set)
{
    struct kv_spec spec = {
        .is_sliding = s->window > 0, .n_head_kv = N_KV, .head_dim_k = DIM, .head_dim_v = DIM
    };
    struct err e = ERR_INIT;
    float k[N_KV * DIM], v[N_KV * DIM];
    struct kv *kv;

    if (kv_new(&kv, &spec, 1, s->type, s->type, N_POS, 1728, s->window, &e) != 0)
        fail_with(&e);
    kv_begin(kv, N_POS);
    for (uint32_t p = 0; p < N_POS; p++) {
        memcpy(k, keys[p], sizeof k);
        memcpy(v, values[p], sizeof v);
        kv_write(kv, set, 0, p, k, v);
    }
    kv_commit(kv, N_POS);
    return kv;
}

/* The last N_COL positions ask, a few columns in each call. */
static void attend(const struct shape *s, struct kv *kv, const struct kernels *set,
                   const struct way *way, float *out)
{
    struct model_desc desc = { .attn_scale = 0.3f };
    struct layer_desc layer = { .n_head = s->n_head,
                                .n_head_kv = N_KV,
                                .head_dim_k = DIM,
                                .head_dim_v = DIM,
                                .window = s->window };
    struct forward f = { .p = { .desc = &desc, .kernels = set, .kv = kv } };
    size_t width = (size_t)s->n_head * DIM;
    uint32_t pos[N_COL];
    struct err e = ERR_INIT;

    if (pool_new(&f.p.pool, way->n_thread, &e) != 0)
        fail_with(&e);
    f.pos = pos;
    f.gate_floats = way->gate_floats;
    f.gate = calloc(way->gate_floats + 1, sizeof *f.gate);
    f.attend_state = calloc(2 * N_COL * s->n_head, sizeof *f.attend_state);
    f.q = calloc(N_COL * width, sizeof *f.q);
    for (uint32_t at = 0; at < N_COL; at += f.n_col) {
        f.n_col = N_COL - at < way->n_col ? N_COL - at : way->n_col;
        f.att = out + at * width;
        for (uint32_t c = 0; c < f.n_col; c++) {
            memcpy(f.q + c * width, queries[at + c], width * sizeof *f.q);
            pos[c] = N_POS - N_COL + at + c;
        }
        no_error(forward_attend(&f, &layer, &e), &e);
    }
    free(f.gate);
    free(f.attend_state);
    free(f.q);
    pool_free(f.p.pool);
}

/* Weighted values of one query, from the floats that were stored. */
static void check_query(const struct shape *s, uint32_t col, uint32_t head, const float *out)
{
    uint32_t pos = N_POS - N_COL + col, kv = head / (s->n_head / N_KV) * DIM;
    uint32_t from = s->window > 0 && pos + 1 > s->window ? pos + 1 - s->window : 0;
    double sum = 0, of[DIM] = { 0 };
    double within = s->type == KV_F32 ? 1e-5 : 2e-3;

    for (uint32_t p = from; p <= pos; p++) {
        double score = 0;

        for (int d = 0; d < DIM; d++)
            score += (double)queries[col][head * DIM + (uint32_t)d] * keys[p][kv + (uint32_t)d];
        score = exp(0.3 * score);
        sum += score;
        for (int d = 0; d < DIM; d++)
            of[d] += score * values[p][kv + (uint32_t)d];
    }
    for (int d = 0; d < DIM; d++)
        assert_true(fabs(of[d] / sum - out[d]) <= within * (1 + fabs(out[d])));
}

static void a_query_has_the_same_bits_in_all_ways(void **state)
{
    const struct shape *s = *state;
    size_t n = (size_t)N_COL * s->n_head * DIM;
    float *first = calloc(n, sizeof *first), *other = calloc(n, sizeof *other);

    for (const char *const *name = kernels_names(); *name != NULL; name++) {
        const struct kernels *set = kernels_by_name(*name);
        struct kv *kv = store_new(s, set);

        attend(s, kv, set, &ways[0], first);
        for (uint32_t head = 0; head < s->n_head && s->type <= KV_F16; head++)
            check_query(s, N_COL / 2, head,
                        first + ((size_t)N_COL / 2 * s->n_head + head) * DIM);
        for (size_t i = 1; i < sizeof ways / sizeof ways[0]; i++) {
            memset(other, 0xff, n * sizeof *other);
            attend(s, kv, set, &ways[i], other);
            if (memcmp(first, other, n * sizeof *first) != 0)
                fail_msg("%s, %u heads, way %zu differs", *name, s->n_head, i);
        }
        kv_free(kv);
    }
    free(first);
    free(other);
}

static void make_numbers(void)
{
    uint64_t seed = 5;

    for (int p = 0; p < N_POS; p++)
        for (int d = 0; d < N_KV * DIM; d++) {
            keys[p][d] = random_float(&seed);
            values[p][d] = random_float(&seed);
        }
    for (int c = 0; c < N_COL; c++)
        for (int d = 0; d < MOST_HEAD * DIM; d++)
            queries[c][d] = random_float(&seed);
}

int main(void)
{
    enum { N = sizeof shapes / sizeof shapes[0] };
    static const char *const names[N] = { "f16",  "f16, a window",  "one head per key head",
                                          "q8_0", "q4_0, a window", "many heads" };
    struct CMUnitTest tests[N];

    make_numbers();
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){ names[i], a_query_has_the_same_bits_in_all_ways, NULL,
                                        NULL, (void *)(uintptr_t)&shapes[i] };
    return cmocka_run_group_tests_name("attend", tests, NULL, NULL);
}
