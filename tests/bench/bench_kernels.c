/*
 * bench_kernels - measure the speed of the kernels.
 *
 * Compared ways take turns within one run, and the median of the turns is shown, so that a busy
 * machine slows all of them alike.
 *
 *     bench_kernels [few|many|packed|interleaved|blas|other] [SET]
 *
 * few: one column, where weights come from memory; prints bytes of weights per second, and the
 * speed of plain reading of the same memory.  many: prompts, and cblas_sgemm on weights that
 * are floats already.  packed: BF16 in 12 bits and plain BF16, from memory.  interleaved:
 * sixteen rows side by side, and as in the file, from memory and from the cache.  blas: the
 * kernels and OpenBLAS by type and number of columns, for matrices and attention.  other:
 * everything but matrices.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cblas.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/compute/blas.h"
#include "engine/compute/interleave.h"
#include "engine/compute/kernels.h"
#include "engine/compute/packed.h"
#include "engine/compute/pool.h"
#include "tests/bench/turns.h"
#include "tests/lib/kernel_data.h"

#define TURNS     9
#define MOST_COLS 2048 /* any shape does */

/* One way to compute a product, run by every thread of a pool on rows of its own. */
struct way {
    const char *name;
    const struct kernels *set; /* NULL: sgemm or plain reading */
    bool through_blas;         /* blas_multiply */
    bool is_interleaved;
    const struct packed_block *packed; /* instead of w */
    enum tensor_type type;
    enum act_form form;
    const uint8_t *w;
    size_t n_row, n_k, n_col;
    uint8_t *x;
    float *y;
    double t[TURNS];
};

static void run_part(void *ctx, int part, int n_part)
{
    struct way *p = ctx;
    size_t from = p->n_row * (size_t)part / (size_t)n_part;
    size_t to = p->n_row * (size_t)(part + 1) / (size_t)n_part;
    size_t row_bytes = (size_t)tensor_row_bytes(p->type, p->n_k);
    struct matmul m = { .type = p->type,
                        .form = p->form,
                        .n_row = to - from,
                        .n_k = p->n_k,
                        .n_col = p->n_col,
                        .w = p->w + from * row_bytes,
                        .x = p->x,
                        .x_stride = act_bytes(p->form, p->n_k),
                        .y = p->y + from,
                        .ldy = p->n_row };

    if (p->packed != NULL) {
        p->set->mul_packed(p->packed, from, &m);
    } else if (p->is_interleaved) {
        p->set->mul_interleaved(&m);
    } else if (p->through_blas) {
        static _Thread_local void *scratch;
        struct blas_product product = { .set = p->set,
                                        .type = p->type,
                                        .w = p->w,
                                        .n_row = p->n_row,
                                        .n_k = p->n_k,
                                        .x = (const float *)(const void *)p->x,
                                        .ldx = act_bytes(ACT_F32, p->n_k) / sizeof(float),
                                        .n_col = p->n_col,
                                        .y = p->y,
                                        .ldy = p->n_row };

        if (scratch == NULL) /* for the most columns; lives as long as the thread */
            scratch = aligned_alloc(64, blas_scratch_bytes(blas_tiles(0, MOST_COLS)));
        blas_multiply(&product, part, n_part, scratch);
    } else if (p->set != NULL) {
        p->set->mul(&m);
    } else if (p->n_col > 1) {
        cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)(to - from), (int)p->n_col,
                    (int)p->n_k, 1, (const float *)(const void *)(p->w + from * row_bytes),
                    (int)p->n_k, (const float *)(const void *)p->x,
                    (int)(act_bytes(p->form, p->n_k) / sizeof(float)), 0, p->y + from,
                    (int)p->n_row);
    } else {
        p->y[from] = (float)read_streams(p->w + from * row_bytes, (to - from) * row_bytes);
    }
}

