/*
 * kernels.h - the arithmetic, one set of functions per instruction set.
 *
 * kernels_generic.c is the definition, readable by eye; the others are tested against
 * it and are chosen once, by what the CPU reports when the program runs.
 *
 * The order of additions within a row depends on weight type and instruction set only:
 * not on how many rows or columns are asked for at once, nor on where the weights lie.
 * So a token has the same bits alone, in a chunk of 500, or on four threads.
 *
 * Weights lie as they lie in the file, at any address: no alignment may be assumed.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KERNELS_H
#define MEMWALL_ENGINE_COMPUTE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/tensor_type.h"

/* How a column of activations is held while a matrix is multiplied with it. */
enum act_form {
    ACT_F32, /* as it is */
    ACT_Q8,  /* int8 in blocks of 32 with a float scale, and sums of each 16 */
};

/* Types that keys and values are stored in. */
enum kv_type { KV_F32, KV_F16, KV_Q8_0, KV_Q4_0, KV_TYPE_COUNT };
const char *kv_type_name(enum kv_type t);      /* "q8_0" */
int kv_type_parse(const char *name);           /* -1: unknown */
size_t kv_row_bytes(enum kv_type t, size_t n); /* n values of one head */

#define ATTN_BLOCK 32 /* positions that one attn() call takes at most */

struct kernels {
    const char *name; /* "avx512vnni", "avx2", "neon", "generic" … */

    /* Values of one row: dst[n] from src, bit for bit as the type defines them. */
    void (*dequant)(enum tensor_type type, const void *src, float *dst, size_t n);

    /* Pack one column x[n_k] into dst (act_bytes(form, n_k) bytes). */
    void (*act_pack)(enum act_form form, const float *x, size_t n_k, void *dst);

    /*
     * y[c * ldy + r] = sum_k W[r][k] * x[c][k],  r in 0..n_row, c in 0..n_col.
     * W: n_row rows of the type; x: n_col packed columns, x_stride bytes apart.
     */
    void (*mul)(enum tensor_type type, enum act_form form, const void *w, size_t n_row,
                size_t n_k, const void *x, size_t x_stride, size_t n_col, float *y, size_t ldy);

    /* out = x / sqrt(mean(x^2) + eps) * w; w NULL: without.  out may be x. */
    void (*rms_norm)(const float *x, const float *w, size_t n, float eps, float *out);

    /* gate[i] = act(gate[i]) * up[i] */
    void (*gelu_mul)(float *gate, const float *up, size_t n);
    void (*silu_mul)(float *gate, const float *up, size_t n);

    /* x[i] += y[i];  x[i] *= s;  cap * tanh(x[i] / cap) */
    void (*add)(float *x, const float *y, size_t n);
    void (*scale)(float *x, float s, size_t n);
    void (*softcap)(float *x, float cap, size_t n);

    /*
     * Walsh-Hadamard transform of each run of values of x[n], in place, scaled by
     * 1 / sqrt(run): orthonormal and its own inverse but for rounding.  run is a power of
     * two, at least 32, and divides n.  All sets give the same bits.
     */
    void (*rotate)(float *x, size_t n, size_t run);

    /* Store n values (one head) as keys or values. */
    void (*kv_store)(enum kv_type type, const float *src, size_t n, void *dst);

    /*
     * One step of attention with a running maximum and sum, for n_q queries that read
     * the same key head: n_pos <= ATTN_BLOCK stored positions, rows of k and v
     * k_stride and v_stride bytes apart.
     *   s_j = q . k_j * scale (softcapped if cap > 0); m, l, acc are carried on.
     * q: [n_q][dk]; m, l: [n_q], start -INFINITY and 0; acc: [n_q][dv], start 0.
     * The caller divides acc by l at the end.  Always whole blocks that start at
     * positions that are multiples of ATTN_BLOCK, cut only by mask and end, so that
     * the order of additions does not depend on chunks or rings.
     */
    void (*attn)(enum kv_type kt, enum kv_type vt, const float *q, size_t n_q, const void *k,
                 size_t k_stride, const void *v, size_t v_stride, size_t n_pos, size_t dk,
                 size_t dv, float scale, float cap, float *m, float *l, float *acc);
};

/* The best set for this CPU. */
const struct kernels *kernels_best(void);
/* A set by name, or NULL: for tests, benchmarks and --version. */
const struct kernels *kernels_by_name(const char *name);
/* Names of the sets compiled in and runnable here, best first, NULL behind the last. */
const char *const *kernels_names(void);

/* Which form columns take for a weight type: ACT_F32 if exact or if the type is a float. */
enum act_form act_form_of(enum tensor_type weight, bool exact);
size_t act_bytes(enum act_form form, size_t n_k);

#endif
