#include "config.h"

#include "engine/model/forward.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"

#define SQRT_HALF 0.70710678118654752440f

/* --- sizes --- */

struct widths {
    uint32_t q, k, v, att, ff, packed_k, rot[2];
};

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static struct widths widest(const struct model_desc *d)
{
    struct widths w = { 0 };

    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];

        w.q = max_u32(w.q, layer->n_head * layer->head_dim_k);
        w.att = max_u32(w.att, layer->n_head * layer->head_dim_v);
        w.k = max_u32(w.k, layer->n_head_kv * layer->head_dim_k);
        w.v = max_u32(w.v, layer->n_head_kv * max_u32(layer->head_dim_v,
                                                      layer->v_is_k ? layer->head_dim_k : 0));
        w.ff = max_u32(w.ff, max_u32(layer->n_ff, 2 * layer->experts.n_ff));
    }
    w.packed_k = max_u32(max_u32(w.ff, w.att), max_u32(d->n_embd, d->n_embd_per_layer));
    w.rot[0] = d->hp->rope.n_rot;
    w.rot[1] = d->hp->rope_swa.n_rot;
    return w;
}

/* Every piece of the activations in one place: run once to count, once to take. */
struct carver {
    struct arena *arena; /* NULL: count */
    uint32_t chunk;
    int n_blas_thread;
    uint64_t fixed_bytes; /* of all pieces, whatever the chunk is */
    uint64_t col_bytes;   /* of all pieces, one column */
    uint32_t n_piece;
    struct err *e;
    bool failed;
};

static void *carve_both(struct carver *c, uint64_t fixed_bytes, uint64_t col_bytes)
{
    void *p = NULL;

    c->fixed_bytes += fixed_bytes;
    c->col_bytes += col_bytes;
    c->n_piece++;
    if (c->arena != NULL && !c->failed) {
        p = arena_take(c->arena, fixed_bytes + c->chunk * col_bytes, c->e);
        c->failed = p == NULL;
    }
    return p;
}

static void *carve(struct carver *c, uint64_t col_bytes)
{
    return carve_both(c, 0, col_bytes);
}

static float *carve_floats(struct carver *c, uint64_t n)
{
    return carve(c, n * sizeof(float));
}

static void carve_tiles(struct forward *f, uint32_t widest_k, struct carver *c)
{
    uint64_t col = c->n_blas_thread > 0 ? act_bytes(ACT_F32, widest_k) : 0;
    uint64_t n_thread = c->n_blas_thread < BLAS_THREADS ? c->n_blas_thread : BLAS_THREADS;
    uint64_t fixed = tiles_scratch_bytes(TILES_SPARE);

    f->tile_cols = carve_both(c, TILES_SPARE * col, col);
    f->tile_scratch = carve_both(c, n_thread * fixed,
                                 n_thread * (tiles_scratch_bytes(TILES_SPARE + 1) - fixed));
}

static void carve_all(struct forward *f, const struct model_desc *d, struct carver *c)
{
    struct widths w = widest(d);
    uint32_t n_expert = d->hp->n_expert;

    f->x = carve_floats(c, d->n_embd);
    f->h = carve_floats(c, d->n_embd);
    f->y = carve_floats(c, d->n_embd);
    f->embd = carve_floats(c, d->n_embd_per_layer > 0 ? d->n_embd : 0);
    f->q = carve_floats(c, w.q);
    f->k = carve_floats(c, w.k);
    f->v = carve_floats(c, w.v);
    f->att = carve_floats(c, w.att);
    f->gate = carve_floats(c, w.ff);
    f->up = carve_floats(c, max_u32(w.ff, n_expert > 0 ? d->n_embd : 0));
    f->ple = carve_floats(c, d->n_embd_per_layer);
    f->ple_row = carve_floats(c, d->n_embd_per_layer);
    f->ple_blocks = carve_floats(c, d->n_embd_per_layer > 0 ? d->n_embd_per_layer + 512u : 0);
    for (int i = 0; i < 2; i++) {
        f->cosine[i] = carve_floats(c, w.rot[i] / 2);
        f->sine[i] = carve_floats(c, w.rot[i] / 2);
    }
    f->packed = carve(c, act_bytes(ACT_Q8, w.packed_k));
    carve_tiles(f, w.packed_k, c);
    f->pos = carve(c, sizeof(uint32_t));
    f->row_of = carve(c, sizeof(uint32_t));
    f->lookups = carve(c, 2 * sizeof(struct stream_lookup));
    f->moe_weight = carve_floats(c, n_expert);
    f->moe_sum = carve_floats(c, n_expert > 0 ? d->n_embd : 0);
    f->moe_h = carve_floats(c, n_expert > 0 ? d->n_embd : 0);
}

