#include "config.h"

#include "engine/model/desc.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/arena.h"
#include "engine/format/arch.h"
#include "engine/format/draft_head.h"
#include "engine/format/tensor_table.h"
#include "engine/format/tensor_use.h"

/* --- finding tensors --- */

struct finder {
    const struct catalogue *c;
    struct err *e;
    bool failed; /* set at the first error, which is kept */
};

static void fail_at(struct finder *f, const struct tensor_info *t)
{
    char name[96];

    f->failed = true;
    catalogue_spell(f->c, t->name, name, sizeof name);
    err_at(f->e, f->c->path, ERR_NO_OFFSET, name);
}

/* Find the tensor, or the part of a fused one, that the model reads under this id.  Its shape
 * was checked when the catalogue was opened.  Kernels for its type are checked here. */
static bool find(struct finder *f, enum tensor_id id, uint32_t l, struct tensor_part *p)
{
    const struct tensor_type_info *type;
    char list[TYPES_COMPUTED_BYTES];

    if (f->failed || !tensor_find(f->c, id, l, p))
        return false;
    type = tensor_type_info(p->tensor->type);
    if (tensor_spec(id)->form == FORM_IDS) /* converted when it is loaded */
        return true;
    if (p->tensor->type == TYPE_F8_E4M3 && p->tensor->scales == NULL) {
        err_set(f->e, ERR_FORMAT, "the scales of these weights are missing; fetch a file that has them, or the "
                                  "model in another form");
        fail_at(f, p->tensor);
        return false;
    }
    if (type->is_computed)
        return true;
    tensor_types_computed(list, sizeof list);
    err_set(f->e, ERR_UNSUPPORTED, "weight type %s is not supported; memwall runs: %s",
            type->name, list);
    fail_at(f, p->tensor);
    return false;
}

static struct vec scales_of(const struct tensor_info *t)
{
    if (t == NULL || t->scales == NULL)
        return (struct vec){ 0 };
    return (struct vec){ .tensor = t, .is_scales = true, .n = tensor_n_scales(t) };
}

static struct mat find_mat(struct finder *f, enum tensor_id id, uint32_t l)
{
    struct tensor_part p;

    if (!find(f, id, l, &p))
        return (struct mat){ 0 };
    return (struct mat){ .tensor = p.tensor,
                         .row0 = p.first,
                         .n_row = (uint32_t)p.n,
                         .n_k = (uint32_t)p.tensor->ne[0],
                         .scales = scales_of(p.tensor) };
}

/* Tables, weights that are always in memory and the rows of heads are read without scales. */
static void refuse_scales(struct finder *f, const struct tensor_info *t)
{
    if (f->failed || t == NULL || (t->scales == NULL && t->layout != LAYOUT_SPLIT))
        return;
    err_set(f->e, ERR_UNSUPPORTED, "scales of a tensor that is used like this are not supported");
    fail_at(f, t);
}

static struct vec find_vec(struct finder *f, enum tensor_id id, uint32_t l)
{
    struct tensor_part p;

    if (!find(f, id, l, &p))
        return (struct vec){ 0 };
    refuse_scales(f, p.tensor);
    return (struct vec){ .tensor = p.tensor, .first = p.first, .n = p.n };
}

static const struct tensor_info *find_tensor(struct finder *f, enum tensor_id id, uint32_t l)
{
    struct tensor_part p;

    return find(f, id, l, &p) ? p.tensor : NULL;
}

/* --- one layer --- */

struct member {
    enum tensor_id id;
    size_t at; /* in struct layer_desc */
};

/* The tensor of each matrix; of two for one matrix, a layer has at most one.  The order does
 * not matter here: layer_desc.mats states it. */
