/*
 * kernels.h - the arithmetic, one set of functions per instruction set.
 *
 * kernels_generic.c is the definition: plain loops that a person can check.  The other sets
 * are tested against it.  The program chooses one set at start, by what the CPU reports.
 *
 * The order of additions within a row depends on the weight type and the instruction set
 * only, never on the number of rows or columns per call or on the address of the weights.
 * A token therefore has the same bits alone, in a chunk of 500, and on four threads.
 *
 * Weights have the layout of the file and may start at any address, or the form that
 * enum weight_form names.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KERNELS_H
#define MEMWALL_ENGINE_COMPUTE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/tensor_type.h"

struct packed_block;

/* How the rows of a block of weights are stored in memory. */
enum weight_form {
    FORM_FILE,
    FORM_PACKED,      /* BF16 in 12 bits: packed.h */
    FORM_INTERLEAVED, /* sixteen rows side by side: interleave.h */
};

/* The format of a column of activations while a matrix is multiplied with it. */
enum act_form {
    ACT_F32, /* plain floats */
    ACT_Q8,  /* int8 in blocks of 32 with a float scale, and a sum per 16 values */
};

/* The storage types of keys and values. */
enum kv_type { KV_F32, KV_F16, KV_Q8_0, KV_Q4_0, KV_TYPE_COUNT };
const char *kv_type_name(enum kv_type t);      /* "q8_0" */
int kv_type_parse(const char *name);           /* -1 if unknown */
size_t kv_row_bytes(enum kv_type t, size_t n); /* n values of one head */

#define ATTN_BLOCK 32 /* maximum positions per attn() call */

/*
 * Scales beside the weights of a matrix, each for `rows` rows and `cols` values of them.  Rows of
 * scales are `stride` scales apart.  cols is a multiple of 16, or all values of a row.
 */
struct weight_scales {
    const float *w; /* NULL: none, which counts as 1 */
    size_t stride, rows, cols;
    size_t first; /* the row of the matrix that is row 0 of a product */
};

static inline float weight_scale(const struct weight_scales *s, size_t row, size_t k)
{
    return s->w != NULL ? s->w[(s->first + row) / s->rows * s->stride + k / s->cols] : 1;
}

/* A matrix times columns: y[c * ldy + r] = sum_k W[r][k] * x[c][k] for r < n_row, c < n_col. */
struct matmul {
    enum tensor_type type; /* of the weights */
    enum act_form form;    /* of the columns */
    size_t n_row, n_k, n_col;
    const void *w;   /* n_row rows, one after the other */
    const void *x;   /* n_col packed columns, x_stride bytes apart */
    size_t x_stride;
    float *y;
    size_t ldy;
    struct weight_scales scales; /* of F8_E4M3 */
};

/*
 * Attention of n_q queries that share a key head to n_pos <= ATTN_BLOCK stored positions:
 *   s_j = q . k_j * scale (softcapped if cap > 0)
 * m is the running maximum, l the running sum, acc the weighted sum of values.  They begin with
 * -INFINITY, 0 and 0.  The caller divides acc by l at the end.
 */
struct attn_block {
    enum kv_type k_type, v_type;
    const void *k, *v; /* rows of n_pos positions */
    size_t k_stride, v_stride; /* in bytes */
    size_t n_pos, n_q, dk, dv;
    const float *q; /* [n_q][dk] */
    float scale, cap;
    float *m, *l; /* [n_q] */
    float *acc;   /* [n_q][dv] */
};

/*
 * One token of one head of a gated delta net.  The state has a row of dk values for each of the
 * dv values; row r becomes decay * row + change * k, where change is
 * beta * (v[r] - decay * row . k), and out[r] is the new row . q.
 */
struct delta_step {
    const float *from; /* [dv][dk] */
    float *to;         /* [dv][dk]; may be from */
    const float *q, *k; /* [dk] */
    const float *v;     /* [dv] */
    size_t dk, dv;
    float decay, beta;
    float *out; /* [dv] */
};

struct kernels {
    const char *name; /* "avx512vnni", "avx2", "neon", "generic" … */
    bool has_ways;    /* the speed of products with columns of 8 bits depends on ways.h */

    /* Decode one row to dst[n], bit for bit as dequant.h defines the type. */
    void (*dequant)(enum tensor_type type, const void *src, float *dst, size_t n);

    /* Pack one column x[n_k] into dst (act_bytes(form, n_k) bytes). */
    void (*act_pack)(enum act_form form, const float *x, size_t n_k, void *dst);

    void (*mul)(const struct matmul *m);

    /* The same for the rows from `first` on of packed BF16 weights (packed.h): the bits of plain
     * ones.  The columns are floats.  m->w is not used. */
    void (*mul_packed)(const struct packed_block *b, size_t first, const struct matmul *m);

    /* The same for interleaved weights (interleave.h), with the same bits as from the weights
     * in the file.  The number of rows is a multiple of INTERLEAVED_ROWS.  The columns are
     * ACT_Q8.  NULL if the set has no such kernels. */
    void (*mul_interleaved)(const struct matmul *m);

    /* Values k .. k + n - 1 of a packed row; k is a multiple of 256, n of 64. */
    void (*unpack)(const struct packed_block *w, size_t row, size_t k, size_t n, float *dst);

    /* out = x / sqrt(mean(x^2) + eps) * w.  w may be NULL, out may be x. */
    void (*rms_norm)(const float *x, const float *w, size_t n, float eps, float *out);

    /* gate[i] = act(gate[i]) * up[i] */
    void (*gelu_mul)(float *gate, const float *up, size_t n);
    void (*silu_mul)(float *gate, const float *up, size_t n);

    /* x[i] *= sigmoid(gate[i]); gate may be x */
    void (*sigmoid_mul)(float *x, const float *gate, size_t n);

    /* x[i] += y[i];  x[i] *= s;  cap * tanh(x[i] / cap) */
    void (*add)(float *x, const float *y, size_t n);
    void (*scale)(float *x, float s, size_t n);
    void (*softcap)(float *x, float cap, size_t n);

    /*
     * Walsh-Hadamard transform of each `run` values of x[n], in place, scaled by
     * 1 / sqrt(run).  It is orthonormal and, except for rounding, its own inverse.  run is a
     * power of two, at least 32, and divides n.  All sets give the same bits.
     */
    void (*rotate)(float *x, size_t n, size_t run);

    /* Store n values (one head) as keys or values. */
    void (*kv_store)(enum kv_type type, const float *src, size_t n, void *dst);

    /*
     * Add a block of positions to the attention of its queries.  Blocks start at multiples of
     * ATTN_BLOCK and are shortened only by the mask and the end, so the order of additions does
     * not depend on chunks or rings.
     */
    void (*attn)(const struct attn_block *a);

    void (*delta)(const struct delta_step *d);
};

/* Returns the best set for this CPU. */
const struct kernels *kernels_best(void);
/* Returns the set of that name, or NULL if this CPU cannot run it. */
const struct kernels *kernels_by_name(const char *name);
/* Returns the names of the sets that this CPU can run, best first, ending in NULL. */
const char *const *kernels_names(void);

/* Returns the form of columns for a weight type: ACT_F32 for floats and in exact mode. */
enum act_form act_form_of(enum tensor_type weight, bool exact);
size_t act_bytes(enum act_form form, size_t n_k);

#endif
