/*
 * The memory of the forward pass.  carve_all() names every buffer once: run without an arena it
 * counts them for the plan, run with one it takes them.
 */
#include "config.h"

#include <stdlib.h>

#include "engine/model/attend_item.h"
#include "engine/model/forward_internal.h"

struct widths {
    uint32_t q, k, v, att, ff, head, wide, mix, z, heads, decay, gates, rows, packed_k, rot[2];
    uint32_t pool_x, pooled;
    uint64_t packed_heads; /* bytes of a column that is packed head by head */
};

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void widen_latent(struct widths *w, const struct model_desc *d,
                         const struct layer_desc *layer)
{
    const struct latent_hparams *m = &d->hp->latent;
    uint32_t head = max_u32(m->n_nope + m->n_rot, m->n_value);
    uint64_t packed = act_bytes(ACT_Q8, max_u32(m->n_nope, m->n_latent));

    w->wide = max_u32(w->wide, layer->n_head * head);
    w->att = max_u32(w->att, m->n_query);
    if (packed * layer->n_head > w->packed_heads)
        w->packed_heads = packed * layer->n_head;
}

static void widen_entries(struct widths *w, const struct model_desc *d,
                          const struct layer_desc *layer)
{
    const struct out_hparams *out = &d->hp->out;
    uint64_t n = layer->n_head * layer->head_dim_v / out->n_group;
    uint64_t packed = out->n_group * (uint64_t)act_bytes(ACT_Q8, n);

    w->wide = max_u32(w->wide, out->n_group * out->rank);
    w->att = max_u32(w->att, d->hp->latent.n_query);
    w->packed_k = max_u32(w->packed_k, w->wide);
    if (packed > w->packed_heads)
        w->packed_heads = packed;
}

static void widen_pools(struct widths *w, const struct model_desc *d,
                        const struct layer_desc *layer)
{
    w->pool_x = max_u32(w->pool_x, max_u32(layer->entry_pool.n_row, layer->score_gate.n_row));
    w->pooled = max_u32(w->pooled, layer->ratio > 0 ? layer->head_dim_k : 0);
    w->pooled = max_u32(w->pooled, layer->score_gate.n_row > 0 ? d->hp->index.head_dim : 0);
}

static struct widths widest(const struct model_desc *d)
{
    const struct delta_hparams *delta = &d->hp->delta;
    struct widths w = { 0 };

    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];

        w.head = max_u32(w.head, layer->n_head);
        w.q = max_u32(w.q, layer->n_head * layer->head_dim_k);
        w.att = max_u32(w.att, layer->n_head * layer->head_dim_v);
        w.k = max_u32(w.k, layer->n_head_kv * layer->head_dim_k);
        w.v = max_u32(w.v, layer->n_head_kv * max_u32(layer->head_dim_v,
                                                      layer->v_is_k ? layer->head_dim_k : 0));
        if (layer->is_gated)
            w.wide = max_u32(w.wide, 2 * layer->n_head * layer->head_dim_k);
        if (layer->is_latent)
            widen_latent(&w, d, layer);
        if (layer->has_entries)
            widen_entries(&w, d, layer);
        widen_pools(&w, d, layer);
        w.gates = max_u32(w.gates, layer->gate_out.n_row);
        w.ff = max_u32(w.ff, max_u32(layer->n_ff, 2 * layer->experts.n_ff));
    }
    if (d->recurrent.n_layer > 0) {
        w.heads = delta->n_head_v;
        w.z = delta->n_head_v * delta->head_dim_v;
        w.mix = d->recurrent.n_channel;
        w.decay = d->recurrence == RECUR_KDA ? w.z : w.heads;
        w.wide =
            max_u32(w.wide, d->recurrence == RECUR_CONV    ? 3 * w.mix
                            : d->recurrence == RECUR_MAMBA ? w.mix + w.z + w.heads
                                                           : max_u32(w.mix + w.z, 2 * w.heads));
        for (uint32_t l = 0; l < d->n_layer; l++)
            w.wide = max_u32(
                w.wide, max_u32(d->layers[l].kda_decay_a.n_row, d->layers[l].kda_gate_a.n_row));
        w.att = max_u32(w.att, w.z);
    }
    if (d->n_hidden > 0) /* embeddings beside hidden rows */
        w.wide = max_u32(w.wide, d->n_stream * 2 * d->hp->head.n_embd_in);
    w.rows = ngram_rows(&d->hp->ngram);
    w.att = max_u32(w.att, w.rows * d->hp->ngram.width);
    if (d->hp->n_stream > 0) {
        uint32_t n_all = (uint32_t)desc_n_residual(d);

        w.wide = max_u32(w.wide, d->has_hyper ? 0 : n_all);
        w.mix = max_u32(w.mix, n_all);
        w.packed_k = max_u32(w.packed_k, max_u32(n_all, d->hp->n_mix));
    }
    w.packed_k = max_u32(w.packed_k, max_u32(w.ff, w.att));
    w.packed_k = max_u32(w.packed_k, max_u32(d->n_embd, d->n_embd_per_layer));
    w.packed_k = max_u32(w.packed_k, d->hp->latent.n_latent > 0 ? w.wide : 0);
    w.packed_k = max_u32(w.packed_k, d->recurrence == RECUR_CONV ? w.mix : 0);
    if (d->n_hidden > 0) {
        uint64_t joined = act_bytes(ACT_Q8, 2 * d->hp->head.n_embd_in) * d->n_stream;

        w.packed_heads = joined > w.packed_heads ? joined : w.packed_heads;
    }
    w.rot[0] = d->hp->rope.n_rot;
    w.rot[1] = d->hp->rope_swa.n_rot;
    return w;
}

