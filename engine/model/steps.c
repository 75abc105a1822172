/* See steps.h. */
#include "config.h"

#include "engine/model/steps.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/compute/pool.h"
#include "engine/machine/load.h"
#include "engine/machine/probe.h"
#include "engine/machine/slices.h"

/* --- counting --- */

/* Passes over the n_vocab logits: they are checked, and the sampler walks over them twice. */
#define LOGIT_WALKS 3

static double seen_once(const struct vec *v, double n)
{
    return v->tensor != NULL ? n : 0;
}

/* Columns are packed for products with 8-bit activations, once for each matrix. */
static void add_product(const struct mat *m, bool exact, struct plan_steps *s)
{
    if (m->tensor != NULL && act_form_of(m->tensor->type, exact) != ACT_F32)
        s->n_value += m->n_k;
}

/* Bias, norms and rope of n heads. */
static double head_values(const struct layer_desc *layer, const struct vec *bias,
                          const struct vec *norm, double n_head)
{
    double n = n_head * layer->head_dim_k;

    return seen_once(bias, n) + seen_once(norm, n) + (layer->is_ropeless ? 0 : n);
}

/* Keys and values until they are stored. */
static void count_store(const struct model_desc *d, const struct layer_desc *layer,
                        struct plan_steps *s)
{
    double n_v = (double)layer->n_head_kv * layer->head_dim_v;
    double n_k = (double)layer->n_head_kv * layer->head_dim_k;

    s->n_value += d->n_embd; /* the norm before */
    if (!layer->owns_kv)
        return;
    if (layer->is_latent)
        n_v = 0;
    s->n_value += head_values(layer, &layer->bias_k, &layer->k_norm, layer->n_head_kv);
    s->n_value += (layer->has_v_norm ? n_v : 0) + seen_once(&layer->bias_v, n_v) + n_k + n_v;
}

/* Query heads that share the loading of keys and values, as forward_attend() chooses them for
 * one token that sees a single span of positions.  With more spans, more heads may share it. */
static uint32_t queries_together(const struct layer_desc *layer, int n_thread)
{
    uint32_t n_q = layer->n_head / layer->n_head_kv;

    while (n_q > 1 && n_q % 2 == 0 && layer->n_head / n_q < (uint32_t)n_thread)
        n_q /= 2;
    return n_q;
}

static void count_attention(const struct model_desc *d, const struct layer_desc *layer,
                            int n_thread, struct plan_steps *s)
{
    double dim = (double)layer->head_dim_k + layer->head_dim_v;
    double load = dim * layer->n_head / queries_together(layer, n_thread);

    s->n_value += head_values(layer, &layer->bias_q, &layer->q_norm, layer->n_head);
    s->n_value += (double)layer->n_head * layer->head_dim_v;
    s->n_round++;
    if (layer->ratio > 0 && !layer->is_indexed) {
        s->far_load += load / layer->ratio;
        s->far_mac += dim * layer->n_head / layer->ratio;
    }
    if (layer->has_index) {
        const struct index_hparams *x = &d->hp->index;

        s->far_load += (double)x->head_dim / x->block;
        s->far_mac += (double)x->n_head * x->head_dim / x->block;
        s->n_value += 2.0 * (x->n_head + 1) * x->head_dim;
    }
    if (layer->window > 0 || layer->is_indexed) {
        s->near_load += load;
        s->near_mac += dim * layer->n_head;
    } else {
        s->far_load += load;
        s->far_mac += dim * layer->n_head;
    }
}

/* A gated delta net: the convolution, norms and gates, and the state, of which each value is
 * read twice and written once. */
static void count_delta(const struct model_desc *d, struct plan_steps *s)
{
    const struct recurrent_spec *r = &d->recurrent;
    double n_v = (double)r->n_head * r->head_dim_v;

    s->n_value += (double)(r->n_past + 3) * r->n_channel + 2 * n_v;
    s->n_value += 2 * n_v * r->head_dim_k;
    s->n_curve += r->n_channel + n_v;
    s->n_round++;
}

static void count_experts(const struct model_desc *d, const struct experts_desc *x, bool exact,
                          struct plan_steps *s)
{
    const struct tensor_info *inner = experts_inner(x);
    uint32_t n_inner = x->gate_up != NULL || x->gate == NULL ? 1 : 2;
    double packed = 0;

    if (x->n_expert == 0)
        return;
    if (act_form_of(inner->type, exact) != ACT_F32)
        packed += n_inner * (double)x->n_in;
    if (act_form_of(x->down->type, exact) != ACT_F32)
        packed += x->n_ff;
    /* An expert gathers its column, and its output is scaled and added. */
    s->n_value += x->n_used * (packed + 3.0 * x->n_in);
    s->n_curve += (double)x->n_used * x->n_ff;
    s->n_round += x->n_used * (n_inner + 1);
    /* The router: a product with float weights, which are small, and a choice. */
    s->n_value += (x->is_beside ? 5.0 : 2.0) * d->n_embd + x->n_used * (double)x->n_expert;
    s->n_value += (double)x->n_expert * d->n_embd;
}

