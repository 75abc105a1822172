/*
 * set_attn.c - attention over one block of stored positions.
 *
 * The scores are a small matrix product with keys as rows and queries as columns, so they
 * have the order of additions of set_mul_float.h.  Weighted values are summed over positions
 * in rising order, a few vectors of the head at a time for all queries of a group.
 *
 * Rows of keys and values are far apart if there are several key heads, so the prefetcher of
 * the CPU does not recognise them.  Each row that is read prefetches the row of the next block,
 * a piece at a time, because a burst of prefetches makes the loads of this block wait.  Rows of
 * a single key head follow each other.  They are prefetched in the order of memory, whatever
 * the order in which this block is read, because the prefetcher of the CPU then helps.
 */
#include "config.h"

#include "engine/compute/kernel_set.h"
#include "engine/compute/set_curves.h"
#include "engine/compute/set_mul_float.h"

#define ATTN_GROUP 32                 /* queries per call of gather */
#define V_PIECE    64                 /* values of a quantised row that are decoded at once */
#define V_VECTORS  (VN == 16 ? 4 : 2) /* a tile has V_VECTORS of the head */
#define V_QUERIES  4                  /* for V_QUERIES queries */
#define V_MANY     (VN == 16 ? 8 : 4) /* or 2 vectors for V_MANY queries */
#define K_COLS     (TILE_COLS < 4 ? TILE_COLS : 4) /* queries of a tile of scores */

/* Sums of a tile of scores that fold together */
#if defined HAS_SUM_4X4
#define MANY_SUMS 16
#elif defined HAS_SUM_8
#define MANY_SUMS 8
#endif

#define WIDE_DEPTH (MUL_DEPTH + 24) /* floats from one decoded row to the next */
#define SOFT_COLS                                                                              \
    (VN == 16 ? 4 : VN == 8 ? 2 : 1) /* queries whose weights are computed at once */

/* There are registers for the vectors of a block, so a tile can decode it as it needs it. */
#define DECODES_IN_TILES (VN == 16)

/* Otherwise the first tile stores the values that it decodes for the other tiles. */
#define KEEPS_DECODED (VN == 8)

/* A tile prefetches a part of the next block. */
enum fetch {
    FETCH_NOTHING,
    FETCH_ROWS,  /* the rows that this block has in the same place */
    FETCH_ORDER, /* lines in the order of memory */
};

INLINE bool has_blocks(enum tensor_type type)
{
    return type == TYPE_Q8_0 || type == TYPE_Q4_0;
}

/* The first n values of a row; of a quantised row, n is a multiple of 32. */
INLINE size_t bytes_of(enum tensor_type type, size_t n)
{
    if (has_blocks(type))
        return n * (traits_of(type).bytes / 8) / 32;
    return n * (type == TYPE_F16 ? 2 : 4);
}

/* Prefetch n bytes into the first-level cache. */
INLINE void fetch_near(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch(p + i, 0, 3);
}

INLINE enum fetch order_of_fetches(enum kv_type t, size_t stride, size_t n)
{
    return stride == kv_row_bytes(t, n) ? FETCH_ORDER : FETCH_ROWS;
}

/* Decode vectors `first` .. first + n_v - 1 of a block of 32 values: the bits of set_dequant().
 */
INLINE void decode_vectors(enum tensor_type type, const uint8_t *p, size_t first, size_t n_v,
                           vf *w)
{
    const size_t n_half = 16 / VN; /* vectors of a half of Q4_0 */
    vf scale = vf_all_f16(p);

    UNROLL
    for (size_t i = first; i < first + n_v; i++)
        if (type == TYPE_Q4_0)
            w[i - first] = vf_of_nibbles(p + 2 + i % n_half * VN, i >= n_half, scale);
        else
            w[i - first] = vf_mul(vf_load_i8(p + 2 + i * VN), scale);
}