static uint64_t table_row_bytes(const struct tensor_info *t)
{
    return t != NULL ? tensor_row_bytes(t->type, t->ne[0]) : 0;
}

void forward_bytes(const struct model_desc *d, int n_blas_thread, struct forward_bytes *out)
{
    struct carver count = { .chunk = 0, .n_blas_thread = n_blas_thread };
    struct forward f = { 0 };
    uint64_t rows[2] = { table_row_bytes(d->token_embd), table_row_bytes(d->ple_embd) };

    carve_all(&f, d, &count);
    out->act_col = count.col_bytes;
    out->act_fixed = count.fixed_bytes + count.n_piece * arena_size(1) * 2;
    out->rows_col = rows[0] + rows[1];
    out->rows_fixed = 2 * arena_size(1);
    out->lookup = stream_lookup_bytes(rows, rows[1] > 0 ? 2 : 1, 4096);
    out->experts = d->hp->n_expert > 0 ? arena_size(experts_buf_bytes(d)) : 0;
}

uint64_t forward_logit_bytes(const struct model_desc *d, uint32_t n_row)
{
    return arena_size((uint64_t)n_row * d->n_vocab * sizeof(float));
}

double forward_prompt_flops(const struct model_desc *d)
{
    double sum = 0;

    for (uint32_t l = 0; l <= d->last_kv_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        uint32_t n_mat = desc_n_prompt_mat(d, l);

        for (uint32_t i = 0; i < n_mat; i++)
            sum += 2.0 * layer->mats[i].n_row * layer->mats[i].n_k;
        if (n_mat == N_LAYER_MAT)
            sum += 6.0 * layer->experts.n_used * layer->experts.n_ff * d->n_embd;
    }
    return sum;
}

/* --- life --- */

int forward_new(struct forward **out, const struct forward_parts *parts, struct err *e)
{
    const struct model_desc *d = parts->desc;
    struct forward *f = calloc(1, sizeof *f);
    struct carver take = { .arena = parts->activations, .chunk = parts->chunk, .e = e };

    if (parts->products != NULL)
        take.n_blas_thread = pool_threads(parts->pool);

    *out = NULL;
    if (f == NULL)
        return err_memory(e, "the pass");
    f->p = *parts;
    rope_init(&f->rope[0], &d->hp->rope, d->hp->rope_interleaved, parts->n_ctx,
              d->hp->n_ctx_train);
    rope_init(&f->rope[1], &d->hp->rope_swa, d->hp->rope_interleaved, parts->n_ctx,
              d->hp->n_ctx_train);
    carve_all(f, d, &take);
    if (take.failed)
        goto fail;
    f->embd_row_bytes = table_row_bytes(d->token_embd);
    f->ple_row_bytes = table_row_bytes(d->ple_embd);
    f->embd_rows = arena_take(parts->rows, parts->chunk * f->embd_row_bytes, e);
    f->ple_rows = arena_take(parts->rows, parts->chunk * f->ple_row_bytes, e);
    f->logits =
        arena_take(parts->logits, (size_t)parts->n_logit_row * d->n_vocab * sizeof(float), e);
    if (f->embd_rows == NULL || f->ple_rows == NULL || f->logits == NULL)
        goto fail;
    if (d->hp->n_expert > 0) {
        f->expert_buf_bytes = parts->experts->size - parts->experts->used;
        f->expert_buf = arena_take(parts->experts, experts_buf_bytes(d), e);
        if (f->expert_buf == NULL)
            goto fail;
    }
    *out = f;
    return 0;

fail:
    free(f);
    return -1;
}