/* After attention: two sums, their norms, the activation function, per-layer input. */
static void count_rest(const struct model_desc *d, const struct layer_desc *layer, bool exact,
                       struct plan_steps *s)
{
    double n = d->n_embd, ple = d->n_embd_per_layer;

    s->n_value += 3 * n; /* the norm before the feed-forward, and two sums */
    s->n_value += seen_once(&layer->post_attn_norm, n) + seen_once(&layer->post_ffn_norm, n) +
                  seen_once(&layer->out_scale, n);
    if (layer->down.tensor != NULL)
        s->n_curve += layer->n_ff;
    count_experts(d, &layer->experts, exact, s);
    if (ple > 0) {
        s->n_value += 6 * ple + n + seen_once(&layer->post_ple_norm, n);
        s->n_curve += ple;
    }
}

/* A mixer: norms, gates and the sum of the streams, and a float product for the factors. */
static void count_mixer(const struct model_desc *d, const struct mixer *m, struct plan_steps *s)
{
    double n = (double)desc_n_residual(d);

    if (d->has_hyper) {
        s->n_value += (2.0 + d->n_stream) * n;
        return;
    }
    if (m->down->tensor == NULL)
        return;
    s->n_value += 3 * n + (m->inject != NULL ? (double)m->inject->n + 2 * n : 0);
    s->n_curve += n + m->down->n_row;
}

/* Rows of the table of n-grams, their norms and convolution, and the sums. */
static void count_ngrams(const struct model_desc *d, const struct layer_desc *layer,
                         struct plan_steps *s)
{
    double n = (double)desc_n_residual(d);

    if (layer->ngram_key.tensor == NULL)
        return;
    s->n_value += layer->ngram_key.n_k + (7.0 + d->hp->ngram.conv_width) * n;
    s->n_curve += n;
}

static void count_head(const struct model_desc *d, bool exact, struct plan_steps *s)
{
    const struct mixer mixer = desc_out_mixer(d);

    s->n_value += d->n_embd + LOGIT_WALKS * (double)d->n_vocab;
    if (d->softcap_final > 0)
        s->n_curve += d->n_vocab;
    for (uint32_t i = 0; i < N_END_MAT; i++)
        add_product(&d->end_mats[i], exact, s);
    count_mixer(d, &mixer, s);
}

/* Whether m is not multiplied in the same round as the matrix before it. */
static bool begins_product(const struct model_desc *d, uint32_t l, const struct mat *m)
{
    const struct layer_desc *layer = &d->layers[l];

    if (m == &layer->q || m == &layer->index_q)
        return m->tensor != NULL && !desc_joins_queries(d, l) &&
               (m == &layer->index_q || !layer->is_indexed);
    return m->tensor != NULL && m != &layer->v && m != &layer->up && m != &layer->index_k &&
           m != &layer->ngram_value && m != &layer->entry_pool && m != &layer->entry_gate &&
           m != &layer->score_gate;
}

static double mat_bytes(const struct mat *m)
{
    return m->tensor != NULL ? m->n_row * (double)tensor_row_bytes(m->tensor->type, m->n_k) : 0;
}

void steps_count(const struct model_desc *d, bool exact, int n_thread, uint32_t n_block,
                 struct plan_steps out[PLAN_PARTS])
{
    double bytes[PLAN_PARTS] = { 0 };

    memset(out, 0, PLAN_PARTS * sizeof *out);
    out[PLAN_PROMPT].n_value = 2.0 * d->n_embd; /* the embedding */
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        const struct mixer mixers[2] = { desc_attn_mixer(layer), desc_ffn_mixer(layer) };
        uint32_t n_prompt = desc_n_prompt_mat(d, l);
        enum plan_part first = n_prompt > 0 ? PLAN_PROMPT : PLAN_REST;
        enum plan_part then = n_prompt == N_LAYER_MAT ? PLAN_PROMPT : PLAN_REST;

