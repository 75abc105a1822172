/*
 * The forward pass.  Each layer computes for all columns, which are the tokens of the chunk.
 * README.md has a table of the parts; a layer has some of these, in this order:
 *
 *   x += n-grams                       rows of a table, in one layer (ngrams.c)
 *   h = norm(x)                        x: residual stream, at first the embedding; with several
 *                                      streams, mixers make h and spread outputs (streams.c)
 *   k, v = K.h, V.h                    layers that own keys and values: bias, norms, rope, then
 *                                      into the KV store.  After the last of these layers only
 *                                      columns whose logits are requested go on
 *   q = Q.h                            bias, norm, rope
 *   att = softmax(q.k) . v             over the positions of the store (attend.c), or over the
 *                                      blocks that index keys choose (index.c, attend_chosen.c),
 *                                      or over a window and entries (entries.c)
 *   att *= sigmoid(g)                  where q has gates, or a matrix of their own gives g
 *   x += norm(O.att)                   the norm only where the architecture has it
 *                                      recurrent layers have delta nets, Mamba-2 or the like
 *                                      instead, or beside it (delta.c, mamba.c, kda.c)
 *   h = norm(x)
 *   x += norm(D.(act(G.h) * U.h))      feed-forward, or experts, or both (experts.c)
 *   x += norm(P.(gelu(I.x) * ple))     per-layer input, Gemma 4
 *   x *= out_scale                     Gemma 4
 *
 * After the last layer, logits = softcap(head.norm(x)).  The matrices come from the stream in
 * the order of layer_desc.mats, which forward_mul_all() asserts.
 */
#include "config.h"

#include "engine/model/forward.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"

#define SQRT_HALF 0.70710678118654752440f

/* --- steps of a layer --- */

struct layer_job {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t l;     /* its index */
    const float *w; /* of a norm */
    float *from, *to;
};

void forward_mean_norm(const float *x, const float *w, const float *b, size_t n, float eps,
                       float *out)
{
    double sum = 0, squares = 0;
    float mean, by;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    mean = (float)(sum / (double)n);
    for (size_t i = 0; i < n; i++)
        squares += (double)(x[i] - mean) * (double)(x[i] - mean);
    by = (float)(1 / sqrt(squares / (double)n + (double)eps));
    for (size_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) * by * w[i] + (b != NULL ? b[i] : 0);
}

static void norm_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    const struct model_desc *d = s->f->p.desc;
    size_t at = (size_t)c * d->n_embd;

    if (s->w != NULL && d->has_mean_norms)
        forward_mean_norm(s->from + at, s->w, NULL, d->n_embd, d->rms_eps, s->to + at);
    else if (s->w != NULL)
        s->f->p.kernels->rms_norm(s->from + at, s->w, d->n_embd, d->rms_eps, s->to + at);
    else
        memcpy(s->to + at, s->from + at, d->n_embd * sizeof *s->to);
}

/* to = norm(from), or from where the architecture has no norm. */

static void norm(struct forward *f, float *from, const struct vec *w, float *to)
{
    struct layer_job s = { .f = f, .w = w->w, .from = from, .to = to };

    forward_each_col(f, norm_col, &s);
}

/* h: the input of a branch. */
static int branch_input(struct forward *f, const struct vec *w, const struct mixer *m,
                        struct err *e)
{
    if (f->p.desc->hp->n_stream > 0 && forward_mix(f, m, e) != 0)
        return -1;
    if (f->p.desc->hp->n_stream == 0 || f->p.desc->has_hyper)
        norm(f, f->p.desc->has_hyper ? f->h : f->x, w, f->h);
    return 0;
}

/* y = y + bias;  y = norm(y) if there is a post-norm;  x = x + y * residual_scale */
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
        kern->rms_norm(y, r->post_norm->w, d->n_embd, d->post_eps, y);
    if (d->residual_scale != 1)
        kern->scale(y, d->residual_scale, d->n_embd);
    if (d->hp->n_stream > 0)
        forward_inject_col(r->f, c);
    else
        kern->add(r->f->x + (size_t)c * d->n_embd, y, d->n_embd);
}