void forward_free(struct forward *f)
{
    free(f);
}

float *forward_logits(struct forward *f)
{
    return f->logits;
}

/* --- products --- */

struct mul_job {
    const struct forward *f;
    const struct kernels *kern;
    enum tensor_type type;
    enum act_form form;
    const unsigned char *w;
    size_t n_row, n_k, row_bytes;
    const void *x;
    size_t x_stride, n_col;
    float *y;
    size_t ldy;
    bool in_tiles;
    struct tiles tiles;
    size_t row; /* of the matrix: the first of w */
};

static void mul_tiles(const struct mul_job *j, int thread, int n_thread)
{
    struct blas_product p = { .type = j->type,
                              .w = j->w,
                              .row = j->row,
                              .n_row = j->n_row,
                              .n_k = j->n_k,
                              .y = j->y,
                              .ldy = j->ldy };

    tiles_multiply(j->f, &j->tiles, &p, thread, n_thread);
}

static void mul_part(void *ctx, int thread, int n_thread)
{
    const struct mul_job *j = ctx;
    /* Whole groups of 16 rows a worker: results lie in cache lines of their own. */
    size_t n_group = (j->n_row + 15) / 16;
    size_t from = n_group * (size_t)thread / (size_t)n_thread * 16;
    size_t to = n_group * ((size_t)thread + 1) / (size_t)n_thread * 16;

    if (to > j->n_row)
        to = j->n_row;
    if (j->in_tiles)
        mul_tiles(j, thread, n_thread);
    else if (from < to)
        j->kern->mul(j->type, j->form, j->w + from * j->row_bytes, to - from, j->n_k, j->x,
                     j->x_stride, j->n_col, j->y + from, j->ldy);
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

static void col_part(void *ctx, int thread, int n_thread)
{
    const struct col_job *j = ctx;

    for (uint32_t c = (uint32_t)thread; c < j->n_col; c += (uint32_t)n_thread)
        j->fn(j->ctx, c);
}

static void each_col(struct forward *f, uint32_t n_col, void (*fn)(void *ctx, uint32_t col),
                     void *ctx)
{
    struct col_job job = { fn, ctx, n_col };

    if (n_col == 1)
        fn(ctx, 0);
    else
        pool_run(f->p.pool, col_part, &job);
}

void forward_each_col(struct forward *f, void (*fn)(void *ctx, uint32_t col), void *ctx)
{
    each_col(f, f->n_col, fn, ctx);
}

/* Columns in the form that the weight type wants: a pointer and a stride. */
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

        each_col(f, n_col, pack_col, &pack);
        job.x = f->packed;
        job.x_stride = pack.stride;
    }
    return job;
}

/* The same for all columns of a streamed matrix, which may go through OpenBLAS. */
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

void forward_mul_mem(struct forward *f, enum tensor_type type, const void *w, size_t n_row,
                     size_t n_k, const float *x, size_t ldx, uint32_t n_col, float *y,
                     size_t ldy)
{
    struct mul_job job = mul_prepare(f, type, n_k, x, ldx, n_col, ldy);

    job.w = w;
    job.n_row = n_row;
    job.y = y;
    pool_run(f->p.pool, mul_part, &job);
}

int forward_mul(struct forward *f, const struct mat *m, const float *x, size_t ldx, float *y,
                size_t ldy, struct err *e)
{
    struct mul_job job = mul_prepare_mat(f, m, x, ldx, ldy);

    for (uint64_t done = 0; done < m->n_row; done += job.n_row) {
        struct stream_block block;

        if (atomic_load_explicit(f->p.cancel, memory_order_relaxed))
            return err_set(e, ERR_CANCELLED, "stopped");
        if (stream_next(f->p.stream, &block, &f->stall_ns, e) != 0)
            return -1;
        assert(block.span == m->span && block.row == done);
        job.w = block.data;
        job.n_row = block.n_row;
        job.row = done;
        job.y = y + done;
        pool_run(f->p.pool, mul_part, &job);
        stream_give(f->p.stream, &block);
    }
    return 0;
}