static void *columns_new(const struct kernels *set, enum act_form form, size_t n_k,
                         size_t n_col)
{
    size_t stride = act_bytes(form, n_k);
    /* Complete tiles for OpenBLAS. */
    uint8_t *x = calloc(blas_tiles(0, n_col) * BLAS_COLS, stride);
    float *f = calloc(n_k, sizeof *f);
    uint64_t seed = 3;

    for (size_t c = 0; c < n_col; c++) {
        for (size_t k = 0; k < n_k; k++)
            f[k] = random_float(&seed);
        set->act_pack(form, f, n_k, x + c * stride);
    }
    free(f);
    return x;
}

/* Random rows, repeated: making gigabytes of random blocks would take too long.  In huge pages,
 * as pinned weights. */
static uint8_t *weights_new(enum tensor_type type, size_t n_row, size_t n_k)
{
    size_t row_bytes = (size_t)tensor_row_bytes(type, n_k);
    size_t bytes = align_up(n_row * row_bytes, HUGE_BYTES);
    uint8_t *w = aligned_alloc(HUGE_BYTES, bytes);
    uint64_t seed = 1;

    (void)madvise(w, bytes, MADV_HUGEPAGE);

    random_blocks(type, w, (n_row < 16 ? n_row : 16) * n_k, &seed);
    for (size_t r = 16; r < n_row; r++)
        memcpy(w + r * row_bytes, w + (r - 16) * row_bytes, row_bytes);
    return w;
}

static void take_turns(struct pool *pool, struct way *ways, size_t n)
{
    for (int turn = -1; turn < TURNS; turn++)
        for (size_t i = 0; i < n; i++) {
            double start = clock_s();

            pool_run(pool, pool_threads(pool), run_part, &ways[i]);
            if (turn >= 0)
                ways[i].t[turn] = clock_s() - start;
        }
}

static void bench_few(struct pool *pool, const struct kernels *set)
{
    size_t n_k = 2048;

    printf("\n%s, 1 column, %d thread(s): GB of weights per second\n", set->name,
           pool_threads(pool));
    printf("%-8s %-6s %8s %8s %8s %10s\n", "type", "form", "mul", "reading", "ratio",
           "Gweights/s");
    for (int t = 0; computed_types[t] != TYPE_COUNT; t++)
        for (int exact = 0; exact < 2; exact++) {
            enum tensor_type type = computed_types[t];
            enum act_form form = act_form_of(type, exact);
            size_t row_bytes = (size_t)tensor_row_bytes(type, n_k);
            size_t n_row = ((size_t)96 << 20) / row_bytes;

            if (exact && form == act_form_of(type, false))
                continue;

            struct way w[2] = {
                { .set = set,
                  .type = type,
                  .form = form,
                  .n_row = n_row,
                  .n_k = n_k,
                  .n_col = 1 },
                { .type = type, .form = form, .n_row = n_row, .n_k = n_k, .n_col = 1 },
            };

            w[0].w = w[1].w = weights_new(type, n_row, n_k);
            w[0].x = w[1].x = columns_new(set, form, n_k, 1);
            w[0].y = w[1].y = calloc(n_row, sizeof(float));
            take_turns(pool, w, 2);

            double mul = median(w[0].t, TURNS), read = median(w[1].t, TURNS);
            double gb = (double)(n_row * row_bytes) * 1e-9;

            printf("%-8s %-6s %8.2f %8.2f %8.2f %10.2f\n", tensor_type_info(type)->name,
                   form == ACT_F32 ? "f32" : "q8", gb / mul, gb / read, read / mul,
                   (double)(n_row * n_k) * 1e-9 / mul);
            fflush(stdout);
            free((void *)(uintptr_t)w[0].w);
            free(w[0].x);
            free(w[0].y);
        }
}

/* Normal weights: few of them need a patch. */
static uint8_t *normal_weights_new(size_t n)
{
    uint16_t *w = aligned_alloc(64, n * sizeof *w);
    uint64_t seed = 1;

    for (size_t i = 0; i < n && i < 1 << 20; i++) {
        float f = random_float(&seed);

        memcpy(&w[i], (const char *)&f + 2, sizeof *w);
    }
    for (size_t i = 1 << 20; i < n; i++)
        w[i] = w[i - (1 << 20)];
    return (uint8_t *)w;
}