static void add_residual(struct forward *f, const struct vec *bias, const struct vec *post_norm)
{
    struct residual r = { f, bias, post_norm };

    forward_each_col(f, residual_col, &r);
}

/* Norm the heads of one column.  A norm has weights for one head, or for all heads in a row. */
static void norm_heads(const struct forward *f, const struct layer_desc *layer,
                       const struct vec *w, float *x, uint32_t n_head)
{
    size_t n = w->w != NULL ? w->n : layer->head_dim_k;

    if (w->w == NULL && !layer->has_unit_norms)
        return;
    for (size_t at = 0; at < (size_t)n_head * layer->head_dim_k; at += n)
        f->p.kernels->rms_norm(x + at, w->w, n, f->p.desc->rms_eps, x + at);
}

/* Norm and rotate the heads of one column. */
static void rope_heads(struct forward *f, const struct layer_desc *layer, const struct vec *w,
                       float *x, uint32_t n_head, uint32_t col)
{
    uint32_t kind = layer->is_sliding ? 1 : 0;
    const struct rope *rope = &f->rope[kind];
    const float *cosine = f->cosine[kind] + (size_t)col * (rope->n_rot / 2);
    const float *sine = f->sine[kind] + (size_t)col * (rope->n_rot / 2);

    if (!layer->has_late_norms)
        norm_heads(f, layer, w, x, n_head);
    for (uint32_t h = 0; !layer->is_ropeless && h < n_head; h++)
        rope_apply(rope, cosine, sine, x + (size_t)h * layer->head_dim_k);
    if (layer->has_late_norms)
        norm_heads(f, layer, w, x, n_head);
}

/* Apply bias, norms and rope to the keys and values of one column, and write them to the store.
 */
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

/* Products with the matrices of the queries.  Returns their number. */
static size_t query_products(const struct forward *f, const struct layer_desc *layer,
                             struct product *p)
{
    size_t n = 0;

    if (layer->is_indexed)
        p[n++] = (struct product){ &layer->index_q, f->index_q, layer->index_q.n_row };
    p[n++] = (struct product){ &layer->q, layer->is_gated ? f->wide : f->q, layer->q.n_row };
    return n;
}

/* with_queries: multiply with the matrices of the queries in the same round. */
static int store_keys(struct forward *f, const struct layer_desc *layer, bool with_queries,
                      struct err *e)
{
    struct layer_job s = { .f = f, .layer = layer };
    struct product p[5];
    size_t n = 0;

    p[n++] = (struct product){ &layer->k, f->k, (size_t)layer->n_head_kv * layer->head_dim_k };
    if (!layer->v_is_k)
        p[n++] =
            (struct product){ &layer->v, f->v, (size_t)layer->n_head_kv * layer->head_dim_v };
    if (layer->is_indexed)
        p[n++] = (struct product){ &layer->index_k, f->index_k, layer->index_k.n_row };
    if (with_queries)
        n += query_products(f, layer, p + n);
    if (forward_mul_all(f, p, n, f->h, f->p.desc->n_embd, e) != 0)
        return -1;
    forward_each_col(f, store_col, &s);
    if (layer->is_indexed)
        forward_index_store(f, layer);
    return 0;
}

/* The projection of a gated layer has queries and gates of a head, then of the next one. */
static void part_gates(const struct layer_job *s, uint32_t c, float *q)
{
    uint32_t n = s->layer->head_dim_k;
    const float *wide = s->f->wide + (size_t)c * 2 * s->layer->n_head * n;

    for (uint32_t h = 0; h < s->layer->n_head; h++)
        memcpy(q + (size_t)h * n, wide + (size_t)2 * h * n, n * sizeof *q);
}

