/*
 * Products of weights with the columns of a pass, split over the workers: by our kernels, or by
 * OpenBLAS in tiles of columns (tiles.c).
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/compute/interleave.h"
#include "engine/compute/packed.h"
#include "engine/compute/quantise.h"
#include "engine/model/forward_internal.h"

#define MOST_BLOCKS 16

/* A block of the stream: rows of a matrix that follow each other in memory. */
struct mul_block {
    const unsigned char *w;
    size_t row, n_row; /* of the matrix */
    size_t at;         /* the first of its rows among those of the job */
    enum tensor_type type;
    enum weight_form form;
    size_t row_bytes;
    struct weight_scales scales;
    struct packed_block packed; /* w in FORM_PACKED */
    float *y;                   /* of row 0 of the matrix */
    size_t ldy;
};

/* Rows of one matrix, or of several that have the same columns. */
struct mul_job {
    const struct forward *f;
    const struct kernels *kern;
    enum act_form form;
    struct mul_block blocks[MOST_BLOCKS];
    size_t n_block, n_row, bytes;
    size_t n_k;
    const void *x;
    size_t x_stride, n_col;
    bool in_tiles;
    struct tiles tiles;
    const struct tensor_info *packed; /* weights that are unpacked first; NULL: none */
    const unsigned char *const *parts;
};

/* The scales of a tensor's matrix (of an expert), whose row `first` is the first of a block. */
static struct weight_scales scales_from(const struct vec *v, uint32_t matrix, uint64_t first)
{
    const struct tensor_scales *s;

    if (v->w == NULL)
        return (struct weight_scales){ 0 };
    s = v->tensor->scales;
    return (struct weight_scales){ .w = v->w + (size_t)matrix * s->n_row * s->n_col,
                                   .stride = s->n_col,
                                   .rows = s->rows,
                                   .cols = s->cols,
                                   .first = first };
}

/* Whether products are multiplied with a scale, and not the weights. */
static bool scales_products(const struct vec *v)
{
    return v->w != NULL && v->tensor->type != TYPE_F8_E4M3;
}

struct scale_job {
    const struct kernels *kern;
    float *y, by;
    size_t ldy, n;
};

static void scale_col(void *ctx, uint32_t c)
{
    const struct scale_job *j = ctx;

    j->kern->scale(j->y + c * j->ldy, j->by, j->n);
}

/* Rows from `from` on of block b, at w as in the file, into y. */
static struct matmul product_of(const struct mul_job *j, const struct mul_block *b, size_t from,
                                const void *w, size_t n_row, float *y)
{
    struct matmul m = { .type = b->type,
                        .form = j->form,
                        .n_row = n_row,
                        .n_k = j->n_k,
                        .n_col = j->n_col,
                        .w = w,
                        .x = j->x,
                        .x_stride = j->x_stride,
                        .y = y,
                        .ldy = b->ldy,
                        .scales = b->scales };

    m.scales.first += from;
    return m;
}

/* Unpack a few rows at a time, and multiply them while they are in the CPU's cache. */
static void mul_unpacked(const struct mul_job *j, size_t from, size_t to)
{
    _Alignas(64) unsigned char rows[UNPACK_BYTES];
    const struct mul_block *b = &j->blocks[0];
    size_t n = sizeof rows / b->row_bytes;
    struct matmul m;

    n = n < 16 ? n : 16;
    for (size_t r = from; r < to; r += n) {
        n = to - r < n ? to - r : n;
        unpack_rows(j->packed, j->parts, r, n, rows);
        m = product_of(j, b, r, rows, n, b->y + b->row + r);
        j->kern->mul(&m);
    }
}

static void mul_tiles(const struct mul_job *j, const struct mul_block *b, int part, int n_part)
{
    struct blas_product p = { .type = b->type,
                              .w = b->w,
                              .row = b->row,
                              .n_row = b->n_row,
                              .n_k = j->n_k,
                              .y = b->y + b->row,
                              .ldy = b->ldy,
                              .form = b->form,
                              .packed = b->form == FORM_PACKED ? &b->packed : NULL };

    tiles_multiply(j->f, &j->tiles, &p, part, n_part);
}