static void bench_packed(struct pool *pool, const struct kernels *set)
{
    static const size_t cols[] = { 1, 2, 4, 8, 64, 512 };
    const size_t n_k = 2048, n_row = 24576, most = n_row * packed_row_most(n_k);
    uint8_t *plain = normal_weights_new(n_row * n_k), *block = aligned_alloc(4096, most);
    struct packed_block packed;
    float *y = calloc(n_row * 512, sizeof *y);
    size_t bytes = packed_make(plain, n_row, n_k, block, most);
    double start = clock_s();

    bytes = packed_make(plain, n_row, n_k, block, most);
    packed = packed_open(block, n_row, n_k);
    printf("\n%s, BF16 packed to %.4f of its bytes, at %.2f GB/s; %d thread(s)\n", set->name,
           (double)bytes / (double)(n_row * n_k * 2),
           (double)(n_row * n_k * 2) * 1e-9 / (clock_s() - start), pool_threads(pool));
    printf("%8s %12s %12s %10s %10s\n", "columns", "plain, Gw/s", "packed, Gw/s", "ratio",
           "reading");
    for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
        struct way w[3] = { { .set = set }, { .set = set, .packed = &packed }, { .n_col = 1 } };
        double weights = (double)(n_row * n_k) * 1e-9, t[3];

        for (int i = 0; i < 3; i++) {
            w[i].type = TYPE_BF16;
            w[i].form = ACT_F32;
            w[i].w = plain;
            w[i].n_row = cols[c] > 8 ? n_row / 16 : n_row;
            w[i].n_k = n_k;
            w[i].n_col = i < 2 ? cols[c] : 1;
            w[i].x = columns_new(set, ACT_F32, n_k, cols[c]);
            w[i].y = y;
        }
        take_turns(pool, w, 3);
        for (int i = 0; i < 3; i++) {
            t[i] = median(w[i].t, TURNS) / (cols[c] > 8 ? 1.0 / 16 : 1);
            free(w[i].x);
        }
        printf("%8zu %12.2f %12.2f %10.2f %10.2f\n", cols[c], weights / t[0], weights / t[1],
               t[0] / t[1], weights / t[2]);
        fflush(stdout);
    }
    free(y);
    free(block);
    free(plain);
}

/* Rows of the file do not serve as interleaved ones: random exponents of MXFP4 make products
 * subnormal, for which some processors take 100 times as long. */
static uint8_t *interleaved_new(enum tensor_type type, const uint8_t *rows, size_t n_row,
                                size_t n_k)
{
    const size_t row_bytes = (size_t)tensor_row_bytes(type, n_k);
    uint8_t *laid = weights_new(type, n_row, n_k);
    void *scratch = calloc(INTERLEAVED_ROWS, row_bytes);

    interleave(type, row_bytes, n_row, rows, laid, scratch);
    free(scratch);
    return laid;
}

static void bench_interleaved_type(struct pool *pool, const struct kernels *set,
                                   enum tensor_type type, size_t n_row)
{
    static const size_t cols[] = { 1, 2, 4, 8, 16, 64 };
    const size_t n_k = 2048;
    uint8_t *rows = weights_new(type, n_row, n_k);
    uint8_t *laid = interleaved_new(type, rows, n_row, n_k);
    uint8_t *x = columns_new(set, ACT_Q8, n_k, 64);
    float *y = calloc(n_row * 64, sizeof *y);
    double one = 0;

    for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
        struct way w[3];
        double t[3];

