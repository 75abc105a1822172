/* Products through OpenBLAS are right, and have the same bits for every division into blocks
 * and chunks. */
#include "config.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/compute/blas.h"
#include "engine/compute/dequant.h"
#include "tests/lib/kernel_data.h"

enum { N_ROW = 150, N_COL = 170, MOST_K = 1280, PLACE = 23 };

static const struct {
    enum tensor_type type;
    size_t n_k;
} cases[] = {
    { TYPE_F32, 56 },   { TYPE_F32, 1085 },  { TYPE_F16, 768 }, { TYPE_BF16, 768 },
    { TYPE_Q4_K, 512 }, { TYPE_Q6_K, 1280 }, { TYPE_Q8_0, 96 },
};

struct data {
    struct blas_product p;
    uint8_t *w;
    float *x; /* tiles; the first column is at PLACE */
    void *scratch;
    size_t x_bytes, w_bytes, scratch_bytes;
};

static void make(struct data *d, size_t i)
{
    size_t n_tile = blas_tiles(PLACE, N_COL), ldx;
    uint64_t seed = i;

    d->p = (struct blas_product){ .set = kernels_best(),
                                  .type = cases[i].type,
                                  .n_row = N_ROW,
                                  .n_k = cases[i].n_k,
                                  .first = PLACE,
                                  .n_col = N_COL };
    ldx = act_bytes(ACT_F32, d->p.n_k) / sizeof(float);
    d->w_bytes = N_ROW * (size_t)tensor_row_bytes(d->p.type, d->p.n_k);
    d->x_bytes = n_tile * BLAS_COLS * ldx * sizeof(float);
    d->scratch_bytes = blas_scratch_bytes(n_tile);
    d->w = fenced_new(d->w_bytes);
    d->x = fenced_new(d->x_bytes);
    d->scratch = fenced_new(d->scratch_bytes);
    random_blocks(d->p.type, d->w, N_ROW * d->p.n_k, &seed);
    random_blocks(TYPE_F32, (uint8_t *)d->x, d->x_bytes / sizeof(float), &seed);
    d->p.w = d->w;
    d->p.x = d->x;
    d->p.ldx = ldx;
}

static void drop(struct data *d)
{
    fenced_free(d->w, d->w_bytes);
    fenced_free(d->x, d->x_bytes);
    fenced_free(d->scratch, d->scratch_bytes);
}

static float y[N_COL][N_ROW], part[N_COL][N_ROW];

/* Make case i and its product in y. */
static void multiply(struct data *d, size_t i)
{
    make(d, i);
    d->p.y = y[0];
    d->p.ldy = N_ROW;
    blas_multiply(&d->p, 0, 1, d->scratch);
}

static void a_product_is_the_sum_of_its_terms(void **state)
{
    static float wide[MOST_K];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct data d;

        multiply(&d, i);
        for (size_t r = 0; r < N_ROW; r++) {
            dequant_row(d.p.type, d.w + r * (d.w_bytes / N_ROW), wide, d.p.n_k);
            for (size_t c = 0; c < N_COL; c++) {
                const float *column = d.x + (PLACE + c) * d.p.ldx;
                double sum = 0, size = 0;

                for (size_t k = 0; k < d.p.n_k; k++) {
                    sum += (double)wide[k] * column[k];
                    size += fabs((double)wide[k] * column[k]);
                }
                assert_true(fabs(y[c][r] - sum) <= 2e-6 * size);
            }
        }
        drop(&d);
    }
}

/* Multiply rows in blocks of n_r and columns in chunks of n_c.  Columns keep their places in
 * the tiles. */
static void multiply_parts(const struct data *d, size_t n_r, size_t n_c, int n_thread)
{
    size_t row_bytes = d->w_bytes / N_ROW;

    for (size_t r = 0; r < N_ROW; r += n_r)
        for (size_t c = 0; c < N_COL; c += n_c) {
            struct blas_product p = d->p;
            size_t at = PLACE + c;

            p.w = d->w + r * row_bytes;
            p.row = r;
            p.n_row = N_ROW - r < n_r ? N_ROW - r : n_r;
            p.x = d->x + at / BLAS_COLS * BLAS_COLS * p.ldx;
            p.first = at % BLAS_COLS;
            p.n_col = N_COL - c < n_c ? N_COL - c : n_c;
            p.y = &part[c][r];
            p.ldy = N_ROW;
            for (int t = n_thread - 1; t >= 0; t--)
                blas_multiply(&p, t, n_thread, d->scratch);
        }
}

