/*
 * The ends of a draft head (draft_head.h), whose layers are those of any model.
 *
 *     nextn       x = J.[norm(embedding) ; norm(hidden row)], of each residual stream
 *     assistant   x = P.[embedding ; hidden row]
 *
 * The embedding is the trunk's, and so is its scale.  The hidden row is that of the token before.
 *
 * An assistant may have clusters of tokens: it multiplies the rows of those clusters whose centres
 * suit its output best, which are few, and scattered over the vocabulary.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "engine/model/forward_internal.h"

/* Write embedding and hidden row of one column where they are multiplied: side by side for each
 * stream, or each in a place of its own. */
static void input_col(void *ctx, uint32_t c)
{
    struct forward *f = ctx;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    uint32_t n = d->hp->head.n_embd_in;
    bool is_apart = d->head_join_embd.tensor != NULL;
    size_t ld = is_apart ? n : 2 * (size_t)n;
    const float *hidden = f->hidden_in + (size_t)c * d->n_hidden;
    float *wide = f->wide + (size_t)c * d->n_stream * ld;
    float *embd = is_apart ? f->y + (size_t)c * n : wide;

    kern->dequant(d->token_embd->type, f->embd_rows + c * f->embd_row_bytes, embd, n);
    kern->scale(embd, d->embd_scale, n);
    if (d->head_embd_norm.w != NULL)
        kern->rms_norm(embd, d->head_embd_norm.w, n, d->rms_eps, embd);
    for (uint32_t s = 0; s < d->n_stream; s++) {
        float *to = wide + s * ld + (is_apart ? 0 : n);

        if (s > 0 && !is_apart)
            memcpy(wide + s * ld, embd, n * sizeof *embd);
        if (d->head_hidden_norm.w != NULL)
            kern->rms_norm(hidden + (size_t)s * n, d->head_hidden_norm.w + (size_t)s * n, n,
                           d->rms_eps, to);
        else
            memcpy(to, hidden + (size_t)s * n, n * sizeof *to);
    }
    forward_angles(f, c);
    if (d->reads_trunk_kv) /* its own position has no keys */
        f->pos[c]--;
}

/* x += h of the column, to each stream */
static void add_embd_col(void *ctx, uint32_t c)
{
    struct forward *f = ctx;
    const struct model_desc *d = f->p.desc;

    for (uint32_t s = 0; s < d->n_stream; s++)
        f->p.kernels->add(f->x + ((size_t)c * d->n_stream + s) * d->n_embd,
                          f->h + (size_t)c * d->n_embd, d->n_embd);
}

int forward_head_input(struct forward *f, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    const struct mat *m = d->head_in.tensor != NULL     ? &d->head_in
                          : d->head_join.tensor != NULL ? &d->head_join
                                                        : &d->head_join_hidden;
    uint32_t n_col = f->n_col, n = d->hp->head.n_embd_in;
    bool is_apart = d->head_join_embd.tensor != NULL;
    int rc;

    forward_each_col(f, input_col, f);
    if (is_apart && forward_mul(f, &d->head_join_embd, f->y, n, f->h, d->n_embd, e) != 0)
        return -1;
    f->n_col = n_col * d->n_stream;
    rc = forward_mul(f, m, f->wide, m->n_k, f->x, d->n_embd, e);
    f->n_col = n_col;
    if (rc == 0 && is_apart)
        forward_each_col(f, add_embd_col, f);
    return rc;
}

/* Mark the tokens of the clusters with the best scores; of equal ones, those of the first. */
static void mark_best(struct forward *f)
{
    const struct model_desc *d = f->p.desc;
    const struct head_hparams *head = &d->hp->head;
    uint32_t n_each = d->n_vocab / head->n_cluster;

    memset(f->marks, 0, d->n_vocab / 8 + 1);
    for (uint32_t k = 0; k < head->n_cluster_used; k++) {
        uint32_t best = 0;

        for (uint32_t c = 1; c < head->n_cluster; c++)
            if (f->cluster_score[c] > f->cluster_score[best])
                best = c;
        f->cluster_score[best] = -INFINITY;
        for (uint32_t i = 0; i < n_each; i++) {
            uint32_t id = d->catalogue->token_order[(size_t)best * n_each + i];

            f->marks[id / 8] |= (unsigned char)(1u << id % 8);
        }
    }
}

static bool is_marked(const struct forward *f, uint32_t id)
{
    return (f->marks[id / 8] >> id % 8 & 1) != 0;
}

int forward_clusters(struct forward *f, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    float least = INFINITY;

    assert(f->n_col == 1);
    if (forward_mul(f, &d->head_clusters, f->h, d->n_embd, f->cluster_score,
                    d->hp->head.n_cluster, e) != 0)
        return -1;
    mark_best(f);
    if (forward_mul_marked(f, &d->head, f->h, f->marks, f->logits, e) != 0)
        return -1;
    for (uint32_t i = 0; i < d->n_vocab; i++)
        if (is_marked(f, i) && f->logits[i] < least)
            least = f->logits[i];
    for (uint32_t i = 0; i < d->n_vocab; i++)
        if (!is_marked(f, i))
            f->logits[i] = least - 1;
    return 0;
}