/* Decode n values of a quantised row, a multiple of 32. */
INLINE void widen_row(enum tensor_type type, const uint8_t *row, float *dst, size_t n)
{
    vf w[32 / VN];

    for (size_t k = 0; k < n; k += 32) {
        decode_vectors(type, row + bytes_of(type, k), 0, 32 / VN, w);
        UNROLL
        for (size_t i = 0; i < 32 / VN; i++)
            vf_store(dst + k + i * VN, w[i]);
    }
}

/* Positions from n_pos on have no weight. */
INLINE void hide_rest(float *s, size_t n_c, size_t n_pos)
{
    for (size_t j = n_pos; j < ATTN_BLOCK; j++)
        for (size_t c = 0; c < n_c; c++)
            s[c * ATTN_BLOCK + j] = -INFINITY;
}

/*
 * Turn the scores s[n_c][32] into weights exp(s - max); see attn in kernels.h.  Exponentials of
 * several queries hide each other's latency.
 */
INLINE void soften(float *s, size_t n_c, size_t n_pos, float scale, float cap, float *m,
                   float *l, float *shrink)
{
    const size_t n_v = ATTN_BLOCK / VN;
    vf v[SOFT_COLS * (ATTN_BLOCK / VN)], top[SOFT_COLS], sum[SOFT_COLS];
    float new_m[SOFT_COLS], first[VN];

    hide_rest(s, n_c, n_pos);
    UNROLL
    for (size_t i = 0; i < n_c * n_v; i++)
        v[i] = vf_mul(vf_load(s + i * VN), vf_all(scale));
    if (cap > 0)
        UNROLL
    for (size_t i = 0; i < n_c * n_v; i++)
        v[i] = vf_mul(vf_all(cap), vf_tanh(vf_div(v[i], vf_all(cap))));
    if (cap > 0 && n_pos < ATTN_BLOCK) { /* again: the cap made them finite */
        UNROLL
        for (size_t i = 0; i < n_c * n_v; i++)
            vf_store(s + i * VN, v[i]);
        hide_rest(s, n_c, n_pos);
        UNROLL
        for (size_t i = 0; i < n_c * n_v; i++)
            v[i] = vf_load(s + i * VN);
    }
    UNROLL
    for (size_t c = 0; c < n_c; c++) {
        top[c] = vf_all(m[c]);
        UNROLL
        for (size_t i = 0; i < n_v; i++)
            top[c] = vf_max(top[c], v[c * n_v + i]);
        new_m[c] = vf_top(top[c]);
    }
    UNROLL
    for (size_t c = 0; c < n_c; c++) {
        sum[c] = vf_zero();
        UNROLL
        for (size_t i = c * n_v; i < (c + 1) * n_v; i++) {
            v[i] = vf_exp(vf_sub(v[i], vf_all(new_m[c])));
            vf_store(s + i * VN, v[i]);
            sum[c] = vf_add(sum[c], v[i]);
        }
    }
    UNROLL
    for (size_t c = 0; c < n_c; c++) {
        shrink[c] = 1;
        if (new_m[c] != m[c]) { /* rarely */
            vf_store(first, vf_exp(vf_all(m[c] - new_m[c])));
            shrink[c] = first[0];
            l[c] *= first[0];
            m[c] = new_m[c];
        }
        l[c] += vf_sum(sum[c]);
    }
}

static void soften_all(float *s, size_t n_q, size_t n_pos, float scale, float cap, float *m,
                       float *l, float *shrink)
{
    size_t i = 0;

    for (; i + SOFT_COLS <= n_q; i += SOFT_COLS)
        soften(s + i * ATTN_BLOCK, SOFT_COLS, n_pos, scale, cap, m + i, l + i, shrink + i);
    for (; i < n_q; i++)
        soften(s + i * ATTN_BLOCK, 1, n_pos, scale, cap, m + i, l + i, shrink + i);
}

/* n_v vectors from value d of a row on.  If n_v is 1, n is the number of values left.  Value d
 * of a quantised row is the first of vector `first` of a block. */