static void gate_heads_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    uint32_t n = s->layer->head_dim_v, n_head = s->layer->n_head;
    float *att = s->f->att + (size_t)c * n_head * n;
    const float *wide = s->f->wide + (size_t)c * 2 * n_head * n;

    for (uint32_t h = 0; h < n_head; h++)
        s->f->p.kernels->sigmoid_mul(att + (size_t)h * n, wide + (size_t)(2 * h + 1) * n, n);
}

static void rope_q_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    const struct layer_desc *layer = s->layer;
    const struct hparams *hp = s->f->p.desc->hp;
    size_t n_q = (size_t)layer->n_head * layer->head_dim_k;
    float *q = s->f->q + c * n_q;

    if (layer->is_gated)
        part_gates(s, c, q);
    if (layer->bias_q.w != NULL)
        s->f->p.kernels->add(q, layer->bias_q.w, n_q);
    rope_heads(s->f, layer, &layer->q_norm, q, layer->n_head, c);
    if (hp->temp_scale > 0)
        s->f->p.kernels->scale(
            q, 1 + hp->temp_scale * log1pf((float)(s->f->pos[c] / hp->temp_len)), n_q);
}

/* The factors of heads or of single values from a matrix of their own. */
static void out_gate_col(void *ctx, uint32_t c)
{
    const struct layer_job *s = ctx;
    const struct layer_desc *layer = s->layer;
    const struct kernels *kern = s->f->p.kernels;
    uint32_t n_gate = layer->gate_out.n_row;
    size_t n = (size_t)layer->n_head *
               (layer->is_latent ? s->f->p.desc->hp->latent.n_value : layer->head_dim_v);
    size_t each = n / n_gate; /* values of a head, or one */
    float *x = (layer->is_latent ? s->f->wide : s->f->att) + c * n;
    const float *gate = s->f->gates + (size_t)c * n_gate;

    if (layer->out_gate == GATE_VALUES) {
        kern->sigmoid_mul(x, gate, n);
        return;
    }
    for (uint32_t i = 0; i < n_gate; i++)
        kern->scale(x + i * each,
                    layer->out_gate == GATE_SOFTPLUS ? softplus(gate[i])
                                                     : 1 / (1 + expf(-gate[i])),
                    each);
}

/* x *= by */
struct scaling {
    struct forward *f;
    float *x;
    size_t n;
    float by;
};

static void scaling_col(void *ctx, uint32_t c)
{
    const struct scaling *s = ctx;

    s->f->p.kernels->scale(s->x + c * s->n, s->by, s->n);
}

void forward_scale_cols(struct forward *f, float *x, size_t n, float by)
{
    struct scaling s = { f, x, n, by };

    if (by != 1)
        forward_each_col(f, scaling_col, &s);
}

static int queries(struct forward *f, const struct layer_desc *layer, bool has_queries,
                   struct err *e)
{
    struct layer_job s = { .f = f, .layer = layer };
    struct product q[2];
    uint32_t n_embd = f->p.desc->n_embd;

    if (layer->is_latent) {
        if (forward_latent_queries(f, layer, e) != 0)
            return -1;
    } else if (layer->has_entries) {
        if (forward_entries_queries(f, layer, e) != 0)
            return -1;
    } else {
        if (!has_queries && forward_mul_all(f, q, query_products(f, layer, q), f->h, n_embd, e) != 0)
            return -1;
        forward_each_col(f, rope_q_col, &s);
    }
    if (layer->out_gate == GATE_NONE)
        return 0;
    return forward_mul(f, &layer->gate_out, f->h, n_embd, f->gates, layer->gate_out.n_row, e);
}

static int attend_all(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    return f->in_tiles && !f->is_tail ? forward_attend_tiles(f, layer, e)
                                      : forward_attend(f, layer, e);
}

/* The first columns see all positions, the others choose. */
static int attend_indexed(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    uint32_t n_col = f->n_col, n_dense = forward_index_dense(f);

    f->n_col = n_dense;
    if (n_dense > 0 && attend_all(f, layer, e) != 0)
        return -1;
    f->n_col = n_col;
    if (n_dense == n_col)
        return 0;
    if (layer->has_index) /* else the choice of an earlier layer is still there */
        forward_index_choose(f, layer, n_dense);
    forward_attend_chosen(f, layer, n_dense);
    return 0;
}