static const struct member layer_mats[] = {
    { T_NGRAM_KEY, offsetof(struct layer_desc, ngram_key) },
    { T_NGRAM_VALUE, offsetof(struct layer_desc, ngram_value) },
    { T_ATTN_MIX_DOWN, offsetof(struct layer_desc, attn_mix_down) },
    { T_ATTN_MIX_UP, offsetof(struct layer_desc, attn_mix_up) },
    { T_ATTN_HYPER, offsetof(struct layer_desc, attn_mix_down) },
    { T_FFN_HYPER, offsetof(struct layer_desc, ffn_mix_down) },
    { T_INDEX_K, offsetof(struct layer_desc, index_k) },
    { T_SCORE_K, offsetof(struct layer_desc, score_pool) },
    { T_SCORE_POOL, offsetof(struct layer_desc, score_pool) },
    { T_SCORE_GATE, offsetof(struct layer_desc, score_gate) },
    { T_SCORE_WEIGHTS, offsetof(struct layer_desc, score_weights) },
    { T_SCORE_Q, offsetof(struct layer_desc, score_q) },
    { T_KV_ONE, offsetof(struct layer_desc, kv_a) },
    { T_ENTRY_POOL, offsetof(struct layer_desc, entry_pool) },
    { T_ENTRY_GATE, offsetof(struct layer_desc, entry_gate) },
    { T_OUT_A, offsetof(struct layer_desc, out_a) },
    { T_OUT_B, offsetof(struct layer_desc, o) },
    { T_INDEX_Q, offsetof(struct layer_desc, index_q) },
    { T_FFN_MIX_DOWN, offsetof(struct layer_desc, ffn_mix_down) },
    { T_FFN_MIX_UP, offsetof(struct layer_desc, ffn_mix_up) },
    { T_ATTN_K, offsetof(struct layer_desc, k) },
    { T_ATTN_V, offsetof(struct layer_desc, v) },
    { T_DELTA_QKVZ, offsetof(struct layer_desc, delta_qkvz) },
    { T_DELTA_QKV, offsetof(struct layer_desc, delta_qkv) },
    { T_DELTA_Z, offsetof(struct layer_desc, delta_z) },
    { T_DELTA_BA, offsetof(struct layer_desc, delta_ba) },
    { T_DELTA_BETA, offsetof(struct layer_desc, delta_beta) },
    { T_DELTA_ALPHA, offsetof(struct layer_desc, delta_alpha) },
    { T_DELTA_OUT, offsetof(struct layer_desc, delta_out) },
    { T_MAMBA_IN, offsetof(struct layer_desc, delta_qkvz) },
    { T_MAMBA_OUT, offsetof(struct layer_desc, delta_out) },
    { T_CONV_IN, offsetof(struct layer_desc, delta_qkvz) },
    { T_CONV_OUT, offsetof(struct layer_desc, delta_out) },
    { T_KDA_Q, offsetof(struct layer_desc, kda_q) },
    { T_KDA_K, offsetof(struct layer_desc, kda_k) },
    { T_KDA_V, offsetof(struct layer_desc, kda_v) },
    { T_KDA_DECAY_A, offsetof(struct layer_desc, kda_decay_a) },
    { T_KDA_DECAY_B, offsetof(struct layer_desc, kda_decay_b) },
    { T_KDA_GATE_A, offsetof(struct layer_desc, kda_gate_a) },
    { T_KDA_GATE_B, offsetof(struct layer_desc, kda_gate_b) },
    { T_KDA_BETA, offsetof(struct layer_desc, delta_beta) },
    { T_KDA_OUT, offsetof(struct layer_desc, delta_out) },
    { T_KV_A, offsetof(struct layer_desc, kv_a) },
    { T_Q_A, offsetof(struct layer_desc, q_a) },
    { T_Q_B, offsetof(struct layer_desc, q_b) },
    { T_K_B, offsetof(struct layer_desc, k_b) },
    { T_V_B, offsetof(struct layer_desc, v_b) },
    { T_ATTN_GATE, offsetof(struct layer_desc, gate_out) },
    { T_ATTN_Q, offsetof(struct layer_desc, q) },
    { T_ATTN_OUT, offsetof(struct layer_desc, o) },
    { T_FFN_GATE, offsetof(struct layer_desc, gate) },
    { T_FFN_UP, offsetof(struct layer_desc, up) },
    { T_FFN_DOWN, offsetof(struct layer_desc, down) },
    { T_SHARED_GATE, offsetof(struct layer_desc, gate) },
    { T_SHARED_UP, offsetof(struct layer_desc, up) },
    { T_SHARED_DOWN, offsetof(struct layer_desc, down) },
    { T_EXPERT_IN, offsetof(struct layer_desc, expert_in) },
    { T_EXPERT_OUT, offsetof(struct layer_desc, expert_out) },
    { T_PER_LAYER_GATE, offsetof(struct layer_desc, ple_gate) },
    { T_PER_LAYER_OUT, offsetof(struct layer_desc, ple_out) },
};