static void bits_do_not_depend_on_blocks_chunks_and_threads(void **state)
{
    static const struct {
        size_t n_r, n_c;
        int n_thread;
    } cuts[] = { { N_ROW, N_COL, 2 }, { 37, 1, 1 },     { 1, N_COL, 1 }, { 64, 7, 3 },
                 { 100, 32, 2 },      { N_ROW, 64, 1 }, { 3, 100, 100 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct data d;

        multiply(&d, i);
        for (size_t j = 0; j < sizeof cuts / sizeof cuts[0]; j++) {
            memset(part, 0, sizeof part);
            multiply_parts(&d, cuts[j].n_r, cuts[j].n_c, cuts[j].n_thread);
            assert_memory_equal(part, y, sizeof y);
        }
        drop(&d);
    }
}

static void other_columns_of_a_tile_have_no_influence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct data d;

        multiply(&d, i);
        for (size_t c = 0; c < blas_tiles(PLACE, N_COL) * BLAS_COLS; c++)
            if (c % 3 != 0)
                memset(d.x + c * d.p.ldx, 0, d.p.ldx * sizeof *d.x);
        d.p.y = part[0];
        blas_multiply(&d.p, 0, 1, d.scratch);
        for (size_t c = 0; c < N_COL; c++)
            if ((PLACE + c) % 3 == 0)
                assert_memory_equal(part[c], y[c], sizeof y[c]);
        drop(&d);
    }
}

static void the_library_is_loaded_while_it_is_used(void **state)
{
    (void)state;
    assert_string_not_equal(blas_name(), "");
    assert_int_equal(blas_open(1), BLAS_OPEN);
    blas_close();
    assert_non_null(strstr(blas_name(), "openblas 0."));
    assert_in_range(blas_heap_bytes(2), 1 << 20, 64 << 20);
    blas_close();
    assert_string_equal(blas_name(), "");
    assert_int_equal(blas_open(1), BLAS_OPEN);
}

/* ---- the system refuses memory ---- */

/* Let the process map this much more. */
static void limit(int resource, uint64_t more)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long n_all, n_data;
    struct rlimit l;

    if (f == NULL || fscanf(f, "%llu %*u %*u %*u %*u %llu", &n_all, &n_data) != 2)
        _exit(3);
    fclose(f);
    l.rlim_cur =
        (resource == RLIMIT_AS ? n_all : n_data) * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    l.rlim_max = RLIM_INFINITY;
    if (setrlimit(resource, &l) != 0)
        _exit(3);
}

/* A sanitizer maps memory for each thread, which these limits refuse. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAPS_FOR_THREADS 1
#elif defined(__has_feature)
#define MAPS_FOR_THREADS (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define MAPS_FOR_THREADS 0
#endif

/* Run fn in a process of its own, which may not be stopped by anything but a signal. */
static void in_a_process(void (*fn)(int), int resource)
{
    pid_t pid;
    int status;

    if (MAPS_FOR_THREADS)
        skip();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(120);
        fn(resource);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void open_with_limits(int resource)
{
    static const uint64_t mib[] = { 2500, 700, 400, 100, 8, 1 };

    blas_close(); /* of the group */
    for (size_t i = 0; i < sizeof mib / sizeof mib[0]; i++) {
        enum blas_state many, one;

        limit(resource, mib[i] * MIB);
        many = blas_open(BLAS_THREADS);
        one = blas_open(1);
        if (many != BLAS_DENIED || one != (mib[i] > 600 ? BLAS_OPEN : BLAS_DENIED))
            _exit(4);
        if (one == BLAS_OPEN) {
            struct data d;

            multiply(&d, 0);
            drop(&d);
            blas_close();
        }
    }
}

static void without_addresses_for_buffers_the_library_is_not_used(void **state)
{
    (void)state;
    in_a_process(open_with_limits, RLIMIT_DATA);
    in_a_process(open_with_limits, RLIMIT_AS);
}

enum { THREADS = 3 };

static pthread_barrier_t begin;

static void *multiply_much(void *arg)
{
    struct data *d = arg;

    pthread_barrier_wait(&begin);
    for (int i = 0; i < 20; i++)
        blas_multiply(&d->p, 0, 1, d->scratch);
    return NULL;
}

static void multiply_with_limits(int resource)
{
    static float product[THREADS][N_COL][N_ROW];
    struct data d[THREADS];
    pthread_t threads[THREADS];

    if (blas_open(THREADS) != BLAS_OPEN)
        _exit(4);
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        make(&d[i], 0);
        d[i].p.y = product[i][0];
        d[i].p.ldy = N_ROW;
        if (pthread_create(&threads[i], NULL, multiply_much, &d[i]) != 0)
            _exit(5);
    }
    limit(resource, 0);
    pthread_barrier_wait(&begin);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (memcmp(product[0], product[2], sizeof product[0]) != 0)
        _exit(6);
}

static void threads_that_were_announced_need_no_more_addresses(void **state)
{
    (void)state;
    in_a_process(multiply_with_limits, RLIMIT_DATA);
    in_a_process(multiply_with_limits, RLIMIT_AS);
}

static int open_library(void **state)
{
    (void)state;
    return blas_open(1) == BLAS_OPEN ? 0 : -1;
}

static int close_library(void **state)
{
    (void)state;
    blas_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_the_sum_of_its_terms),
        cmocka_unit_test(without_addresses_for_buffers_the_library_is_not_used),
        cmocka_unit_test(threads_that_were_announced_need_no_more_addresses),
        cmocka_unit_test(bits_do_not_depend_on_blocks_chunks_and_threads),
        cmocka_unit_test(other_columns_of_a_tile_have_no_influence),
        cmocka_unit_test(the_library_is_loaded_while_it_is_used),
    };

    return cmocka_run_group_tests_name("blas", tests, open_library, close_library);
}