INLINE void load_values(enum tensor_type type, const uint8_t *row, size_t d, size_t first,
                        size_t n_v, size_t n, vf *x)
{
    if (has_blocks(type)) {
        row += bytes_of(type, d - first * VN);
        UNROLL
        for (size_t e = 0; e < n_v; e += at_most(n_v, 32 / VN))
            decode_vectors(type, row + bytes_of(type, e * VN), first, at_most(n_v, 32 / VN),
                           x + e);
        return;
    }
    UNROLL
    for (size_t e = 0; e < n_v; e++)
        x[e] = n_v == 1 && n < VN ? load_weights_part(type, row, d, n)
                                  : load_weights(type, row, d + e * VN);
}

/* Values of n_pos positions, and what they are added to, from some query and value on. */
struct values {
    const float *p;      /* weights, [n_q][ATTN_BLOCK] */
    const float *shrink; /* [n_q] */
    const uint8_t *v;    /* rows */
    size_t stride, n_pos;
    float *acc; /* [n_q][ld_acc] */
    size_t ld_acc;
};

/* From query i on, and from column d of acc on. */
INLINE struct values values_from(const struct values *g, size_t i, size_t d)
{
    struct values out = *g;

    out.p += i * ATTN_BLOCK;
    out.shrink += i;
    out.acc += i * g->ld_acc + d;
    return out;
}

/*
 * acc[i][..] = acc[i][..] * shrink[i] + sum_j p[i][j] * v[j][d ..] for n_i queries and n_v
 * vectors of the head.  If n_v is 1, n is the number of values left in the head.
 */
INLINE void gather_tile(enum tensor_type type, enum fetch fetch, size_t n_i, size_t first,
                        size_t n_v, size_t n, struct values g, size_t d, float *wide)
{
    vf sum[16], x[V_VECTORS];
    bool is_part = n_v == 1 && n < VN;
    size_t piece = bytes_of(type, n_v * VN);
    const size_t every = piece <= 16 ? 4 : piece <= 32 ? 2 : 1;
    const size_t whole = has_blocks(type) && n_v * VN < 32 ? bytes_of(type, 32) : piece;

    UNROLL
    for (size_t i = 0; i < n_i; i++)
        UNROLL
    for (size_t e = 0; e < n_v; e++) {
        const float *a = g.acc + i * g.ld_acc + e * VN;

        sum[i * n_v + e] = vf_mul(is_part ? vf_load_part(a, n) : vf_load(a), vf_all(g.shrink[i]));
    }
    for (size_t j = 0; j < g.n_pos; j++) {
        const uint8_t *row = g.v + j * g.stride;

        if (fetch == FETCH_ORDER && j % every == 0)
            fetch_near(g.v + ATTN_BLOCK * (g.stride + bytes_of(type, d)) + j * piece,
                       every * piece);
        else if (fetch == FETCH_ROWS && first == 0)
            fetch_near(row + ATTN_BLOCK * g.stride + bytes_of(type, d), whole);
        load_values(type, row, d, first, n_v, n, x);
        if (wide != NULL)
            UNROLL
        for (size_t e = 0; e < n_v; e++)
            vf_store(wide + (j * n_v + e) * VN, x[e]);
        UNROLL
        for (size_t e = 0; e < n_v; e++)
            UNROLL
        for (size_t i = 0; i < n_i; i++)
            sum[i * n_v + e] = vf_fma(vf_all(g.p[i * ATTN_BLOCK + j]), x[e], sum[i * n_v + e]);
    }
    UNROLL
    for (size_t i = 0; i < n_i; i++)
        UNROLL
    for (size_t e = 0; e < n_v; e++) {
        float *a = g.acc + i * g.ld_acc + e * VN;

        if (is_part)
            vf_store_part(a, sum[i * n_v + e], n);
        else
            vf_store(a, sum[i * n_v + e]);
    }
}