static const struct member layer_vecs[] = {
    { T_NGRAM_KEY_NORM, offsetof(struct layer_desc, ngram_key_norm) },
    { T_NGRAM_QUERY_NORM, offsetof(struct layer_desc, ngram_query_norm) },
    { T_NGRAM_CONV_NORM, offsetof(struct layer_desc, ngram_conv_norm) },
    { T_NGRAM_CONV, offsetof(struct layer_desc, ngram_conv) },
    { T_ATTN_MIX_NORM, offsetof(struct layer_desc, attn_mix_norm) },
    { T_ATTN_MIX_INJECT, offsetof(struct layer_desc, attn_mix_inject) },
    { T_FFN_MIX_NORM, offsetof(struct layer_desc, ffn_mix_norm) },
    { T_FFN_MIX_INJECT, offsetof(struct layer_desc, ffn_mix_inject) },
    { T_ATTN_HYPER_BASE, offsetof(struct layer_desc, attn_hyper_base) },
    { T_ATTN_HYPER_SCALE, offsetof(struct layer_desc, attn_hyper_scale) },
    { T_FFN_HYPER_BASE, offsetof(struct layer_desc, ffn_hyper_base) },
    { T_FFN_HYPER_SCALE, offsetof(struct layer_desc, ffn_hyper_scale) },
    { T_SCORE_K_NORM, offsetof(struct layer_desc, score_k_norm) },
    { T_SCORE_K_BIAS, offsetof(struct layer_desc, score_k_bias) },
    { T_SCORE_PLACE, offsetof(struct layer_desc, score_place) },
    { T_SCORE_NORM, offsetof(struct layer_desc, score_norm) },
    { T_KV_ONE_NORM, offsetof(struct layer_desc, kv_norm) },
    { T_ENTRY_PLACE, offsetof(struct layer_desc, entry_place) },
    { T_ENTRY_NORM, offsetof(struct layer_desc, entry_norm) },
    { T_EXPERT_IDS, offsetof(struct layer_desc, experts.ids) },
    { T_INDEX_Q_NORM, offsetof(struct layer_desc, index_q_norm) },
    { T_INDEX_K_NORM, offsetof(struct layer_desc, index_k_norm) },
    { T_ATTN_NORM, offsetof(struct layer_desc, attn_norm) },
    { T_ATTN_Q_NORM, offsetof(struct layer_desc, q_norm) },
    { T_ATTN_K_NORM, offsetof(struct layer_desc, k_norm) },
    { T_POST_ATTN_NORM, offsetof(struct layer_desc, post_attn_norm) },
    { T_FFN_NORM, offsetof(struct layer_desc, ffn_norm) },
    { T_POST_FFN_NORM, offsetof(struct layer_desc, post_ffn_norm) },
    { T_PER_LAYER_NORM, offsetof(struct layer_desc, post_ple_norm) },
    { T_ATTN_Q_BIAS, offsetof(struct layer_desc, bias_q) },
    { T_ATTN_K_BIAS, offsetof(struct layer_desc, bias_k) },
    { T_ATTN_V_BIAS, offsetof(struct layer_desc, bias_v) },
    { T_ATTN_OUT_BIAS, offsetof(struct layer_desc, bias_o) },
    { T_OUT_SCALE, offsetof(struct layer_desc, out_scale) },
    { T_FFN_GATE_BIAS, offsetof(struct layer_desc, bias_gate) },
    { T_FFN_UP_BIAS, offsetof(struct layer_desc, bias_up) },
    { T_FFN_DOWN_BIAS, offsetof(struct layer_desc, bias_down) },
    { T_ROUTER, offsetof(struct layer_desc, experts.router) },
    { T_ATTN_SINKS, offsetof(struct layer_desc, sinks) },
    { T_DELTA_CONV, offsetof(struct layer_desc, delta_conv) },
    { T_DELTA_DECAY, offsetof(struct layer_desc, delta_decay) },
    { T_DELTA_BIAS, offsetof(struct layer_desc, delta_bias) },
    { T_DELTA_NORM, offsetof(struct layer_desc, delta_norm) },
    { T_MAMBA_CONV, offsetof(struct layer_desc, delta_conv) },
    { T_MAMBA_CONV_BIAS, offsetof(struct layer_desc, conv_bias) },
    { T_MAMBA_BIAS, offsetof(struct layer_desc, delta_bias) },
    { T_MAMBA_DECAY, offsetof(struct layer_desc, delta_decay) },
    { T_MAMBA_SKIP, offsetof(struct layer_desc, mamba_skip) },
    { T_MAMBA_NORM, offsetof(struct layer_desc, delta_norm) },
    { T_CONV_FILTER, offsetof(struct layer_desc, delta_conv) },
    { T_KDA_Q_CONV, offsetof(struct layer_desc, kda_q_conv) },
    { T_KDA_K_CONV, offsetof(struct layer_desc, kda_k_conv) },
    { T_KDA_V_CONV, offsetof(struct layer_desc, kda_v_conv) },
    { T_KDA_RATE, offsetof(struct layer_desc, delta_decay) },
    { T_KDA_BIAS, offsetof(struct layer_desc, delta_bias) },
    { T_KDA_NORM, offsetof(struct layer_desc, delta_norm) },
    { T_Q_A_NORM, offsetof(struct layer_desc, q_a_norm) },
    { T_KV_A_NORM, offsetof(struct layer_desc, kv_a_norm) },
    { T_CHOICE_BIAS, offsetof(struct layer_desc, experts.choice_bias) },
    { T_SHARED_ROUTER, offsetof(struct layer_desc, experts.shared_router) },
    { T_ROUTER_BIAS, offsetof(struct layer_desc, experts.router_bias) },
    { T_EXPERTS_GATE_UP_BIAS, offsetof(struct layer_desc, experts.gate_up_bias) },
    { T_EXPERTS_GATE_BIAS, offsetof(struct layer_desc, experts.gate_bias) },
    { T_EXPERTS_UP_BIAS, offsetof(struct layer_desc, experts.up_bias) },
    { T_EXPERTS_DOWN_BIAS, offsetof(struct layer_desc, experts.down_bias) },
    { T_ROUTER_SCALE, offsetof(struct layer_desc, experts.router_scale) },
    { T_EXPERT_SCALE, offsetof(struct layer_desc, experts.expert_scale) },
    { T_EXPERTS_PRE_NORM, offsetof(struct layer_desc, experts.pre_norm) },
    { T_DENSE_POST_NORM, offsetof(struct layer_desc, experts.post_norm_dense) },
    { T_EXPERTS_POST_NORM, offsetof(struct layer_desc, experts.post_norm_experts) },
};

