#include "config.h"

#include "engine/compute/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cblas.h>

/*
 * The library is loaded at run time, and only if something asks for it.  Its file has some
 * 36 MB, of which a first start reads 20 MB into the page cache before main() begins.
 */
static struct {
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(openblas_set_num_threads) *set_num_threads;
    __typeof__(openblas_get_config) *get_config;
    __typeof__(openblas_get_corename) *get_corename;
    char name[128];
} lib = { .name = "no BLAS" };

/* dlsym() returns an object pointer; POSIX lets it hold a function, ISO C needs the copy. */
static bool find(void *library, const char *symbol, void *function, size_t n)
{
    void *found = dlsym(library, symbol);

    memcpy(function, &found, n);
    return found != NULL;
}

static void load(void)
{
    static const char *const files[] = { "libopenblas.so.0", "libopenblas.so" };
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < sizeof files / sizeof files[0]; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    if (!find(library, "cblas_sgemm", &lib.sgemm, sizeof lib.sgemm) ||
        !find(library, "openblas_set_num_threads", &lib.set_num_threads,
              sizeof lib.set_num_threads) ||
        !find(library, "openblas_get_config", &lib.get_config, sizeof lib.get_config) ||
        !find(library, "openblas_get_corename", &lib.get_corename, sizeof lib.get_corename)) {
        lib.sgemm = NULL;
        return;
    }
    lib.set_num_threads(1);
    snprintf(lib.name, sizeof lib.name, "%.90s, %.30s", lib.get_config(), lib.get_corename());
}

/*
 * OpenBLAS starts threads while it is loaded.  They must not take signals that are meant
 * for the program, so all signals are blocked meanwhile.  Where it cannot start a thread it
 * raises SIGINT, which is discarded unless one was pending before.
 */
static void load_quietly(void)
{
    const struct timespec at_once = { 0 };
    sigset_t all, before, pending, interrupt;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sigpending(&pending);
    load();
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    if (sigismember(&pending, SIGINT) == 0)
        while (sigtimedwait(&interrupt, NULL, &at_once) > 0)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool is_loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_quietly);
    return lib.sgemm != NULL;
}

static void multiply_tile(const float *rows, const float *cols, size_t n_k, float *tile)
{
    lib.sgemm(CblasColMajor, CblasTrans, CblasNoTrans, BLAS_ROWS, BLAS_COLS, (int)n_k, 1, rows,
              (int)n_k, cols, (int)n_k, 0, tile, BLAS_ROWS);
}

/* Equal rows and equal columns: are all sums equal? */
static bool is_uniform(size_t n_k)
{
    float *rows = malloc((BLAS_ROWS + BLAS_COLS) * n_k * sizeof *rows);
    float *cols, tile[BLAS_ROWS * BLAS_COLS];
    bool is_same = true;

    if (rows == NULL)
        return false;
    cols = rows + BLAS_ROWS * n_k;
    for (size_t i = 0; i < BLAS_ROWS * n_k; i++)
        rows[i] = 1.0f / (float)(1 + i % n_k * 7 % 61);
    for (size_t i = 0; i < BLAS_COLS * n_k; i++)
        cols[i] = 0.3f - 1.0f / (float)(1 + i % n_k * 5 % 67);
    multiply_tile(rows, cols, n_k, tile);
    for (size_t i = 1; i < BLAS_ROWS * BLAS_COLS; i++)
        is_same = is_same && memcmp(&tile[i], &tile[0], sizeof tile[0]) == 0;
    free(rows);
    return is_same;
}

bool blas_start(void)
{
    return is_loaded() && is_uniform(56) && is_uniform(1085);
}

const char *blas_name(void)
{
    (void)is_loaded();
    return lib.name;
}

size_t blas_scratch_bytes(size_t n_k)
{
    size_t floats = BLAS_ROWS * n_k + BLAS_COLS * n_k + BLAS_ROWS * BLAS_COLS;

    return (floats * sizeof(float) + 63) / 64 * 64;
}

/* dst[BLAS_COLS][n_k], zeros behind n_col */
static void copy_columns(float *dst, const uint8_t *x, size_t x_stride, size_t n_col,
                         size_t n_k)
{
    for (size_t c = 0; c < n_col; c++)
        memcpy(dst + c * n_k, x + c * x_stride, n_k * sizeof *dst);
    memset(dst + n_col * n_k, 0, (BLAS_COLS - n_col) * n_k * sizeof *dst);
}

/* dst[BLAS_ROWS][n_k], zeros behind n_row */
static void widen_rows(const struct kernels *set, enum tensor_type type, float *dst,
                       const uint8_t *w, size_t n_row, size_t n_k)
{
    set->dequant(type, w, dst, n_row * n_k); /* rows share no block */
    memset(dst + n_row * n_k, 0, (BLAS_ROWS - n_row) * n_k * sizeof *dst);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

void blas_mul(const struct kernels *set, enum tensor_type type, const void *w, size_t n_row,
              size_t n_k, const void *x, size_t x_stride, size_t n_col, float *y, size_t ldy,
              void *scratch)
{
    size_t row_bytes = (size_t)tensor_row_bytes(type, n_k);
    float *rows = scratch;                /* [BLAS_ROWS][n_k] */
    float *cols = rows + BLAS_ROWS * n_k; /* [BLAS_COLS][n_k] */
    float *tile = cols + BLAS_COLS * n_k; /* [BLAS_COLS][BLAS_ROWS] */

    for (size_t r = 0; r < n_row; r += BLAS_ROWS) {
        size_t n_r = min_size(BLAS_ROWS, n_row - r);

        widen_rows(set, type, rows, (const uint8_t *)w + r * row_bytes, n_r, n_k);
        for (size_t c = 0; c < n_col; c += BLAS_COLS) {
            size_t n_c = min_size(BLAS_COLS, n_col - c);

            copy_columns(cols, (const uint8_t *)x + c * x_stride, x_stride, n_c, n_k);
            multiply_tile(rows, cols, n_k, tile);
            for (size_t i = 0; i < n_c; i++)
                memcpy(y + (c + i) * ldy + r, tile + i * BLAS_ROWS, n_r * sizeof *y);
        }
    }
}