/* --- steps of a layer --- */

struct layer_job {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t l;     /* its index */
    const float *w; /* of a norm */
    float *from, *to;
};

static void norm_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    const struct model_desc *d = s->f->p.desc;
    size_t at = (size_t)c * d->n_embd;

    s->f->p.kernels->rms_norm(s->from + at, s->w, d->n_embd, d->rms_eps, s->to + at);
}

static void norm(struct forward *f, float *from, const struct vec *w, float *to)
{
    struct layer_job s = { .f = f, .w = w->w, .from = from, .to = to };

    forward_each_col(f, norm_col, &s);
}

/* y = y + bias;  y = norm(y) if there is a post-norm;  x = x + y */
struct residual {
    struct forward *f;
    const struct vec *bias, *post_norm;
};

static void residual_col(void *ctx, uint32_t c)
{
    const struct residual *r = ctx;
    const struct model_desc *d = r->f->p.desc;
    const struct kernels *kern = r->f->p.kernels;
    float *y = r->f->y + (size_t)c * d->n_embd;

    if (r->bias != NULL && r->bias->w != NULL)
        kern->add(y, r->bias->w, d->n_embd);
    if (r->post_norm->w != NULL)
        kern->rms_norm(y, r->post_norm->w, d->n_embd, d->rms_eps, y);
    kern->add(r->f->x + (size_t)c * d->n_embd, y, d->n_embd);
}

static void add_residual(struct forward *f, const struct vec *bias, const struct vec *post_norm)
{
    struct residual r = { f, bias, post_norm };

    forward_each_col(f, residual_col, &r);
}

static void rope_heads(struct forward *f, const struct layer_desc *layer, const struct vec *w,
                       float *x, uint32_t n_head, uint32_t col)
{
    uint32_t kind = layer->is_sliding ? 1 : 0;
    const struct rope *rope = &f->rope[kind];
    const float *cosine = f->cosine[kind] + (size_t)col * (rope->n_rot / 2);
    const float *sine = f->sine[kind] + (size_t)col * (rope->n_rot / 2);

    for (uint32_t h = 0; h < n_head; h++) {
        float *head = x + (size_t)h * layer->head_dim_k;

        if (w->w != NULL)
            f->p.kernels->rms_norm(head, w->w, layer->head_dim_k, f->p.desc->rms_eps, head);
        rope_apply(rope, cosine, sine, head);
    }
}

/* Bias, norms and rope on keys and values of one column, then into the store. */
static void store_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    struct forward *f = s->f;
    const struct layer_desc *layer = s->layer;
    const struct kernels *kern = f->p.kernels;
    uint32_t n_k = layer->n_head_kv * layer->head_dim_k,
             n_v = layer->n_head_kv * layer->head_dim_v;
    float *k = f->k + (size_t)c * n_k, *v = f->v + (size_t)c * n_v;

    if (layer->bias_k.w != NULL)
        kern->add(k, layer->bias_k.w, n_k);
    if (layer->v_is_k)
        memcpy(v, k, n_k * sizeof *v);
    else if (layer->bias_v.w != NULL)
        kern->add(v, layer->bias_v.w, n_v);
    for (uint32_t h = 0; layer->has_v_norm && h < layer->n_head_kv; h++)
        kern->rms_norm(v + (size_t)h * layer->head_dim_v, NULL, layer->head_dim_v,
                       f->p.desc->rms_eps, v + (size_t)h * layer->head_dim_v);
    rope_heads(f, layer, &layer->k_norm, k, layer->n_head_kv, c);
    kv_write(f->p.kv, kern, layer->kv_layer, f->pos[c], k, v);
}