/* Takes or counts every buffer of the activations. */
struct carver {
    struct arena *arena; /* NULL: count */
    uint32_t chunk;
    int n_thread, n_blas_thread;
    uint64_t fixed_bytes; /* of all buffers, independent of the chunk */
    uint64_t col_bytes;   /* of all buffers, per column */
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

static void carve_tiles(struct forward *f, const struct model_desc *d, uint32_t widest_k,
                        struct carver *c)
{
    uint64_t col = c->n_blas_thread > 0 ? act_bytes(ACT_F32, widest_k) : 0;
    uint64_t n_thread = c->n_blas_thread < BLAS_THREADS ? c->n_blas_thread : BLAS_THREADS;
    uint64_t fixed = tiles_scratch_bytes(TILES_SPARE);

    f->attend_scratch = carve_both(c, n_thread * attend_tiles_bytes(d), 0);
    f->tile_cols = carve_both(c, TILES_SPARE * col, col);
    f->tile_scratch = carve_both(c, n_thread * fixed,
                                 n_thread * (tiles_scratch_bytes(TILES_SPARE + 1) - fixed));
}

/* Bytes of the scales of a matrix of LAYOUT_SPLIT. */
static uint64_t groups_bytes(const struct mat *m)
{
    if (!mat_is_split(m))
        return 0;
    return m->n_row * (tensor_row_bytes(m->tensor->type, m->n_k) - split_value_bytes(m->n_k));
}

static uint64_t most_groups(const struct model_desc *d)
{
    uint64_t most = 0;

    for (uint32_t l = 0; l <= d->n_layer; l++) {
        const struct mat *mats = l < d->n_layer ? d->layers[l].mats : d->end_mats;

        for (uint32_t i = 0; i < (l < d->n_layer ? N_LAYER_MAT : N_END_MAT); i++)
            if (groups_bytes(&mats[i]) > most)
                most = groups_bytes(&mats[i]);
    }
    return most;
}

static void carve_all(struct forward *f, const struct model_desc *d, struct carver *c)
{
    struct widths w = widest(d);
    const struct index_hparams *index = &d->hp->index;
    uint32_t n_expert = d->hp->n_expert;

    f->x = carve_floats(c, desc_n_residual(d));
    f->h = carve_floats(c, d->n_embd);
    f->y = carve_floats(c, d->n_embd);
    f->embd = carve_floats(c, d->n_embd_per_layer > 0 ? d->n_embd : 0);
    f->q = carve_floats(c, w.q);
    f->k = carve_floats(c, w.k);
    f->v = carve_floats(c, w.v);
    f->att = carve_floats(c, w.att);
    f->gate = carve_floats(c, w.ff);
    f->gate_floats = (size_t)c->chunk * w.ff;
    f->up = carve_floats(c, max_u32(w.ff, 2 * w.head));
    f->attend_state = f->up; /* is not in use then */
    f->wide = carve_floats(c, w.wide);
    f->mix = carve_floats(c, w.mix);
    f->conv = carve_floats(c, w.mix);
    f->inject = carve_floats(c, d->n_inject);
    f->middle = carve_floats(c, d->hp->n_mix);
    f->index_k = carve_floats(c, index->head_dim);
    f->index_q = carve_floats(c, (uint64_t)index->n_head * index->head_dim);
    f->index_w = carve_floats(c, index->n_head);
    f->pool_x = carve_floats(c, w.pool_x);
    f->pool_g = carve_floats(c, w.pool_x);
    f->pooled = carve_floats(c, w.pooled);
    f->ranked = carve_both(
        c, (uint64_t)c->n_thread * 2 * forward_index_room(index->n_block) * sizeof *f->ranked, 0);
    f->attend_rows = carve_both(c, (uint64_t)c->n_thread * attend_rows_bytes(d), 0);
    f->chosen = carve(c, index->n_block * sizeof(uint32_t));
    f->z = carve_floats(c, w.z);
    f->beta = carve_floats(c, w.heads);
    f->decay = carve_floats(c, w.decay);
    f->gates = carve_floats(c, w.gates);
    f->ple = carve_floats(c, d->n_embd_per_layer);
    f->ple_row = carve_floats(c, d->n_embd_per_layer);
    f->ple_blocks = carve_floats(c, d->n_embd_per_layer > 0 ? d->n_embd_per_layer + 512u : 0);
    for (int i = 0; i < 2; i++) {
        f->cosine[i] = carve_floats(c, w.rot[i] / 2);
        f->sine[i] = carve_floats(c, w.rot[i] / 2);
    }
    f->packed = carve(c, w.packed_heads > act_bytes(ACT_Q8, w.packed_k)
                             ? w.packed_heads
                             : act_bytes(ACT_Q8, w.packed_k));
    f->groups = carve_both(c, most_groups(d), 0);
    carve_tiles(f, d, w.packed_k, c);
    f->pos = carve(c, sizeof(uint32_t));
    f->ids = carve(c, sizeof(uint32_t));
    f->row_of = carve(c, sizeof(uint32_t));
    f->lookups = carve(c, max_u32(2, w.rows) * sizeof(struct stream_lookup));
    f->moe_weight = carve_floats(c, n_expert);
    f->moe_choose = carve_floats(c, arch_has(d->hp->arch, TRAIT_ROUTED) ? n_expert : 0);
    f->moe_sum = carve_floats(c, n_expert > 0 ? d->n_embd : 0);
    f->moe_h = carve_floats(c, n_expert > 0 ? d->n_embd : 0);
    f->moe_in = d->hp->n_expert_in > 0 ? carve_floats(c, d->hp->n_expert_in) : f->moe_h;
    /* The outputs of all experts of one token fit. */
    f->moe_out_rows = d->hp->n_expert_used + c->chunk;
    f->moe_out = carve_both(c, (uint64_t)d->hp->n_expert_used * d->n_embd * sizeof(float),
                            n_expert > 0 ? d->n_embd * sizeof(float) : 0);
    f->moe_row = carve(c, n_expert * sizeof(uint32_t));
    f->moe_cols = carve(c, n_expert > 0 ? sizeof(uint32_t) : 0);
    f->moe_list = carve_both(c, n_expert * sizeof(uint32_t), 0);
    f->moe_choice = carve_both(c, n_expert * sizeof(uint32_t), 0);
    f->cluster_score = carve_both(c, d->hp->head.n_cluster * sizeof(float), 0);
    f->marks = carve_both(c, d->hp->head.n_cluster > 0 ? d->n_vocab / 8 + 1 : 0, 0);
}

static uint64_t table_row_bytes(const struct tensor_info *t)
{
    return t != NULL ? tensor_row_bytes(t->type, t->ne[0]) : 0;
}

static uint64_t table_cache_bytes(const struct tensor_info *t)
{
    return t != NULL ? row_cache_bytes(tensor_rows(t), table_row_bytes(t)) : 0;
}

void forward_bytes(const struct model_desc *d, int n_thread, bool has_blas,
                   struct forward_bytes *out)
{
    struct carver count = { .n_thread = n_thread, .n_blas_thread = has_blas ? n_thread : 0 };
    struct forward f = { 0 };
    uint64_t rows[2] = { table_row_bytes(d->token_embd), table_row_bytes(d->ple_embd) };
    uint64_t ngrams = ngram_rows(&d->hp->ngram) * table_row_bytes(d->ngram_embd);