#define N_MEMBER(list) (sizeof(list) / sizeof(list)[0])

static void *member_of(struct layer_desc *layer, const struct member *m)
{
    return (char *)layer + m->at;
}

/* Rows are unpacked on the stack of a worker. */
static void check_unpacked(struct finder *f, const struct tensor_info *t)
{
    if (f->failed || t == NULL || t->layout < LAYOUT_TRANSPOSED ||
        tensor_row_bytes(t->type, t->ne[0]) <= UNPACK_BYTES)
        return;
    err_set(f->e, ERR_UNSUPPORTED, "rows of more than %d KiB are not supported in this layout",
            UNPACK_BYTES / 1024);
    fail_at(f, t);
}

/* Gate and up have their biases in the form of their weights.  The other form is not read, so
 * that a file with both is refused. */
static void choose_biases(struct finder *f, struct experts_desc *x, enum expert_rule rule)
{
    bool is_fused = x->gate_up != NULL;

    if (is_fused)
        x->gate_bias = x->up_bias = (struct vec){ 0 };
    else
        x->gate_up_bias = (struct vec){ 0 };
    if (f->failed || rule != EXPERTS_GPT_OSS ||
        (is_fused ? x->gate_up_bias.tensor != NULL
                  : x->gate_bias.tensor != NULL && x->up_bias.tensor != NULL))
        return;
    err_set(f->e, ERR_FORMAT, "the biases of these experts are missing");
    fail_at(f, is_fused ? x->gate_up : x->gate);
}

/* Returns the x above 0 with silu(x) = y.  No step begins below y, where the slope of a step is
 * y * exp(-y) at most, which is below 0.37, so these are enough for any y. */
static float inverse_silu(double y)
{
    double x = y;

    for (int i = 0; i < 40; i++)
        x = y * (1 + exp(-x));
    return (float)x;
}

/* silu rises above 0, so an upper limit of silu(gate) is one of gate, too. */
static struct clamp clamp_of(const struct arch *a, float limit)
{
    bool is_later = a->clamps_silu && limit > 0;

    return (struct clamp){ is_later ? inverse_silu((double)limit) : limit, limit };
}

static void describe_experts(struct finder *f, const struct hparams *hp, struct experts_desc *x,
                             uint32_t l)
{
    bool is_gguf = f->c->kind == CATALOGUE_GGUF;
    enum expert_rule rule = arch_experts(hp->arch, is_gguf);

    x->is_beside = rule == EXPERTS_BESIDE;
    x->keeps_weights = hp->keeps_expert_weights;
    x->limit = hp->swiglu_limit;
    x->clamp = clamp_of(hp->arch, hp->layers[l].clamp);
    x->is_routed = rule == EXPERTS_ROUTED;
    x->is_shared = rule == EXPERTS_QWEN_SHARED || (x->is_routed && hp->layers[l].n_ff > 0);
    x->score = hp->router_score;
    x->n_group = hp->n_expert_group;
    x->n_group_used = hp->n_expert_group_used;
    x->groups_by_max = hp->groups_by_max;
    x->factor = hp->expert_factor;
    x->guard = hp->expert_guard;
    x->n_expert = hp->n_expert;
    x->n_used = hp->n_expert_used;
    x->n_ff = hp->n_ff_expert;
    x->n_in = hp->n_expert_in > 0 ? hp->n_expert_in : hp->n_embd;
    x->gate_up = find_tensor(f, T_EXPERTS_GATE_UP, l);
    x->down = find_tensor(f, T_EXPERTS_DOWN, l);
    x->gate_up_scales = scales_of(x->gate_up);
    x->down_scales = scales_of(x->down);
    x->rows_alternate = x->gate_up != NULL && rule == EXPERTS_GPT_OSS;
    check_unpacked(f, x->gate_up);
    check_unpacked(f, x->down);
    if (x->gate_up == NULL) {
        x->gate = find_tensor(f, T_EXPERTS_GATE, l);
        x->up = find_tensor(f, T_EXPERTS_UP, l);
        x->gate_scales = scales_of(x->gate);
        x->up_scales = scales_of(x->up);
        check_unpacked(f, x->gate);
        check_unpacked(f, x->up);
    }
    choose_biases(f, x, rule);
    if (x->gate_up != NULL)
        return;
    if (f->failed || x->gate == NULL || x->gate->type == x->up->type)
        return;
    err_set(f->e, ERR_UNSUPPORTED, "has another type than the experts' gate");
    fail_at(f, x->up);
}

