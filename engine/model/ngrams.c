/*
 * A table of n-grams that one layer adds to its residual streams.  Which rows a token needs
 * follows from its id and those before it, so they are requested before the first layer and
 * arrive while the layers before this one are computed.  They are not kept in memory: nothing
 * waits for them, and hashes spread them over a table that is much larger than memory.
 *
 *   e = the rows of the token, one after the other
 *   key = norm(K.e), query = norm(x)                for each stream; v = V.e for all of them
 *   d = key.query / sqrt(n_embd)
 *   y = sigmoid(sign(d) * sqrt(|d|)) * v
 *   n = norm(y)
 *   x += y + silu(convolution of n)                 with steps of n_token positions
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"

#define LEAST_DOT 1e-6f /* of |d|, before the root */

struct ngram_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct ngram_hparams *g;
    uint32_t n_stream, n_embd, n_past; /* n_past: columns that the convolution looks back */
    size_t n_all;                      /* values of all streams */
    const float *past;                 /* [n_past][n_all], oldest first */
};

/* --- the rows of a token --- */

/* Ids are kept as floats, which have all of them: id + 1, or 0 before the first token.  A KV file
 * that somebody made may have any number in a copy. */
static uint64_t kept_id(const struct ngram_hparams *g, float kept)
{
    return kept >= 1 && kept <= (float)UINT32_MAX ? (uint64_t)kept - 1 : g->end_id;
}

/* The id `back` tokens before column c. */
static uint64_t id_before(const struct ngram_hparams *g, const uint32_t *ids, uint32_t c,
                          uint32_t back, const float *past)
{
    return back <= c ? ids[c - back] : kept_id(g, past[back - c - 1]);
}

/* An end in the tokens before column c hides those before it. */
static void rows_of(const struct ngram_hparams *g, const uint32_t *ids, uint32_t c,
                    const float *past, uint64_t *rows)
{
    uint64_t hash = ids[c] * g->factor[0];
    bool has_ended = false;

    for (uint32_t back = 1; back < g->n_token; back++) {
        uint64_t id = has_ended ? g->end_id : id_before(g, ids, c, back, past);

        has_ended |= id == g->end_id;
        hash ^= id * g->factor[back];
        for (uint32_t i = (back - 1) * g->n_hash; i < back * g->n_hash; i++)
            rows[i] = hash % g->n_row[i] + g->first[i];
    }
}

/* Keep the ids before the next token. */
static void keep_ids(const struct ngram_hparams *g, const uint32_t *ids, uint32_t n,
                     const float *from, float *to)
{
    for (uint32_t k = 0; k + 1 < g->n_token; k++)
        to[k] = k < n ? (float)(ids[n - 1 - k] + 1) : from[k - n];
}

/* A table in pieces has as many rows in each. */
static struct stream_lookup lookup_of(const struct tensor_info *t, uint64_t row,
                                      uint64_t row_bytes, void *dst)
{
    struct stream_lookup l = { .file = t->file, .offset = t->offset, .bytes = row_bytes };

    if (t->pieces != NULL) {
        uint64_t n_each = tensor_rows(t) / t->n_piece;

        l.file = t->pieces[row / n_each].file;
        l.offset = t->pieces[row / n_each].offset;
        row %= n_each;
    }
    l.offset += row * row_bytes;
    l.dst = dst;
    return l;
}

void forward_ngrams_start(struct forward *f, const uint32_t *ids, uint32_t n)
{
    const struct model_desc *d = f->p.desc;
    const struct ngram_hparams *g = &d->hp->ngram;
    const struct tensor_info *t = d->ngram_embd;
    uint32_t n_row = ngram_rows(g);
    const float *from;
    float *to;

    recurrent_others(kv_recurrent(f->p.kv), &from, &to);
    from += d->others.ngram_ids;
    keep_ids(g, ids, n, from, to + d->others.ngram_ids);
    for (uint32_t c = 0; c < n; c++) {
        uint64_t rows[MAX_NGRAM_ROW];

        rows_of(g, ids, c, from, rows);
        for (uint32_t i = 0; i < n_row; i++) {
            size_t at = (size_t)c * n_row + i;

            f->lookups[at] = lookup_of(t, rows[i], f->ngram_row_bytes,
                                       f->ngram_rows + at * f->ngram_row_bytes);
        }
    }
    stream_lookup_start(f->p.stream, f->lookups, (size_t)n * n_row);
    f->awaits_ngrams = true;
}

int forward_ngrams_wait(struct forward *f, struct err *e)
{
    uint64_t start = clock_ns();
    int rc = 0;

    if (f->awaits_ngrams)
        rc = stream_lookup_wait(f->p.stream, e);
    f->awaits_ngrams = false;
    f->lookup_ns += clock_ns() - start;
    return rc;
}

/* --- what a layer adds --- */

static void decode_rows_col(void *ctx, uint32_t c)
{
    const struct ngram_job *j = ctx;
    struct forward *f = j->f;
    uint32_t n_row = ngram_rows(j->g);
    float *e = f->att + (size_t)c * n_row * j->g->width;

    for (uint32_t i = 0; i < n_row; i++)
        f->p.kernels->dequant(f->p.desc->ngram_embd->type,
                              f->ngram_rows + ((size_t)c * n_row + i) * f->ngram_row_bytes,
                              e + (size_t)i * j->g->width, j->g->width);
}