static int store_keys(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;
    struct layer_job s = { .f = f, .layer = layer };

    if (forward_mul(f, &layer->k, f->h, n_embd, f->k,
                    (size_t)layer->n_head_kv * layer->head_dim_k, e) != 0)
        return -1;
    if (!layer->v_is_k && forward_mul(f, &layer->v, f->h, n_embd, f->v,
                                      (size_t)layer->n_head_kv * layer->head_dim_v, e) != 0)
        return -1;
    forward_each_col(f, store_col, &s);
    return 0;
}

static void rope_q_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    const struct layer_desc *layer = s->layer;
    size_t n_q = (size_t)layer->n_head * layer->head_dim_k;
    float *q = s->f->q + c * n_q;

    if (layer->bias_q.w != NULL)
        s->f->p.kernels->add(q, layer->bias_q.w, n_q);
    rope_heads(s->f, layer, &layer->q_norm, q, layer->n_head, c);
}

static int attention(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;
    struct layer_job s = { .f = f, .layer = layer };
    uint64_t start;

    if (forward_mul(f, &layer->q, f->h, n_embd, f->q, (size_t)layer->n_head * layer->head_dim_k,
                    e) != 0)
        return -1;
    forward_each_col(f, rope_q_col, &s);
    start = clock_ns();
    forward_attend(f, layer);
    f->attention_ns += clock_ns() - start;
    if (forward_mul(f, &layer->o, f->att, (size_t)layer->n_head * layer->head_dim_v, f->y,
                    n_embd, e) != 0)
        return -1;
    add_residual(f, &layer->bias_o, &layer->post_attn_norm);
    return 0;
}

static void gate_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    const struct kernels *kern = s->f->p.kernels;
    size_t n = s->layer->n_ff;
    float *gate = s->f->gate + c * n, *up = s->f->up + c * n;

    if (s->layer->bias_gate.w != NULL)
        kern->add(gate, s->layer->bias_gate.w, n);
    if (s->layer->bias_up.w != NULL)
        kern->add(up, s->layer->bias_up.w, n);

    if (s->f->p.desc->act == ACT_KIND_GELU)
        kern->gelu_mul(gate, up, n);
    else
        kern->silu_mul(gate, up, n);
}

static int feed_forward(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;
    struct layer_job s = { .f = f, .layer = layer };

    norm(f, f->x, &layer->ffn_norm, f->h);
    if (forward_mul(f, &layer->gate, f->h, n_embd, f->gate, layer->n_ff, e) != 0 ||
        forward_mul(f, &layer->up, f->h, n_embd, f->up, layer->n_ff, e) != 0)
        return -1;
    forward_each_col(f, gate_col, &s);
    if (forward_mul(f, &layer->down, f->gate, layer->n_ff, f->y, n_embd, e) != 0)
        return -1;
    if (layer->experts.n_expert > 0 && forward_experts(f, layer, e) != 0)
        return -1;
    add_residual(f, &layer->bias_down, &layer->post_ffn_norm);
    return 0;
}

/* The layer's part of a row of the per-layer table, which is layer-major.  Whole blocks of
 * the type are decoded; the part may begin and end inside one. */
static void table_part(struct forward *f, uint32_t col, uint32_t l, float *out)
{
    const struct tensor_info *t = f->p.desc->ple_embd;
    uint32_t n = f->p.desc->n_embd_per_layer;
    uint64_t block = tensor_type_info(t->type)->block_elems;
    uint64_t from = (uint64_t)l * n / block * block;
    uint64_t to = ((uint64_t)(l + 1) * n + block - 1) / block * block;
    const unsigned char *row = f->ple_rows + f->row_of[col] * f->ple_row_bytes;
    float *blocks = f->ple_blocks + (size_t)col * (n + 512);

    f->p.kernels->dequant(t->type, row + tensor_row_bytes(t->type, from), blocks, to - from);
    memcpy(out, blocks + ((uint64_t)l * n - from), n * sizeof *out);
}

/* u = (norm(proj . embedding / sqrt(n_embd)) + table row * sqrt(n)) / sqrt(2), then
 * gate = gelu(gate . x) * u: the per-layer input of this layer. */