/* Vectors from decoded values wide[n_pos][n_v * VN] for n_q queries */
INLINE void gather_vectors_of_floats(size_t n_q, size_t n_v, struct values g, const float *wide)
{
    const size_t n = n_v * VN;
    size_t i = 0;

    g.v = (const uint8_t *)wide;
    g.stride = n * sizeof *wide;
#define TILE_OF_QUERIES(n_i)                                                                   \
    gather_tile(TYPE_F32, FETCH_NOTHING, n_i, 0, n_v, n, values_from(&g, i, 0), 0, NULL)
    for (; i + V_QUERIES <= n_q; i += V_QUERIES)
        TILE_OF_QUERIES(V_QUERIES);
    switch (n_q - i) {
    case 3: TILE_OF_QUERIES(3); break;
    case 2: TILE_OF_QUERIES(2); break;
    case 1: TILE_OF_QUERIES(1); break;
    default: break;
    }
#undef TILE_OF_QUERIES
}

/* n_v vectors from value d on for n_q queries; see gather_tile.  If wide is not NULL, the first
 * tile stores decoded values there for the other ones. */
INLINE void gather_vectors(enum tensor_type type, enum fetch fetch, size_t n_q, size_t first,
                           size_t n_v, size_t n, struct values g, size_t d, float *wide)
{
    size_t i = 0;

#define TILE_OF_QUERIES(n_i, fetch)                                                            \
    gather_tile(type, fetch, n_i, first, n_v, n, values_from(&g, i, 0), d,                     \
                i == 0 && n_q > n_i ? wide : NULL)
    if (n_v <= 2 && V_MANY > V_QUERIES)
        for (; i + V_MANY <= n_q; i += V_MANY) {
            if (i == 0)
                TILE_OF_QUERIES(V_MANY, fetch);
            else
                TILE_OF_QUERIES(V_MANY, FETCH_NOTHING);
        }
    for (; i + V_QUERIES <= n_q; i += V_QUERIES) {
        if (i == 0)
            TILE_OF_QUERIES(V_QUERIES, fetch);
        else if (wide == NULL)
            TILE_OF_QUERIES(V_QUERIES, FETCH_NOTHING);
        else
            break;
    }
    if (wide != NULL && i > 0) {
        if (i < n_q)
            gather_vectors_of_floats(n_q - i, n_v, values_from(&g, i, 0), wide);
        return;
    }
    switch (n_q - i) {
    case 3: TILE_OF_QUERIES(3, FETCH_NOTHING); break;
    case 2: TILE_OF_QUERIES(2, FETCH_NOTHING); break;
    case 1: TILE_OF_QUERIES(1, FETCH_NOTHING); break;
    default: break;
    }
#undef TILE_OF_QUERIES
}

/* Values d .. d + n - 1 of every row for n_q queries.  g.acc is at value d of the first. */
INLINE void gather_values(enum tensor_type type, enum fetch fetch, size_t n_q, struct values g,
                          size_t d, size_t n)
{
    size_t e = 0;

    if (V_MANY == V_QUERIES || n_q < V_MANY)
        for (; e + V_VECTORS * VN <= n; e += V_VECTORS * VN)
            gather_vectors(type, fetch, n_q, 0, V_VECTORS, n - e, values_from(&g, 0, e), d + e,
                           NULL);
    if (V_VECTORS > 2)
        for (; e + 2 * VN <= n; e += 2 * VN)
            gather_vectors(type, fetch, n_q, 0, 2, n - e, values_from(&g, 0, e), d + e, NULL);
    if (!has_blocks(type))
        for (; e < n; e += VN)
            gather_vectors(type, fetch, n_q, 0, 1, n - e, values_from(&g, 0, e), d + e, NULL);
}

/* Quantised values, V_VECTORS of a block at a time */
INLINE void gather_parts(enum tensor_type type, enum fetch fetch, size_t n_q, struct values g,
                         size_t dv)
{
    _Alignas(64) float wide[ATTN_BLOCK * V_VECTORS * VN];

    for (size_t d = 0; d < dv; d += 32)
        UNROLL
    for (size_t i = 0; i < 32 / VN; i += V_VECTORS)
        gather_vectors(type, fetch, n_q, i, V_VECTORS, 32, values_from(&g, 0, d + i * VN),
                       d + i * VN, wide);
}