/* The matrices that lead from the latent vector to heads, and from heads to it.  Old files and
 * snapshots have one tensor with the rows of keys and then of values of each head; it is read
 * twice. */
static void describe_latent(struct finder *f, struct layer_desc *layer, uint32_t l)
{
    struct mat both = find_mat(f, T_KV_B, l);

    if (layer->k_b.tensor == NULL && layer->v_b.tensor == NULL) {
        layer->k_b = layer->v_b = both;
        layer->has_joined_kv_b = true;
    }
    layer->k_b.n_head = layer->v_b.n_head = layer->n_head;
    if (mat_is_split(&layer->k_b) || mat_is_split(&layer->v_b))
        refuse_scales(f, mat_is_split(&layer->k_b) ? layer->k_b.tensor : layer->v_b.tensor);
}

/* A delta net has its projections joined or apart.  If both separate projections exist, the
 * joined one is not read.  A file with all three is then refused for a tensor that nothing
 * reads. */
static void choose_projections(struct layer_desc *layer)
{
    if (layer->delta_qkv.tensor != NULL && layer->delta_z.tensor != NULL)
        layer->delta_qkvz = (struct mat){ 0 };
    else
        layer->delta_qkv = layer->delta_z = (struct mat){ 0 };
}

/* Set a member to its tensor, if the layer has it: it has at most one of those for a member. */
static void add_vec(struct finder *f, struct layer_desc *layer, const struct member *m,
                    uint32_t l)
{
    struct vec v = find_vec(f, m->id, l);

    if (v.tensor != NULL)
        *(struct vec *)member_of(layer, m) = v;
}

static void describe_layer(struct finder *f, struct model_desc *d, uint32_t l)
{
    const struct hparams *hp = d->hp;
    const struct layer_hparams *from = &hp->layers[l];
    struct layer_desc *layer = &d->layers[l];

    layer->is_sliding = from->is_sliding;
    layer->window = from->is_sliding ? hp->n_swa : 0;
    if (d->reads_trunk_kv && from->is_sliding) /* its own position has no keys */
        layer->window--;
    layer->n_head = from->n_head;
    layer->n_head_kv = from->n_head_kv;
    layer->head_dim_k = from->head_dim_k;
    layer->head_dim_v = from->head_dim_v;
    layer->n_ff = from->n_ff;
    layer->is_ropeless = from->is_ropeless;
    layer->attends = from->attends;
    layer->is_recurrent = from->is_recurrent;
    layer->is_latent = hp->latent.n_latent > 0 && from->attends;
    layer->has_late_norms = arch_has(hp->arch, TRAIT_LATE_QK_NORM);
    layer->has_unit_norms = arch_has(hp->arch, TRAIT_UNIT_NORMS);
    layer->is_parallel = arch_has(hp->arch, TRAIT_PARALLEL);
    layer->out_gate = from->attends ? hp->arch->gate : GATE_NONE;
    layer->is_gated = arch_has(hp->arch, TRAIT_DELTA) && !from->is_recurrent;
    layer->has_entries = arch_has(hp->arch, TRAIT_ENTRIES);
    layer->ratio = from->ratio;
    layer->has_base_rope = from->is_sliding && from->ratio == 0;
    layer->clamp = clamp_of(hp->arch, from->clamp_dense);
    layer->has_index = arch_has(hp->arch, TRAIT_SCORED)
                           ? from->has_index
                           : hp->index.n_head > 0 && !from->is_recurrent;
    layer->is_indexed = layer->has_index || from->shares_choice;
    layer->has_v_norm = arch_has(hp->arch, TRAIT_V_NORM);
    for (size_t i = 0; i < N_MEMBER(layer_mats); i++) {
        struct mat m = find_mat(f, layer_mats[i].id, l);

        if (m.tensor != NULL)
            *(struct mat *)member_of(layer, &layer_mats[i]) = m;
        check_unpacked(f, m.tensor);
    }
    for (size_t i = 0; i < N_MEMBER(layer_vecs); i++)
        add_vec(f, layer, &layer_vecs[i], l);
    layer->v_is_k = layer->owns_kv && layer->v.tensor == NULL && !layer->is_latent &&
                    !layer->has_entries;
    layer->out_a.n_head = hp->out.n_group;
    if (arch_has(hp->arch, TRAIT_ONE_BLOCK) && !from->attends && !from->is_recurrent) {
        layer->ffn_norm = layer->attn_norm; /* the layer's only norm */
        layer->attn_norm = (struct vec){ 0 };
    }
    /* One tensor has the rows of all layers. */
    layer->ple_proj = find_mat(f, T_PER_LAYER_PROJ, l);
    layer->ple_proj.n_row = d->n_embd_per_layer;
    layer->ple_proj.row0 = (uint64_t)l * d->n_embd_per_layer;
    if (layer->is_recurrent && d->recurrence == RECUR_DELTA)
        choose_projections(layer);
    if (layer->is_latent)
        describe_latent(f, layer, l);
    if (hp->n_expert > 0 && from->has_experts)
        describe_experts(f, hp, &layer->experts, l);
}