/* Interleaved rows [*from, to) of a block: groups that begin there.  *from becomes the first of
 * the rows that are as in the file. */
static void mul_groups(const struct mul_job *j, const struct mul_block *b, size_t *from,
                       size_t to)
{
    const size_t end = b->n_row / INTERLEAVED_ROWS * INTERLEAVED_ROWS;
    size_t first = align_up(*from, INTERLEAVED_ROWS), last = align_up(to, INTERLEAVED_ROWS);

    first = first < end ? first : end;
    last = last < end ? last : end;
    if (first < last) {
        struct matmul m = product_of(j, b, first, b->w + first * b->row_bytes, last - first,
                                     b->y + b->row + first);

        j->kern->mul_interleaved(&m);
    }
    *from = *from > end ? *from : end;
}

/* Rows [from, to) of a block. */
static void mul_rows(const struct mul_job *j, const struct mul_block *b, size_t from, size_t to)
{
    struct matmul m;

    if (b->form == FORM_INTERLEAVED)
        mul_groups(j, b, &from, to);
    if (from >= to)
        return;
    m = product_of(j, b, from, b->w + from * b->row_bytes, to - from, b->y + b->row + from);
    if (b->form == FORM_PACKED)
        j->kern->mul_packed(&b->packed, from, &m);
    else
        j->kern->mul(&m);
}

static void mul_part(void *ctx, int part, int n_part)
{
    const struct mul_job *j = ctx;
    size_t from, to;

    if (j->in_tiles) {
        mul_tiles(j, &j->blocks[0], part, n_part);
        return;
    }
    pool_rows(j->f->p.pool, j->n_row, part, n_part, &from, &to);
    if (j->packed != NULL)
        mul_unpacked(j, from, to);
    for (const struct mul_block *b = j->blocks; j->packed == NULL && b < j->blocks + j->n_block;
         b++) {
        size_t at = b->at, end = at + b->n_row;

        if (from < end && to > at)
            mul_rows(j, b, (from > at ? from : at) - at, (to < end ? to : end) - at);
    }
}

static void multiply(struct mul_job *j)
{
    struct pool *pool = j->f->p.pool;
    int n_part = j->in_tiles ? pool_threads(pool) : pool_row_parts(pool, j->bytes * j->n_col);

    pool_run(pool, n_part, mul_part, j);
}

struct pack_job {
    struct forward *f;
    enum act_form form;
    const float *x;
    size_t ldx, n_k, stride;
};

static void pack_col(void *ctx, uint32_t col)
{
    const struct pack_job *j = ctx;

    j->f->p.kernels->act_pack(j->form, j->x + col * j->ldx, j->n_k,
                              j->f->packed + col * j->stride);
}

struct col_job {
    void (*fn)(void *ctx, uint32_t col);
    void *ctx;
    uint32_t n_col;
};

static void col_part(void *ctx, int part, int n_part)
{
    const struct col_job *j = ctx;

    for (uint32_t c = (uint32_t)part; c < j->n_col; c += (uint32_t)n_part)
        j->fn(j->ctx, c);
}

void forward_each(struct forward *f, uint32_t n_col, void (*fn)(void *ctx, uint32_t col),
                  void *ctx)
{
    struct col_job job = { fn, ctx, n_col };

    if (n_col == 1)
        fn(ctx, 0);
    else
        pool_run(f->p.pool, pool_parts(f->p.pool, n_col), col_part, &job);
}

void forward_each_col(struct forward *f, void (*fn)(void *ctx, uint32_t col), void *ctx)
{
    forward_each(f, f->n_col, fn, ctx);
}