/* Quantised values are decoded for a tile, or, for more queries, a piece of the head at a time.
 */
INLINE void gather_blocks(enum tensor_type type, enum fetch fetch, size_t n_q, struct values g,
                          size_t dv)
{
    size_t block_bytes = traits_of(type).bytes / 8;
    _Alignas(64) float wide[ATTN_BLOCK * V_PIECE];

    if (KEEPS_DECODED && n_q >= V_QUERIES && dv % 32 == 0) {
        gather_parts(type, fetch, n_q, g, dv);
        return;
    }
    if (DECODES_IN_TILES && n_q <= V_MANY && dv % 32 == 0) {
        gather_values(type, fetch, n_q, g, 0, dv);
        return;
    }
    for (size_t d = 0; d < dv; d += V_PIECE) {
        size_t n = at_most(dv - d, V_PIECE), n_block = (n + 31) / 32;
        struct values piece = values_from(&g, 0, d);

        for (size_t j = 0; j < g.n_pos; j++) {
            const uint8_t *row = g.v + j * g.stride + d / 32 * block_bytes;

            if (fetch != FETCH_NOTHING)
                fetch_ahead(row + ATTN_BLOCK * g.stride, n_block * block_bytes);
            widen_row(type, row, wide + j * V_PIECE, n_block * 32);
        }
        piece.v = (const uint8_t *)wide;
        piece.stride = V_PIECE * sizeof *wide;
        gather_values(TYPE_F32, FETCH_NOTHING, n_q, piece, 0, n);
    }
}

static void gather(enum kv_type vt, bool fetches, size_t n_q, struct values g, size_t dv)
{
    enum fetch fetch = fetches ? order_of_fetches(vt, g.stride, dv) : FETCH_NOTHING;

    switch (vt) {
    case KV_F32: gather_values(TYPE_F32, fetch, n_q, g, 0, dv); return;
    case KV_F16: gather_values(TYPE_F16, fetch, n_q, g, 0, dv); return;
    case KV_Q8_0: gather_blocks(TYPE_Q8_0, fetch, n_q, g, dv); return;
    case KV_Q4_0: gather_blocks(TYPE_Q4_0, fetch, n_q, g, dv); return;
    case KV_TYPE_COUNT: break;
    }
}

/* add_tile() for blocks of 32; n is a multiple of 32. */
INLINE void add_blocks(enum tensor_type type, size_t n_r, size_t n_c, const uint8_t *w,
                       size_t w_stride, const float *x, size_t ldx, size_t n, vf *acc)
{
    const size_t n_v = 32 / VN;
    vf xc[K_COLS * (32 / VN)], wr[32 / VN];

    UNROLL
    for (size_t k = 0; k < n; k += 32) {
        UNROLL
        for (size_t c = 0; c < n_c; c++)
            UNROLL
        for (size_t e = 0; e < n_v; e++)
            xc[c * n_v + e] = vf_load(x + c * ldx + k + e * VN);
        UNROLL
        for (size_t r = 0; r < n_r; r++) {
            decode_vectors(type, w + r * w_stride + bytes_of(type, k), 0, n_v, wr);
            UNROLL
            for (size_t e = 0; e < n_v; e++)
                UNROLL
            for (size_t c = 0; c < n_c; c++)
                acc[r * n_c + c] = vf_fma(wr[e], xc[c * n_v + e], acc[r * n_c + c]);
        }
    }
}

/* The same, with few registers.  If wide is not NULL, decoded rows are stored there. */
INLINE void add_kept_blocks(enum tensor_type type, size_t n_r, size_t n_c, const uint8_t *w,
                            size_t w_stride, const float *x, size_t ldx, size_t n, vf *acc,
                            float *wide)
{
    vf xc[K_COLS], wr;

    UNROLL
    for (size_t k = 0; k < n; k += VN) {
        UNROLL
        for (size_t c = 0; c < n_c; c++)
            xc[c] = vf_load(x + c * ldx + k);
        UNROLL
        for (size_t r = 0; r < n_r; r++) {
            decode_vectors(type, w + r * w_stride + bytes_of(type, k / 32 * 32), k % 32 / VN, 1,
                           &wr);
            if (wide != NULL)
                vf_store(wide + r * WIDE_DEPTH + k, wr);
            UNROLL
            for (size_t c = 0; c < n_c; c++)
                acc[r * n_c + c] = vf_fma(wr, xc[c], acc[r * n_c + c]);
        }
    }
}