/* The gate of the value for one stream. */
static float gate_of(float dot)
{
    float root = sqrtf(fmaxf(fabsf(dot), LEAST_DOT));

    return 1 / (1 + expf(dot > 0 ? -root : dot < 0 ? root : 0));
}

/* Sets inject to the gates of the column and conv to n. */
static void gate_col(void *ctx, uint32_t c)
{
    const struct ngram_job *j = ctx;
    struct forward *f = j->f;
    const struct kernels *kern = f->p.kernels;
    const struct layer_desc *layer = j->layer;
    const float *v = f->y + (size_t)c * j->n_embd;
    float eps = f->p.desc->rms_eps;

    for (uint32_t s = 0; s < j->n_stream; s++) {
        size_t in = (size_t)s * j->n_embd, at = c * j->n_all + in;
        float *key = f->wide + at, *query = f->mix + at, *n = f->conv + at;
        float *gate = f->inject + (size_t)c * j->n_stream + s;

        kern->rms_norm(key, layer->ngram_key_norm.w + in, j->n_embd, eps, key);
        kern->rms_norm(f->x + at, layer->ngram_query_norm.w + in, j->n_embd, eps, query);
        forward_mul_resident(kern, key, 1, query, j->n_embd, gate);
        *gate = gate_of(*gate / sqrtf((float)j->n_embd));
        memcpy(n, v, j->n_embd * sizeof *n);
        kern->scale(n, *gate, j->n_embd);
        kern->rms_norm(n, layer->ngram_conv_norm.w + in, j->n_embd, eps, n);
    }
}

/* n, `back` positions before column c. */
static const float *input_at(const struct ngram_job *j, uint32_t c, uint32_t back)
{
    return back <= c ? j->f->conv + (c - back) * j->n_all
                     : j->past + (j->n_past + c - back) * j->n_all;
}

static void add_ngrams_col(void *ctx, uint32_t c)
{
    const struct ngram_job *j = ctx;
    struct forward *f = j->f;
    const struct kernels *kern = f->p.kernels;
    uint32_t width = j->g->conv_width;
    const float *input[MAX_CONV_WIDTH], *w = j->layer->ngram_conv.w;
    float *z = f->mix + c * j->n_all;

    for (uint32_t t = 0; t < width; t++)
        input[t] = input_at(j, c, (width - 1 - t) * j->g->n_token);
    for (size_t i = 0; i < j->n_all; i++, w += width) {
        z[i] = 0;
        for (uint32_t t = 0; t < width; t++)
            z[i] += w[t] * input[t][i];
    }
    kern->sigmoid_mul(z, z, j->n_all);
    kern->add(f->x + c * j->n_all, z, j->n_all);
    forward_inject_col(f, c);
}

static void keep_past(const struct ngram_job *j, float *to)
{
    for (uint32_t t = 0; t < j->n_past; t++)
        memcpy(to + t * j->n_all, input_at(j, j->f->n_col - 1, j->n_past - 1 - t),
               j->n_all * sizeof *to);
}

static struct ngram_job job_of(struct forward *f, const struct layer_desc *layer, float **to)
{
    const struct model_desc *d = f->p.desc;
    struct ngram_job j = { .f = f, .layer = layer, .g = &d->hp->ngram };
    const float *from;

    j.n_stream = d->n_stream;
    j.n_embd = d->n_embd;
    j.n_all = desc_n_residual(d);
    j.n_past = (j.g->conv_width - 1) * j.g->n_token;
    recurrent_others(kv_recurrent(f->p.kv), &from, to);
    j.past = from + d->others.ngram_past;
    *to += d->others.ngram_past;
    return j;
}

void forward_ngrams_again(struct forward *f, const struct layer_desc *layer)
{
    float *to;
    struct ngram_job j = job_of(f, layer, &to);

    keep_past(&j, to);
}

void forward_ngram_ids_again(struct forward *f, const uint32_t *ids, uint32_t n)
{
    const struct model_desc *d = f->p.desc;
    const float *from;
    float *to;

    recurrent_others(kv_recurrent(f->p.kv), &from, &to);
    keep_ids(&d->hp->ngram, ids, n, from + d->others.ngram_ids, to + d->others.ngram_ids);
}

int forward_ngrams(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    const struct product p[2] = { { &layer->ngram_key, f->wide, layer->ngram_key.n_row },
                                  { &layer->ngram_value, f->y, d->n_embd } };
    float *to;
    struct ngram_job j = job_of(f, layer, &to);

    if (forward_ngrams_wait(f, e) != 0)
        return -1;
    forward_each_col(f, decode_rows_col, &j);
    if (forward_mul_all(f, p, 2, f->att, (size_t)ngram_rows(j.g) * j.g->width, e) != 0)
        return -1;
    forward_each_col(f, gate_col, &j);
    forward_keep_ngrams(f);
    keep_past(&j, to);
    forward_each_col(f, add_ngrams_col, &j);
    return 0;
}