/* --- which keys and values a layer reads --- */

/* Assign the store that each layer reads: its own, or for the last n_layer_kv_shared layers
 * that of the last layer of the same kind before them.  hparams_finish() checked that there is
 * one of the same shape. */
static void assign_kv(struct model_desc *d)
{
    uint32_t first_shared = d->n_layer - d->hp->n_layer_kv_shared;
    uint32_t last[2] = { 0, 0 }; /* store of the last owner, by is_sliding */

    for (uint32_t l = 0; l < d->n_layer; l++) {
        struct layer_desc *layer = &d->layers[l];
        bool is_sliding = d->hp->layers[l].is_sliding;

        if (d->hp->layers[l].is_recurrent) {
            layer->recurrent_layer = d->recurrent.n_layer++;
            d->last_kv_layer = l;
        }
        if (!d->hp->layers[l].attends) {
            layer->kind =
                d->hp->layers[l].is_recurrent ? MW_LAYER_RECURRENT : MW_LAYER_FEED_FORWARD;
            continue;
        }
        layer->owns_kv = l < first_shared;
        if (layer->owns_kv) {
            layer->kind = d->hp->layers[l].has_index ? MW_LAYER_INDEXED
                          : is_sliding               ? MW_LAYER_SLIDING
                          : d->hp->index.n_head > 0  ? MW_LAYER_INDEXED
                                                     : MW_LAYER_GLOBAL;
            last[is_sliding] = d->n_kv++;
            d->last_kv_layer = l;
        } else {
            layer->kind = is_sliding ? MW_LAYER_SHARED_SLIDING : MW_LAYER_SHARED_GLOBAL;
        }
        layer->kv_layer = d->reads_trunk_kv ? draft_head_store(d->catalogue, l) : last[is_sliding];
    }
}

/* Returns the first of n more values in the other parts of the recurrent state. */
static uint64_t add_other(struct model_desc *d, uint64_t n)
{
    uint64_t at = d->recurrent.n_other;

    d->recurrent.n_other += n;
    return at;
}

static void place_others(struct model_desc *d)
{
    const struct index_hparams *x = &d->hp->index;
    const struct ngram_hparams *g = &d->hp->ngram;

    d->others.has_index = arch_has(d->hp->arch, TRAIT_INDEX);
    if (d->others.has_index)
        d->others.index = add_other(d, (uint64_t)d->n_kv * (x->block - 1) * x->head_dim);
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_hparams *from = &d->hp->layers[l];

        if (from->ratio > 0)
            d->layers[l].entry_state =
                add_other(d, hparams_open_pool(d->hp, from->head_dim_k, from->ratio));
        if (from->has_index)
            d->layers[l].index_state =
                add_other(d, hparams_open_pool(d->hp, x->head_dim, x->block));
    }
    if (g->n_token == 0)
        return;
    d->others.ngram_ids = add_other(d, g->n_token - 1);
    d->others.ngram_past =
        add_other(d, (uint64_t)(g->conv_width - 1) * g->n_token * d->n_stream * d->n_embd);
    /* Every token of a prompt writes this state, too. */
    if (d->last_kv_layer < g->layer)
        d->last_kv_layer = g->layer;
}

static int make_kv_specs(struct model_desc *d, struct err *e)
{
    const struct delta_hparams *delta = &d->hp->delta;

    d->recurrent.n_past = delta->conv_width > 0 ? delta->conv_width - 1 : 0;
    d->recurrent.n_channel = delta->n_channel;
    d->recurrent.n_head = delta->n_head_v;
    d->recurrent.head_dim_k = delta->head_dim_k;
    d->recurrent.head_dim_v = delta->head_dim_v;
    d->kv_specs = calloc(d->n_kv, sizeof d->kv_specs[0]);
    if (d->kv_specs == NULL && d->n_kv > 0)
        return err_memory(e, "the table of %u KV layers", d->n_kv);
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];

        if (layer->owns_kv)
            d->kv_specs[layer->kv_layer] =
                (struct kv_spec){ .is_sliding = layer->is_sliding && layer->window > 0,
                                  .n_head_kv = layer->n_head_kv,
                                  .has_latent = layer->is_latent || layer->has_entries,
                                  .entry_block = layer->ratio,
                                  .head_dim_k = layer->head_dim_k,
                                  .head_dim_v = layer->head_dim_v,
                                  .index_dim = layer->has_index ? d->hp->index.head_dim : 0,
                                  .index_block = d->hp->index.block };
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

/* Rows of m that are row_bytes long and begin at `at`. */
static void add_rows(struct span_list *list, struct mat *m, struct tensor_piece at,
                     uint64_t row_bytes)
{
    m->span = list->n;
    if (list->spans != NULL)
        list->spans[list->n] = (struct stream_span){
            .file = at.file,
            .offset = at.offset + m->row0 * row_bytes,
            .row_bytes = row_bytes,
            .n_row = m->n_row,
            .layer = list->layer,
            .stays_as_in_file = m->n_head > 0 || mat_is_split(m),
            .in_prompt = list->in_prompt,
        };
    list->n++;
}