        for (int i = 0; i < 3; i++)
            w[i] = (struct way){ .set = i < 2 ? set : NULL,
                                 .is_interleaved = i == 1,
                                 .type = type,
                                 .form = ACT_Q8,
                                 .w = i == 1 ? laid : rows,
                                 .n_row = n_row,
                                 .n_k = n_k,
                                 .n_col = i < 2 ? cols[c] : 1,
                                 .x = x,
                                 .y = y };
        take_turns(pool, w, 3);
        for (int i = 0; i < 3; i++)
            t[i] =
                median(w[i].t, TURNS) * 1e9 * pool_threads(pool) / (double)(n_row * n_k / 512);
        one = c == 0 ? t[1] : one;
        printf("%-7s %7zu %10.1f %12.1f %10.2f %10.1f %10.2f\n", tensor_type_info(type)->name,
               cols[c], t[0], t[1], t[0] / t[1], t[2], t[1] / one);
        fflush(stdout);
    }
    free(y);
    free(x);
    free(laid);
    free(rows);
}

static void bench_interleaved(struct pool *pool, const struct kernels *set, size_t n_row)
{
    static const enum tensor_type types[] = { TYPE_Q4_0, TYPE_Q4_1,   TYPE_Q5_0,   TYPE_Q5_1,
                                              TYPE_Q8_0, TYPE_IQ4_NL, TYPE_IQ4_XS, TYPE_MXFP4,
                                              TYPE_Q4_K, TYPE_Q5_K,   TYPE_Q6_K };

    if (set->mul_interleaved == NULL)
        return;
    printf("\n%s, %zu rows, %d thread(s): ns of a thread for 512 weights\n", set->name, n_row,
           pool_threads(pool));
    printf("%-7s %7s %10s %12s %10s %10s %10s\n", "type", "columns", "as in file",
           "interleaved", "ratio", "reading", "of 1 col.");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        bench_interleaved_type(pool, set, types[i], n_row);
}

struct kind {
    enum tensor_type type;
    bool exact, through_blas;
};

static void bench_many_shape(struct pool *pool, const struct kernels *set, size_t n_row,
                             size_t n_k, size_t n_col)
{
    static const struct kind kinds[] = {
        { TYPE_F32, true, false },   { TYPE_BF16, true, false },  { TYPE_BF16, true, true },
        { TYPE_Q8_0, true, false },  { TYPE_Q8_0, false, false }, { TYPE_Q4_0, false, false },
        { TYPE_Q4_K, false, false }, { TYPE_Q6_K, false, false },
    };
    enum { N = sizeof kinds / sizeof kinds[0] };
    struct way w[N + 1];
    float *y = calloc(n_row * n_col, sizeof *y);

    for (size_t i = 0; i <= N; i++) {
        struct kind kind = i < N ? kinds[i] : (struct kind){ TYPE_F32, true, false };
        enum act_form form = act_form_of(kind.type, kind.exact);

        w[i] = (struct way){ .set = i < N ? set : NULL,
                             .through_blas = kind.through_blas,
                             .type = kind.type,
                             .form = form,
                             .n_row = n_row,
                             .n_k = n_k,
                             .n_col = n_col,
                             .y = y };
        w[i].w = weights_new(kind.type, n_row, n_k);
        w[i].x = columns_new(set, form, n_k, n_col);
    }
    take_turns(pool, w, N + 1);

    double flops = 2e-9 * (double)n_row * (double)n_k * (double)n_col;
    double blas = median(w[N].t, TURNS);

    printf("%5zu x %5zu x %3zu  sgemm %6.1f |", n_row, n_k, n_col, flops / blas);
    for (size_t i = 0; i < N; i++) {
        double t = median(w[i].t, TURNS);

        printf(" %s%s %6.1f (%.2f)", tensor_type_info(w[i].type)->name,
               w[i].through_blas     ? "/blas"
               : w[i].form == ACT_Q8 ? "/q8"
                                     : "",
               flops / t, blas / t);
    }
    printf("\n");
    fflush(stdout);
    for (size_t i = 0; i <= N; i++) {
        free((void *)(uintptr_t)w[i].w);
        free(w[i].x);
    }
    free(y);
}

