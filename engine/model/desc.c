#include "config.h"

#include "engine/model/desc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/format/arch.h"
#include "engine/format/tensor_use.h"
#include "engine/model/desc_internal.h"

/* --- finding tensors --- */

const struct tensor_info *find_tensor(struct finder *f, const char *name, bool is_needed)
{
    const struct tensor_info *t;
    char full[96];

    if (f->layer >= 0)
        snprintf(full, sizeof full, "blk.%d.%s", f->layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    t = catalogue_find(f->c, full);
    if (t == NULL && is_needed && !f->failed) {
        f->failed = true;
        err_set(f->e, ERR_FORMAT, "the model has no such tensor");
        err_at(f->e, f->c->path, ERR_NO_OFFSET, full);
    }
    return t;
}

static void wrong_shape(struct finder *f, const struct tensor_info *t, uint64_t n_row,
                        uint64_t n_k)
{
    if (f->failed)
        return;
    f->failed = true;
    err_set(f->e, ERR_FORMAT, "has %llu rows of %llu values, %llu rows of %llu are wanted",
            (unsigned long long)tensor_rows(t), (unsigned long long)t->ne[0],
            (unsigned long long)n_row, (unsigned long long)n_k);
    err_at(f->e, f->c->path, ERR_NO_OFFSET, t->name);
}

static bool is_computed(struct finder *f, const struct tensor_info *t)
{
    const struct tensor_type_info *type = tensor_type_info(t->type);
    char list[TYPES_COMPUTED_BYTES];

    if (type != NULL && type->is_computed)
        return true;
    if (!f->failed) {
        f->failed = true;
        tensor_types_computed(list, sizeof list);
        err_set(f->e, ERR_UNSUPPORTED, "weight type %s is not supported; memwall runs: %s",
                type != NULL ? type->name : "?", list);
        err_at(f->e, f->c->path, ERR_NO_OFFSET, t->name);
    }
    return false;
}

/* A tensor of n_all rows of n_k values; NULL if it is absent or wrong. */
static const struct tensor_info *find_rows(struct finder *f, const char *name, uint64_t n_all,
                                           uint64_t n_k, bool is_needed)
{
    const struct tensor_info *t = find_tensor(f, name, is_needed);

    if (t == NULL)
        return NULL;
    if (t->ne[0] != n_k || tensor_rows(t) != n_all) {
        wrong_shape(f, t, n_all, n_k);
        return NULL;
    }
    return is_computed(f, t) ? t : NULL;
}

struct mat find_slice(struct finder *f, const char *name, uint64_t row0, uint64_t n_row,
                      uint64_t n_all, uint64_t n_k, bool is_needed)
{
    const struct tensor_info *t = find_rows(f, name, n_all, n_k, is_needed);

    if (t == NULL)
        return (struct mat){ 0 };
    if (n_row > UINT32_MAX || n_k > UINT32_MAX) {
        if (!f->failed) {
            f->failed = true;
            err_set(f->e, ERR_UNSUPPORTED, "%llu rows of %llu values are too many",
                    (unsigned long long)n_row, (unsigned long long)n_k);
            err_at(f->e, f->c->path, ERR_NO_OFFSET, t->name);
        }
        return (struct mat){ 0 };
    }
    return (struct mat){
        .tensor = t, .row0 = row0, .n_row = (uint32_t)n_row, .n_k = (uint32_t)n_k
    };
}

struct mat find_mat(struct finder *f, const char *name, uint64_t n_row, uint64_t n_k,
                    bool is_needed)
{
    return find_slice(f, name, 0, n_row, n_row, n_k, is_needed);
}

const struct tensor_info *find_experts(struct finder *f, const char *name, uint64_t n_row,
                                       uint64_t n_k, bool is_needed)
{
    return find_rows(f, name, n_row, n_k, is_needed);
}

struct vec find_part(struct finder *f, const char *name, uint64_t first, uint64_t n,
                     uint64_t n_all, bool is_needed)
{
    const struct tensor_info *t = find_tensor(f, name, is_needed);

    if (t == NULL)
        return (struct vec){ 0 };
    if (tensor_rows(t) * t->ne[0] != n_all) {
        wrong_shape(f, t, 1, n_all);
        return (struct vec){ 0 };
    }
    if (!is_computed(f, t))
        return (struct vec){ 0 };
    return (struct vec){ .tensor = t, .first = first, .n = n };
}

struct vec find_vec(struct finder *f, const char *name, uint64_t n, bool is_needed)
{
    return find_part(f, name, 0, n, n, is_needed);
}

/* --- attention, the same in all architectures --- */

void describe_attention(struct finder *f, struct model_desc *d, uint32_t l, bool needs_v)
{
    const struct layer_hparams *hp = &d->hp->layers[l];
    struct layer_desc *layer = &d->layers[l];
    bool has_bias = d->hp->attn_bias != BIAS_NONE;
    uint64_t n_q = (uint64_t)hp->n_head * hp->head_dim_k;
    uint64_t n_k = (uint64_t)hp->n_head_kv * hp->head_dim_k;
    uint64_t n_v = (uint64_t)hp->n_head_kv * hp->head_dim_v;
    uint64_t n_embd = d->n_embd;

    layer->is_sliding = hp->is_sliding;
    layer->window = hp->is_sliding ? d->hp->n_swa : 0;
    layer->n_head = hp->n_head;
    layer->n_head_kv = hp->n_head_kv;
    layer->head_dim_k = hp->head_dim_k;
    layer->head_dim_v = hp->head_dim_v;
    layer->n_ff = hp->n_ff;
    if (find_tensor(f, "attn_qkv.weight", false) != NULL) {
        uint64_t n_all = n_q + n_k + n_v;

        layer->q = find_slice(f, "attn_qkv.weight", 0, n_q, n_all, n_embd, true);
        if (has_bias)
            layer->bias_q = find_part(f, "attn_qkv.bias", 0, n_q, n_all, false);
        if (layer->owns_kv) {
            layer->k = find_slice(f, "attn_qkv.weight", n_q, n_k, n_all, n_embd, true);
            layer->v = find_slice(f, "attn_qkv.weight", n_q + n_k, n_v, n_all, n_embd, true);
        }
        if (layer->owns_kv && has_bias) {
            layer->bias_k = find_part(f, "attn_qkv.bias", n_q, n_k, n_all, false);
            layer->bias_v = find_part(f, "attn_qkv.bias", n_q + n_k, n_v, n_all, false);
        }
    } else {
        layer->q = find_mat(f, "attn_q.weight", n_q, n_embd, true);
        if (has_bias)
            layer->bias_q = find_vec(f, "attn_q.bias", n_q, false);
        if (layer->owns_kv) {
            layer->k = find_mat(f, "attn_k.weight", n_k, n_embd, true);
            if (needs_v || !d->hp->no_values)
                layer->v = find_mat(f, "attn_v.weight", n_v, n_embd, needs_v);
        }
        if (layer->owns_kv && has_bias) {
            layer->bias_k = find_vec(f, "attn_k.bias", n_k, false);
            if (layer->v.tensor != NULL)
                layer->bias_v = find_vec(f, "attn_v.bias", n_v, false);
        }
    }
    layer->v_is_k = layer->owns_kv && layer->v.tensor == NULL;
    layer->o =
        find_mat(f, "attn_output.weight", n_embd, (uint64_t)hp->n_head * hp->head_dim_v, true);
    if (d->hp->attn_bias == BIAS_AS_FOUND || d->hp->attn_bias == BIAS_ALL)
        layer->bias_o = find_vec(f, "attn_output.bias", n_embd, false);
    if (arch_has(d->hp->arch, TRAIT_QK_NORM)) {
        layer->q_norm = find_vec(f, "attn_q_norm.weight", hp->head_dim_k, true);
        if (layer->owns_kv)
            layer->k_norm = find_vec(f, "attn_k_norm.weight", hp->head_dim_k, true);
    }
    layer->attn_norm = find_vec(f, "attn_norm.weight", n_embd, true);
}

/* --- which keys and values a layer reads --- */

/* Which store each layer reads: its own, or for the last n_layer_kv_shared ones that of the
 * last layer before them of the same kind. */
static int assign_kv(struct model_desc *d, struct err *e)
{
    uint32_t first_shared = d->n_layer - d->hp->n_layer_kv_shared;
    int64_t last[2] = { -1, -1 }; /* layer, by is_sliding */

    for (uint32_t l = 0; l < d->n_layer; l++) {
        struct layer_desc *layer = &d->layers[l];
        bool is_sliding = d->hp->layers[l].is_sliding;

        layer->owns_kv = l < first_shared;
        if (layer->owns_kv) {
            layer->kv_layer = d->n_kv++;
            layer->kind = is_sliding ? MW_LAYER_SLIDING : MW_LAYER_GLOBAL;
            last[is_sliding] = l;
            d->last_kv_layer = l;
            continue;
        }
        layer->kind = is_sliding ? MW_LAYER_SHARED_SLIDING : MW_LAYER_SHARED_GLOBAL;
        if (last[is_sliding] < 0) {
            err_set(e, ERR_FORMAT,
                    "layer %u shares keys and values of a kind that no layer "
                    "before it owns",
                    l);
            return err_at(e, d->catalogue->path, ERR_NO_OFFSET, "attention.shared_kv_layers");
        }
        layer->kv_layer = d->layers[last[is_sliding]].kv_layer;
    }
    if (d->n_kv == 0) {
        err_set(e, ERR_FORMAT, "no layer owns keys and values");
        return err_at(e, d->catalogue->path, ERR_NO_OFFSET, "attention.shared_kv_layers");
    }
    return 0;
}

static bool same_spec(const struct kv_spec *a, const struct kv_spec *b)
{
    return a->is_sliding == b->is_sliding && a->n_head_kv == b->n_head_kv &&
           a->head_dim_k == b->head_dim_k && a->head_dim_v == b->head_dim_v;
}

static int make_kv_specs(struct model_desc *d, struct err *e)
{
    d->kv_specs = calloc(d->n_kv, sizeof d->kv_specs[0]);
    if (d->kv_specs == NULL)
        return err_memory(e, "the table of %u KV layers", d->n_kv);
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        struct kv_spec spec = { .is_sliding = layer->is_sliding && layer->window > 0,
                                .n_head_kv = layer->n_head_kv,
                                .head_dim_k = layer->head_dim_k,
                                .head_dim_v = layer->head_dim_v };

        if (layer->owns_kv) {
            d->kv_specs[layer->kv_layer] = spec;
        } else if (!same_spec(&spec, &d->kv_specs[layer->kv_layer])) {
            err_set(e, ERR_FORMAT, "layer %u shares keys and values of another shape", l);
            return err_at(e, d->catalogue->path, ERR_NO_OFFSET, "attention.shared_kv_layers");
        }
    }
    return 0;
}