static void add_span(struct span_list *list, struct mat *m)
{
    uint64_t row_bytes, values;

    if (m->tensor == NULL)
        return;
    row_bytes = tensor_row_bytes(m->tensor->type, m->n_k);
    if (!mat_is_split(m)) {
        add_rows(list, m, (struct tensor_piece){ m->tensor->file, m->tensor->offset }, row_bytes);
        return;
    }
    values = split_value_bytes(m->n_k);
    add_rows(list, m, m->tensor->pieces[1], row_bytes - values);
    add_rows(list, m, m->tensor->pieces[0], values);
}

uint32_t desc_n_prompt_mat(const struct model_desc *d, uint32_t l)
{
    if (l == d->last_kv_layer)
        return N_STATE_MAT;
    return l < d->last_kv_layer ? N_LAYER_MAT : 0;
}

uint32_t desc_spans(struct model_desc *d, struct stream_span *spans)
{
    struct span_list list = { .spans = spans, .in_prompt = true };

    for (uint32_t i = 0; i < N_BEGIN_MAT; i++)
        add_span(&list, &d->begin_mats[i]);
    for (uint32_t l = 0; l < d->n_layer; l++) {
        list.layer = l;
        for (uint32_t i = 0; i < N_LAYER_MAT; i++) {
            list.in_prompt = i < desc_n_prompt_mat(d, l);
            add_span(&list, &d->layers[l].mats[i]);
        }
    }
    list.layer = d->n_layer;
    list.in_prompt = false;
    for (uint32_t i = 0; i < N_END_MAT; i++)
        add_span(&list, &d->end_mats[i]);
    return list.n;
}

void desc_span_types(struct model_desc *d, enum tensor_type *types)
{
    for (uint32_t i = 0; i < N_BEGIN_MAT; i++)
        if (d->begin_mats[i].tensor != NULL)
            types[d->begin_mats[i].span] = d->begin_mats[i].tensor->type;
    for (uint32_t l = 0; l < d->n_layer; l++)
        for (uint32_t i = 0; i < N_LAYER_MAT; i++)
            if (d->layers[l].mats[i].tensor != NULL)
                types[d->layers[l].mats[i].span] = d->layers[l].mats[i].tensor->type;
    for (uint32_t i = 0; i < N_END_MAT; i++)
        if (d->end_mats[i].tensor != NULL)
            types[d->end_mats[i].span] = d->end_mats[i].tensor->type;
}

/* --- small weights --- */

static int each_scales(struct layer_desc *layer,
                       int (*fn)(void *ctx, struct vec *v, struct err *e), void *ctx,
                       struct err *e)
{
    struct experts_desc *x = &layer->experts;

    for (uint32_t i = 0; i < N_LAYER_MAT; i++)
        if (fn(ctx, &layer->mats[i].scales, e) != 0)
            return -1;
    return fn(ctx, &x->gate_up_scales, e) != 0 || fn(ctx, &x->gate_scales, e) != 0 ||
                   fn(ctx, &x->up_scales, e) != 0 || fn(ctx, &x->down_scales, e) != 0
               ? -1
               : 0;
}