/* Bring the columns into the form that the weight type needs: a pointer and a stride. */
static struct mul_job mul_prepare(struct forward *f, enum tensor_type type, size_t n_k,
                                  const float *x, size_t ldx, uint32_t n_col)
{
    struct mul_job job = { .f = f,
                           .kern = f->p.kernels,
                           .form = act_form_of(type, f->p.exact),
                           .n_k = n_k,
                           .n_col = n_col,
                           .x = x,
                           .x_stride = ldx * sizeof(float) };

    if (job.form != ACT_F32) {
        struct pack_job pack = { f, job.form, x, ldx, n_k, act_bytes(job.form, n_k) };

        forward_each(f, n_col, pack_col, &pack);
        job.x = f->packed;
        job.x_stride = pack.stride;
    }
    return job;
}

/* Whether OpenBLAS multiplies m now.  It takes rows as they are in memory. */
static bool mat_in_tiles(const struct forward *f, const struct mat *m, enum tensor_type type)
{
    return !mat_is_split(m) && tiles_take(f, type);
}

/* The same for all columns of a streamed matrix, which OpenBLAS may multiply. */
static struct mul_job mul_prepare_mat(struct forward *f, const struct mat *m,
                                      enum tensor_type type, const float *x, size_t ldx)
{
    struct mul_job job = { .f = f,
                           .form = act_form_of(type, f->p.exact),
                           .n_k = m->n_k,
                           .n_col = f->n_col,
                           .in_tiles = true };

    if (!mat_in_tiles(f, m, type))
        return mul_prepare(f, type, m->n_k, x, ldx, f->n_col);
    tiles_lay(f, job.form, x, ldx, m->n_k, &job.tiles);
    return job;
}

/* Whether the columns of the job are as weights of m, in this type, need them. */
static bool has_columns_for(const struct mul_job *j, const struct mat *m,
                            enum tensor_type type)
{
    return j->f != NULL && j->form == act_form_of(type, j->f->p.exact) &&
           j->in_tiles == mat_in_tiles(j->f, m, type);
}

static struct mul_block *add_block(struct mul_job *j, enum tensor_type type, const void *w,
                                   size_t n_row, float *y, size_t ldy)
{
    struct mul_block *b = &j->blocks[j->n_block++];

    *b = (struct mul_block){ .w = w,
                             .n_row = n_row,
                             .at = j->n_row,
                             .type = type,
                             .row_bytes = tensor_row_bytes(type, j->n_k),
                             .y = y,
                             .ldy = ldy };
    j->n_row += n_row;
    j->bytes += n_row * b->row_bytes;
    return b;
}

void forward_mul_expert(struct forward *f, const struct expert_mat *m, size_t n_row,
                        const float *x, size_t ldx, uint32_t n_col, float *y, size_t ldy)
{
    const struct tensor_info *t = m->tensor;
    struct mul_job job = mul_prepare(f, t->type, t->ne[0], x, ldx, n_col);
    struct mul_block *b = add_block(&job, t->type, m->w[0], n_row, y, ldy);

    b->scales = scales_from(m->scales, m->expert, 0);
    if (t->layout >= LAYOUT_TRANSPOSED) {
        job.packed = t;
        job.parts = m->w;
    }
    multiply(&job);
    if (scales_products(m->scales))
        forward_each(f, n_col, scale_col,
                     &(struct scale_job){ job.kern, y, m->scales->w[m->expert], ldy, n_row });
}

/* --- copies of streamed blocks in few bits --- */

#define LOW_VALUES 1024 /* of a row that are converted at once */

enum tensor_type forward_low_type(enum tensor_type low, enum tensor_type type, uint64_t n_k)
{
    if (n_k % tensor_type_info(low)->block_elems != 0)
        low = TYPE_Q4_0;
    if (n_k % tensor_type_info(low)->block_elems != 0 ||
        tensor_row_bytes(low, n_k) >= tensor_row_bytes(type, n_k))
        return type;
    return low;
}

static enum tensor_type low_type_of(const struct forward *f, const struct mat *m)
{
    return forward_low_type((enum tensor_type)stream_low_type(f->p.stream), m->tensor->type,
                            m->n_k);
}

/* The type of the weights of a block of m. */
static enum tensor_type type_of(const struct forward *f, const struct mat *m,
                                const struct stream_block *block)
{
    return block->is_low ? low_type_of(f, m) : m->tensor->type;
}