INLINE void add_keys(enum tensor_type type, size_t n_r, size_t n_c, const uint8_t *w,
                     size_t w_stride, const float *x, size_t ldx, size_t n, vf *acc,
                     float *wide)
{
    if (has_blocks(type) && KEEPS_DECODED)
        add_kept_blocks(type, n_r, n_c, w, w_stride, x, ldx, n, acc, wide);
    else if (has_blocks(type))
        add_blocks(type, n_r, n_c, w, w_stride, x, ldx, n, acc);
    else
        add_tile(type, n_r, n_c, w, w_stride, x, ldx, n, 0, acc);
}

/* Rows that are prefetched while others are multiplied: piece by piece, because in a burst,
 * they would keep the loads of this block waiting.  A half is NULL or TILE_ROWS / 2 rows. */
struct ahead {
    enum tensor_type type;
    enum fetch fetch;
    size_t stride;
    const uint8_t *half[2];
};

/* Prefetch n values from value k on. */
INLINE void fetch_rows(const struct ahead *a, size_t k, size_t n)
{
    UNROLL
    for (size_t h = 0; h < 2; h++)
        if (a->half[h] != NULL && a->fetch == FETCH_ORDER)
            fetch_near(a->half[h] + TILE_ROWS / 2 * bytes_of(a->type, k),
                       TILE_ROWS / 2 * bytes_of(a->type, n));
        else if (a->half[h] != NULL)
            UNROLL
    for (size_t i = 0; i < TILE_ROWS / 2; i++)
        fetch_near(a->half[h] + i * a->stride + bytes_of(a->type, k), bytes_of(a->type, n));
}

/* Scores of n_r rows and n_c queries from query c on, as in mul_tile. */
INLINE void score_tile(enum tensor_type type, size_t n_r, size_t n_c, const struct product *p,
                       const struct ahead *ahead, size_t c, float *wide)
{
    const size_t step = 4 * VN > 32 ? 4 * VN : 32;
    const float *x = p->x + c * p->ldx;
    vf acc[TILE_ROWS * K_COLS];
    size_t k = 0;

    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        acc[i] = vf_zero();
    for (; k + step <= p->n_k; k += step) {
        fetch_rows(ahead, k, step);
        add_keys(type, n_r, n_c, p->w + bytes_of(type, k), p->w_stride, x + k, p->ldx, step,
                 acc, wide == NULL ? NULL : wide + k);
    }
    if (k < p->n_k)
        fetch_rows(ahead, k, p->n_k - k);
    while (k < p->n_k) {
        const size_t n = has_blocks(type) ? 32 : p->n_k - k; /* constant for blocks */

        add_keys(type, n_r, n_c, p->w + bytes_of(type, k), p->w_stride, x + k, p->ldx, n, acc,
                 wide == NULL ? NULL : wide + k);
        k += n;
    }
    fold_tile(acc, n_r, n_c, p->y + c * p->ldy, p->ldy, 1);
}

/*
 * Scores of rows that are loaded as `type`.  If there are two tiles, each of them prefetches
 * half of the rows from `ahead` on, which have type `stored`.  If wide is not NULL, the first
 * tile stores the rows that it decodes in it, and the other tiles read them there.
 */
INLINE void score_tiles(enum tensor_type type, enum tensor_type stored, size_t n_r,
                        const struct product *p, const uint8_t *ahead, size_t stride,
                        enum fetch fetch, float *wide)
{
    const uint8_t *more = ahead != NULL ? ahead + TILE_ROWS / 2 * stride : NULL;
    struct ahead a = { stored, fetch, stride, { ahead, p->n_col <= K_COLS ? more : NULL } };
    struct product floats = *p;

