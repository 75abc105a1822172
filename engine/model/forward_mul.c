/*
 * Products of weights with the columns of a pass, split over the workers: by our kernels, or by
 * OpenBLAS in tiles of columns (tiles.c).
 */
#include "config.h"

#include <assert.h>

#include "engine/compute/packed.h"
#include "engine/model/forward_internal.h"

#define MOST_BLOCKS 16

/* A block of the stream: rows that follow each other in memory. */
struct mul_block {
    const unsigned char *w;
    size_t row, n_row; /* of the matrix */
    enum weight_form form;
    struct packed_block packed; /* w in FORM_PACKED */
};

struct mul_job {
    const struct forward *f;
    const struct kernels *kern;
    enum tensor_type type;
    enum act_form form;
    struct mul_block blocks[MOST_BLOCKS]; /* rows of the matrix that follow each other */
    size_t n_block, n_row;
    size_t n_k, row_bytes;
    const void *x;
    size_t x_stride, n_col;
    float *y; /* of row 0 of the matrix */
    size_t ldy;
    bool in_tiles;
    struct tiles tiles;
    const struct tensor_info *packed; /* weights that are unpacked first; NULL: none */
    const unsigned char *const *parts;
};

/* Unpack a few rows at a time, and multiply them while they are in the CPU's cache. */
static void mul_unpacked(const struct mul_job *j, size_t from, size_t to)
{
    _Alignas(64) unsigned char rows[UNPACK_BYTES];
    size_t n = sizeof rows / j->row_bytes;

    n = n < 16 ? n : 16;
    for (size_t r = from; r < to; r += n) {
        n = to - r < n ? to - r : n;
        unpack_rows(j->packed, j->parts, r, n, rows);
        j->kern->mul(j->type, j->form, rows, n, j->n_k, j->x, j->x_stride, j->n_col, j->y + r,
                     j->ldy);
    }
}

static void mul_tiles(const struct mul_job *j, const struct mul_block *b, int part, int n_part)
{
    struct blas_product p = { .type = j->type,
                              .w = b->w,
                              .row = b->row,
                              .n_row = b->n_row,
                              .n_k = j->n_k,
                              .y = j->y + b->row,
                              .ldy = j->ldy,
                              .packed = b->form == FORM_PACKED ? &b->packed : NULL };

    tiles_multiply(j->f, &j->tiles, &p, part, n_part);
}

/* Rows [from, to) of a block. */
static void mul_rows(const struct mul_job *j, const struct mul_block *b, size_t from, size_t to)
{
    float *y = j->y + b->row;

    if (b->form == FORM_PACKED)
        j->kern->mul_packed(&b->packed, from, to, j->x, j->x_stride, j->n_col, y, j->ldy);
    else
        j->kern->mul(j->type, j->form, b->w + from * j->row_bytes, to - from, j->n_k, j->x,
                     j->x_stride, j->n_col, y + from, j->ldy);
}

static void mul_part(void *ctx, int part, int n_part)
{
    const struct mul_job *j = ctx;
    size_t first = j->blocks[0].row, from, to;

    if (j->in_tiles) {
        mul_tiles(j, &j->blocks[0], part, n_part);
        return;
    }
    pool_rows(j->f->p.pool, j->n_row, part, n_part, &from, &to);
    if (j->packed != NULL)
        mul_unpacked(j, from, to);
    for (const struct mul_block *b = j->blocks; j->packed == NULL && b < j->blocks + j->n_block;
         b++) {
        size_t at = b->row - first, end = at + b->n_row;

        if (from < end && to > at)
            mul_rows(j, b, (from > at ? from : at) - at, (to < end ? to : end) - at);
    }
}

static void multiply(struct mul_job *j)
{
    struct pool *pool = j->f->p.pool;
    int n_part = j->in_tiles ? pool_threads(pool)
                             : pool_row_parts(pool, j->n_row * j->row_bytes * j->n_col);

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
                                  const float *x, size_t ldx, uint32_t n_col, size_t ldy)
{
    struct mul_job job = { .f = f,
                           .kern = f->p.kernels,
                           .type = type,
                           .form = act_form_of(type, f->p.exact),
                           .n_k = n_k,
                           .row_bytes = tensor_row_bytes(type, n_k),
                           .n_col = n_col,
                           .ldy = ldy,
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

/* The same for all columns of a streamed matrix, which OpenBLAS may multiply. */
static struct mul_job mul_prepare_mat(struct forward *f, const struct mat *m, const float *x,
                                      size_t ldx, size_t ldy)
{
    enum tensor_type type = m->tensor->type;
    struct mul_job job = { .f = f, .type = type, .n_k = m->n_k, .ldy = ldy, .in_tiles = true };

    if (!tiles_take(f, type))
        return mul_prepare(f, type, m->n_k, x, ldx, f->n_col, ldy);
    tiles_lay(f, act_form_of(type, f->p.exact), x, ldx, m->n_k, &job.tiles);
    return job;
}

void forward_mul_expert(struct forward *f, const struct tensor_info *t,
                        const unsigned char *const *w, size_t n_row, const float *x, size_t ldx,
                        uint32_t n_col, float *y, size_t ldy)
{
    struct mul_job job = mul_prepare(f, t->type, t->ne[0], x, ldx, n_col, ldy);

    job.blocks[0] = (struct mul_block){ .w = w[0], .n_row = n_row };
    job.n_block = 1;
    job.n_row = n_row;
    job.y = y;
    if (t->layout >= LAYOUT_TRANSPOSED) {
        job.packed = t;
        job.parts = w;
    }
    multiply(&job);
}

static void add_block(struct mul_job *j, const struct stream_block *block)
{
    struct mul_block *b = &j->blocks[j->n_block++];

    *b = (struct mul_block){ .w = block->data,
                             .row = block->row,
                             .n_row = block->n_row,
                             .form = (enum weight_form)block->form };
    if (b->form == FORM_PACKED)
        b->packed = packed_open(b->w, b->n_row, j->n_k);
    j->n_row += b->n_row;
}

int forward_mul(struct forward *f, const struct mat *m, const float *x, size_t ldx, float *y,
                size_t ldy, struct err *e)
{
    struct mul_job job = mul_prepare_mat(f, m, x, ldx, ldy);

    job.y = y;
    for (uint64_t done = 0; done < m->n_row; done += job.n_row) {
        struct stream_block block, held;

        if (atomic_load_explicit(f->p.cancel, memory_order_relaxed))
            return err_set(e, ERR_CANCELLED, "stopped");
        if (stream_next(f->p.stream, &block, &f->stall_ns, e) != 0)
            return -1;
        assert(block.span == m->span && block.row == done);
        job.n_block = job.n_row = 0;
        add_block(&job, &block);
        /* Threads need not wait for each other between blocks that are there. */
        while (!job.in_tiles && block.is_pinned && job.n_block < MOST_BLOCKS &&
               stream_next_pinned(f->p.stream, m->span, &held))
            add_block(&job, &held);
        multiply(&job);
        stream_give(f->p.stream, &block);
    }
    return 0;
}