struct low_job {
    const struct forward *f;
    const struct mat *m;
    const struct stream_block *block;
    unsigned char *to;
    enum tensor_type low;
    uint64_t row_bytes, low_bytes;
};

static void low_row(const struct low_job *j, uint64_t row)
{
    const unsigned char *from = (const unsigned char *)j->block->data + row * j->row_bytes;
    unsigned char *to = j->to + row * j->low_bytes;
    enum tensor_type type = j->m->tensor->type;
    float values[LOW_VALUES];

    if (j->low == type) {
        memcpy(to, from, j->row_bytes);
        return;
    }
    for (size_t k = 0; k < j->m->n_k; k += LOW_VALUES) {
        size_t n = j->m->n_k - k < LOW_VALUES ? j->m->n_k - k : LOW_VALUES;

        j->f->p.kernels->dequant(type, from + tensor_row_bytes(type, k), values, n);
        if (j->low == TYPE_Q4_0)
            j->f->p.kernels->kv_store(KV_Q4_0, values, n, to + kv_row_bytes(KV_Q4_0, k));
        else
            quantise_row(j->low, values, n, to + tensor_row_bytes(j->low, k));
    }
}

static void low_part(void *ctx, int part, int n_part)
{
    const struct low_job *j = ctx;
    size_t from, to;

    pool_rows(j->f->p.pool, (size_t)j->block->n_row, part, n_part, &from, &to);
    for (; from < to; from++)
        low_row(j, from);
}

/* Make the copy of a block that was read, if one is to be kept. */
static void keep_low(struct forward *f, const struct mat *m, const struct stream_block *block)
{
    struct low_job j = { .f = f,
                         .m = m,
                         .block = block,
                         .to = stream_low_place(f->p.stream, block),
                         .row_bytes = tensor_row_bytes(m->tensor->type, m->n_k) };

    if (j.to == NULL)
        return;
    j.low = low_type_of(f, m);
    j.low_bytes = tensor_row_bytes(j.low, m->n_k);
    pool_run(f->p.pool, pool_row_parts(f->p.pool, block->n_row * j.row_bytes), low_part, &j);
    stream_low_made(f->p.stream, block);
}

static void add_streamed(struct mul_job *j, const struct product *p,
                         const struct stream_block *block)
{
    struct mul_block *b =
        add_block(j, type_of(j->f, p->m, block), block->data, block->n_row, p->y, p->ldy);

    b->row = block->row;
    b->form = (enum weight_form)block->form;
    b->scales = scales_from(&p->m->scales, 0, p->m->row0 + block->row);
    if (b->form == FORM_PACKED)
        b->packed = packed_open(b->w, b->n_row, j->n_k);
}

/* Add the next blocks that are already in memory, including those of the next matrices.
 * Otherwise the threads would wait for each other after each block.  *p becomes the matrix of
 * the last block, and *done the number of its rows so far. */
static void add_held(struct mul_job *j, const struct product **p, const struct product *end,
                     uint64_t *done)
{
    while (j->n_block < MOST_BLOCKS) {
        const struct product *q = *done < (*p)->m->n_row ? *p : *p + 1;
        struct stream_block held;

        if (q == end || !has_columns_for(j, q->m, q->m->tensor->type) ||
            !stream_next_pinned(j->f->p.stream, q->m->span, &held))
            return;
        add_streamed(j, q, &held);
        *done = held.row + held.n_row;
        *p = q;
    }
}

static void need_columns(struct mul_job *j, struct forward *f, const struct mat *m,
                         enum tensor_type type, const float *x, size_t ldx)
{
    if (!has_columns_for(j, m, type))
        *j = mul_prepare_mat(f, m, type, x, ldx);
}

void forward_between(const struct forward *f, bool is_layer)
{
    if (f->p.between != NULL && !f->is_low)
        f->p.between(f->p.between_ctx, is_layer);
}