static void ple_input_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    struct forward *f = s->f;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    uint32_t n = d->n_embd_per_layer;
    float *u = f->ple + (size_t)c * n, *row = f->ple_row + (size_t)c * n;

    kern->scale(u, 1 / sqrtf((float)d->n_embd), n);
    kern->rms_norm(u, d->ple_norm.w, n, d->rms_eps, u);
    table_part(f, c, s->l, row);
    kern->scale(row, sqrtf((float)n), n);
    kern->add(u, row, n);
    kern->scale(u, SQRT_HALF, n);
}

static void ple_gate_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    struct forward *f = s->f;
    size_t n = f->p.desc->n_embd_per_layer;

    f->p.kernels->gelu_mul(f->ple_row + c * n, f->ple + c * n, n);
}

static int per_layer_input(struct forward *f, const struct layer_desc *layer, uint32_t l,
                           struct err *e)
{
    const struct model_desc *d = f->p.desc;
    uint32_t n = d->n_embd_per_layer;
    struct layer_job s = { .f = f, .layer = layer, .l = l };

    if (forward_mul(f, &layer->ple_proj, f->embd, d->n_embd, f->ple, n, e) != 0)
        return -1;
    forward_each_col(f, ple_input_col, &s);
    if (forward_mul(f, &layer->ple_gate, f->x, d->n_embd, f->ple_row, n, e) != 0)
        return -1;
    forward_each_col(f, ple_gate_col, &s);
    if (forward_mul(f, &layer->ple_out, f->ple_row, n, f->y, d->n_embd, e) != 0)
        return -1;
    add_residual(f, NULL, &layer->post_ple_norm);
    return 0;
}

static void scale_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    uint32_t n = s->f->p.desc->n_embd;

    s->f->p.kernels->scale(s->f->x + (size_t)c * n, s->layer->out_scale.w[0], n);
}

/* Only the last column goes on. */
static void keep_last_col(struct forward *f)
{
    const struct model_desc *d = f->p.desc;
    uint32_t last = f->n_col - 1;
    size_t row = d->n_embd * sizeof(float);

    if (last == 0)
        return;
    memcpy(f->x, f->x + (size_t)last * d->n_embd, row);
    memcpy(f->h, f->h + (size_t)last * d->n_embd, row);
    if (d->n_embd_per_layer > 0)
        memcpy(f->embd, f->embd + (size_t)last * d->n_embd, row);
    for (int i = 0; i < 2; i++) {
        uint32_t half = f->rope[i].n_rot / 2;

        memcpy(f->cosine[i], f->cosine[i] + (size_t)last * half, half * sizeof(float));
        memcpy(f->sine[i], f->sine[i] + (size_t)last * half, half * sizeof(float));
    }
    f->pos[0] = f->pos[last];
    f->row_of[0] = f->row_of[last];
    f->n_col = 1;
}

static int run_layer(struct forward *f, uint32_t l, enum want want, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    const struct layer_desc *layer = &d->layers[l];
    struct layer_job s = { .f = f, .layer = layer };

    norm(f, f->x, &layer->attn_norm, f->h);
    if (layer->owns_kv && store_keys(f, layer, e) != 0)
        return -1;
    if (l == d->last_kv_layer) {
        f->is_tail = true;
        if (want == WANT_NONE)
            return 0;
        if (want == WANT_LAST)
            keep_last_col(f);
    }
    if (attention(f, layer, e) != 0 || feed_forward(f, layer, e) != 0)
        return -1;
    if (d->n_embd_per_layer > 0 && per_layer_input(f, layer, l, e) != 0)
        return -1;
    if (layer->out_scale.w != NULL)
        forward_each_col(f, scale_col, &s);
    return 0;
}

/* --- the pass --- */