static void bench_many(struct pool *pool, const struct kernels *set)
{
    static const struct {
        size_t n_row, n_k;
    } shapes[] = { { 1536, 6144 }, { 6144, 1536 }, { 2560, 10240 } };
    static const size_t cols[] = { 4, 16, 64, 128, 512 };

    printf("\n%s, many columns, %d thread(s): GFLOP/s (times sgemm's rate)\n", set->name,
           pool_threads(pool));
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++)
            bench_many_shape(pool, set, shapes[s].n_row, shapes[s].n_k, cols[c]);
}

/* The shortest time of a way.  Ways take turns, because a busy machine only ever makes a time
 * longer. */
static void take_best(struct pool *pool, struct way *ways, size_t n)
{
    double start = clock_s();

    for (int turn = 0; turn < TURNS && (turn < 2 || clock_s() - start < 1); turn++)
        for (size_t i = 0; i < n; i++) {
            double from = clock_s(), t;

            pool_run(pool, pool_threads(pool), run_part, &ways[i]);
            t = clock_s() - from;
            if (turn == 0 || t < ways[i].t[0])
                ways[i].t[0] = t;
        }
}

/* The rates of the kernels and of OpenBLAS for one shape, as in `memwall inspect
 * --products`. */
static void bench_blas_type(struct pool *pool, const struct kernels *set, enum tensor_type type,
                            bool exact)
{
    static const size_t cols[] = { 1, 4, 16, 32, 64, 128, 512, MOST_COLS };
    enum { N_COLS = sizeof cols / sizeof cols[0], N_ROW = 512, N_K = 2048 };
    enum act_form form = act_form_of(type, exact);
    uint8_t *w = weights_new(type, N_ROW, N_K);
    uint8_t *floats = columns_new(set, ACT_F32, N_K, MOST_COLS);
    uint8_t *packed = columns_new(set, form, N_K, MOST_COLS);
    float *y = calloc((size_t)N_ROW * MOST_COLS, sizeof *y);

    printf("%-10s %-6s %-6s", set->name, tensor_type_info(type)->name, exact ? "exact" : "");
    for (size_t c = 0; c < N_COLS; c++) {
        struct way ways[2] = {
            { .set = set, .x = packed, .form = form },
            { .set = set, .x = floats, .form = ACT_F32, .through_blas = true }
        };
        double flops = 2e-9 * N_ROW * N_K * (double)cols[c];

        for (int i = 0; i < 2; i++) {
            ways[i].type = type;
            ways[i].w = w;
            ways[i].n_row = N_ROW;
            ways[i].n_k = N_K;
            ways[i].n_col = cols[c];
            ways[i].y = y;
        }
        take_best(pool, ways, 2);
        printf(" %6.1f/%-5.1f", flops / ways[0].t[0], flops / ways[1].t[0]);
        fflush(stdout);
    }
    putchar('\n');
    free(w);
    free(floats);
    free(packed);
    free(y);
}

static double shortest(const double *t)
{
    double best = t[0];

    for (int i = 1; i < TURNS; i++)
        best = t[i] < best ? t[i] : best;
    return best;
}

/*
 * Attention of 64 tokens over n_pos positions, with 4 heads per key head: our kernel, and two
 * products by OpenBLAS in tiles of 64 positions, without the softmax between them.
 */