/* Take the next block of a span, waiting until it is in memory. */
static int take_block(struct forward *f, uint32_t span, uint64_t row, struct stream_block *block,
                      struct err *e)
{
    forward_between(f, false);
    if (cancel_check(f->p.cancel, e) != 0 ||
        stream_next(f->p.stream, block, &f->stall_ns, e) != 0)
        return -1;
    assert(block->span == span && block->row == row);
    return 0;
}

/* Keep the scales of a matrix of LAYOUT_SPLIT, which come before its values: -> groups. */
static int keep_groups(struct forward *f, const struct mat *m, struct err *e)
{
    const uint64_t row_bytes =
        tensor_row_bytes(m->tensor->type, m->n_k) - split_value_bytes(m->n_k);
    struct stream_block block;

    for (uint64_t done = 0; done < m->n_row; done += block.n_row) {
        if (take_block(f, m->span - 1, done, &block, e) != 0)
            return -1;
        memcpy(f->groups + done * row_bytes, block.data, block.n_row * row_bytes);
        stream_give(f->p.stream, &block);
    }
    return 0;
}

/* The same for a matrix of LAYOUT_SPLIT. */
static int mul_split(struct forward *f, const struct product *p, const float *x, size_t ldx,
                     struct err *e)
{
    const struct mat *m = p->m;
    const uint64_t row_bytes =
        tensor_row_bytes(m->tensor->type, m->n_k) - split_value_bytes(m->n_k);
    struct mul_job job = mul_prepare_mat(f, m, m->tensor->type, x, ldx);
    struct stream_block block;

    if (keep_groups(f, m, e) != 0)
        return -1;
    for (uint64_t done = 0; done < m->n_row; done += block.n_row) {
        const unsigned char *parts[2];

        if (take_block(f, m->span, done, &block, e) != 0)
            return -1;
        parts[0] = block.data;
        parts[1] = f->groups + done * row_bytes;
        job.n_block = job.n_row = job.bytes = 0;
        job.packed = m->tensor;
        job.parts = parts;
        add_streamed(&job, p, &block);
        multiply(&job);
        stream_give(f->p.stream, &block);
    }
    return 0;
}

/* Multiply the finished products with the scale of their matrix, if it has one. */
static void scale_products(struct forward *f, const struct product *p)
{
    if (scales_products(&p->m->scales))
        forward_each_col(f, scale_col,
                         &(struct scale_job){ f->p.kernels, p->y, p->m->scales.w[0], p->ldy,
                                              p->m->n_row });
}

int forward_mul_all(struct forward *f, const struct product *p, size_t n, const float *x,
                    size_t ldx, struct err *e)
{
    const struct product *end = p + n;
    struct mul_job job = { .f = NULL };
    uint64_t done = 0; /* rows of *p */

    while (p < end) {
        const struct product *first = p;
        struct stream_block block;

        if (mat_is_split(p->m)) {
            if (mul_split(f, p, x, ldx, e) != 0)
                return -1;
            scale_products(f, p++);
            job.f = NULL; /* its columns may be in the place of others */
            continue;
        }
        /* The type of a copy is known with the block. */
        if (!f->is_low)
            need_columns(&job, f, p->m, p->m->tensor->type, x, ldx);
        if (take_block(f, p->m->span, done, &block, e) != 0)
            return -1;
        if (f->is_low)
            need_columns(&job, f, p->m, type_of(f, p->m, &block), x, ldx);
        job.n_block = job.n_row = job.bytes = 0;
        add_streamed(&job, p, &block);
        done += block.n_row;
        if (!job.in_tiles && block.is_pinned)
            add_held(&job, &p, end, &done);
        multiply(&job);
        keep_low(f, p->m, &block);
        stream_give(f->p.stream, &block);
        if (done == p->m->n_row) {
            done = 0;
            p++;
        }
        while (first < p)
            scale_products(f, first++);
    }
    return 0;
}

int forward_mul(struct forward *f, const struct mat *m, const float *x, size_t ldx, float *y,
                size_t ldy, struct err *e)
{
    return forward_mul_all(f, &(struct product){ m, y, ldy }, 1, x, ldx, e);
}

