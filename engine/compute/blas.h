/*
 * blas.h - products of many columns by OpenBLAS, where it is faster than our kernels.
 *
 * Weights are widened to float, one tile at a time, and multiplied with a tile of columns.
 * Every call of the library has the same shape:
 *
 *                 BLAS_DEPTH                 BLAS_COLS
 *               +------------+            +-------------+
 *     BLAS_ROWS |  weights   |  times     |   columns   | BLAS_DEPTH
 *               +------------+            |             |
 *                                         +-------------+
 *
 * A row has the place (row % BLAS_ROWS) in its tile and a column the place that the caller
 * gives it; empty places are filled with zeros.  OpenBLAS rounds the same sum differently at
 * different places of a tile (its kernels for Haswell and Zen do), but a value at one place
 * depends on nothing but its row and its column.  The caller gives the column of position p
 * the place p % BLAS_COLS.  The result of a token is then the same however a prompt is cut
 * into chunks, a matrix into blocks, and the rows of a block among threads.
 *
 * The result differs in the last bits from that of our kernels, which add in another order.
 *
 * Measured (one thread of a Zen 5, 64 columns, times the rate of our kernels): 0.4 to 0.6 with
 * AVX-512 against the library's kernels for Haswell, which it chooses there, and 0.8 to 1.2
 * against those for Cooper Lake; 0.8 to 1.2 with AVX2; 10 to 60 with the generic set; with
 * SSE4.1 2 to 4 before its kernels had tiles.  The table of a machine: `bench_kernels blas`.
 * Tiles of 128 columns are 1.1 times as fast as those of 64, but short prompts fill them less.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_BLAS_H
#define MEMWALL_ENGINE_COMPUTE_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/compute/kernels.h"

#define BLAS_ROWS  64
#define BLAS_COLS  64
#define BLAS_DEPTH 512 /* a whole number of blocks of every weight type */

/* Threads that may call the library at once.  It has buffers for at least 50. */
#define BLAS_THREADS 48

enum blas_state {
    BLAS_OPEN,
    BLAS_MISSING, /* there is no library, or it cannot be loaded */
    BLAS_DENIED,  /* the system refuses the memory for its buffers, see blas_why_not() */
};

/*
 * Load the library for n_thread threads that call it at once, or let more threads call it than
 * before.  Call blas_close() once for each call that returned BLAS_OPEN; the last one unloads
 * the library.  Any thread may call both.
 *
 * The library maps a buffer for each thread when the thread calls it first.  If the system
 * refuses it (ulimit -v or -d, or no overcommitment), the library tries again without end and
 * nothing stops it.  So this maps as much for a moment, and then lets the library map all of
 * its buffers, which it keeps.  A buffer is hardly touched, so it takes addresses, not memory.
 */
enum blas_state blas_open(int n_thread);
void blas_close(void);

/* Is a thread in the library?  *returned: how often calls returned.  It may be called by the
 * handler of a signal. */
bool blas_is_inside(uint64_t *returned);

/* "it cannot be loaded": the end of a sentence about a state that is not BLAS_OPEN. */
const char *blas_why_not(enum blas_state state);

/* "openblas 0.3.21 SkylakeX" while the library is loaded; else "".  Static storage. */
const char *blas_name(void);

/*
 * Memory of the library itself for n_thread threads that use it, without its files.  It
 * touches 0.2 MiB of a buffer for each thread; where the kernel gives huge pages unasked,
 * that is two of them.  It also starts a thread for each further CPU, which sleeps.
 */
uint64_t blas_heap_bytes(int n_thread);

/* Tiles that n_col columns take, if the first has the place first. */
size_t blas_tiles(size_t first, size_t n_col);

struct blas_product {
    const struct kernels *set; /* for widening */
    enum tensor_type type;
    enum weight_form form;
    const uint8_t *w;                  /* n_row rows of n_k values, */
    const struct packed_block *packed; /* or these in FORM_PACKED */
    size_t row, n_row, n_k;            /* row: index of the first one in its matrix */
    const float *x;                    /* whole tiles of columns, ldx values apart */
    size_t ldx;
    size_t first, n_col; /* compute columns first .. first + n_col - 1 of x */
    float *y;            /* y[c * ldy + r]: column first + c times row r */
    size_t ldy;
};

/* One part of n_part, at most BLAS_THREADS of which have rows.  scratch: blas_scratch_bytes(), aligned to 64. */
void blas_multiply(const struct blas_product *p, int part, int n_part, void *scratch);
size_t blas_scratch_bytes(size_t n_tile);

/*
 * Attention of BLAS_COLS queries over BLAS_COLS positions:
 *     scores[c][j] = q[c] . k[j]        q, k: [BLAS_COLS][n]
 *     out[c] += sum_j p[c][j] * v[j]    v, out: [BLAS_COLS][n]
 */
void blas_scores(const float *q, const float *k, size_t n, float *scores);
void blas_gather(const float *p, const float *v, size_t n, float *out);

#endif