/* --- the order of the pass --- */

struct span_list {
    struct stream_span *spans; /* NULL: count only */
    uint32_t n;
    uint32_t layer;
    bool in_prompt;
};

static void add_span(struct span_list *list, struct mat *m)
{
    uint64_t row_bytes;

    if (m->tensor == NULL)
        return;
    row_bytes = tensor_row_bytes(m->tensor->type, m->n_k);
    m->span = list->n;
    if (list->spans != NULL)
        list->spans[list->n] = (struct stream_span){
            .file = m->tensor->file,
            .offset = m->tensor->offset + m->row0 * row_bytes,
            .row_bytes = row_bytes,
            .n_row = m->n_row,
            .layer = list->layer,
            .in_prompt = list->in_prompt,
        };
    list->n++;
}

uint32_t desc_n_prompt_mat(const struct model_desc *d, uint32_t l)
{
    if (l == d->last_kv_layer)
        return N_KV_MAT;
    return l < d->last_kv_layer ? N_LAYER_MAT : 0;
}

uint32_t desc_spans(struct model_desc *d, struct stream_span *spans)
{
    struct span_list list = { .spans = spans };

    for (uint32_t l = 0; l < d->n_layer; l++) {
        list.layer = l;
        for (uint32_t i = 0; i < N_LAYER_MAT; i++) {
            list.in_prompt = i < desc_n_prompt_mat(d, l);
            add_span(&list, &d->layers[l].mats[i]);
        }
    }
    list.layer = d->n_layer;
    list.in_prompt = false;
    add_span(&list, &d->head);
    return list.n;
}