/* --- some rows of a matrix --- */

struct marked_job {
    struct mul_job job; /* with the column */
    const struct mat *m;
    const struct stream_block *block;
    const unsigned char *marks;
    float *y;
};

static void marked_part(void *ctx, int part, int n_part)
{
    const struct marked_job *j = ctx;
    enum tensor_type type = j->m->tensor->type;
    size_t n = j->block->n_row, bytes = tensor_row_bytes(type, j->job.n_k);
    size_t from = n * (size_t)part / (size_t)n_part, to = n * (size_t)(part + 1) / (size_t)n_part;

    for (size_t r = from; r < to; r++) {
        size_t row = j->block->row + r;
        struct matmul m = { .type = type,
                            .form = j->job.form,
                            .n_row = 1,
                            .n_k = j->job.n_k,
                            .n_col = 1,
                            .w = (const unsigned char *)j->block->data + r * bytes,
                            .x = j->job.x,
                            .x_stride = j->job.x_stride,
                            .y = j->y + row,
                            .ldy = 1 };

        if ((j->marks[row / 8] >> row % 8 & 1) != 0)
            j->job.kern->mul(&m);
    }
}

int forward_mul_marked(struct forward *f, const struct mat *m, const float *x,
                       const unsigned char *marks, float *y, struct err *e)
{
    struct marked_job j = { .job = mul_prepare(f, m->tensor->type, m->n_k, x, m->n_k, 1),
                            .m = m,
                            .marks = marks,
                            .y = y };

    for (uint64_t done = 0; done < m->n_row;) {
        struct stream_block block;

        if (cancel_check(f->p.cancel, e) != 0 ||
            stream_next(f->p.stream, &block, &f->stall_ns, e) != 0)
            return -1;
        assert(block.span == m->span && block.row == done && block.form == FORM_FILE);
        j.block = &block;
        pool_run(f->p.pool, pool_parts(f->p.pool, block.n_row), marked_part, &j);
        done += block.n_row;
        stream_give(f->p.stream, &block);
    }
    return 0;
}

/* --- matrices whose heads have columns of their own --- */

struct heads_job {
    struct forward *f;
    const struct mat *m;
    const struct by_head *by;
    struct mul_job job; /* with the columns of all heads; one block without a row offset */
    struct stream_block block;
    const float *x;
    float *y;
    size_t x_col, y_col; /* values of a column */
};

/* Columns are packed head by head: blocks of 8-bit values do not straddle heads. */
static void pack_heads_col(void *ctx, uint32_t c)
{
    const struct heads_job *j = ctx;
    size_t bytes = act_bytes(j->job.form, j->job.n_k);

    for (uint32_t h = 0; h < j->m->n_head; h++)
        j->f->p.kernels->act_pack(j->job.form, j->x + c * j->x_col + (size_t)h * j->by->n_in,
                                  j->job.n_k, j->f->packed + c * j->job.x_stride + h * bytes);
}

static void prepare_heads(struct heads_job *j)
{
    enum tensor_type type = j->m->tensor->type;
    struct mul_job *job = &j->job;

    *job = (struct mul_job){ .f = j->f,
                             .kern = j->f->p.kernels,
                             .form = act_form_of(type, j->f->p.exact),
                             .n_k = j->m->n_k,
                             .n_col = j->f->n_col,
                             .x = j->x,
                             .x_stride = j->x_col * sizeof(float) };
    if (job->form == ACT_F32 || j->by->is_transposed)
        return;
    job->x = j->f->packed;
    job->x_stride = j->m->n_head * act_bytes(job->form, job->n_k);
    forward_each_col(j->f, pack_heads_col, j);
}

/* The rows of head h that are in the block and used: from .. to - 1 of the block. */
static void head_rows(const struct heads_job *j, uint32_t h, size_t *from, size_t *to)
{
    size_t first = (size_t)h * j->by->n_row, row = j->block.row, end = row + j->block.n_row;
    size_t a = first + j->by->from, b = first + j->by->to;

    *from = (a > row ? a : row) - row;
    *to = (b < end ? b : end) - row;
    if (a >= end || b <= row)
        *from = *to = 0;
}