static int attention(struct forward *f, const struct layer_desc *layer, bool has_queries,
                     struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;
    struct layer_job s = { .f = f, .layer = layer };
    const float *out = layer->is_latent || layer->has_entries ? f->wide : f->att;
    uint64_t start, stall;

    if (queries(f, layer, has_queries, e) != 0)
        return -1;
    start = clock_ns();
    stall = f->stall_ns;
    if (layer->has_entries)
        forward_attend_entries(f, layer);
    else if ((layer->is_indexed ? attend_indexed(f, layer, e) : attend_all(f, layer, e)) != 0)
        return -1;
    if (layer->is_gated)
        forward_each_col(f, gate_heads_col, &s);
    f->attention_ns += clock_ns() - start - (f->stall_ns - stall);
    if ((layer->is_latent && forward_latent_values(f, layer, e) != 0) ||
        (layer->has_entries && forward_entries_values(f, layer, e) != 0))
        return -1;
    if (layer->out_gate != GATE_NONE)
        forward_each_col(f, out_gate_col, &s);
    if (forward_mul(f, &layer->o, out, layer->o.n_k, f->y, n_embd, e) != 0)
        return -1;
    forward_scale_cols(f, f->y, n_embd, f->p.desc->hp->factors.attn);
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
    if (s->f->p.desc->hp->factors.gate != 1)
        kern->scale(gate, s->f->p.desc->hp->factors.gate, n);
    if (s->layer->clamp.up > 0)
        clamp_products(gate, up, n, s->layer->clamp);

    if (s->f->p.desc->act == ACT_KIND_GELU)
        kern->gelu_mul(gate, up, n);
    else if (s->f->p.desc->act == ACT_KIND_RELU2)
        relu2(gate, n);
    else
        kern->silu_mul(gate, up, n);
}

static int dense_branch(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;
    struct layer_job s = { .f = f, .layer = layer };
    const struct product p[2] = { { &layer->gate, f->gate, layer->n_ff },
                                  { &layer->up, f->up, layer->n_ff } };
    const struct product only_up = { &layer->up, f->gate, layer->n_ff };
    bool has_gate = layer->gate.tensor != NULL;

    if (forward_mul_all(f, has_gate ? p : &only_up, has_gate ? 2 : 1, f->h, n_embd, e) != 0)
        return -1;
    forward_each_col(f, gate_col, &s);
    if (forward_mul(f, &layer->down, f->gate, layer->n_ff, f->y, n_embd, e) != 0)
        return -1;
    forward_scale_cols(f, f->y, n_embd, f->p.desc->hp->factors.ffn);
    return 0;
}

static int feed_forward(struct forward *f, const struct layer_desc *layer, uint32_t l,
                        struct err *e)
{
    const struct mixer mixer = desc_ffn_mixer(layer);

    if (!layer->is_parallel && branch_input(f, &layer->ffn_norm, &mixer, e) != 0)
        return -1;
    if (layer->experts.n_expert > 0 && forward_route(f, layer, l, e) != 0)
        return -1;
    if (layer->down.tensor != NULL && dense_branch(f, layer, e) != 0)
        return -1;
    if (layer->experts.n_expert > 0 && forward_experts(f, layer, e) != 0)
        return -1;
    add_residual(f, &layer->bias_down, &layer->post_ffn_norm);
    return 0;
}

/* Decode the part of layer l in a row of the per-layer table, where layer follows layer. Blocks
 * of the type are decoded completely; the part may begin and end inside one. */
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