/* --- small weights --- */

int desc_each_vec(struct model_desc *d, int (*fn)(void *ctx, struct vec *v, struct err *e),
                  void *ctx, struct err *e)
{
    if (fn(ctx, &d->ple_norm, e) != 0 || fn(ctx, &d->output_norm, e) != 0)
        return -1;
    for (uint32_t l = 0; l < d->n_layer; l++) {
        struct layer_desc *layer = &d->layers[l];
        struct vec *all[] = {
            /* clang-format off */
            &layer->attn_norm,      &layer->q_norm,       &layer->k_norm,
            &layer->post_attn_norm, &layer->ffn_norm,     &layer->post_ffn_norm,
            &layer->post_ple_norm,  &layer->bias_q,       &layer->bias_k,
            &layer->bias_v,         &layer->bias_o,       &layer->out_scale,
            &layer->bias_gate,      &layer->bias_up,      &layer->bias_down,
            &layer->experts.router, &layer->experts.router_scale, &layer->experts.expert_scale,
            &layer->experts.pre_norm, &layer->experts.post_norm_dense, &layer->experts.post_norm_experts,
            /* clang-format on */
        };

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            if (fn(ctx, all[i], e) != 0)
                return -1;
    }
    return 0;
}

static int add_bytes(void *ctx, struct vec *v, struct err *e)
{
    uint64_t *sum = ctx;

    (void)e;
    if (v->tensor != NULL)
        *sum += arena_size(v->n * sizeof(float));
    return 0;
}