    floats.w = (const uint8_t *)wide;
    floats.w_stride = WIDE_DEPTH * sizeof *wide;
#define SCORES_OF_TYPE(n_r, n_c, type, ...)                                                    \
    if (n_c <= K_COLS)                                                                         \
    score_tile(type, n_r, n_c, __VA_ARGS__)
    for (size_t c = 0, n_c; c < p->n_col; c += n_c) {
        n_c = at_most(p->n_col - c, K_COLS);
        if (wide != NULL && c == 0) {
            n_c = p->n_col % K_COLS == 2 ? 2 : K_COLS;
            if (n_c == 2)
                score_tile(type, n_r, 2, p, &a, 0, wide);
            else
                score_tile(type, n_r, K_COLS, p, &a, 0, wide);
        } else if (wide != NULL) {
            WITH_COLS(n_c, SCORES_OF_TYPE, n_r, TYPE_F32, &floats, &a, c, NULL)
        } else
            WITH_COLS(n_c, SCORES_OF_TYPE, n_r, type, p, &a, c, NULL)
        a.half[0] = c == 0 ? more : NULL;
        a.half[1] = NULL;
    }
#undef SCORES_OF_TYPE
}

/* Blocks are decoded for a tile, or, for more queries, before. */
INLINE void score_rows(enum tensor_type type, size_t n_r, const struct product *p, size_t r,
                       enum fetch fetch)
{
    _Alignas(64) float wide[TILE_ROWS * WIDE_DEPTH];
    struct product rows = *p;
    const uint8_t *ahead = NULL;

    rows.w += r * p->w_stride;
    rows.y += r;
    if (fetch != FETCH_NOTHING)
        ahead = rows.w + ATTN_BLOCK * p->w_stride;
    if (KEEPS_DECODED && has_blocks(type) && p->n_col > K_COLS && p->n_k % 32 == 0) {
        score_tiles(type, type, n_r, &rows, ahead, p->w_stride, fetch, wide);
        return;
    }
    if (!has_blocks(type) || (DECODES_IN_TILES && p->n_col <= K_COLS && p->n_k % 32 == 0)) {
        score_tiles(type, type, n_r, &rows, ahead, p->w_stride, fetch, NULL);
        return;
    }
    for (size_t i = 0; i < n_r; i++)
        widen_row(type, rows.w + i * p->w_stride, wide + i * WIDE_DEPTH,
                  (p->n_k + 31) / 32 * 32);
    rows.w = (const uint8_t *)wide;
    rows.w_stride = WIDE_DEPTH * sizeof *wide;
    score_tiles(TYPE_F32, type, n_r, &rows, ahead, p->w_stride, fetch, NULL);
}

#ifdef MANY_SUMS
/* The sums of MANY_SUMS vectors */
INLINE void sum_many(const vf *a, float *y)
{
#ifdef HAS_SUM_4X4
    float t[16]; /* the sum of a[4 * i + j] becomes t[4 * j + i] */

    vf_sum_4x4(a, 4, t, 4);
    UNROLL
    for (size_t i = 0; i < 16; i++)
        y[i] = t[i % 4 * 4 + i / 4];
#else
    vf_sum_8(a, y);
#endif
}

/* Scores of n_r rows from row r on and n_c queries, MANY_SUMS in all.  n_k is a multiple of 32.
 */