/* Continue with the last column only. */
static void keep_last_col(struct forward *f)
{
    const struct model_desc *d = f->p.desc;
    uint32_t last = f->n_col - 1;
    size_t row = d->n_embd * sizeof(float);

    if (last == 0)
        return;
    memcpy(f->x, f->x + last * desc_n_residual(d), desc_n_residual(d) * sizeof(float));
    memcpy(f->inject, f->inject + (size_t)last * d->n_inject, d->n_inject * sizeof(float));
    memcpy(f->chosen, f->chosen + (size_t)last * d->hp->index.n_block,
           d->hp->index.n_block * sizeof *f->chosen);
    memcpy(f->h, f->h + (size_t)last * d->n_embd, row);
    if (d->n_embd_per_layer > 0)
        memcpy(f->embd, f->embd + (size_t)last * d->n_embd, row);
    for (int i = 0; i < 2; i++) {
        uint32_t half = f->rope[i].n_rot / 2;

        memcpy(f->cosine[i], f->cosine[i] + (size_t)last * half, half * sizeof(float));
        memcpy(f->sine[i], f->sine[i] + (size_t)last * half, half * sizeof(float));
    }
    f->pos[0] = f->pos[last];
    f->ids[0] = f->ids[last];
    f->row_of[0] = f->row_of[last];
    f->n_col = 1;
}

/* The part of a layer that has a recurrent state. */
static int recurrent_part(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    int rc = -1;

    switch (f->p.desc->recurrence) {
    case RECUR_DELTA: rc = forward_delta(f, layer, e); break;
    case RECUR_MAMBA: rc = forward_mamba(f, layer, e); break;
    case RECUR_CONV: rc = forward_short_conv(f, layer, e); break;
    case RECUR_KDA: rc = forward_kda(f, layer, e); break;
    case RECUR_NONE: break;
    }
    if (rc == 0)
        add_residual(f, NULL, &layer->post_attn_norm);
    return rc;
}

static bool has_feed_forward(const struct layer_desc *layer)
{
    return layer->down.tensor != NULL || layer->experts.n_expert > 0;
}

static int run_layer(struct forward *f, uint32_t l, enum want want, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    const struct layer_desc *layer = &d->layers[l];
    struct layer_job s = { .f = f, .layer = layer };
    const struct mixer mixer = desc_attn_mixer(layer);
    bool has_queries = desc_joins_queries(d, l);

    if (layer->ngram_key.tensor != NULL && forward_ngrams(f, layer, e) != 0)
        return -1;
    if (branch_input(f, &layer->attn_norm, &mixer, e) != 0)
        return -1;
    if (layer->owns_kv && (layer->is_latent     ? forward_latent_store(f, layer, e)
                           : layer->has_entries ? forward_entries_store(f, layer, e)
                                                : store_keys(f, layer, has_queries, e)) != 0)
        return -1;
    if (layer->is_recurrent && recurrent_part(f, layer, e) != 0)
        return -1;
    if (l == d->last_kv_layer) {
        f->is_tail = true;
        if (want == WANT_NONE && !f->hides_all)
            return 0;
        if (want == WANT_LAST && !f->hides_all)
            keep_last_col(f);
    }
    if (layer->attends && attention(f, layer, has_queries, e) != 0)
        return -1;
    if (has_feed_forward(layer) && feed_forward(f, layer, l, e) != 0)
        return -1;
    if (d->n_embd_per_layer > 0 && per_layer_input(f, layer, l, e) != 0)
        return -1;
    if (layer->out_scale.w != NULL)
        forward_each_col(f, scale_col, &s);
    return 0;
}

/* --- the pass --- */

/* Ask for the rows of n tokens in a table, except those that are kept.  Returns how many. */
static size_t list_rows(const struct tensor_info *t, const struct row_cache *kept,
                        uint64_t row_bytes, const uint32_t *ids, uint32_t n, unsigned char *dst,
                        struct stream_lookup *to)
{
    size_t n_lookup = 0;

    for (uint32_t i = 0; t != NULL && i < n; i++, dst += row_bytes)
        if (!row_cache_get(kept, ids[i], dst))
            to[n_lookup++] = (struct stream_lookup){ .file = t->file,
                                                     .offset = t->offset + ids[i] * row_bytes,
                                                     .bytes = row_bytes,
                                                     .dst = dst };
    return n_lookup;
}