uint64_t desc_resident_bytes(struct model_desc *d)
{
    struct err e = ERR_INIT;
    uint64_t sum = 0;

    desc_each_vec(d, add_bytes, &sum, &e);
    return sum;
}

/* --- nothing left out --- */

/* Values of each tensor that the pass reads. */
struct reading {
    const struct catalogue *c;
    uint64_t *n_read; /* [n_tensor] */
};

static void add_read(struct reading *r, const struct tensor_info *t, uint64_t n)
{
    if (t != NULL)
        r->n_read[t - r->c->tensors] += n;
}

static void add_read_whole(struct reading *r, const struct tensor_info *t)
{
    if (t != NULL)
        add_read(r, t, t->ne[0] * tensor_rows(t));
}

static int add_read_vec(void *ctx, struct vec *v, struct err *e)
{
    (void)e;
    add_read(ctx, v->tensor, v->n);
    return 0;
}

/* Count from the finished description, not from the names that were looked up: a tensor that
 * was found and then forgotten is left out too. */
static int check_use(struct model_desc *d, struct err *e)
{
    struct reading r = { .c = d->catalogue };
    int rc;

    r.n_read = calloc(r.c->n_tensor, sizeof *r.n_read);
    if (r.n_read == NULL)
        return err_memory(e, "the counts of %u tensors", r.c->n_tensor);
    add_read_whole(&r, d->token_embd);
    add_read_whole(&r, d->ple_embd);
    add_read(&r, d->head.tensor, (uint64_t)d->head.n_row * d->head.n_k);
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct experts_desc *x = &d->layers[l].experts;
        const struct mat *mats = d->layers[l].mats;

        for (uint32_t i = 0; i < N_LAYER_MAT; i++)
            add_read(&r, mats[i].tensor, (uint64_t)mats[i].n_row * mats[i].n_k);
        add_read_whole(&r, x->gate_up);
        add_read_whole(&r, x->gate);
        add_read_whole(&r, x->up);
        add_read_whole(&r, x->down);
    }
    rc = desc_each_vec(d, add_read_vec, &r, e);
    if (rc == 0)
        rc = catalogue_check_use(r.c, r.n_read, e);
    free(r.n_read);
    return rc;
}

/* --- the whole --- */

int desc_new(struct model_desc **out, const struct catalogue *c, struct err *e)
{
    const struct hparams *hp = &c->hparams;
    struct finder f = { .c = c, .e = e, .layer = -1 };
    struct model_desc *d;

    *out = NULL;
    if (hp->n_layer == 0) {
        err_set(e, ERR_FORMAT, "the file holds no model");
        return err_at(e, c->path, ERR_NO_OFFSET, "block_count");
    }
    d = calloc(1, sizeof *d + hp->n_layer * sizeof d->layers[0]);
    if (d == NULL)
        return err_memory(e, "the description of %u layers", hp->n_layer);
    d->catalogue = c;
    d->hp = hp;
    d->n_layer = hp->n_layer;
    d->n_embd = hp->n_embd;
    d->n_vocab = hp->n_vocab;
    d->n_embd_per_layer = hp->n_embd_per_layer;
    d->embd_scale = 1;
    d->attn_scale = hp->attn_scale;
    d->softcap_attn = hp->softcap_attn;
    d->softcap_final = hp->softcap_final;
    d->rms_eps = hp->rms_eps;
    if (assign_kv(d, e) != 0)
        goto fail;

    d->token_embd = find_mat(&f, "token_embd.weight", d->n_vocab, d->n_embd, true).tensor;
    d->output_norm = find_vec(&f, "output_norm.weight", d->n_embd, true);
    d->head = find_mat(&f, "output.weight", d->n_vocab, d->n_embd, false);
    if (d->head.tensor == NULL)
        d->head = find_mat(&f, "token_embd.weight", d->n_vocab, d->n_embd, true);
    if (arch_has(hp->arch, TRAIT_HEADS_BY_KIND))
        describe_gemma4(&f, d);
    else
        describe_llama(&f, d);
    if (f.failed || make_kv_specs(d, e) != 0 || check_use(d, e) != 0)
        goto fail;
    *out = d;
    return 0;

fail:
    desc_free(d);
    return -1;
}

void desc_free(struct model_desc *d)
{
    if (d == NULL)
        return;
    free(d->kv_specs);
    free(d);
}