static void bench_blas_attention(const struct kernels *set, enum kv_type type, size_t dim,
                                 size_t n_pos)
{
    enum { N_TOKEN = 64, N_HEAD = 4, N_Q = N_TOKEN * N_HEAD, TILE_POS = 64 };
    static const enum tensor_type same[KV_TYPE_COUNT] = { TYPE_F32, TYPE_F16, TYPE_Q8_0,
                                                          TYPE_Q4_0 };
    size_t row = kv_row_bytes(type, dim);
    float *q = calloc(N_Q * dim, sizeof *q), *out = calloc(N_Q * dim, sizeof *out);
    float *tile = calloc(TILE_POS * dim, sizeof *tile),
          *scores = calloc(N_Q * TILE_POS, sizeof *q);
    uint8_t *rows = calloc(n_pos, row);
    float m[N_Q] = { 0 }, l[N_Q] = { 0 };
    double t[2][TURNS];
    struct attn_block b = { .k_type = type,
                            .v_type = type,
                            .k_stride = row,
                            .v_stride = row,
                            .n_pos = ATTN_BLOCK,
                            .n_q = N_HEAD,
                            .dk = dim,
                            .dv = dim,
                            .scale = 0.06f };

    for (size_t j = 0; j < n_pos; j++)
        set->kv_store(type, q, dim, rows + j * row);
    for (int turn = 0; turn < TURNS; turn++) {
        double start = clock_s();

        for (size_t i = 0; i < N_Q; i += N_HEAD)
            for (size_t j = 0; j < n_pos; j += ATTN_BLOCK) {
                b.k = b.v = rows + j * row;
                b.q = q + i * dim;
                b.m = m + i;
                b.l = l + i;
                b.acc = out + i * dim;
                set->attn(&b);
            }
        t[0][turn] = clock_s() - start;
        start = clock_s();
        for (size_t j = 0; j < n_pos; j += TILE_POS)
            for (int value = 0; value < 2; value++) {
                for (size_t i = 0; i < TILE_POS; i++)
                    set->dequant(same[type], rows + (j + i) * row, tile + i * dim, dim);
                if (value)
                    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)dim, N_Q,
                                TILE_POS, 1, tile, (int)dim, scores, TILE_POS, 1, out,
                                (int)dim);
                else
                    cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, TILE_POS, N_Q,
                                (int)dim, 1, tile, (int)dim, q, (int)dim, 0, scores, TILE_POS);
            }
        t[1][turn] = clock_s() - start;
    }
    printf(
        "%-10s attention %-5s head %3zu, %4zu positions: %8.2f ms, products alone %8.2f ms\n",
        set->name, kv_type_name(type), dim, n_pos, 1e3 * shortest(t[0]), 1e3 * shortest(t[1]));
    free(q);
    free(out);
    free(tile);
    free(scores);
    free(rows);
}

static void bench_blas(struct pool *pool, const struct kernels *set)
{
    static const enum tensor_type types[] = { TYPE_F32,  TYPE_F16,  TYPE_BF16, TYPE_Q8_0,
                                              TYPE_Q4_0, TYPE_Q4_K, TYPE_Q6_K };

    printf("\n%s, kernels/OpenBLAS by columns, %d thread(s): GFLOP/s\n%-24s", set->name,
           pool_threads(pool), "");
    printf("%9d %12d %12d %12d %12d %12d %12d %12d\n", 1, 4, 16, 32, 64, 128, 512, MOST_COLS);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int exact = 0; exact < 2; exact++)
            if (!exact || act_form_of(types[i], false) != ACT_F32)
                bench_blas_type(pool, set, types[i], exact);
    bench_blas_attention(set, KV_F16, 64, 512);
    bench_blas_attention(set, KV_F16, 64, 4096);
    bench_blas_attention(set, KV_F16, 256, 4096);
    bench_blas_attention(set, KV_Q8_0, 64, 4096);
}

static double time_of(void (*fn)(const struct kernels *, float *, float *),
                      const struct kernels *set, float *x, float *y)
{
    double t[TURNS];

    for (int i = 0; i < TURNS; i++) {
        double start = clock_s();

        for (int j = 0; j < 20; j++)
            fn(set, x, y);
        t[i] = (clock_s() - start) / 20;
    }
    return median(t, TURNS);
}

enum { N_VECTOR = 12288 };

static void do_gelu(const struct kernels *set, float *x, float *y)
{
    set->gelu_mul(x, y, N_VECTOR);
}

static void do_softcap(const struct kernels *set, float *x, float *y)
{
    (void)y;
    set->softcap(x, 30, N_VECTOR);
}