/* A draft head keeps rows of the embedding in its trunk's caches, and has no other table. */
static void keep_rows(const struct tensor_info *t, struct row_cache *c, const uint32_t *ids,
                      uint32_t n, const unsigned char *rows)
{
    for (uint32_t i = 0; t != NULL && c->rows != NULL && i < n; i++)
        row_cache_put(c, ids[i], rows + i * c->row_bytes);
}

static int look_up(struct forward *f, const uint32_t *ids, uint32_t n, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    size_t n_lookup = list_rows(d->token_embd, &f->p.kept->embd, f->embd_row_bytes, ids, n,
                                f->embd_rows, f->lookups);

    n_lookup += list_rows(d->ple_embd, &f->p.kept->ple, f->ple_row_bytes, ids, n, f->ple_rows,
                          f->lookups + n_lookup);
    if (n_lookup == 0)
        return 0;
    stream_lookup_start(f->p.stream, f->lookups, n_lookup);
    if (stream_lookup_wait(f->p.stream, e) != 0)
        return -1;
    keep_rows(d->token_embd, &f->p.kept->embd, ids, n, f->embd_rows);
    keep_rows(d->ple_embd, &f->p.kept->ple, ids, n, f->ple_rows);
    return 0;
}

void forward_angles(struct forward *f, uint32_t c)
{
    for (int i = 0; i < 2; i++) {
        uint32_t half = f->rope[i].n_rot / 2;

        rope_angles(&f->rope[i], f->pos[c], f->cosine[i] + (size_t)c * half,
                    f->sine[i] + (size_t)c * half);
    }
}

static void embed_col(void *ctx, uint32_t c)
{
    struct forward *f = ctx;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    float *x = f->x + c * desc_n_residual(d);

    kern->dequant(d->token_embd->type, f->embd_rows + c * f->embd_row_bytes, x, d->n_embd);
    kern->scale(x, d->embd_scale, d->n_embd);
    if (d->has_unit_embd)
        kern->rms_norm(x, NULL, d->n_embd, d->rms_eps, x);
    for (uint32_t s = 1; s < d->n_stream; s++)
        memcpy(x + (size_t)s * d->n_embd, x, d->n_embd * sizeof *x);
    if (d->n_embd_per_layer > 0)
        memcpy(f->embd + (size_t)c * d->n_embd, x, d->n_embd * sizeof *x);
    forward_angles(f, c);
}

/* Store what a draft head takes: the residual streams, or what the output head gets. */
static void keep_hidden(struct forward *f, const float *from)
{
    if (f->hidden != NULL)
        memcpy(f->hidden, from, f->n_col * desc_n_residual(f->p.desc) * sizeof *from);
}

/* The input of the output head in h, and hidden rows.  Afterwards only columns whose logits are
 * requested are left. */
static int last_norm(struct forward *f, enum want want, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    const struct mixer mixer = desc_out_mixer(d);
    bool has_streams = d->hp->n_stream > 0;

    if (has_streams)
        keep_hidden(f, f->x);
    if (has_streams && want == WANT_LAST)
        keep_last_col(f);
    if (has_streams && want == WANT_NONE)
        return 0;
    if (branch_input(f, &d->output_norm, &mixer, e) != 0)
        return -1;
    if (!has_streams && d->head_out.tensor == NULL)
        keep_hidden(f, f->h);
    if (want == WANT_LAST)
        keep_last_col(f);
    return 0;
}