        for (uint32_t i = 0; i < N_LAYER_MAT; i++) {
            enum plan_part part = i < n_prompt ? PLAN_PROMPT : PLAN_REST;

            add_product(&layer->mats[i], exact, &out[part]);
            bytes[part] += mat_bytes(&layer->mats[i]);
            out[part].n_product += begins_product(d, l, &layer->mats[i]);
        }
        count_ngrams(d, layer, &out[first]);
        count_mixer(d, &mixers[0], &out[first]);
        count_mixer(d, &mixers[1], &out[then]);
        count_store(d, layer, &out[first]);
        if (layer->is_recurrent)
            count_delta(d, &out[first]);
        if (layer->attends)
            count_attention(d, layer, n_thread, &out[then]);
        count_rest(d, layer, exact, &out[then]);
    }
    for (uint32_t i = 0; i < N_END_MAT; i++) {
        bytes[PLAN_REST] += mat_bytes(&d->end_mats[i]);
        out[PLAN_REST].n_product += d->end_mats[i].tensor != NULL;
    }
    count_head(d, exact, &out[PLAN_REST]);
    for (int part = 0; part < PLAN_PARTS; part++)
        out[part].n_block = n_block * bytes[part] / (bytes[0] + bytes[1]);
}

/* --- measuring --- */

#define N_VALUE ((size_t)2048)
#define N_HEAD  ((size_t)128)             /* values of a head */
#define N_POS   ((size_t)16 * ATTN_BLOCK) /* positions that are attended to */
#define N_QUERY ((size_t)8)               /* queries that share them */
#define ROW_MAX (N_HEAD * sizeof(float))
/* The round that is measured has the work of a small product, some 10 us.  With less work, the
 * caller would claim all parts before a worker begins, and rounds would seem to cost nothing.
 */
#define N_PART     ((size_t)256) /* values of a part */
#define PART_NORMS 16
/* Several ticks of the scheduler. */
#define SETTLE_S 0.03

struct trial {
    const struct kernels *kernels;
    struct pool *pool;
    float *x, *y, *w; /* [N_VALUE] */
    float *part;      /* [parts of a round][N_PART] */
    int n_part;
    unsigned char *rows; /* [N_POS][ROW_MAX] keys, then values */
    enum kv_type type;
    size_t n_query;
};

static void do_values(struct trial *t)
{
    t->kernels->rms_norm(t->x, t->w, N_VALUE, 1e-5f, t->y);
    t->kernels->act_pack(ACT_Q8, t->y, N_VALUE, t->rows);
    t->kernels->add(t->y, t->w, N_VALUE);
}

static void do_curve(struct trial *t)
{
    memcpy(t->y, t->x, N_VALUE * sizeof *t->y);
    t->kernels->gelu_mul(t->y, t->w, N_VALUE);
}

static void norm_part(void *ctx, int part, int n_part)
{
    const struct trial *t = ctx;

    (void)n_part;
    for (int i = 0; i < PART_NORMS; i++)
        t->kernels->rms_norm(t->x, t->w, N_PART, 1e-5f, t->part + (size_t)part * N_PART);
}

static void do_round(struct trial *t)
{
    pool_run(t->pool, t->n_part, norm_part, t);
}

static void settle_part(void *ctx, int part, int n_part)
{
    double end = clock_s() + SETTLE_S;

    (void)ctx, (void)part, (void)n_part;
    while (clock_s() < end)
        continue;
}

static void do_parts(struct trial *t)
{
    for (int i = 0; i < t->n_part; i++)
        norm_part(t, i, t->n_part);
}

static void do_attention(struct trial *t)
{
    size_t stride = kv_row_bytes(t->type, N_HEAD);
    const unsigned char *v = t->rows + N_POS * stride;
    float m[N_QUERY], l[N_QUERY];

    for (size_t i = 0; i < t->n_query; i++) {
        m[i] = -INFINITY;
        l[i] = 0;
    }
    for (size_t at = 0; at < N_POS; at += ATTN_BLOCK)
        t->kernels->attn(&(struct attn_block){ .k_type = t->type,
                                               .v_type = t->type,
                                               .k = t->rows + at * stride,
                                               .v = v + at * stride,
                                               .k_stride = stride,
                                               .v_stride = stride,
                                               .n_pos = ATTN_BLOCK,
                                               .n_q = t->n_query,
                                               .dk = N_HEAD,
                                               .dv = N_HEAD,
                                               .q = t->x,
                                               .scale = 0.1f,
                                               .m = m,
                                               .l = l,
                                               .acc = t->y });
}

/* The time of a call in the fastest slice: these costs are short, and a busy machine interrupts
 * them for longer than they last.  Slices are shorter than the time that the scheduler gives to
 * a program, so some of them are not interrupted.  *spread grows to that of the faster half of
 * the slices. */
static double time_of(struct trial *t, void (*fn)(struct trial *t), double seconds,
                      double *spread)
{
    struct slices slices = { 0 }, fast = { 0 };

    fn(t);
    for (int i = 0; i < SLICES_MAX; i++) {
        double start = clock_s(), took;
        uint64_t n = 0;

        do {
            fn(t);
            n++;
            took = clock_s() - start;
        } while (took < seconds / SLICES_MAX);
        slices_add(&slices, (double)n / took);
    }
    for (uint32_t i = slices.n / 2; i < slices.n; i++)
        slices_add(&fast, slices.rate[i]);
    *spread = fmax(*spread, slices_spread(&fast));
    return 1 / slices.rate[slices.n - 1];
}