INLINE void score_many(enum tensor_type type, size_t n_r, size_t n_c, const struct product *p,
                       size_t r, enum fetch fetch)
{
    const uint8_t *row = p->w + r * p->w_stride, *ahead = row + ATTN_BLOCK * p->w_stride;
    const size_t n_v = 32 / VN, piece = bytes_of(type, 32);
    vf acc[MANY_SUMS], w[2 * (32 / VN)], x[8];
    float y[MANY_SUMS];

    UNROLL
    for (size_t i = 0; i < MANY_SUMS; i++)
        acc[i] = vf_zero();
    for (size_t k = 0; k < p->n_k; k += 32) {
        size_t at = bytes_of(type, k);

        if (fetch == FETCH_ORDER)
            fetch_near(ahead + n_r * at, n_r * piece);
        UNROLL
        for (size_t i = 0; i < n_r; i++) {
            if (fetch == FETCH_ROWS)
                fetch_near(ahead + i * p->w_stride + at, piece);
            load_values(type, row + i * p->w_stride, k, 0, n_v, 32, w + i * n_v);
        }
        UNROLL
        for (size_t e = 0; e < n_v; e++) {
            UNROLL
            for (size_t c = 0; c < n_c; c++)
                x[c] = vf_load(p->x + c * p->ldx + k + e * VN);
            UNROLL
            for (size_t i = 0; i < MANY_SUMS; i++)
                acc[i] = vf_fma(w[i / n_c * n_v + e], x[i % n_c], acc[i]);
        }
    }
    sum_many(acc, y);
    for (size_t c = 0; c < n_c; c++)
        for (size_t i = 0; i < n_r; i++)
            p->y[c * p->ldy + r + i] = y[i * n_c + c];
}
#endif

INLINE void score_block(enum tensor_type type, const struct product *p, enum fetch fetch)
{
    size_t r = 0;

#if defined HAS_SUM_4X4
    if (p->n_col == 8 && p->n_k % 32 == 0)
        for (; r + 2 <= p->n_row; r += 2)
            score_many(type, 2, 8, p, r, fetch);
#elif defined HAS_SUM_8
    if (has_blocks(type) && p->n_col == 4 && p->n_k % 32 == 0)
        for (; r + 2 <= p->n_row; r += 2)
            score_many(type, 2, 4, p, r, fetch);
#endif

    for (; r + TILE_ROWS <= p->n_row; r += TILE_ROWS)
        score_rows(type, TILE_ROWS, p, r, fetch);
    for (; r < p->n_row; r++)
        score_rows(type, 1, p, r, FETCH_NOTHING);
}

static void score(enum kv_type kt, const struct product *p, bool fetches)
{
    enum fetch fetch = fetches ? order_of_fetches(kt, p->w_stride, p->n_k) : FETCH_NOTHING;

    switch (kt) {
    case KV_F32: score_block(TYPE_F32, p, fetch); return;
    case KV_F16: score_block(TYPE_F16, p, fetch); return;
    case KV_Q8_0:
        if (p->n_k > MUL_DEPTH)
            mul_blocks(TYPE_Q8_0, p);
        else
            score_block(TYPE_Q8_0, p, fetch);
        return;
    case KV_Q4_0:
        if (p->n_k > MUL_DEPTH)
            mul_blocks(TYPE_Q4_0, p);
        else
            score_block(TYPE_Q4_0, p, fetch);
        return;
    case KV_TYPE_COUNT: break;
    }
}

void set_attn(const struct attn_block *a)
{
    _Alignas(64) float s[ATTN_GROUP * ATTN_BLOCK];
    float shrink[ATTN_GROUP];

    if (a->n_pos == 0)
        return;
    for (size_t i = 0; i < a->n_q; i += ATTN_GROUP) {
        size_t n = at_most(a->n_q - i, ATTN_GROUP);
        struct product scores = { .w = a->k,
                                  .w_stride = a->k_stride,
                                  .n_row = a->n_pos,
                                  .n_k = a->dk,
                                  .x = a->q + i * a->dk,
                                  .ldx = a->dk,
                                  .n_col = n,
                                  .y = s,
                                  .ldy = ATTN_BLOCK };

        score(a->k_type, &scores, i == 0);
        soften_all(s, n, a->n_pos, a->scale, a->cap, a->m + i, a->l + i, shrink);
        gather(a->v_type, i == 0, n,
               (struct values){ s, shrink, a->v, a->v_stride, a->n_pos, a->acc + i * a->dv, a->dv },
               a->dv);
    }
}