static int make_logits(struct forward *f, enum want want, struct err *e)
{
    const struct model_desc *d = f->p.desc;

    if (last_norm(f, want, e) != 0)
        return -1;
    if (want == WANT_NONE)
        return 0;
    /* Before the head, too: products with 8-bit activations could hide such values. */
    if (forward_check_numbers(f, f->h, d->n_embd, "the output head", e) != 0 ||
        (d->head_clusters.tensor != NULL
             ? forward_clusters(f, e)
             : forward_mul(f, &d->head, f->h, d->n_embd, f->logits, d->n_vocab, e)) != 0 ||
        (d->head_out.tensor != NULL &&
         forward_mul(f, &d->head_out, f->h, d->n_embd, f->hidden, d->n_hidden, e) != 0) ||
        forward_check_numbers(f, f->logits, d->n_vocab, "the output head", e) != 0)
        return -1;
    for (uint32_t c = 0; d->logit_scale != 1 && c < f->n_col; c++)
        f->p.kernels->scale(f->logits + (size_t)c * d->n_vocab, d->logit_scale, d->n_vocab);
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
    rc = l < f->p.desc->n_layer ? run_layer(f, l, want, e) : make_logits(f, want, e);
    stall = f->stall_ns - stall;
    counter_set(&t->stall_ns, stall);
    counter_set(&t->compute_ns, clock_ns() - start - stall);
    counter_add(&t->passes, 1);
    return rc;
}

/*
 * Report that layer l of n_run is done.  The time of a layer is estimated as reading it once,
 * plus arithmetic that grows with its n tokens.  Layers after the last one that stores keys and
 * values run for one token, and so does the head.
 */