int desc_each_vec(struct model_desc *d, int (*fn)(void *ctx, struct vec *v, struct err *e),
                  void *ctx, struct err *e)
{
    if (fn(ctx, &d->ple_norm, e) != 0 || fn(ctx, &d->output_norm, e) != 0 ||
        fn(ctx, &d->out_mix_norm, e) != 0 || fn(ctx, &d->out_hyper_base, e) != 0 ||
        fn(ctx, &d->out_hyper_scale, e) != 0 || fn(ctx, &d->head_embd_norm, e) != 0 ||
        fn(ctx, &d->head_hidden_norm, e) != 0)
        return -1;
    for (uint32_t l = 0; l < d->n_layer; l++) {
        struct layer_desc *layer = &d->layers[l];
        for (size_t i = 0; i < N_MEMBER(layer_vecs); i++)
            if (fn(ctx, member_of(layer, &layer_vecs[i]), e) != 0)
                return -1;
        if (each_scales(layer, fn, ctx, e) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < N_END_MAT; i++)
        if (fn(ctx, &d->end_mats[i].scales, e) != 0)
            return -1;
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
    if (!v->is_scales)
        add_read(ctx, v->tensor, v->n);
    return 0;
}

/* Count from the finished description instead of the names that were looked up, so that a
 * tensor that was found and then forgotten is reported, too. */
static int check_use(struct model_desc *d, struct err *e)
{
    struct reading r = { .c = d->catalogue };
    int rc;

    r.n_read = calloc(r.c->n_tensor, sizeof *r.n_read);
    if (r.n_read == NULL)
        return err_memory(e, "the counts of %u tensors", r.c->n_tensor);
    add_read_whole(&r, d->token_embd);
    add_read_whole(&r, d->ple_embd);
    add_read_whole(&r, d->ngram_embd);
    for (uint32_t i = 0; i < N_BEGIN_MAT; i++)
        add_read(&r, d->begin_mats[i].tensor,
                 (uint64_t)d->begin_mats[i].n_row * d->begin_mats[i].n_k);
    for (uint32_t i = 0; i < N_END_MAT; i++)
        add_read(&r, d->end_mats[i].tensor,
                 (uint64_t)d->end_mats[i].n_row * d->end_mats[i].n_k);
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

static enum recurrence recurrence_of(const struct arch *a)
{
    return arch_has(a, TRAIT_DELTA)        ? RECUR_DELTA
           : arch_has(a, TRAIT_MAMBA)      ? RECUR_MAMBA
           : arch_has(a, TRAIT_SHORT_CONV) ? RECUR_CONV
           : arch_has(a, TRAIT_KDA)        ? RECUR_KDA
                                           : RECUR_NONE;
}

/* Find the parts of a draft head that are not in its layers. */
static void describe_head(struct finder *f, struct model_desc *d)
{
    d->head_embd_norm = find_vec(f, T_HEAD_EMBD_NORM, 0);
    d->head_hidden_norm = find_vec(f, T_HEAD_HIDDEN_NORM, 0);
    d->head_in = find_mat(f, T_HEAD_IN, 0);
    d->head_join = find_mat(f, T_HEAD_JOIN, 0);
    d->head_join_embd = find_mat(f, T_HEAD_JOIN_EMBD, 0);
    d->head_join_hidden = find_mat(f, T_HEAD_JOIN_HIDDEN, 0);
    d->head_clusters = find_mat(f, T_HEAD_CLUSTERS, 0);
    d->head_out = find_mat(f, T_HEAD_OUT, 0);
}

int desc_new(struct model_desc **out, const struct catalogue *c, struct err *e)
{
    const struct hparams *hp = &c->hparams;
    struct finder f = { .c = c, .e = e };
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
    d->n_stream = hp->n_stream > 0 ? hp->n_stream : 1;
    d->has_hyper = arch_has(hp->arch, TRAIT_HYPER);
    d->n_inject = hp->n_stream * (d->has_hyper ? 1 + hp->n_stream : 1);
    d->embd_scale = hp->embd_scale;
    d->residual_scale = hp->residual_scale;
    d->logit_scale = hp->logit_scale;
    d->act = arch_has(hp->arch, TRAIT_GELU)    ? ACT_KIND_GELU
             : arch_has(hp->arch, TRAIT_RELU2) ? ACT_KIND_RELU2
                                               : ACT_KIND_SILU;
    d->recurrence = recurrence_of(hp->arch);
    d->has_mean_norms = arch_has(hp->arch, TRAIT_MEAN_NORM);
    d->has_unit_embd = arch_has(hp->arch, TRAIT_UNIT_NORMS);
    d->attn_scale = hp->attn_scale;
    d->softcap_attn = hp->softcap_attn;
    d->softcap_final = hp->softcap_final;
    d->rms_eps = hp->rms_eps;
    d->post_eps = hp->post_eps;
    d->n_hidden = hp->head.n_hidden;
    d->reads_trunk_kv = arch_has(hp->arch, TRAIT_ASSISTANT);
    assign_kv(d);
    place_others(d);

    d->token_embd = find_tensor(&f, d->reads_trunk_kv ? T_HEAD_EMBD : T_TOKEN_EMBD, 0);
    d->ple_embd = find_tensor(&f, T_PER_LAYER_EMBD, 0);
    d->ple_norm = find_vec(&f, T_PER_LAYER_PROJ_NORM, 0);
    d->ngram_embd = find_tensor(&f, T_NGRAM_EMBD, 0);
    d->output_norm = find_vec(&f, T_OUTPUT_NORM, 0);
    d->out_mix_norm = find_vec(&f, T_OUT_MIX_NORM, 0);
    d->out_mix_down = find_mat(&f, T_OUT_MIX_DOWN, 0);
    d->out_mix_up = find_mat(&f, T_OUT_MIX_UP, 0);
    d->out_hyper_base = find_vec(&f, T_OUT_HYPER_BASE, 0);
    d->out_hyper_scale = find_vec(&f, T_OUT_HYPER_SCALE, 0);
    if (d->has_hyper)
        d->out_mix_down = find_mat(&f, T_OUT_HYPER, 0);
    d->head = find_mat(&f, T_OUTPUT, 0);
    if (d->head.tensor == NULL)
        d->head = find_mat(&f, T_TOKEN_EMBD, 0);
    check_unpacked(&f, d->head.tensor);
    describe_head(&f, d);
    for (uint32_t l = 0; l < d->n_layer; l++)
        describe_layer(&f, d, l);
    refuse_scales(&f, d->token_embd);
    refuse_scales(&f, d->ple_embd);
    refuse_scales(&f, d->ngram_embd);
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