static void start_lookups(struct forward *f, const uint32_t *ids, uint32_t n)
{
    const struct tensor_info *embd = f->p.desc->token_embd, *ple = f->p.desc->ple_embd;
    size_t n_lookup = 0;

    for (uint32_t i = 0; i < n; i++)
        f->lookups[n_lookup++] = (struct stream_lookup){
            .file = embd->file,
            .offset = embd->offset + ids[i] * f->embd_row_bytes,
            .bytes = f->embd_row_bytes,
            .dst = f->embd_rows + i * f->embd_row_bytes,
        };
    for (uint32_t i = 0; ple != NULL && i < n; i++)
        f->lookups[n_lookup++] = (struct stream_lookup){
            .file = ple->file,
            .offset = ple->offset + ids[i] * f->ple_row_bytes,
            .bytes = f->ple_row_bytes,
            .dst = f->ple_rows + i * f->ple_row_bytes,
        };
    stream_lookup_start(f->p.stream, f->lookups, n_lookup);
}

static void embed_col(void *ctx, uint32_t c)
{
    struct forward *f = ctx;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    float *x = f->x + (size_t)c * d->n_embd;

    kern->dequant(d->token_embd->type, f->embd_rows + c * f->embd_row_bytes, x, d->n_embd);
    kern->scale(x, d->embd_scale, d->n_embd);
    if (d->n_embd_per_layer > 0)
        memcpy(f->embd + (size_t)c * d->n_embd, x, d->n_embd * sizeof *x);
    for (int i = 0; i < 2; i++) {
        uint32_t half = f->rope[i].n_rot / 2;

        rope_angles(&f->rope[i], f->pos[c], f->cosine[i] + (size_t)c * half,
                    f->sine[i] + (size_t)c * half);
    }
}

static int make_logits(struct forward *f, struct err *e)
{
    const struct model_desc *d = f->p.desc;

    norm(f, f->x, &d->output_norm, f->h);
    /* Before the head, too: products with 8-bit activations could hide such values. */
    if (forward_check_numbers(f, f->h, d->n_embd, "the output head", e) != 0 ||
        forward_mul(f, &d->head, f->h, d->n_embd, f->logits, d->n_vocab, e) != 0 ||
        forward_check_numbers(f, f->logits, d->n_vocab, "the output head", e) != 0)
        return -1;
    for (uint32_t c = 0; d->softcap_final > 0 && c < f->n_col; c++)
        f->p.kernels->softcap(f->logits + (size_t)c * d->n_vocab, d->softcap_final, d->n_vocab);
    return 0;
}

/* Run layer l, or the head after the last, and count what it costs. */
static int accounted(struct forward *f, uint32_t l, enum want want, struct err *e)
{
    struct telemetry_layer *t = &f->p.telemetry->layer[l];
    uint64_t start = clock_ns(), stall = f->stall_ns;
    int rc;

    counter_set(&f->p.telemetry->layer_gauge, l);
    rc = l < f->p.desc->n_layer ? run_layer(f, l, want, e) : make_logits(f, e);
    stall = f->stall_ns - stall;
    counter_set(&t->stall_ns, stall);
    counter_set(&t->compute_ns, clock_ns() - start - stall);
    counter_add(&t->passes, 1);
    return rc;
}

/*
 * Layer l of n_run is done.  A layer of n tokens takes as long as reading it once, plus
 * arithmetic that grows with n; those behind the last that stores run for one token, and so
 * does the head.
 */
static void report_progress(const struct forward *f, uint32_t l, uint32_t n, uint32_t n_run,
                            enum want want)
{
    uint32_t n_wide = want == WANT_ALL ? n_run : f->p.desc->last_kv_layer + 1;
    double wide = 1 + n / 32.0, total, done;

    if (f->progress == NULL)
        return;
    n_wide = n_wide < n_run ? n_wide : n_run;
    total = wide * n_wide + (n_run - n_wide) + (want == WANT_NONE ? 0 : 1);
    done = l < n_wide ? wide * (l + 1) : wide * n_wide + (l + 1 - n_wide);
    f->progress(f->progress_ctx, done / total);
}

void forward_set_progress(struct forward *f, forward_progress_fn *fn, void *ctx)
{
    f->progress = fn;
    f->progress_ctx = ctx;
}