static void report_progress(const struct forward *f, uint32_t l, uint32_t n, uint32_t n_run,
                            enum want want)
{
    uint32_t n_wide = want == WANT_ALL || f->hides_all ? n_run : f->p.desc->last_kv_layer + 1;
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

void forward_set_hidden(struct forward *f, float *rows, bool of_all)
{
    f->hidden = rows;
    f->hides_all = rows != NULL && of_all;
}

void forward_read_hidden(struct forward *f, const float *rows)
{
    f->hidden_in = rows;
}

/* When a pass is repeated to find damage, check the output of layer l. */
static int check_layer(struct forward *f, uint32_t l, struct err *e)
{
    char source[24];

    if (!f->is_damaged)
        return 0;
    snprintf(source, sizeof source, "layer %u", l);
    return forward_check_numbers(f, f->x, desc_n_residual(f->p.desc), source, e);
}

static int run_layers(struct forward *f, uint32_t n, enum want want, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    bool is_whole = want != WANT_NONE || f->hides_all;
    uint32_t n_run = is_whole ? d->n_layer : d->last_kv_layer + 1;

    kv_walk_begin(f, is_whole ? n_run : n_run - 1); /* the last one of a prompt does not attend */
    for (uint32_t l = 0; l < n_run; l++) {
        if (accounted(f, l, want, e) != 0 || check_layer(f, l, e) != 0)
            return -1;
        forward_between(f, true);
        report_progress(f, l, n, n_run, want);
    }
    return is_whole ? accounted(f, d->n_layer, want, e) : 0;
}

static int embed(struct forward *f, const uint32_t *ids, uint32_t n, struct err *e)
{
    uint64_t start = clock_ns();

    if (look_up(f, ids, n, e) != 0)
        return -1;
    if (f->p.desc->ngram_embd != NULL)
        forward_ngrams_start(f, ids, n);
    f->lookup_ns = clock_ns() - start;
    if (f->p.desc->n_hidden > 0)
        return forward_head_input(f, e);
    forward_each_col(f, embed_col, f);
    return f->is_damaged
               ? forward_check_numbers(f, f->x, desc_n_residual(f->p.desc), "the embedding", e)
               : 0;
}

static void begin_stream(struct forward *f, enum want want)
{
    if (f->is_low)
        stream_low_pass_begin(f->p.stream);
    else
        stream_pass_begin(f->p.stream, want == WANT_NONE && !f->hides_all);
}

static int end_stream(struct forward *f, struct err *e)
{
    if (!f->is_low)
        return stream_pass_end(f->p.stream, e);
    stream_low_pass_end(f->p.stream);
    return 0;
}

/* Run one pass over the model.  Keys and values are written, but not committed. */
static int run_pass(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                    struct err *e)
{
    struct err ignored = ERR_INIT;

    f->n_col = n;
    f->is_tail = false;
    f->stall_ns = f->attention_ns = f->lookup_ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        f->pos[i] = kv_tokens(f->p.kv) + i;
        f->ids[i] = ids[i];
        f->row_of[i] = i;
    }
    f->n_taken_back = want == WANT_ALL && n <= f->p.n_replay ? n : 0;
    begin_stream(f, want);
    /* Logits end a prompt; then come tokens, one by one. */
    if (f->p.experts != NULL)
        expert_cache_expect(f->p.experts, want == WANT_NONE ? n : 1);
    if (!f->p.desc->reads_trunk_kv)
        kv_begin(f->p.kv, n);
    if (embed(f, ids, n, e) == 0 && run_layers(f, n, want, e) == 0)
        return end_stream(f, e);
    kv_walk_end(f);
    (void)forward_ngrams_wait(f, &ignored);
    (void)end_stream(f, &ignored);
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

/* Counters before a pass. */
struct counted {
    uint64_t ns, bytes, hits, misses, expert_bytes, kv_bytes;
};

static struct counted counted_now(const struct telemetry *t)
{
    return (struct counted){ .ns = clock_ns(),
                             .bytes = counter_get(&t->bytes_read),
                             .hits = counter_get(&t->expert_hits),
                             .misses = counter_get(&t->expert_misses),
                             .expert_bytes = counter_get(&t->expert_bytes),
                             .kv_bytes = counter_get(&t->kv_read_bytes) };
}

static void publish(struct forward *f, uint32_t n, const struct counted *before)
{
    struct telemetry *t = f->p.telemetry;
    uint32_t head = f->p.desc->n_layer;
    uint64_t stall = f->stall_ns + f->lookup_ns, wall_ns = clock_ns() - before->ns;
    uint64_t compute_ns = wall_ns > stall ? wall_ns - stall : 0;

    telemetry_begin(t);
    counter_set(&t->pass.wall_ns, wall_ns);
    counter_set(&t->pass.stall_ns, stall);
    counter_set(&t->pass.compute_ns, compute_ns);
    counter_set(&t->pass.attention_ns, f->attention_ns);
    counter_set(&t->pass.head_ns, counter_get(&t->layer[head].compute_ns));
    counter_set(&t->pass.lookup_ns, f->lookup_ns);
    counter_set(&t->pass.wait_ns, pool_wait_ns(f->p.pool, compute_ns));
    counter_set(&t->pass.bytes_pass, counter_get(&t->bytes_read) - before->bytes);
    counter_set(&t->pass.n_col, n);
    counter_set(&t->pass.expert_hits, counter_get(&t->expert_hits) - before->hits);
    counter_set(&t->pass.expert_misses, counter_get(&t->expert_misses) - before->misses);
    counter_set(&t->pass.expert_bytes, counter_get(&t->expert_bytes) - before->expert_bytes);
    counter_set(&t->pass.kv_bytes, counter_get(&t->kv_read_bytes) - before->kv_bytes);
    telemetry_end(t);
}

int forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                bool in_tiles, struct err *e)
{
    struct telemetry *t = f->p.telemetry;
    struct counted before = counted_now(t);

    assert(n >= 1 && n <= f->p.chunk && (want != WANT_ALL || n <= f->p.n_logit_row));
    f->is_damaged = false;
    f->in_tiles = in_tiles;
    pool_wait_begin(f->p.pool);
    telemetry_trace_begin(t, n);
    if (run_pass(f, ids, n, want, e) != 0) {
        if (f->is_damaged)
            find_damage(f, ids, n, want, e);
        f->n_taken_back = 0;
        return -1;
    }
    if (!f->p.desc->reads_trunk_kv)
        kv_commit(f->p.kv, n);
    publish(f, n, &before);
    return 0;
}

int forward_run_low(struct forward *f, uint32_t id, struct telemetry *t, struct err *e)
{
    struct telemetry *own = f->p.telemetry;
    int rc;

    f->p.telemetry = t;
    f->is_low = true;
    rc = forward_run(f, &id, 1, WANT_LAST, false, e);
    f->is_low = false;
    f->p.telemetry = own;
    return rc;
}