static void do_norm(const struct kernels *set, float *x, float *y)
{
    set->rms_norm(x, y, N_VECTOR, 1e-6f, x);
}

static void do_pack(const struct kernels *set, float *x, float *y)
{
    set->act_pack(ACT_Q8, x, N_VECTOR, y);
}

static void do_rotate(const struct kernels *set, float *x, float *y)
{
    (void)y;
    set->rotate(x, N_VECTOR, 64);
}

static void do_rotate_long(const struct kernels *set, float *x, float *y)
{
    (void)y;
    set->rotate(x, N_VECTOR, 512);
}

static void bench_other(const struct kernels *set)
{
    static const struct {
        const char *name;
        void (*fn)(const struct kernels *, float *, float *);
    } what[] = {
        { "gelu_mul", do_gelu }, { "softcap", do_softcap },  { "rms_norm", do_norm },
        { "pack q8", do_pack },  { "rotate 64", do_rotate }, { "rotate 512", do_rotate_long },
    };
    float *x = calloc(2 * N_VECTOR, sizeof *x), *y = calloc(2 * N_VECTOR, sizeof *y);
    uint64_t seed = 1;

    printf("\n%s: ns a value\n", set->name);
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        for (int j = 0; j < N_VECTOR; j++) {
            x[j] = random_float(&seed);
            y[j] = 1;
        }
        printf("%-10s %.3f\n", what[i].name, time_of(what[i].fn, set, x, y) * 1e9 / N_VECTOR);
    }
    printf("attn, 32 positions, head 256, 8 queries a key: ns a position and query\n");
    for (int kt = 0; kt < KV_TYPE_COUNT; kt++) {
        enum { D = 256, Q = 8, BLOCKS = 64 };
        enum kv_type t = (enum kv_type)kt;
        size_t row = kv_row_bytes(t, D);
        uint8_t *k = calloc(BLOCKS * ATTN_BLOCK, row);
        float m[Q] = { 0 }, l[Q] = { 0 };
        double times[TURNS];

        for (int j = 0; j < BLOCKS * ATTN_BLOCK; j++)
            set->kv_store(t, x + j % 512, D, k + (size_t)j * row);
        for (int i = 0; i < TURNS; i++) {
            double start = clock_s();

            for (int b = 0; b < BLOCKS; b++)
                set->attn(&(struct attn_block){ .k_type = t,
                                                .v_type = t,
                                                .k = k + (size_t)b * ATTN_BLOCK * row,
                                                .v = k + (size_t)b * ATTN_BLOCK * row,
                                                .k_stride = row,
                                                .v_stride = row,
                                                .n_pos = ATTN_BLOCK,
                                                .n_q = Q,
                                                .dk = D,
                                                .dv = D,
                                                .q = x,
                                                .scale = 0.06f,
                                                .m = m,
                                                .l = l,
                                                .acc = y });
            times[i] = clock_s() - start;
        }
        printf("%-10s %.2f\n", kv_type_name(t),
               median(times, TURNS) * 1e9 / (BLOCKS * ATTN_BLOCK * Q));
        free(k);
    }
    free(x);
    free(y);
}

/* One task of attention: n_q queries that share a key head, over all blocks of n_pos
 * positions. */
struct item {
    const struct kernels *set;
    enum kv_type type;
    size_t n_q, dim, n_pos;
    float *q, *out; /* [n_q][dim] */
    uint8_t *rows;  /* [ATTN_BLOCK] of keys, which serve as values, too */
};