/* Wait until each part has been begun, which takes as many threads. */
static void meet_part(void *ctx, int part, int n_part)
{
    atomic_int *here = ctx;

    (void)part;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < n_part)
        continue;
}

/* The time until a worker that sleeps has begun a part: of all tries, a quarter is faster.  On a
 * busy machine workers wait for a processor, too, for some milliseconds.  That is not a cost of
 * waking them, which takes 20 to 60 us. */
#define WAKE_MOST 200e-6
static double wake_time(struct trial *t)
{
    const struct timespec nap = { .tv_nsec = 1000000 }; /* pool.c polls for 0.1 ms */
    struct slices slices = { 0 };

    if (pool_threads(t->pool) == 1)
        return 0;
    for (int i = 0; i < SLICES_MAX; i++) {
        atomic_int here = 0;
        double start;

        nanosleep(&nap, NULL);
        start = clock_s();
        pool_run(t->pool, 2, meet_part, &here);
        slices_add(&slices, 1 / (clock_s() - start));
    }
    return fmin(1 / slices.rate[slices.n * 3 / 4], WAKE_MOST);
}

/* One query and N_QUERY queries load the same keys and values: what the others add are their
 * multiply-adds. */
static void measure_attention(struct trial *t, double seconds, double *spread,
                              struct mw_steps *out)
{
    double n = 2.0 * N_POS * N_HEAD;

    for (int type = 0; type < KV_TYPE_COUNT; type++) {
        double one_s, all_s;

        t->type = (enum kv_type)type;
        for (size_t i = 0; i < 2 * N_POS; i++)
            t->kernels->kv_store(t->type, t->w, N_HEAD,
                                 t->rows + i * kv_row_bytes(t->type, N_HEAD));
        t->n_query = 1;
        one_s = time_of(t, do_attention, seconds, spread);
        t->n_query = N_QUERY;
        all_s = time_of(t, do_attention, seconds, spread);
        out->mac_s[type] = fmax(all_s - one_s, 0) / (n * (N_QUERY - 1));
        out->load_s[type] = fmax(one_s / n - out->mac_s[type], 0);
    }
}

int steps_measure(const struct steps_options *o, struct mw_steps *out, struct err *e)
{
    size_t rows = 2 * N_POS * ROW_MAX, floats;
    struct trial t = { .kernels = o->kernels };
    struct arena a = { 0 };
    struct load load;
    int rc = -1;

    _Static_assert(MW_STEPS_KV == KV_TYPE_COUNT, "each type of keys and values is measured");
    *out = (struct mw_steps){ 0 };
    if (pool_new(&t.pool, o->n_thread, e) != 0)
        return -1;
    t.n_part = pool_parts(t.pool, SIZE_MAX);
    floats = 3 * N_VALUE + (size_t)t.n_part * N_PART;
    if (arena_map(&a, "activations", arena_size(floats * sizeof *t.x) + arena_size(rows), true,
                  e) == 0) {
        double round_s, work_s, spread = 0;

        t.x = arena_take(&a, floats * sizeof *t.x, e);
        t.rows = arena_take(&a, rows, e);
        t.w = t.x + N_VALUE;
        t.y = t.w + N_VALUE;
        t.part = t.y + N_VALUE;
        for (size_t i = 0; i < 2 * N_VALUE; i++)
            t.x[i] = (float)(i % 13) / 13 - 0.5f;
        load_begin(&load, "");
        /* New workers can begin on the processor of their creator.  They stay there if they
         * only take turns with it, and a round takes 180 us instead of 1.  When all compute at
         * once, as in a model, the system spreads them. */
        pool_run(t.pool, o->n_thread, settle_part, NULL);
        round_s = time_of(&t, do_round, o->seconds, &spread);
        work_s = time_of(&t, do_parts, o->seconds, &spread) / o->n_thread;
        out->round_s = fmax(round_s - work_s, 0);
        out->wake_s = wake_time(&t);
        out->value_s = time_of(&t, do_values, o->seconds, &spread) / (3 * N_VALUE);
        out->curve_s = time_of(&t, do_curve, o->seconds, &spread) / N_VALUE;
        measure_attention(&t, o->seconds, &spread, out);
        out->is_doubtful = spread > PROBE_SPREAD || load_of_others(&load, "") > PROBE_LOAD;
        rc = 0;
    }
    pool_free(t.pool);
    arena_unmap(&a);
    return rc;
}