static void mul_head(const struct heads_job *j, uint32_t h, size_t from, size_t to)
{
    size_t first = (size_t)h * j->by->n_row + j->by->from, n_k = j->job.n_k;
    size_t head_bytes =
        j->job.form == ACT_F32 ? j->by->n_in * sizeof(float) : act_bytes(j->job.form, n_k);
    struct matmul m = {
        .type = j->m->tensor->type,
        .form = j->job.form,
        .n_row = to - from,
        .n_k = n_k,
        .n_col = j->job.n_col,
        .w = (const unsigned char *)j->block.data +
             from * tensor_row_bytes(j->m->tensor->type, n_k),
        .x = (const unsigned char *)j->job.x + h * head_bytes,
        .x_stride = j->job.x_stride,
        .y = j->y + (size_t)h * j->by->n_out + (j->block.row + from - first),
        .ldy = j->y_col,
        .scales = scales_from(&j->m->scales, 0, j->m->row0 + j->block.row + from),
    };

    j->job.kern->mul(&m);
}

/* y += x[row] * row, for the rows of one head in order. */
static void add_rows(const struct heads_job *j, uint32_t h, size_t from, size_t to)
{
    enum tensor_type type = j->m->tensor->type;
    size_t n_k = j->job.n_k, bytes = tensor_row_bytes(type, n_k);
    size_t first = (size_t)h * j->by->n_row + j->by->from;
    const unsigned char *w = j->block.data;
    const struct weight_scales scales =
        scales_from(&j->m->scales, 0, j->m->row0 + j->block.row);
    float row[MAX_LATENT];

    for (size_t r = from; r < to; r++) {
        size_t i = j->block.row + r - first;

        j->job.kern->dequant(type, w + r * bytes, row, n_k);
        for (size_t k = 0; scales.w != NULL && k < n_k; k++)
            row[k] *= weight_scale(&scales, r, k);
        for (size_t c = 0; c < j->job.n_col; c++) {
            float by = j->x[c * j->x_col + (size_t)h * j->by->n_in + i];
            float *y = j->y + c * j->y_col + (size_t)h * j->by->n_out;

            for (size_t k = 0; k < n_k; k++)
                y[k] += by * row[k];
        }
    }
}

static void heads_part(void *ctx, int part, int n_part)
{
    const struct heads_job *j = ctx;

    for (uint32_t h = (uint32_t)part; h < j->m->n_head; h += (uint32_t)n_part) {
        size_t from, to;

        head_rows(j, h, &from, &to);
        if (from == to)
            continue;
        if (j->by->is_transposed)
            add_rows(j, h, from, to);
        else
            mul_head(j, h, from, to);
    }
}

static void clear_heads_col(void *ctx, uint32_t c)
{
    const struct heads_job *j = ctx;

    for (uint32_t h = 0; h < j->m->n_head; h++)
        memset(j->y + c * j->y_col + (size_t)h * j->by->n_out, 0, j->job.n_k * sizeof *j->y);
}

int forward_mul_heads(struct forward *f, const struct mat *m, const struct by_head *heads,
                      const float *x, float *y, struct err *e)
{
    struct heads_job j = { .f = f,
                           .m = m,
                           .by = heads,
                           .x = x,
                           .y = y,
                           .x_col = (size_t)m->n_head * heads->n_in,
                           .y_col = (size_t)m->n_head * heads->n_out };

    prepare_heads(&j);
    if (heads->is_transposed)
        forward_each_col(f, clear_heads_col, &j);
    for (uint64_t done = 0; done < m->n_row; done += j.block.n_row) {
        if (take_block(f, m->span, done, &j.block, e) != 0)
            return -1;
        assert(j.block.form == FORM_FILE);
        pool_run(f->p.pool, pool_parts(f->p.pool, m->n_head), heads_part, &j);
        stream_give(f->p.stream, &j.block);
    }
    return 0;
}
