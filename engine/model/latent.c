/*
 * Latent attention in its absorbed form: the store has one vector per position, which is the
 * key of all heads and begins with their value.
 *
 *   c, r = A.h;  c = norm(c), r rotates               n_latent and n_rot values: key = [c r]
 *   q = Q.h, or Q_b.norm(Q_a.h)                       per head [n_nope | n_rot]; the end
 * rotates q' = [K_b.q_nope  q_rot]                          per head [n_latent | n_rot] u =
 * softmax(q'.key) . c                           n_latent values per head o = V_b.u n_value
 * values per head
 *
 * K_b and V_b have rows for each head that are multiplied with that head's part of a column.
 * Files that have both in one tensor keep K_b transposed: its rows are added with the query's
 * values as factors, in the order of rows, so a query does not depend on how blocks are cut.
 */
#include "config.h"

#include <string.h>

#include "engine/model/forward_internal.h"

struct latent_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct latent_hparams *m;
    const float *w; /* of a norm */
    float *x;
    size_t n, ld;
};

static struct latent_job job_of(struct forward *f, const struct layer_desc *layer)
{
    return (struct latent_job){ .f = f, .layer = layer, .m = &f->p.desc->hp->latent };
}

/* Rotate n_rot values at x. */
static void rotate_part(const struct latent_job *j, float *x, uint32_t c)
{
    const struct rope *rope = &j->f->rope[0];
    size_t at = (size_t)c * (rope->n_rot / 2);

    if (!j->layer->is_ropeless)
        rope_apply(rope, j->f->cosine[0] + at, j->f->sine[0] + at, x);
}

static void store_col(void *ctx, uint32_t c)
{
    const struct latent_job *j = ctx;
    const struct forward *f = j->f;
    float *k = f->k + (size_t)c * (j->m->n_latent + j->m->n_rot);

    f->p.kernels->rms_norm(k, j->layer->kv_a_norm.w, j->m->n_latent, f->p.desc->rms_eps, k);
    rotate_part(j, k + j->m->n_latent, c);
    kv_write(f->p.kv, f->p.kernels, j->layer->kv_layer, f->pos[c], k, NULL);
}

int forward_latent_store(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct latent_job j = job_of(f, layer);

    if (forward_mul(f, &layer->kv_a, f->h, f->p.desc->n_embd, f->k,
                    (size_t)j.m->n_latent + j.m->n_rot, e) != 0)
        return -1;
    forward_each_col(f, store_col, &j);
    return layer->has_index ? forward_score_store(f, layer, e) : 0;
}

static void norm_query_col(void *ctx, uint32_t c)
{
    const struct latent_job *j = ctx;
    float *x = j->f->att + (size_t)c * j->m->n_query;

    j->f->p.kernels->rms_norm(x, j->layer->q_a_norm.w, j->m->n_query, j->f->p.desc->rms_eps, x);
}

/* Rotate the end of each query, and put it after the place of its latent part. */
static void rotate_queries_col(void *ctx, uint32_t c)
{
    const struct latent_job *j = ctx;
    size_t n_in = (size_t)j->m->n_nope + j->m->n_rot, n_out = j->layer->head_dim_k;
    const float *in = j->f->wide + c * j->layer->n_head * n_in + j->m->n_nope;
    float *out = j->f->q + c * j->layer->n_head * n_out + j->m->n_latent;

    for (uint32_t h = 0; h < j->layer->n_head; h++, in += n_in, out += n_out) {
        memcpy(out, in, j->m->n_rot * sizeof *out);
        rotate_part(j, out, c);
    }
}

int forward_low_queries(struct forward *f, const struct layer_desc *layer, float *out,
                        struct err *e)
{
    struct latent_job j = job_of(f, layer);
    uint32_t n_embd = f->p.desc->n_embd, rank = j.m->n_query;

    if (layer->has_index && forward_mul(f, &layer->score_weights, f->h, n_embd, f->index_w,
                                        layer->score_weights.n_row, e) != 0)
        return -1;
    if (forward_mul(f, &layer->q_a, f->h, n_embd, f->att, rank, e) != 0)
        return -1;
    forward_each_col(f, norm_query_col, &j);
    if (forward_mul(f, &layer->q_b, f->att, rank, out, layer->q_b.n_row, e) != 0)
        return -1;
    return layer->has_index ? forward_mul(f, &layer->score_q, f->att, rank, f->index_q,
                                          layer->score_q.n_row, e)
                            : 0;
}

int forward_latent_queries(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct latent_job j = job_of(f, layer);
    uint32_t n_embd = f->p.desc->n_embd, n_in = j.m->n_nope + j.m->n_rot;
    const struct by_head heads = {
        .n_row = layer->has_joined_kv_b ? j.m->n_nope + j.m->n_value : j.m->n_latent,
        .from = 0,
        .to = layer->has_joined_kv_b ? j.m->n_nope : j.m->n_latent,
        .is_transposed = layer->has_joined_kv_b,
        .n_in = n_in,
        .n_out = layer->head_dim_k,
    };

    if (layer->q_a.tensor == NULL) {
        if (forward_mul(f, &layer->q, f->h, n_embd, f->wide, (size_t)layer->n_head * n_in, e) !=
            0)
            return -1;
    } else if (forward_low_queries(f, layer, f->wide, e) != 0) {
        return -1;
    }
    forward_each_col(f, rotate_queries_col, &j);
    return forward_mul_heads(f, &layer->k_b, &heads, f->wide, f->q, e);
}

int forward_latent_values(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    const struct latent_hparams *m = &f->p.desc->hp->latent;
    const struct by_head heads = {
        .n_row = layer->has_joined_kv_b ? m->n_nope + m->n_value : m->n_value,
        .from = layer->has_joined_kv_b ? m->n_nope : 0,
        .to = layer->has_joined_kv_b ? m->n_nope + m->n_value : m->n_value,
        .n_in = m->n_latent,
        .n_out = m->n_value,
    };

    return forward_mul_heads(f, &layer->v_b, &heads, f->att, f->wide, e);
}