/* Returns seconds, with or without rotating queries and result. */
static double attend_s(const struct item *a, bool is_rotated)
{
    size_t row = kv_row_bytes(a->type, a->dim);
    float m[8], l[8];
    double start = clock_s();

    if (is_rotated)
        a->set->rotate(a->q, a->n_q * a->dim, a->dim);
    for (size_t i = 0; i < a->n_q; i++) {
        m[i] = -1e30f;
        l[i] = 0;
    }
    for (size_t j = 0; j < a->n_pos; j += ATTN_BLOCK)
        a->set->attn(&(struct attn_block){ .k_type = a->type,
                                           .v_type = a->type,
                                           .k = a->rows,
                                           .v = a->rows,
                                           .k_stride = row,
                                           .v_stride = row,
                                           .n_pos = ATTN_BLOCK,
                                           .n_q = a->n_q,
                                           .dk = a->dim,
                                           .dv = a->dim,
                                           .q = a->q,
                                           .scale = 0.06f,
                                           .m = m,
                                           .l = l,
                                           .acc = a->out });
    if (is_rotated)
        a->set->rotate(a->out, a->n_q * a->dim, a->dim);
    return clock_s() - start;
}

/* Measure the cost of the rotation in attention over quantised rows. */
static void bench_rotation(const struct kernels *set)
{
    static const struct {
        size_t n_q, dim, n_pos;
    } shapes[] = { { 4, 64, 64 }, { 4, 64, 4096 }, { 8, 256, 64 }, { 8, 256, 4096 } };
    enum { ROUNDS = 201 };

    printf("attention with rotation: us of an item, and what the rotation adds\n");
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int t = KV_Q8_0; t < KV_TYPE_COUNT; t++) {
            size_t n = shapes[s].n_q * shapes[s].dim;
            struct item a = { .set = set,
                              .type = (enum kv_type)t,
                              .n_q = shapes[s].n_q,
                              .dim = shapes[s].dim,
                              .n_pos = shapes[s].n_pos,
                              .q = calloc(n, sizeof(float)),
                              .out = calloc(n, sizeof(float)),
                              .rows = calloc(ATTN_BLOCK, shapes[s].dim * 4) };
            double plain[ROUNDS], more[ROUNDS];
            uint64_t seed = 1;

            for (size_t i = 0; i < n; i++)
                a.q[i] = random_float(&seed);
            for (size_t j = 0; j < ATTN_BLOCK; j++)
                set->kv_store(a.type, a.q, a.dim, a.rows + j * kv_row_bytes(a.type, a.dim));
            for (int i = 0; i < ROUNDS; i++) {
                plain[i] = attend_s(&a, false);
                more[i] = attend_s(&a, true);
            }

            double base = median(plain, ROUNDS);

            printf("%zu x %3zu, %4zu positions, %s: %8.2f  %+.2f %%\n", a.n_q, a.dim, a.n_pos,
                   kv_type_name(a.type), base * 1e6, 100 * (median(more, ROUNDS) / base - 1));
            free(a.q);
            free(a.out);
            free(a.rows);
        }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct err e = ERR_INIT;
    struct pool *one, *all;

    (void)blas_open(2);
    printf("%s\n", blas_name());
    if (pool_new(&one, 1, &e) != 0 || pool_new(&all, 2, &e) != 0)
        return 1;
    for (const char *const *name = kernels_names(); *name != NULL; name++) {
        const struct kernels *set = kernels_by_name(*name);

        if (argc > 2 && strcmp(argv[2], *name) != 0)
            continue;
        if (*what == '\0' || strcmp(what, "few") == 0) {
            bench_few(one, set);
            bench_few(all, set);
        }
        if (*what == '\0' || strcmp(what, "many") == 0) {
            bench_many(one, set);
            bench_many(all, set);
        }
        if (*what == '\0' || strcmp(what, "packed") == 0) {
            bench_packed(one, set);
            bench_packed(all, set);
        }
        if (*what == '\0' || strcmp(what, "interleaved") == 0) {
            bench_interleaved(one, set, 512);
            /* 128 MiB would come from a last-level cache in part. */
            bench_interleaved(one, set, 262144);
            bench_interleaved(all, set, 262144);
        }
        if (*what == '\0' || strcmp(what, "blas") == 0)
            bench_blas(one, set);
        if (*what == '\0' || strcmp(what, "other") == 0) {
            bench_other(set);
            bench_rotation(set);
        }
    }
    pool_free(one);
    pool_free(all);
    return 0;
}