    carve_all(&f, d, &count);
    out->act_col = count.col_bytes;
    out->act_fixed = count.fixed_bytes + count.n_piece * arena_size(1) * 2;
    out->rows_col = rows[0] + rows[1] + ngrams;
    out->rows_fixed = 3 * arena_size(1);
    out->lookup = stream_lookup_bytes(rows, rows[1] > 0 ? 2 : 1, 4096);
    out->replay_col = replay_values(d) * sizeof(float);
    out->replay_fixed = out->replay_col > 0 ? arena_size(1) : 0;
    out->tables = table_cache_bytes(d->token_embd) + table_cache_bytes(d->ple_embd);
    out->experts_token = experts_token_bytes(d);
    experts_sizes(d, &out->experts);
}

uint64_t forward_logit_bytes(const struct model_desc *d, uint32_t n_row)
{
    return arena_size((uint64_t)n_row * d->n_vocab * sizeof(float));
}

int forward_new(struct forward **out, const struct forward_parts *parts, struct err *e)
{
    const struct model_desc *d = parts->desc;
    struct forward *f = calloc(1, sizeof *f);
    struct carver take = { .arena = parts->activations, .chunk = parts->chunk, .e = e };

    take.n_thread = pool_threads(parts->pool);

    if (parts->products != NULL)
        take.n_blas_thread = take.n_thread;

    *out = NULL;
    if (f == NULL)
        return err_memory(e, "the forward pass");
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
    f->ngram_row_bytes = table_row_bytes(d->ngram_embd);
    f->ngram_rows = arena_take(
        parts->rows, parts->chunk * ngram_rows(&d->hp->ngram) * f->ngram_row_bytes, e);
    f->logits =
        arena_take(parts->logits, (size_t)parts->n_logit_row * d->n_vocab * sizeof(float), e);
    if (replay_values(d) > 0 && parts->n_replay > 0) {
        f->replay =
            arena_take(parts->replay, parts->n_replay * replay_values(d) * sizeof(float), e);
        if (f->replay == NULL)
            goto fail;
    }
    if (f->embd_rows == NULL || f->ple_rows == NULL || f->ngram_rows == NULL ||
        f->logits == NULL)
        goto fail;
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

static int init_cache(struct row_cache *c, const struct tensor_info *t, struct arena *a,
                      struct err *e)
{
    return t != NULL ? row_cache_init(c, a, tensor_rows(t), table_row_bytes(t), e) : 0;
}

int kept_rows_open(struct kept_rows *k, const struct model_desc *d, struct err *e)
{
    uint64_t bytes = table_cache_bytes(d->token_embd) + table_cache_bytes(d->ple_embd);

    *k = (struct kept_rows){ 0 };
    if (arena_map(&k->arena, "tables", bytes, false, e) == 0 &&
        init_cache(&k->embd, d->token_embd, &k->arena, e) == 0 &&
        init_cache(&k->ple, d->ple_embd, &k->arena, e) == 0)
        return 0;
    kept_rows_close(k);
    return -1;
}

void kept_rows_close(struct kept_rows *k)
{
    arena_unmap(&k->arena);
    *k = (struct kept_rows){ 0 };
}

uint64_t kept_rows_bytes(const struct kept_rows *k)
{
    return k->embd.held_bytes + k->ple.held_bytes;
}