/* Is layer l of an evaluation that is repeated the one whose output is not numbers? */
static int check_layer(struct forward *f, uint32_t l, struct err *e)
{
    char source[24];

    if (!f->is_damaged)
        return 0;
    snprintf(source, sizeof source, "layer %u", l);
    return forward_check_numbers(f, f->x, f->p.desc->n_embd, source, e);
}

static int run_layers(struct forward *f, uint32_t n, enum want want, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    uint32_t n_run = want == WANT_NONE ? d->last_kv_layer + 1 : d->n_layer;

    for (uint32_t l = 0; l < n_run; l++) {
        if (accounted(f, l, want, e) != 0 || check_layer(f, l, e) != 0)
            return -1;
        report_progress(f, l, n, n_run, want);
    }
    return want == WANT_NONE ? 0 : accounted(f, d->n_layer, want, e);
}

static int embed(struct forward *f, const uint32_t *ids, uint32_t n, struct err *e)
{
    uint64_t start = clock_ns();

    start_lookups(f, ids, n);
    if (stream_lookup_wait(f->p.stream, e) != 0)
        return -1;
    f->lookup_ns = clock_ns() - start;
    forward_each_col(f, embed_col, f);
    return f->is_damaged ? forward_check_numbers(f, f->x, f->p.desc->n_embd, "the embedding", e)
                         : 0;
}

/* One pass over the model.  Keys and values are written, but not committed. */
static int run_pass(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                    struct err *e)
{
    struct err ignored = ERR_INIT;

    f->n_col = n;
    f->is_tail = false;
    f->stall_ns = f->attention_ns = f->lookup_ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        f->pos[i] = kv_tokens(f->p.kv) + i;
        f->row_of[i] = i;
    }
    stream_pass_begin(f->p.stream, want == WANT_NONE);
    kv_begin(f->p.kv, n);
    if (embed(f, ids, n, e) == 0 && run_layers(f, n, want, e) == 0)
        return stream_pass_end(f->p.stream, e);
    stream_pass_end(f->p.stream, &ignored);
    return -1;
}

/*
 * A pass gave logits that are not numbers: run it again and look at the output of each layer.
 * The error then names the first layer that is damaged.
 */
static void find_damage(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                        struct err *e)
{
    struct err found = ERR_INIT;

    if (run_pass(f, ids, n, want, &found) != 0)
        *e = found;
}

static void publish(struct forward *f, uint32_t n, uint64_t wall_ns, uint64_t bytes)
{
    struct telemetry *t = f->p.telemetry;
    uint32_t head = f->p.desc->n_layer;
    uint64_t stall = f->stall_ns + f->lookup_ns;

    telemetry_begin(t);
    counter_set(&t->pass.wall_ns, wall_ns);
    counter_set(&t->pass.stall_ns, stall);
    counter_set(&t->pass.compute_ns, wall_ns > stall ? wall_ns - stall : 0);
    counter_set(&t->pass.attention_ns, f->attention_ns);
    counter_set(&t->pass.head_ns, counter_get(&t->layer[head].compute_ns));
    counter_set(&t->pass.lookup_ns, f->lookup_ns);
    counter_set(&t->pass.bytes_pass, bytes);
    counter_set(&t->pass.n_col, n);
    telemetry_end(t);
}

int forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                bool in_tiles, struct err *e)
{
    struct telemetry *t = f->p.telemetry;
    uint64_t start = clock_ns(), bytes = counter_get(&t->bytes_read);

    assert(n >= 1 && n <= f->p.chunk && (want != WANT_ALL || n <= f->p.n_logit_row));
    f->is_damaged = false;
    f->in_tiles = in_tiles;
    if (run_pass(f, ids, n, want, e) != 0) {
        if (f->is_damaged)
            find_damage(f, ids, n, want, e);
        return -1;
    }
    kv_commit(f->p.kv, n);
    publish(f, n, clock_ns() - start, counter_get(&t->bytes_read) - bytes);
    return 0;
}
